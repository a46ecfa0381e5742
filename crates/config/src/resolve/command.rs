//! Programs: how their command line is split, and what they find around them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidegate_client::{Command, Target, parse_env_file};

use super::Resolver;
use crate::read;
use crate::written::{Server, Words};

impl Resolver<'_> {
    pub(super) fn command(&mut self, name: &str, server: &Server) -> Option<Target> {
        let mut command = self.words(name, server)?;
        let mut env = self.env_file(name, server.env_file.as_deref());
        env.append(&mut command.env);
        for (variable, value) in &server.env {
            let at = ["servers", name, "env", variable];
            if variable.is_empty() || variable.contains(['=', '\0']) {
                self.wrong(&at, "this is no name for a variable");
            }
            if value.contains('\0') {
                self.wrong(&at, "it holds a NUL character, which no variable may hold");
            }
            env.insert(variable.clone(), value.clone());
        }
        command.env = env;
        if let Some(cwd) = &server.cwd {
            command.cwd = self.path(&["servers", name, "cwd"], cwd);
        }
        Some(Target::Command(command))
    }

    /// The program and its arguments.
    fn words(&mut self, name: &str, server: &Server) -> Option<Command> {
        let at = ["servers", name, "command"];
        let more = || server.args.iter().flatten().cloned();
        let command = match server.command.as_ref()? {
            Words::List(words) => {
                let mut words = self.filled(name, words)?.into_iter();
                let program = words.next().unwrap_or_default();
                Command { program, args: words.chain(more()).collect(), ..Command::default() }
            }
            Words::Line(line) if server.args.is_some() || !line.trim().contains(char::is_whitespace) => {
                let program = self.filled(name, std::slice::from_ref(line))?.pop().unwrap_or_default();
                Command { program, args: more().collect(), ..Command::default() }
            }
            Words::Line(line) => self.line(name, line)?,
        };
        if command.program.trim().is_empty() {
            self.wrong(&at, "it is empty, so name a program");
            return None;
        }
        if command.program.contains("://") {
            self.wrong(&at, "it is an address, and a command is a program: write url instead");
            return None;
        }
        let program = self.program(&command.program);
        Some(Command { program, ..command })
    }

    /// A command line, unless it is the name of a file with spaces in it.
    fn line(&mut self, name: &str, line: &str) -> Option<Command> {
        let whole = self.filled(name, &[line.to_owned()])?.pop().unwrap_or_default();
        if self.secrets.path(&whole).is_file() {
            return Some(Command { program: whole, ..Command::default() });
        }
        match Target::parse(line) {
            Ok(Target::Command(command)) => {
                let program = self.filled(name, &[command.program])?.pop().unwrap_or_default();
                let args = self.filled(name, &command.args)?;
                let (names, values): (Vec<_>, Vec<_>) = command.env.into_iter().unzip();
                let env = names.into_iter().zip(self.filled(name, &values)?).collect();
                Some(Command { program, args, env, cwd: None })
            }
            Ok(_) => None,
            Err(error) => {
                self.wrong(&["servers", name, "command"], error.to_string());
                None
            }
        }
    }

    /// Words of a command line with everything filled in.
    fn filled(&mut self, name: &str, words: &[String]) -> Option<Vec<String>> {
        match words.iter().map(|word| self.secrets.text(word)).collect() {
            Ok(words) => Some(words),
            Err(sentence) => {
                self.wrong(&["servers", name, "command"], sentence);
                None
            }
        }
    }

    /// A program as it will be looked up: `./x` is meant from the folder of the configuration, wherever the gateway was
    /// started.
    fn program(&self, text: &str) -> String {
        let path = match text.starts_with("./") || text.starts_with("../") {
            true => self.secrets.path(text).components().collect(),
            false if text.starts_with("~/") => self.secrets.untilded(text),
            false => PathBuf::from(text),
        };
        path.to_string_lossy().into_owned()
    }

    fn env_file(&mut self, name: &str, file: Option<&str>) -> BTreeMap<String, String> {
        let at = ["servers", name, "env_file"];
        let Some(path) = file.and_then(|file| self.path(&at, file)) else { return BTreeMap::new() };
        let read = self.secrets.file(&path, read::MAX_BYTES).and_then(|text| {
            parse_env_file(&text)
                .map_err(|line| format!("line {line} of {} is not NAME=value", path.display()))
        });
        read.unwrap_or_else(|sentence| {
            self.wrong(&at, sentence);
            BTreeMap::new()
        })
    }
}
