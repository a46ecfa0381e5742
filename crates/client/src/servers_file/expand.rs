//! Variables in `mcpServers` files. [`ServersFile`](super::ServersFile) lists the forms.
//!
//! All forms are understood in every file. What looks like none of them is left as it is, since it may be meant for
//! the program.

use std::cell::RefCell;
use std::path::{MAIN_SEPARATOR_STR, Path, PathBuf};

use tidegate_service::secrets::register_setting;

use super::Input;
use super::error::MissingVariable;
use crate::target::is_variable;

/// What variables are taken from.
pub(super) struct Surroundings<'a> {
    /// The environment.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The home directory.
    pub(super) home: Option<PathBuf>,
    /// The current directory.
    pub(super) here: PathBuf,
}

impl Surroundings<'static> {
    /// Those of this process.
    pub(super) fn here() -> Surroundings<'static> {
        Surroundings {
            variable: &|name| std::env::var(name).ok(),
            home: std::env::home_dir(),
            here: std::env::current_dir().unwrap_or_default(),
        }
    }
}

impl Surroundings<'_> {
    /// The folder that a file belongs to: the one around `.vscode` or `.cursor`, else the one that it is in. Files in
    /// the home directory belong to whatever is worked on, so for them it is the current directory.
    pub(super) fn workspace(&self, file: &Path) -> PathBuf {
        let file = self.here.join(file);
        let Some(mut folder) = file.parent() else { return self.here.clone() };
        let of_a_program = folder.file_name().is_some_and(|name| {
            [".vscode", ".cursor", ".gemini", ".windsurf", ".idea", ".zed", ".codex"]
                .iter()
                .any(|known| name == *known)
        });
        if of_a_program {
            folder = folder.parent().unwrap_or(folder);
        }
        if self.home.as_deref() == Some(folder) { self.here.clone() } else { tidy(folder) }
    }
}

/// The path without `.` parts.
fn tidy(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Fills in the variables of one server. What is missing is remembered, so that all of it can be said at once.
pub(super) struct Expander<'a> {
    around: &'a Surroundings<'a>,
    workspace: PathBuf,
    inputs: &'a [Input],
    dollars: bool,
    missing: RefCell<Vec<MissingVariable>>,
}

/// Whether `$NAME` without braces is a variable in this file, as it is for Gemini CLI.
pub(super) fn has_dollars(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == ".gemini")
}

impl<'a> Expander<'a> {
    pub(super) fn new(around: &'a Surroundings<'a>, file: &Path, inputs: &'a [Input]) -> Expander<'a> {
        Expander {
            around,
            workspace: around.workspace(file),
            inputs,
            dollars: has_dollars(file),
            missing: RefCell::default(),
        }
    }

    /// The text of a field with its variables filled in. What is filled in is not looked at again; what is missing is
    /// filled in with nothing. The error is a sentence.
    pub(super) fn text(&self, field: &str, text: &str) -> Result<String, String> {
        walk(text, self.dollars, &mut |inner| self.variable(field, inner))
    }

    /// A path: variables, `~/` for the home directory, and relative to the folder that the file belongs to.
    pub(super) fn path(&self, field: &str, text: &str) -> Result<PathBuf, String> {
        Ok(self.workspace.join(self.untilded(self.text(field, text)?)))
    }

    /// A program: variables and `~/`, but otherwise as it is, because it may be one in `PATH`.
    pub(super) fn program(&self, text: &str) -> Result<String, String> {
        Ok(self.untilded(self.text("command", text)?))
    }

    /// Whether nothing was missing so far.
    pub(super) fn is_complete(&self) -> bool {
        self.missing.borrow().is_empty()
    }

    /// The variables that were missing, each once.
    pub(super) fn into_missing(self) -> Vec<MissingVariable> {
        self.missing.into_inner()
    }

    fn lacks(&self, missing: MissingVariable) -> String {
        let mut all = self.missing.borrow_mut();
        if !all.iter().any(|known| known.variable == missing.variable) {
            all.push(missing);
        }
        String::new()
    }

    fn untilded(&self, text: String) -> String {
        match (text.strip_prefix("~/"), &self.around.home) {
            (Some(rest), Some(home)) => home.join(rest).to_string_lossy().into_owned(),
            _ => text,
        }
    }

    /// What stands between `${` and `}` as its value; `None` if that is no variable.
    fn variable(&self, field: &str, inner: &str) -> Result<Option<String>, String> {
        let known = match inner {
            "userHome" => match &self.around.home {
                Some(home) => home.to_string_lossy().into_owned(),
                None => self.lacks(MissingVariable::new("HOME", field)),
            },
            "workspaceFolder" => self.workspace.to_string_lossy().into_owned(),
            "workspaceFolderBasename" => {
                self.workspace.file_name().unwrap_or_default().to_string_lossy().into_owned()
            }
            "pathSeparator" | "/" => MAIN_SEPARATOR_STR.to_owned(),
            _ => match inner.strip_prefix("input:") {
                Some(id) => self.input(field, id),
                None => return self.environment(field, inner),
            },
        };
        Ok(Some(known))
    }

    fn environment(&self, field: &str, inner: &str) -> Result<Option<String>, String> {
        let inner = inner.strip_prefix("env:").unwrap_or(inner);
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if !is_variable(name) {
            return match name.split_once(':') {
                Some((kind @ ("command" | "config" | "workspaceFolder"), _)) => {
                    Err(format!("only an editor can fill in ${{{kind}:…}}; enter the value itself"))
                }
                _ => Ok(None),
            };
        }
        match ((self.around.variable)(name), default) {
            (Some(value), _) => {
                register_setting(&value);
                Ok(Some(value))
            }
            (None, Some(default)) => self.text(field, default).map(Some),
            (None, None) => Ok(Some(self.lacks(MissingVariable::new(name, field)))),
        }
    }

    /// `github-token` is taken from that variable or, since no shell can set one of that name, from `GITHUB_TOKEN`.
    fn input(&self, field: &str, id: &str) -> String {
        let shouted: String = id
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
            .collect();
        let known = self.inputs.iter().find(|input| input.id == id);
        [id, &shouted]
            .iter()
            .find_map(|name| (self.around.variable)(name))
            .inspect(|value| register_setting(value))
            .or_else(|| known.and_then(|input| input.default.clone()))
            .unwrap_or_else(|| {
                let variable = if is_variable(id) { id } else { &shouted };
                self.lacks(MissingVariable {
                    input: Some(id.to_owned()),
                    description: known.and_then(|input| input.description.clone()),
                    ..MissingVariable::new(variable, field)
                })
            })
    }
}

/// Fills in every `${…}` of a text: `value` gets what stands between the braces, and says what it stands for, or `None`
/// to leave it as it is. What is filled in is not looked at again.
///
/// ```
/// let filled = tidegate_client::fill_in("Bearer ${TOKEN}", |name| Ok::<_, ()>((name == "TOKEN").then(|| "abc".into())));
/// assert_eq!(filled.unwrap(), "Bearer abc");
/// ```
pub fn fill_in<E>(text: &str, mut value: impl FnMut(&str) -> Result<Option<String>, E>) -> Result<String, E> {
    walk(text, false, &mut value)
}

pub(super) fn walk<E>(
    text: &str,
    dollars: bool,
    value: &mut dyn FnMut(&str) -> Result<Option<String>, E>,
) -> Result<String, E> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((inner, length)) = braced(rest).or_else(|| unbraced(rest).filter(|_| dollars)) else {
            out.push('$');
            rest = &rest[1..];
            continue;
        };
        match value(inner)? {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    Ok(out)
}

/// `$NAME`.
fn unbraced(text: &str) -> Option<(&str, usize)> {
    let name = text.get(1..)?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    is_variable(&name[..end]).then(|| (&name[..end], end + 1))
}

/// How many references there may be in each other. Deeper ones are plain text.
const DEEPEST: usize = 16;

/// What stands between `${` and its `}`, and how long all of it is. Defaults may hold variables of their own.
fn braced(text: &str) -> Option<(&str, usize)> {
    let inner = text.strip_prefix("${")?;
    let mut depth = 1;
    let mut before = ' ';
    for (at, c) in inner.char_indices() {
        match c {
            '{' if before == '$' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&inner[..at], at + 3));
        }
        if depth > DEEPEST {
            return None;
        }
        before = c;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around() -> Surroundings<'static> {
        Surroundings {
            variable: &|name| match name {
                "A" => Some("one".to_owned()),
                "EMPTY" => Some(String::new()),
                "DOLLAR" => Some("${A}".to_owned()),
                "GITHUB_TOKEN" => Some("hush".to_owned()),
                _ => None,
            },
            home: Some("/home/me".into()),
            here: "/srv/here".into(),
        }
    }

    fn expand(file: &str, text: &str) -> Result<(String, Vec<MissingVariable>), String> {
        let input = |id: &str, default: Option<&str>| Input {
            id: id.to_owned(),
            description: Some("Say it".to_owned()),
            default: default.map(str::to_owned),
        };
        let inputs = [input("other-key", None), input("with-default", Some("d"))];
        let around = around();
        let expander = Expander::new(&around, Path::new(file), &inputs);
        let text = expander.text("env.X", text)?;
        Ok((text, expander.into_missing()))
    }

    #[test]
    fn servers_file_variables() {
        for (text, value) in [
            ("plain $5 $ ${", "plain $5 $ ${"),
            ("a${A}b${env:A}", "aonebone"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", ""),
            ("${NONE:-}", ""),
            ("${NONE:-x y}", "x y"),
            ("${env:NONE:-x}", "x"),
            ("${NONE:-${A}}/b", "one/b"),
            ("${NONE:-${NONE:-{}}}", "{}"),
            ("${DOLLAR}", "${A}"),
            ("${x.y} ${} ${a b}", "${x.y} ${} ${a b}"),
            ("$A", "$A"),
            ("${userHome}/x", "/home/me/x"),
            ("${workspaceFolder}|${workspaceFolderBasename}", "/srv/app|app"),
            ("a${/}b${pathSeparator}", if cfg!(windows) { "a\\b\\" } else { "a/b/" }),
            ("${input:github-token}", "hush"),
            ("${input:with-default}", "d"),
        ] {
            assert_eq!(
                expand("/srv/app/.cursor/mcp.json", text).unwrap(),
                (value.to_owned(), vec![]),
                "{text}"
            );
        }
        assert_eq!(expand("/home/me/.gemini/settings.json", "$A-${A} $5").unwrap().0, "one-one $5");
    }

    #[test]
    fn servers_file_missing_variables() {
        let missing = |file: &str, text: &str| {
            let missing = expand(file, text).unwrap().1;
            missing.into_iter().map(|missing| missing.variable).collect::<Vec<_>>()
        };
        assert_eq!(missing("f", "${A} ${NONE}"), ["NONE"]);
        assert_eq!(missing("f", "${env:NONE} ${NONE} ${OTHER}"), ["NONE", "OTHER"], "each once, all of them");
        assert_eq!(missing("f", "${NONE:-${INNER}}"), ["INNER"]);
        assert_eq!(missing(".gemini/settings.json", "$NONE"), ["NONE"]);
        let input = MissingVariable {
            variable: "OTHER_KEY".to_owned(),
            field: "env.X".to_owned(),
            input: Some("other-key".to_owned()),
            description: Some("Say it".to_owned()),
        };
        assert_eq!(expand("f", "${input:other-key}").unwrap().1, [input]);
        assert!(expand("f", "${command:x}").is_err());
    }

    #[test]
    fn servers_file_workspaces() {
        for (file, folder) in [
            ("/srv/app/.mcp.json", "/srv/app"),
            ("/srv/app/.vscode/mcp.json", "/srv/app"),
            (".vscode/mcp.json", "/srv/here"),
            ("./.mcp.json", "/srv/here"),
            ("sub/.mcp.json", "/srv/here/sub"),
            ("/home/me/.cursor/mcp.json", "/srv/here"),
            ("/home/me/.claude.json", "/srv/here"),
        ] {
            assert_eq!(around().workspace(Path::new(file)), Path::new(folder), "{file}");
        }
    }
}
