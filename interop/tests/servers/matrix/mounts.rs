//! [`Mount`]: a server behind the gateway.

use serde_json::json;

use super::steps::{Expected, Kind, Step};
use crate::meeting::Over;
use crate::paths;
use crate::server::Program;

/// A server, and how the gateway reaches it.
pub(crate) struct Mount {
    pub(crate) server: &'static str,
    pub(crate) over: Over,
    pub(crate) program: Program,
    /// Where a listening one has its endpoint, below what it says.
    pub(crate) path: &'static str,
    /// What the gateway is told about the era: where a server speaks both, the one that is expected here.
    pub(crate) era: &'static str,
}

/// All of them.
pub(crate) fn all() -> Vec<Mount> {
    [Over::Stdio, Over::Http].into_iter().flat_map(over).collect()
}

fn over(over: Over) -> Vec<Mount> {
    let mount = |server, program: Program, words: &[&str], era| {
        let program = words.iter().fold(program.arg(over.name()), |program, &word| program.arg(word));
        Mount { server, over, program, path: "", era }
    };
    let node = |script: &str| {
        Program::new(paths::node(), &[&paths::own(script)])
            .env("TIDEGATE_NODE_MODULES", paths::npm().display().to_string())
    };
    let python = |python: String, script: &str| {
        Program::new(python, &[&paths::own(script)]).env("PYTHONDONTWRITEBYTECODE", "1")
    };
    let fast_mcp = || python(paths::python(), "python/fast_mcp.py");
    let rmcp = || Program::new(env!("CARGO_BIN_EXE_rmcp-server"), &[]);
    let mut mounts = vec![
        // It speaks nothing older.
        mount("typescript-2", node("node/typescript_sdk.mjs"), &["modern"], "auto"),
        mount("typescript-1", node("node/typescript_sdk_1.mjs"), &[], "auto"),
        mount("python-2", python(paths::python(), "python/python_sdk.py"), &[], "modern"),
        mount("python-1", python(paths::legacy_python(), "python/python_sdk_1.py"), &[], "auto"),
        mount("fastmcp", fast_mcp(), &[], "modern"),
        mount("rmcp", rmcp(), &[], "modern"),
        // It speaks nothing newer.
        mount("rmcp-legacy", rmcp(), &["legacy"], "auto"),
        everything(over),
    ];
    // Over stdio, each call of a modern client to a legacy server is a process, and this one takes seconds to start.
    if over == Over::Http {
        mounts.push(mount("fastmcp-legacy", fast_mcp(), &[], "legacy"));
    }
    mounts
}

/// The reference server, which has a vocabulary of its own.
fn everything(over: Over) -> Mount {
    let script = paths::package("@modelcontextprotocol/server-everything/dist/index.js");
    let loopback = format!("file://{}", paths::own("node/loopback.mjs"));
    let (args, path) = match over {
        Over::Stdio => (vec![script.as_str(), "stdio"], ""),
        _ => (vec!["--import", &loopback, &script, "streamableHttp"], "/mcp"),
    };
    let program = Program::new(paths::node(), &args).env("PORT", "0");
    Mount { server: "everything", over, program, path, era: "auto" }
}

impl Mount {
    /// What the gateway calls it.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.server, self.over.name())
    }

    /// What the names of its tools begin with.
    pub(crate) fn prefix(&self) -> String {
        format!("{}_", self.name())
    }

    /// What a client of this name does with it, one after the other.
    pub(crate) fn steps(&self, client: &str) -> Vec<Step> {
        let (name, prefix) = (self.name(), self.prefix());
        let step = |step, kind, target: &str, arguments, expected| Step {
            server: self.server,
            mount: name.clone(),
            step,
            kind,
            target: match kind {
                // Every server is there twice, and so is its address.
                Kind::Resources | Kind::Read => format!("{name}+{target}"),
                _ => format!("{prefix}{target}"),
            },
            arguments,
            expected,
        };
        let text = |text: &str| Expected::Text(text.to_owned());
        let part = |text: String| Expected::Part(text);
        let named =
            |names: &[&str]| Expected::Names(names.iter().map(|name| format!("{prefix}{name}")).collect());
        let listed = |uri: &str| Expected::Names(vec![format!("{name}+{uri}")]);
        let none = || json!({});
        if self.server == "everything" {
            let long = json!({"duration": 0.3, "steps": 3});
            let ask = json!({"prompt": "Six by nine?", "maxTokens": 10});
            let document = "demo://resource/static/document/features.md";
            return vec![
                step("tools", Kind::Tools, "", none(), named(&["echo", "get-sum"])),
                step("echo", Kind::Call, "echo", json!({"message": "hi ⚓"}), text("Echo: hi ⚓")),
                step("count", Kind::Progress, "trigger-long-running-operation", long, Expected::Progress),
                step("greet", Kind::Call, "trigger-elicitation-request", none(), part(client.to_owned())),
                step(
                    "think",
                    Kind::Call,
                    "trigger-sampling-request",
                    ask,
                    part(format!("42, says {client}")),
                ),
                step("where", Kind::Call, "get-roots-list", none(), part(format!("file:///home/{client}"))),
                step("resources", Kind::Resources, "", none(), listed(document)),
                step(
                    "read",
                    Kind::Read,
                    "demo://resource/dynamic/text/7",
                    none(),
                    part("Resource 7".to_owned()),
                ),
                step(
                    "prompt",
                    Kind::Prompt,
                    "args-prompt",
                    json!({"city": "Bergen"}),
                    part("Bergen?".to_owned()),
                ),
            ];
        }
        vec![
            step("tools", Kind::Tools, "", none(), named(&["echo", "count", "greet", "think", "where"])),
            step("echo", Kind::Call, "echo", json!({"message": "hi ⚓"}), text("hi ⚓")),
            step("count", Kind::Progress, "count", json!({"to": 3}), Expected::Progress),
            step("greet", Kind::Call, "greet", none(), text(&format!("Hello, {client}!"))),
            step("think", Kind::Call, "think", none(), text(&format!("It is 42, says {client}"))),
            step("where", Kind::Call, "where", none(), text(&format!("file:///home/{client}"))),
            step("resources", Kind::Resources, "", none(), listed("memo://about")),
            step("read", Kind::Read, "memo://about", none(), text("A fixture.")),
            step("prompt", Kind::Prompt, "explain", json!({"topic": "tides"}), text("Explain tides.")),
        ]
    }

    /// The steps in which the client is asked something, to be done together with others.
    pub(crate) fn questions(&self, client: &str) -> impl Iterator<Item = Step> {
        self.steps(client).into_iter().filter_map(|step| {
            let together = match step.step {
                "greet" => "greet-together",
                "think" => "think-together",
                "where" => "where-together",
                _ => return None,
            };
            Some(Step { step: together, ..step })
        })
    }
}
