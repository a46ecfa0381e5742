//! Keep-alive connections with one request in flight on each.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Context, Result};
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::response::{self, Framing};
use super::session::Blocking;
use super::{Load, Meter, SPOT_CHECK, STALLED, Sample, Until};
use crate::case::{Case, Transport};
use crate::request::{Ask, Request};

pub(crate) struct HttpLoad {
    poll: Poll,
    connections: Vec<Connection>,
    ask: Ask,
    next_id: u64,
}

struct Connection {
    stream: TcpStream,
    request: Request,
    id: u64,
    sent_at: Instant,
    written: usize,
    buffer: Vec<u8>,
    filled: usize,
    framing: Framing,
}

impl HttpLoad {
    pub(crate) fn connect(addr: SocketAddr, case: Case) -> Result<Self> {
        let legacy = case.transport == Transport::LegacyHttp;
        Self::open(addr, legacy, case.concurrency, Ask::echo(&case.payload.message()))
    }

    /// Opens all connections, with a legacy session on each where asked for, and checks that the first answer on each
    /// is the right one.
    pub(crate) fn open(addr: SocketAddr, legacy: bool, connections: usize, ask: Ask) -> Result<Self> {
        let poll = Poll::new()?;
        let mut opened = Vec::new();
        for index in 0..connections {
            let mut blocking = Blocking::connect(addr)?;
            let mut request = match legacy {
                true => Request::legacy_http(addr, &blocking.open_session(ask.path)?, &ask),
                false => Request::modern_http(addr, &ask),
            };
            let first = blocking.exchange(request.numbered(index as u64))?;
            let body = first.body();
            anyhow::ensure!(
                first.status() == 200,
                "status {}: {}",
                first.status(),
                String::from_utf8_lossy(&body)
            );
            ask.check(response::answer(&body), index as u64)?;

            let mut stream = TcpStream::from_std(blocking.into_stream()?);
            poll.registry().register(&mut stream, Token(index), Interest::READABLE | Interest::WRITABLE)?;
            opened.push(Connection {
                stream,
                request,
                id: 0,
                sent_at: Instant::now(),
                written: usize::MAX,
                buffer: vec![0; 2 * ask.answer_length() + 4096],
                filled: 0,
                framing: Framing::default(),
            });
        }
        Ok(Self { poll, next_id: connections as u64, connections: opened, ask })
    }
}

impl Load for HttpLoad {
    fn run(&mut self, until: Until) -> Result<Sample> {
        let mut meter = Meter::start(until);
        let mut events = Events::with_capacity(self.connections.len());
        for connection in &mut self.connections {
            if meter.may_send(Instant::now()) {
                connection.send(&mut self.next_id)?;
            }
        }
        while !meter.all_answered() {
            self.poll.poll(&mut events, Some(STALLED))?;
            anyhow::ensure!(!events.is_empty(), "no answer for {STALLED:?}");
            for event in &events {
                let connection = &mut self.connections[event.token().0];
                if event.is_writable() {
                    connection.write()?;
                }
                if !event.is_readable() || !connection.read()? {
                    continue;
                }
                let now = Instant::now();
                meter.answered(connection.sent_at, now);
                connection.check(&self.ask)?;
                if meter.may_send(now) {
                    connection.send(&mut self.next_id)?;
                }
            }
        }
        Ok(meter.finish())
    }
}

impl Connection {
    fn send(&mut self, next_id: &mut u64) -> Result<()> {
        self.id = *next_id;
        *next_id += 1;
        self.request.numbered(self.id);
        self.filled = 0;
        self.framing = Framing::default();
        self.written = 0;
        self.sent_at = Instant::now();
        self.write()
    }

    /// Writes what is left of the request, as far as the socket takes it.
    fn write(&mut self) -> Result<()> {
        let bytes = self.request.numbered(self.id);
        while let Some(rest) = bytes.get(self.written..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error).context("sending a request"),
            }
        }
        Ok(())
    }

    /// Reads what is there; true when the response is complete. The server sends nothing unasked, so the socket need
    /// not be drained beyond that, which saves one system call per request.
    fn read(&mut self) -> Result<bool> {
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(2 * self.filled, 0);
            }
            match self.stream.read(&mut self.buffer[self.filled..]) {
                Ok(0) => anyhow::bail!("the server closed the connection"),
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("reading a response"),
            }
            if self.framing.is_complete(&self.buffer[..self.filled])? {
                return Ok(true);
            }
        }
    }

    fn check(&self, ask: &Ask) -> Result<()> {
        let status = self.framing.status();
        if status == 200 && !self.id.is_multiple_of(SPOT_CHECK) {
            return Ok(());
        }
        let body = self.framing.body(&self.buffer[..self.filled]);
        anyhow::ensure!(status == 200, "status {status}: {}", String::from_utf8_lossy(&body));
        ask.check(response::answer(&body), self.id)
    }
}
