//! The servers behind the gateway: one on the framework, in either era, and one that remembers by session and links to what it
//! lists nowhere.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::edge::Eras;
use tidegate::{Cx, Elicit, Server, TaskSupport, Tool, ToolError, http};

/// What a task comes to.
pub(crate) const DONE: &str = "the work is done";

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// A server whose tools take their time and ask questions. Gives its address.
pub(crate) fn workshop(eras: Eras) -> SocketAddr {
    let work = Tool::new("work").task(TaskSupport::Required).handler(|_: (), _: Cx| async { DONE });
    let wait = Tool::new("wait").task(TaskSupport::Required).handler(|_: (), _: Cx| async {
        std::future::pending::<()>().await;
        "never"
    });
    let asks = |tool: Tool| {
        tool.handler(|_: (), cx: Cx| async move {
            let answer = cx.elicit(Elicit::<Name>::form("Who is there?").key("name")).await.accepted()?;
            Ok::<_, ToolError>(format!("Hello, {}!", answer.name))
        })
    };
    let server = Server::new("workshop", "1.0.0")
        .tool(work)
        .tool(wait)
        .tool(asks(Tool::new("ask")))
        .tool(asks(Tool::new("work_and_ask").task(TaskSupport::Required)));
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            tell.send(listener.local_addr().unwrap()).unwrap();
            let settings = http::Settings::default().eras(eras);
            let forever = std::future::pending::<()>();
            let _ = tidegate::edge::http::serve_door(server.build(), listener, settings, forever).await;
        });
    });
    told.recv().unwrap()
}

/// What the notebook remembers, by session.
#[derive(Default)]
struct Notebook {
    sessions: AtomicUsize,
    notes: Mutex<HashMap<String, String>>,
    /// What it was sent as credentials, if anything.
    credentials: Mutex<Vec<String>>,
}

/// A legacy server that remembers one note for each session, and gives out addresses that it lists nowhere.
pub(crate) struct NotebookServer {
    pub(crate) address: SocketAddr,
    book: Arc<Notebook>,
}

impl NotebookServer {
    pub(crate) fn start() -> NotebookServer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, book) = (listener.local_addr().unwrap(), Arc::<Notebook>::default());
        let serving = book.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let book = serving.clone();
                std::thread::spawn(move || serve(&stream, &book));
            }
        });
        NotebookServer { address, book }
    }

    /// What came in the header of credentials, or of another that has some.
    pub(crate) fn credentials(&self) -> Vec<String> {
        self.book.credentials.lock().unwrap().clone()
    }

    /// How many sessions were opened with it.
    pub(crate) fn sessions(&self) -> usize {
        self.book.sessions.load(Ordering::Relaxed)
    }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, book: &Notebook) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            head.push_str(&line);
            line.clear();
        }
        if head.is_empty() {
            return;
        }
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let mut found = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
            found.next().map(|(_, value)| value.trim().to_owned())
        };
        let length = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        for name in ["authorization", "cookie", "proxy-authorization"] {
            book.credentials.lock().unwrap().extend(header(name));
        }
        let session = header("mcp-session-id").unwrap_or_default();
        let (status, session, body) = match head.starts_with("POST") {
            true => answer(&serde_json::from_slice(&body).unwrap_or_default(), session, book),
            false => (405, session, String::new()),
        };
        let written = write!(
            &mut (&*stream),
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if written.is_err() {
            return;
        }
    }
}

fn answer(message: &Value, session: String, book: &Notebook) -> (u16, String, String) {
    let Some(id) = message.get("id") else { return (202, session, String::new()) };
    let (mut session, params) = (session, &message["params"]);
    let text = |text: String| json!({"content": [{"type": "text", "text": text}]});
    let outcome = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            session = format!("session-{}", book.sessions.fetch_add(1, Ordering::Relaxed));
            Ok(json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": {"name": "notebook", "version": "1"}}))
        }
        "ping" => Ok(json!({})),
        "tools/list" => {
            let schema = json!({"type": "object", "properties": {"note": {"type": "string"}}});
            let tool = |name: &str| json!({"name": name, "inputSchema": schema});
            Ok(json!({"tools": [tool("write"), tool("read"), tool("link")]}))
        }
        "resources/list" => Ok(json!({"resources": [{"uri": "book://cover", "name": "cover"}]})),
        "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
        "resources/read" => {
            let uri = params["uri"].as_str().unwrap_or_default();
            Ok(json!({"contents": [{"uri": uri, "text": format!("what is at {uri}")}]}))
        }
        "tools/call" => {
            let note = params["arguments"]["note"].as_str().unwrap_or_default().to_owned();
            let mut notes = book.notes.lock().unwrap();
            match params["name"].as_str().unwrap_or_default() {
                "write" => {
                    notes.insert(session.clone(), note);
                    Ok(text("written".to_owned()))
                }
                "read" => Ok(text(notes.get(&session).cloned().unwrap_or_else(|| "nothing".to_owned()))),
                _ => Ok(
                    json!({"content": [{"type": "resource_link", "uri": format!("loose://{note}"), "name": "n"}]}),
                ),
            }
        }
        _ => Err(json!({"code": -32601, "message": "Method not found"})),
    };
    let body = match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    };
    (200, session, body.to_string())
}
