//! A recording server that speaks in literal text, over HTTP and over stdio: what it says and what it hears is neither
//! parsed nor written by anybody's JSON library.

use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_client::{Command, EraChoice};
use tidegate_gateway::{ServerSettings, Source};
use tidegate_protocol::{Json, Limits, Object};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::at;

/// Members that nobody knows, and that few libraries write as they read them.
pub(crate) const ODD: &str = r#""zz" : 1.0,"huge":12345678901234567890123,"exp":1E+2,"far":1e400,"near":-1e-400,"esc":"\u00e9\ud83d\ude00\/\u0041","k\u0065y":null,"deep":{"b":[ {"x" :1 , "a":[ ]}],"a":{ }},"zero":-0.0"#;

/// The definition of a tool.
pub(crate) fn definition(name: &str) -> String {
    format!(
        r##"{{"odd":{{{ODD}}},"name":"{name}","description":"d\u0065ep","inputSchema":{{"type":"object","$defs":{{"a":{{"$ref":"#/$defs/b"}},"b":{{"$defs":{{"c":{{"type":"integer","maximum":12345678901234567890123,"multipleOf":1E+2}}}},"$ref":"#/$defs/b/$defs/c"}}}},"properties":{{"x":{{"$ref":"#/$defs/a"}}}}}},"annotations":{{"odd":1.0}},"_meta":{{"vendor/t":{{{ODD}}}}}}}"##
    )
}

/// What most calls are answered with.
pub(crate) fn result(modern: bool, more: &str) -> String {
    let kind = if modern { r#""resultType":"complete","# } else { "" };
    format!(
        r#"{{"first":{{{ODD}}},{kind}"content":[{{"type":"text","text":"t\u0069","extra":{{{ODD}}}}},{{"type":"vendor/hologram","data":{{{ODD}}}}}],"structuredContent":{{{ODD}}},"isError":false,{more}"_meta":{{"vendor/y":{{{ODD}}}}}}}"#
    )
}

/// An error with a code and members that no specification has.
pub(crate) fn error(code: &str) -> String {
    format!(r#"{{"code":{code},"extra":{{{ODD}}},"message":"o\u0064d","data":{{{ODD}}}}}"#)
}

/// The parameters of progress under a token.
pub(crate) fn progress(token: &str) -> String {
    format!(
        r#"{{"extra":{{{ODD}}},"progressToken":{token},"progress":1.0,"total":1E+2,"message":"w\u006frk","_meta":{{"vendor/p":{{{ODD}}}}}}}"#
    )
}

/// The parameters of a log message.
pub(crate) fn log() -> String {
    format!(r#"{{"level":"error","logger":"l","extra":[1.0],"data":{{{ODD}}},"_meta":{{"vendor/l":1E+2}}}}"#)
}

/// The parameters of a question.
pub(crate) fn question() -> String {
    format!(
        r#"{{"unknown":{{{ODD}}},"mode":"form","message":"who\u003f","requestedSchema":{{"type":"object","properties":{{"name":{{"type":"string","odd":{{{ODD}}}}}}}}},"_meta":{{"vendor/q":1.0}}}}"#
    )
}

/// The result of a modern server that asks.
pub(crate) fn asking() -> String {
    format!(
        r#"{{"extra":{{{ODD}}},"inputRequests":{{"k\u0065y":{{"params":{},"method":"elicitation/create","odd":1E+2}}}},"resultType":"input_required","requestState":"st\u0061te","_meta":{{"vendor/r":1.0}}}}"#,
        question()
    )
}

/// What the server does about a request.
enum Step {
    Say(String),
    /// Says it and waits for the answer.
    Ask(String),
}

fn read(text: &str) -> Object {
    Object::parse(text.to_owned(), &Limits::default()).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

/// What is done about a request.
fn steps(modern: bool, request: &Object) -> Vec<Step> {
    let id = request.get("id").unwrap_or("null");
    let params = request.object("params").unwrap_or_else(Object::empty);
    let done = |result: &str| Step::Say(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
    let failed = |error: &str| Step::Say(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
    let told = |method: &str, params: &str| {
        Step::Say(format!(r#"{{"jsonrpc":"2.0","method":"notifications/{method}","params":{params}}}"#))
    };
    let hints = if modern { r#""resultType":"complete","ttlMs":0,"cacheScope":"public","# } else { "" };
    let has = r#"{"tools":{},"prompts":{},"resources":{},"completions":{},"logging":{}}"#;
    let list = |member: &str, entries: &str| done(&format!(r#"{{{hints}"{member}":[{entries}],"odd":1.0}}"#));
    let method = request.str("method").unwrap_or_default();
    let tool = params.str("name").unwrap_or_default();
    match (&*method, &*tool) {
        ("server/discover", _) if modern => {
            vec![done(&format!(r#"{{{hints}"supportedVersions":["2026-07-28"],"capabilities":{has}}}"#))]
        }
        ("initialize", _) if !modern => vec![done(&format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{has},"serverInfo":{{"name":"raw","version":"1"}}}}"#
        ))],
        ("ping" | "logging/setLevel", _) if !modern => vec![done("{}")],
        ("tools/list", _) => {
            let tools = ["chat", "fail", "far", "ask"].map(definition).join(",");
            vec![list("tools", &tools)]
        }
        ("prompts/list", _) => vec![list("prompts", r#"{"name":"p","odd":1.0}"#)],
        ("resources/list", _) => vec![list("resources", r#"{"uri":"raw://r","name":"r","odd":1E+2}"#)],
        ("resources/templates/list", _) => vec![list("resourceTemplates", "")],
        ("tools/call", "chat") => {
            let token = params.object("_meta").and_then(|meta| meta.json("progressToken"));
            let token = token.unwrap_or_else(|| Json::trusted("0"));
            let (progress, log) = (progress(token.as_str()), log());
            vec![told("progress", &progress), told("message", &log), done(&result(modern, ""))]
        }
        ("tools/call", "fail") => {
            let wanted = params.object("arguments").and_then(|arguments| arguments.json("code"));
            vec![failed(&error(wanted.as_ref().map_or("-31999", |code| code.as_str())))]
        }
        ("tools/call", "far") => vec![failed(&error("12345678901"))],
        ("tools/call", "ask") if modern => match params.has("inputResponses") {
            true => vec![done(&result(modern, ""))],
            false => vec![done(&asking())],
        },
        ("tools/call", "ask") => {
            let asked = question();
            let asked =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{asked}}}"#);
            vec![Step::Ask(asked), done(&result(modern, ""))]
        }
        ("prompts/get" | "completion/complete" | "vendor/odd", _) => vec![done(&result(modern, ""))],
        ("resources/read", _) => {
            let hints = if modern { r#""ttlMs":1E+2,"cacheScope":"public","# } else { "" };
            vec![done(&result(modern, hints))]
        }
        _ => vec![failed(r#"{"code":-32601,"message":"Method not found"}"#)],
    }
}

/// A server and what it has heard.
pub(crate) struct Raw {
    pub(crate) settings: ServerSettings,
    pub(crate) modern: bool,
    heard: Heard,
}

enum Heard {
    Here(Arc<Mutex<Vec<String>>>),
    File(String),
}

impl Raw {
    pub(crate) async fn http(modern: bool) -> Raw {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut settings = at("s", listener.local_addr().unwrap());
        settings.options.era = if modern { EraChoice::Modern } else { EraChoice::Legacy };
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let hearing = heard.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, modern, hearing.clone()));
            }
        });
        Raw { settings: settings.seal(), modern, heard: Heard::Here(heard) }
    }

    pub(crate) fn stdio(modern: bool) -> Raw {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = format!("{}/raw-{}-{number}.log", env!("CARGO_TARGET_TMPDIR"), std::process::id());
        std::fs::remove_file(&file).ok();
        let program = std::env::current_exe().unwrap().to_str().unwrap().to_owned();
        let args = ["server", "--exact", "--nocapture"].map(Into::into).into();
        let env = [(SERVER.to_owned(), format!("{modern} {file}"))].into();
        let mut settings =
            ServerSettings::new("s", Source::Target(Command { program, args, env, cwd: None }.into()));
        settings.options.era = if modern { EraChoice::Modern } else { EraChoice::Legacy };
        Raw { settings: settings.seal(), modern, heard: Heard::File(file) }
    }

    /// Everything that was heard, message by message.
    pub(crate) fn heard(&self) -> Vec<String> {
        match &self.heard {
            Heard::Here(heard) => heard.lock().unwrap().clone(),
            Heard::File(file) => {
                std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
            }
        }
    }

    /// The last request of a method, or the last answer where the method is `None`.
    pub(crate) fn last(&self, method: Option<&str>) -> Object {
        let all = self.heard();
        let all = all.iter().rev().map(|text| read(text));
        let found = all.into_iter().find(|message| message.str("method").as_deref() == method);
        found.unwrap_or_else(|| panic!("{method:?} was not heard, but {:?}", self.heard()))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Heard::File(file) = &self.heard {
            std::fs::remove_file(file).ok();
        }
    }
}

async fn serve(stream: TcpStream, modern: bool, heard: Arc<Mutex<Vec<String>>>) {
    static SESSIONS: AtomicUsize = AtomicUsize::new(0);
    let mut stream = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(": ")
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.parse().unwrap();
            }
            head.push_str(&line);
            head.push('\n');
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.unwrap();
        let mut answer = String::new();
        if !head.starts_with("POST") {
            answer.push_str("HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n");
        } else {
            let text = String::from_utf8(body).unwrap();
            let message = read(&text);
            heard.lock().unwrap().push(text);
            if !(message.has("method") && message.has("id")) {
                answer.push_str("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n");
            } else {
                answer.push_str(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n",
                );
                if !modern && message.str("method").as_deref() == Some("initialize") {
                    let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
                    let _ = write!(answer, "mcp-session-id: s{number}\r\n");
                }
                answer.push_str("\r\n");
                for step in steps(modern, &message) {
                    let (Step::Say(said) | Step::Ask(said)) = &step;
                    let event = format!("data: {said}\n\n");
                    let _ = write!(answer, "{:x}\r\n{event}\r\n", event.len());
                    if let Step::Ask(_) = step {
                        stream.write_all(std::mem::take(&mut answer).as_bytes()).await.unwrap();
                        let id = message.get("id").unwrap();
                        let answered = |text: &String| {
                            let message = read(text);
                            !message.has("method") && message.get("id") == Some(id)
                        };
                        while !heard.lock().unwrap().iter().any(answered) {
                            tokio::time::sleep(Duration::from_millis(5)).await;
                        }
                    }
                }
                answer.push_str("0\r\n\r\n");
            }
        }
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

/// How a process is told that it is such a server.
const SERVER: &str = "GATEWAY_TEST_RAW";

/// Runs the server if this process was started for that, and does not come back then.
pub(crate) fn run_if_asked() {
    let Ok(what) = std::env::var(SERVER) else { return };
    let (modern, file) = what.split_once(' ').unwrap();
    let modern = modern == "true";
    let mut log = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    let mut lines = std::io::stdin().lock().lines().map_while(Result::ok);
    let mut hear = || {
        let line = lines.next()?;
        log.write_all(format!("{line}\n").as_bytes()).unwrap();
        Some(line)
    };
    let say = |line: &str| {
        let mut out = std::io::stdout().lock();
        out.write_all(format!("{line}\n").as_bytes()).unwrap();
        out.flush().unwrap();
    };
    while let Some(line) = hear() {
        let message = read(&line);
        if !(message.has("method") && message.has("id")) {
            continue;
        }
        for step in steps(modern, &message) {
            let (Step::Say(said) | Step::Ask(said)) = &step;
            say(said);
            while let Step::Ask(_) = step {
                let Some(answer) = hear() else { std::process::exit(0) };
                if !read(&answer).has("method") {
                    break;
                }
            }
        }
    }
    std::process::exit(0);
}
