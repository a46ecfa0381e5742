//! The floor: what any MCP server has to pay, and nothing else.
//!
//! A bare hyper server reads the body, splits the JSON-RPC envelope with raw values and splices the message into a
//! `tools/call` result. It checks no header, validates nothing and escapes nothing, so it is a lower bound and not a
//! server that anyone could ship. `--stdio` does the same over newline-delimited frames.
//!
//! It is also what gateways are put in front of, because it costs next to nothing: for them it has an [`offer`] of tools
//! under many paths, in both eras.

mod offer;

use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;

/// The part of a JSON-RPC message that even the floor has to look at.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: &'a RawValue,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    #[serde(borrow)]
    message: &'a RawValue,
    /// How often to say it, so that a short request gets a long answer.
    times: Option<usize>,
}

fn main() -> anyhow::Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("--stdio") => stdio().map_err(Into::into),
        Some("--listen") => http(&std::env::args().nth(2).unwrap_or_else(|| "127.0.0.1:0".into())),
        _ => anyhow::bail!("usage: floor --stdio | --listen ADDR"),
    }
}

#[tokio::main]
async fn http(addr: &str) -> anyhow::Result<()> {
    let listener = TcpListener::bind(addr).await?;
    announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = hyper::service::service_fn(serve);
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn serve(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    // Legacy clients ask for a stream of notifications with GET and end sessions with DELETE; there are neither.
    if request.method() != Method::POST {
        return Ok(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    let (head, body) = request.into_parts();
    let reply = match body.collect().await {
        Ok(body) => answer(&body.to_bytes(), head.uri.path()),
        Err(_) => None,
    };
    let mut response = match reply {
        Some(Reply::Result(body)) => Response::new(Full::new(Bytes::from(body))),
        Some(Reply::Accepted) => status(StatusCode::ACCEPTED),
        None => status(StatusCode::BAD_REQUEST),
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

fn status(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

/// Blocking reads and writes on one thread: nothing is cheaper for an echo. Answers are flushed when no further
/// request is buffered, so that requests in flight share their system calls.
fn stdio() -> io::Result<()> {
    let mut input = BufReader::with_capacity(128 * 1024, io::stdin().lock());
    let mut output = BufWriter::with_capacity(128 * 1024, io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return output.flush();
        }
        if let Some(Reply::Result(reply)) = answer(&line, offer::ECHO) {
            output.write_all(&reply)?;
            output.write_all(b"\n")?;
        }
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
}

enum Reply {
    Result(Vec<u8>),
    Accepted,
}

/// What has arguments is an echo; everything else is answered by the [`offer`] at this path.
fn answer(body: &[u8], path: &str) -> Option<Reply> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    let Some(id) = envelope.id else { return Some(Reply::Accepted) };
    let params: Option<Params<'_>> = envelope.params.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let arguments = params.and_then(|params| params.arguments);
    let Some(arguments) = arguments else {
        let rest = offer::answer(envelope.method.get(), path);
        return Some(Reply::Result(splice(&[r#"{"jsonrpc":"2.0","id":"#, id.get(), &rest, "}"])));
    };
    let arguments: Arguments<'_> = serde_json::from_str(arguments.get()).ok()?;
    let message = arguments.message.get();
    let repeated = arguments.times.map(|times| format!("\"{}\"", message.trim_matches('"').repeat(times)));
    Some(Reply::Result(splice(&[
        r#"{"jsonrpc":"2.0","id":"#,
        id.get(),
        r#","result":{"resultType":"complete","content":[{"type":"text","text":"#,
        repeated.as_deref().unwrap_or(message),
        r#"}],"isError":false}}"#,
    ])))
}

fn splice(parts: &[&str]) -> Vec<u8> {
    parts.concat().into_bytes()
}

/// Tells the harness, which asked for any free port, where to connect.
fn announce(addr: std::net::SocketAddr) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {addr}")?;
    out.flush()
}
