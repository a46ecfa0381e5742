//! A syslog server as a place for records: RFC 5424 over UDP (RFC 5426), TCP with octet counting (RFC 6587) or a socket of this machine.
//!
//! A record is never cut. One that the socket refuses as too long is left out, and a warning says so.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use tidegate_config::{SyslogServer, SyslogSettings};

use crate::backlog::Output;
use crate::batch::{Batch, Record};
use crate::clock::Clock;

/// How long a server may take to accept a connection, and to take what it is sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends records to a syslog server.
#[derive(Debug)]
pub(crate) struct SyslogOutput {
    server: SyslogServer,
    facility: u8,
    /// ` HOSTNAME tidegate PROCID `, which is the same for all.
    origin: String,
    clock: Clock,
    connection: Option<Connection>,
    message: Vec<u8>,
    has_told: bool,
}

#[derive(Debug)]
enum Connection {
    Udp(UdpSocket, SocketAddr),
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixDatagram),
}

impl SyslogOutput {
    pub(crate) fn new(settings: &SyslogSettings) -> SyslogOutput {
        SyslogOutput {
            server: settings.server.clone(),
            facility: settings.facility,
            origin: format!(" {} tidegate {} ", host_name(), std::process::id()),
            clock: Clock::default(),
            connection: None,
            message: Vec::new(),
            has_told: false,
        }
    }

    fn connect(&self) -> io::Result<Connection> {
        match &self.server {
            SyslogServer::Udp(address) => {
                let address = resolve(address)?;
                let any: SocketAddr = match address {
                    SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                    SocketAddr::V6(_) => ([0u16; 8], 0).into(),
                };
                // Not connected: nobody answers, and that there is nobody is told by one datagram about another.
                Ok(Connection::Udp(UdpSocket::bind(any)?, address))
            }
            SyslogServer::Tcp(address) => {
                let stream = TcpStream::connect_timeout(&resolve(address)?, PATIENCE)?;
                stream.set_write_timeout(Some(PATIENCE))?;
                Ok(Connection::Tcp(stream))
            }
            #[cfg(unix)]
            SyslogServer::Unix(path) => {
                let socket = std::os::unix::net::UnixDatagram::unbound()?;
                socket.connect(path)?;
                socket.set_write_timeout(Some(PATIENCE))?;
                Ok(Connection::Unix(socket))
            }
            #[cfg(not(unix))]
            SyslogServer::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Appends a message: header (RFC 5424 6.2), no structured data, and the line.
    fn write_message(&mut self, record: Record, line: &[u8]) {
        let (kind, message) = (record.kind, &mut self.message);
        let priority = u16::from(self.facility) * 8 + u16::from(kind.severity());
        message.extend_from_slice(format!("<{priority}>1 ").as_bytes());
        self.clock.write(message, record.ms);
        message.extend_from_slice(self.origin.as_bytes());
        message.extend_from_slice(kind.as_str().as_bytes());
        message.extend_from_slice(b" - ");
        message.extend_from_slice(line);
    }

    /// Everything in one go. What a server took before its connection broke is not known: all of it is sent again, and a record that
    /// comes twice has the same number.
    fn send_stream(&mut self, batch: &Batch, stream: &mut TcpStream) -> io::Result<()> {
        if is_closed(stream) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut frames = Vec::with_capacity(batch.bytes.len() + batch.records.len() * 80);
        for (record, line) in batch.lines(0) {
            self.message.clear();
            self.write_message(record, line);
            frames.extend_from_slice(format!("{} ", self.message.len()).as_bytes());
            frames.extend_from_slice(&self.message);
        }
        stream.write_all(&frames)
    }

    fn send_datagrams(
        &mut self,
        batch: &Batch,
        done: &mut usize,
        send: impl Fn(&[u8]) -> io::Result<usize>,
    ) -> io::Result<()> {
        for (record, line) in batch.lines(*done) {
            self.message.clear();
            self.write_message(record, line);
            match send(&self.message) {
                Ok(_) => {}
                Err(error) if is_too_long(&error) => self.tell_too_long(),
                Err(error) => return Err(error),
            }
            *done += 1;
        }
        Ok(())
    }

    fn tell_too_long(&mut self) {
        if !std::mem::replace(&mut self.has_told, true) {
            let server = &self.server;
            tracing::warn!(
                "A record of the audit trail is too long for {server} and was not sent there; use tcp://"
            );
        }
    }
}

impl Output for SyslogOutput {
    fn deliver(&mut self, batch: &Batch, done: &mut usize) -> io::Result<()> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        // Without the connection after an error: the next attempt makes another.
        match &mut connection {
            Connection::Udp(socket, address) => {
                self.send_datagrams(batch, done, |message| socket.send_to(message, *address))?;
            }
            Connection::Tcp(stream) => {
                self.send_stream(batch, stream)?;
                *done = batch.records.len();
            }
            #[cfg(unix)]
            Connection::Unix(socket) => self.send_datagrams(batch, done, |message| socket.send(message))?,
        }
        self.connection = Some(connection);
        Ok(())
    }
}

fn resolve(address: &str) -> io::Result<SocketAddr> {
    let mut found = address.to_socket_addrs()?;
    found.next().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address"))
}

/// Whether the server has closed its end: what is written then is accepted by the system and lost.
fn is_closed(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let seen = stream.peek(&mut [0]);
    let is_alive = match &seen {
        Ok(count) => *count > 0,
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    };
    stream.set_nonblocking(false).is_err() || !is_alive
}

#[cfg(unix)]
fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::MSGSIZE.raw_os_error())
}

#[cfg(not(unix))]
fn is_too_long(error: &io::Error) -> bool {
    const WSAEMSGSIZE: i32 = 10040;
    error.raw_os_error() == Some(WSAEMSGSIZE)
}

/// What this machine calls itself, in the characters that the header may have; `-` if that is unknown (RFC 5424 6.2.4).
fn host_name() -> String {
    #[cfg(unix)]
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    let name = std::env::var("COMPUTERNAME").unwrap_or_default();
    let name: String = name.chars().filter(char::is_ascii_graphic).take(255).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}
