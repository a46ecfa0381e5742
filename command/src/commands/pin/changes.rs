//! What is different between the lock file and the servers.

use tidegate_config::Settings;
use tidegate_gateway::{Lock, Pin};

use super::tools::ServerTools;
use crate::commands::failure::Failure;
use crate::commands::near;

/// A tool that is not as it was approved.
pub(super) struct Change {
    pub(super) server: String,
    pub(super) tool: String,
    /// What was approved; `None` for a new tool.
    pub(super) before: Option<Pin>,
    /// What the server lists; `None` for a tool that is gone.
    pub(super) now: Option<Pin>,
}

impl Change {
    /// One word for it.
    pub(super) fn kind(&self) -> &'static str {
        match (&self.before, &self.now) {
            (None, _) => "new",
            (_, Some(_)) => "changed",
            (_, None) => "gone",
        }
    }

    /// What is different, however long that is.
    pub(super) fn diff(&self) -> String {
        let nothing = Pin::of(&tidegate::protocol::Json::empty_object());
        let (before, now) = (self.before.as_ref().unwrap_or(&nothing), self.now.as_ref().unwrap_or(&nothing));
        before.diff(now, usize::MAX)
    }
}

/// Which servers and tools the command is about. Empty: all.
pub(super) struct Selection(Vec<(String, Option<String>)>);

impl Selection {
    pub(super) fn read(which: &[String], settings: &Settings, lock: &Lock) -> Result<Selection, Failure> {
        let mut selection = Vec::new();
        for word in which {
            let (server, tool) = match word.split_once('/') {
                Some((server, tool)) => (server, Some(tool.to_owned())),
                None => (word.as_str(), None),
            };
            let configured = || settings.servers.iter().map(|server| server.name.as_str());
            if !configured().chain(lock.servers()).any(|known| known == server) {
                let meant = near(server, configured())
                    .map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                return Err(Failure::usage(format!("no server is named {server:?}{meant}"))
                    .advise("To list the servers, run tidegate check."));
            }
            selection.push((server.to_owned(), tool));
        }
        Ok(Selection(selection))
    }

    /// Tools that were named and that nobody knows. To be asked when servers have answered.
    pub(super) fn check(&self, listed: &[ServerTools], lock: &Lock) -> Result<(), Failure> {
        for (server, tool) in self.0.iter().filter_map(|(server, tool)| Some((server, tool.as_ref()?))) {
            let Some(Ok(tools)) = listed.iter().find(|it| it.server == *server).map(|it| &it.tools) else {
                continue;
            };
            if lock.get(server, tool).is_some() {
                continue;
            }
            let meant = near(tool, tools.iter().map(|tool| tool.name.as_str()));
            let meant = meant.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
            match tools.iter().find(|listed| listed.name == *tool) {
                None => return Err(Failure::usage(format!("{server} has no tool {tool:?}{meant}"))),
                Some(listed) if !listed.offered => {
                    let what = format!("the configuration hides the tool {tool:?} of {server}");
                    return Err(
                        Failure::usage(what).advise("See allow and deny of the server in the configuration.")
                    );
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    pub(super) fn server(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|(server, _)| server == name)
    }

    fn tool(&self, server: &str, name: &str) -> bool {
        let fits = |tool: &Option<String>| tool.as_ref().is_none_or(|tool| tool == name);
        self.0.is_empty() || self.0.iter().any(|(known, tool)| known == server && fits(tool))
    }
}

/// What is different, server by server. Of a server that does not answer nothing is known, so nothing of it is gone.
pub(super) fn between(lock: &Lock, listed: &[ServerTools], selection: &Selection) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut note = |server: &str, tool: &str, before: Option<&Pin>, now: Option<&Pin>| {
        if selection.tool(server, tool) && before.map(Pin::digest) != now.map(Pin::digest) {
            let (server, tool) = (server.to_owned(), tool.to_owned());
            changes.push(Change { server, tool, before: before.cloned(), now: now.cloned() });
        }
    };
    for ServerTools { server, tools } in listed {
        let Ok(tools) = tools else { continue };
        for tool in tools.iter().filter(|tool| tool.offered) {
            note(server, &tool.name, lock.get(server, &tool.name), Some(&tool.pin));
        }
        for (name, pin) in lock.tools(server).filter(|(name, _)| !tools.iter().any(|tool| tool.name == *name))
        {
            note(server, name, Some(pin), None);
        }
    }
    // A server that is no longer configured may belong to another configuration: it is left alone unless it is named.
    let named = |server: &&str| !selection.0.is_empty() && selection.server(server);
    for server in lock.servers().filter(named).filter(|server| !listed.iter().any(|it| it.server == *server))
    {
        for (name, pin) in lock.tools(server) {
            note(server, name, Some(pin), None);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use tidegate::protocol::Json;

    use super::super::tools::Tool;
    use super::*;
    use crate::commands::exit::Exit;

    fn pin(text: &str) -> Pin {
        Pin::of(&Json::of(&serde_json::json!({"name": "t", "description": text})).unwrap())
    }

    fn tool(name: &str, text: &str, offered: bool) -> Tool {
        Tool { name: name.to_owned(), offered, pin: pin(text) }
    }

    fn found(selection: &[(&str, Option<&str>)]) -> Vec<String> {
        let mut lock = Lock::default();
        for (server, name) in
            [("a", "same"), ("a", "other"), ("a", "old"), ("a", "denied"), ("down", "t"), ("off", "t")]
        {
            lock.set(server, name, pin("one"));
        }
        let tools = vec![tool("same", "one", true), tool("other", "two", true), tool("fresh", "one", true)];
        let denied = [tool("denied", "two", false), tool("hidden", "one", false)];
        let listed = [
            ServerTools { server: "a".to_owned(), tools: Ok(tools.into_iter().chain(denied).collect()) },
            ServerTools { server: "down".to_owned(), tools: Err(Failure::new(Exit::Unavailable, "down")) },
        ];
        let selection =
            Selection(selection.iter().map(|(s, t)| ((*s).to_owned(), t.map(str::to_owned))).collect());
        let changes = between(&lock, &listed, &selection);
        changes.iter().map(|change| format!("{} {}/{}", change.kind(), change.server, change.tool)).collect()
    }

    #[test]
    fn commands_pin_sees_what_is_new_changed_and_gone() {
        assert_eq!(found(&[]), ["changed a/other", "new a/fresh", "gone a/old"]);
        assert_eq!(found(&[("a", Some("other")), ("a", Some("same"))]), ["changed a/other"]);
        assert_eq!(found(&[("down", None)]), [""; 0], "nothing is known of a server that does not answer");
        assert_eq!(found(&[("off", None)]), ["gone off/t"], "only if it is named");
    }
}
