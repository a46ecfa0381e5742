//! A server over HTTP in this process, whose socket comes and goes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_edge::{Eras, http};
use tidegate_protocol::Method;
use tidegate_service::{Call, Door};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tower::service_fn;

use super::Mood;

/// A socket and what listens there.
pub(crate) struct Site {
    number: usize,
    eras: Eras,
    address: SocketAddr,
    mood: Arc<Mutex<Mood>>,
    serving: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Site {
    pub(crate) fn start(number: usize, eras: Eras) -> Site {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let site = Site {
            number,
            eras,
            address,
            mood: Arc::new(Mutex::new(Mood::Fine)),
            serving: Default::default(),
        };
        *site.serving.try_lock().unwrap() = Some(site.serve(TcpListener::from_std(listener).unwrap()));
        site
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn be(&self, mood: Mood) {
        let mut serving = self.serving.lock().await;
        let before = std::mem::replace(&mut *self.mood.lock().unwrap(), mood);
        let is_served = |mood| matches!(mood, Mood::Fine | Mood::Hanging);
        if is_served(before) && is_served(mood) && serving.is_some() {
            return;
        }
        if let Some(old) = serving.take() {
            old.abort();
            let _ = old.await;
        }
        if mood == Mood::Gone {
            return;
        }
        let listener = loop {
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        *serving = Some(match mood {
            Mood::Garbling => tokio::spawn(garble(listener)),
            _ => self.serve(listener),
        });
    }

    fn serve(&self, listener: TcpListener) -> JoinHandle<()> {
        let (door, moods) = (super::server(self.number), self.mood.clone());
        let moody = service_fn(move |call: Call| {
            let (door, moods) = (door.clone(), moods.clone());
            async move {
                while *moods.lock().unwrap() == Mood::Hanging && call.method != Method::Listen {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                door.answer(call).await
            }
        });
        let settings = http::Settings::default().eras(self.eras);
        tokio::spawn(async move {
            let _ = http::serve_door(moody, listener, settings, std::future::pending()).await;
        })
    }

    pub(crate) fn stop(&self) {
        if let Ok(mut serving) = self.serving.try_lock()
            && let Some(serving) = serving.take()
        {
            serving.abort();
        }
    }
}

/// Answers whatever comes with nonsense.
async fn garble(listener: TcpListener) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).await;
            let said: &[u8] = match fastrand::u8(..3) {
                0 => b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"jsonrpc",
                1 => b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {\"id\"",
                _ => b"\x00\x01nonsense\r\n\r\n",
            };
            let _ = stream.write_all(said).await;
        });
    }
}
