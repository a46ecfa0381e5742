//! The floor of gateways: what any program between a client and a server has to pay, and nothing else.
//!
//! A bare hyper server passes each request on to one address over connections that are kept, and the answer back. Bodies
//! are streamed, nothing in them is read. Of the headers only those are touched that are about one connection.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONNECTION, HOST, HeaderValue, TRANSFER_ENCODING};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, addr, to, upstream] = &*args else { usage()? };
    let ("--listen", "--to") = (listen.as_str(), to.as_str()) else { usage()? };
    let listener = TcpListener::bind(addr).await?;
    {
        let mut out = std::io::stdout().lock();
        writeln!(out, "listening on {}", listener.local_addr()?)?;
        out.flush()?;
    }
    let pool = Arc::new(Pool {
        upstream: upstream.parse()?,
        host: HeaderValue::from_str(upstream)?,
        kept: Mutex::default(),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let pool = pool.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| pool.forward(request));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn usage<T>() -> anyhow::Result<T> {
    anyhow::bail!("usage: floor-proxy --listen ADDR --to ADDR")
}

/// Connections to the upstream that nobody uses at the moment, or whose answer is still on its way.
struct Pool {
    upstream: SocketAddr,
    host: HeaderValue,
    kept: Mutex<Vec<SendRequest<Incoming>>>,
}

impl Pool {
    async fn forward(&self, mut request: Request<Incoming>) -> anyhow::Result<Response<Incoming>> {
        let headers = request.headers_mut();
        headers.remove(CONNECTION);
        headers.insert(HOST, self.host.clone());
        let mut connection = match self.ready() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        let mut response = connection.send_request(request).await?;
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        let headers = response.headers_mut();
        headers.remove(CONNECTION);
        headers.remove(TRANSFER_ENCODING);
        Ok(response)
    }

    /// One whose last answer has been read to its end.
    fn ready(&self) -> Option<SendRequest<Incoming>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().rposition(SendRequest::is_ready)?;
        Some(kept.swap_remove(at))
    }

    async fn connect(&self) -> anyhow::Result<SendRequest<Incoming>> {
        let stream = TcpStream::connect(self.upstream).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }
}
