//! Programs: how their command line is split, and what they find around them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidegate_client::{Command, Target, parse_env_file};

use super::Resolver;
use crate::missing_reference::Missing;
use crate::read_file;
use crate::written::{Server, Words};

impl Resolver<'_> {
    pub(super) fn command(&mut self, name: &str, server: &Server) -> Option<Target> {
        let Some(mut command) = self.words(name, server) else {
            // Looked at all the same, for whatever else is missing or wrong.
            self.check_variables(&["servers", name, "env"], &server.env);
            self.env_file(name, server.env_file.as_deref());
            return None;
        };
        self.check_variables(&["servers", name, "env"], &server.env);
        // What is nearer to the server wins.
        let mut env = self.default_env.clone();
        env.append(&mut self.env_file(name, server.env_file.as_deref()));
        env.append(&mut command.env);
        env.extend(server.env.clone());
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
            self.wrong(&at, "must be a program, and is empty");
            return None;
        }
        if command.program.contains("://") {
            self.wrong(&at, "is a URL, not a program; use url instead");
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
        let mut filled = Vec::new();
        for word in words {
            match self.secrets.text(word) {
                Ok(word) => filled.push(word),
                Err(faults) => {
                    faults.into_iter().for_each(|fault| self.lacks(&["servers", name, "command"], fault));
                }
            }
        }
        (filled.len() == words.len()).then_some(filled)
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
        let text = match self.secrets.file(&path, read_file::MAX_BYTES) {
            Ok(text) => text,
            Err(sentence) => {
                self.absent.add(&at, Missing::File(sentence));
                return BTreeMap::new();
            }
        };
        parse_env_file(&text).unwrap_or_else(|line| {
            self.wrong(&at, format!("line {line} of {} is not NAME=value", path.display()));
            BTreeMap::new()
        })
    }
}
