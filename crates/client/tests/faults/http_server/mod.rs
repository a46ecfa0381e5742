//! The misbehaving server over HTTP: written by hand, on threads of its own, so that the client's runtime counts only
//! what is the client's.

mod exchange;
mod old;
mod tools;

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::Value;

use self::exchange::Exchange;
use crate::wire::{Asked, Era};

/// A server that listens until it is dropped.
pub(crate) struct HttpServer {
    address: SocketAddr,
    state: Arc<State>,
}

pub(crate) struct State {
    era: Era,
    start: String,
    seen: Mutex<Vec<String>>,
    refusals: Mutex<VecDeque<Refusal>>,
    sessions: Mutex<HashSet<String>>,
    next_session: AtomicU64,
    /// The client's answers to our questions, by id.
    answers: Mutex<HashMap<u64, Value>>,
    answered: Condvar,
    /// What is left to say on streams that broke, by the id of their last event.
    rest: Mutex<HashMap<String, Asked>>,
    /// The stream that answers go to, in the old transport.
    stream: Mutex<Option<TcpStream>>,
    open: Mutex<Vec<TcpStream>>,
    over: AtomicBool,
}

/// What some requests are answered with instead of what they ask for.
#[derive(Clone)]
struct Refusal {
    method: String,
    times: usize,
    /// The status line and further headers, each with its line end.
    head: String,
}

impl HttpServer {
    pub(crate) fn start(era: Era, start: &str) -> HttpServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(State {
            era,
            start: start.to_owned(),
            seen: Mutex::default(),
            refusals: Mutex::default(),
            sessions: Mutex::default(),
            next_session: AtomicU64::new(1),
            answers: Mutex::default(),
            answered: Condvar::new(),
            rest: Mutex::default(),
            stream: Mutex::default(),
            open: Mutex::default(),
            over: AtomicBool::new(false),
        });
        let accepting = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.over.load(Ordering::Acquire) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                stream.set_nodelay(true).ok();
                accepting.open.lock().unwrap().extend(stream.try_clone());
                let state = accepting.clone();
                std::thread::spawn(move || Exchange::serve(stream, &state));
            }
        });
        HttpServer { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Answers the next `times` requests of this method with a status, and perhaps further headers.
    pub(crate) fn refuse(&self, method: &str, times: usize, status: u16, headers: &str) {
        let head = format!("HTTP/1.1 {status} Refused\r\n{headers}");
        self.state.refusals.lock().unwrap().push_back(Refusal { method: method.to_owned(), times, head });
    }

    /// Nothing is refused any more.
    pub(crate) fn relent(&self) {
        self.state.refusals.lock().unwrap().clear();
    }

    /// Forgets every session.
    pub(crate) fn forget_sessions(&self) {
        self.state.sessions.lock().unwrap().clear();
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.state.over.store(true, Ordering::Release);
        // Wakes whoever accepts.
        TcpStream::connect(self.address).ok();
        for stream in self.state.open.lock().unwrap().drain(..) {
            stream.shutdown(Shutdown::Both).ok();
        }
        self.state.answered.notify_all();
    }
}

impl State {
    fn note(&self, what: &str) {
        self.seen.lock().unwrap().push(what.to_owned());
    }

    /// How a request of this method is refused, if it is.
    fn refusal(&self, method: &str) -> Option<String> {
        let mut refusals = self.refusals.lock().unwrap();
        let refusal = refusals.iter_mut().find(|r| r.times > 0 && (r.method == method || r.method == "*"))?;
        refusal.times -= 1;
        Some(refusal.head.clone())
    }

    fn new_session(&self) -> String {
        let id = format!("session-{}", self.next_session.fetch_add(1, Ordering::Relaxed));
        self.sessions.lock().unwrap().insert(id.clone());
        id
    }

    /// Waits for the answer to a question; null when the server ends.
    fn answer_to(&self, id: u64) -> Value {
        let mut answers = self.answers.lock().unwrap();
        loop {
            match answers.remove(&id) {
                Some(answer) => return answer,
                None if self.over.load(Ordering::Acquire) => return Value::Null,
                None => answers = self.answered.wait(answers).unwrap(),
            }
        }
    }
}
