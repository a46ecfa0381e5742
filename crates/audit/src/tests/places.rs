//! Places that records go to: real sockets, and ones that are full, slow or gone.

use std::io::{self, Read};
use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use tidegate_config::{SyslogServer, SyslogSettings, WhenFull};
use tidegate_protocol::{Method, Params};
use tidegate_service::{Call, Context};

use super::{Audit, PATIENCE, in_folder, settings, sound, text, until};
use crate::backlog::Output;
use crate::batch::Batch;
use crate::chain::{Link, Position};
use crate::stdout::StdoutOutput;

fn syslog(server: SyslogServer) -> Audit {
    let mut settings = settings(None);
    settings.syslog = Some(SyslogSettings { server, facility: 10 });
    Audit::start(&settings, "1").unwrap()
}

/// The line in a message, whose header must be one (RFC 5424).
#[track_caller]
fn line_of(message: &str, kind: &str) -> String {
    let mut words = message.splitn(8, ' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (priority, time, _host, app) = (word(), word(), word(), word());
    let (process, id, data, line) = (word(), word(), word(), word());
    assert_eq!(
        (priority.as_str(), app.as_str(), id.as_str(), data.as_str()),
        ("<86>1", "tidegate", kind, "-"),
        "{message}"
    );
    assert!(time.ends_with('Z') && time.len() == 24 && process.parse::<u32>().is_ok(), "{message}");
    assert!(Link::read(line.as_bytes()).is_some(), "{message}");
    line
}

#[test]
fn syslog_over_udp() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let audit = syslog(SyslogServer::Udp(server.local_addr().unwrap().to_string()));
    audit.happens("a call");
    audit.close(PATIENCE);
    let mut buffer = [0; 4096];
    for kind in ["start", "call", "stop"] {
        let length = server.recv(&mut buffer).unwrap();
        line_of(std::str::from_utf8(&buffer[..length]).unwrap(), kind);
    }
}

#[cfg(unix)]
#[test]
fn syslog_over_a_socket_of_this_machine() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    // The server comes later: nothing is lost meanwhile.
    let audit = syslog(SyslogServer::Unix(path.clone()));
    audit.happens("a call");
    let server = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut buffer = [0; 4096];
    for kind in ["start", "call"] {
        let length = server.recv(&mut buffer).unwrap();
        line_of(std::str::from_utf8(&buffer[..length]).unwrap(), kind);
    }
    audit.close(PATIENCE);
}

/// Reads a message with its length before it (RFC 6587 3.4.1).
fn counted(stream: &mut impl Read) -> String {
    let mut length = 0;
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        match byte[0] {
            b' ' => break,
            digit => length = length * 10 + usize::from(digit - b'0'),
        }
    }
    let mut message = vec![0; length];
    stream.read_exact(&mut message).unwrap();
    String::from_utf8(message).unwrap()
}

#[test]
fn syslog_over_tcp_and_a_server_that_goes_away() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let audit = syslog(SyslogServer::Tcp(server.local_addr().unwrap().to_string()));
    let (mut first, _) = server.accept().unwrap();
    line_of(&counted(&mut first), "start");
    drop(first);
    audit.happens("a call");
    let (mut second, _) = server.accept().unwrap();
    assert!(line_of(&counted(&mut second), "call").contains("a call"));
    audit.close(PATIENCE);
    line_of(&counted(&mut second), "stop");
}

#[test]
fn a_server_that_is_not_there_keeps_nobody_from_ending() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_folder, path) = in_folder();
    let mut settings = settings(Some(&path));
    settings.syslog = Some(SyslogSettings { server: SyslogServer::Tcp(gone.to_string()), facility: 16 });
    let audit = Audit::start(&settings, "1").unwrap();
    audit.happens("a call");
    audit.close(Duration::from_millis(300));
    assert_eq!(sound(&path).records, 3, "the file has everything");
}

/// A place that waits for permission for each batch, and can be told to fail.
struct Gated {
    permission: Receiver<bool>,
    into: Sender<String>,
}

impl Output for Gated {
    fn deliver(&mut self, batch: &Batch, _: &mut usize) -> io::Result<()> {
        match self.permission.recv() {
            Ok(false) => Err(io::ErrorKind::StorageFull.into()),
            _ => {
                let _ = self.into.send(String::from_utf8(batch.bytes.clone()).unwrap());
                Ok(())
            }
        }
    }
}

fn any_call() -> Call {
    Call::new(Method::ToolsList, Params::empty(), Context::local())
}

/// Calls that were let in are recorded, however many begin at once before anything is written.
#[test]
fn nothing_that_was_let_in_goes_unrecorded() {
    let mut settings = settings(None);
    (settings.queue, settings.when_full) = (64 << 10, WhenFull::Refuse);
    let (allow, permission) = channel();
    let (into, received) = channel();
    let stuck: Box<dyn Output> = Box::new(Gated { permission, into });
    let audit =
        Audit::with(&settings, vec![("stuck", "stuck".into(), stuck)], Position::START, Vec::new()).unwrap();
    let check = audit.check().unwrap();
    let (mut begun, mut ended, mut refused) = (0, 0, 0);
    while refused < 20 {
        // Thirty-two at once, of which none has ended.
        let burst = (0..32).filter(|_| check(&any_call()).is_ok()).count();
        begun += burst;
        refused += usize::from(burst == 0);
        for _ in 0..burst {
            audit.happens(&format!("burst {ended} {}", "x".repeat(200)));
            ended += 1;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(begun > 32, "there was room for some");
    drop(allow);
    audit.close(PATIENCE);
    let text: String = received.iter().collect();
    assert_eq!(text.matches("\"name\":\"burst ").count(), begun);
    assert!(!text.contains("\"kind\":\"dropped\"") && !text.contains("\"kind\":\"lost\""));
}

#[test]
fn a_slow_place_loses_records_and_says_which_and_others_lose_none() {
    let (_folder, path) = in_folder();
    let mut settings = settings(Some(&path));
    (settings.queue, settings.when_full) = (64 << 10, WhenFull::Refuse);
    let (allow, permission) = channel();
    let (into, received) = channel();
    let (file, found) = crate::file::FileOutput::open(settings.file.as_ref().unwrap()).unwrap();
    assert_eq!(found.last, Position::START);
    let slow: Box<dyn Output> = Box::new(Gated { permission, into });
    let places: Vec<(&'static str, String, Box<dyn Output>)> =
        vec![("file", "file".into(), Box::new(file)), ("slow", "slow".into(), slow)];
    let audit = Audit::with(&settings, places, Position::START, Vec::new()).unwrap();
    let check = audit.check().unwrap();
    assert!(check(&any_call()).is_ok());
    // The file keeps up; what is slow fills up.
    let mut sent = 0;
    until("calls are refused", || {
        for _ in 0..50 {
            audit.happens(&"x".repeat(200));
            sent += 1;
        }
        let on_disk = text(&path).lines().count();
        until("the file keeps up", || text(&path).lines().count() > on_disk);
        check(&any_call()).is_err() && sent > 1000
    });
    let refused = check(&any_call()).unwrap_err();
    assert!(refused.to_string().contains("the audit trail cannot be written"), "{refused}");
    // It works again, after one failure.
    allow.send(false).unwrap();
    drop(allow);
    until("calls are made again", || check(&any_call()).is_ok());
    audit.happens("after it");
    audit.close(PATIENCE);
    let report = sound(&path);
    assert_eq!(report.records, text(&path).lines().count() as u64 - 1, "the file has everything");
    let lines: Vec<String> =
        received.iter().flat_map(|batch| batch.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let lost =
        lines.iter().find(|line| line.contains("\"kind\":\"lost\",\"sink\":\"slow\"")).expect("it says so");
    let lost: serde_json::Value = serde_json::from_str(lost).unwrap();
    let (from, to, seq) =
        (lost["from"].as_u64().unwrap(), lost["to"].as_u64().unwrap(), lost["seq"].as_u64().unwrap());
    assert!(from > 1 && to >= from && to + 1 == seq, "{lost}");
    let seqs: Vec<u64> = lines.iter().map(|line| Link::read(line.as_bytes()).unwrap().seq).collect();
    assert!(seqs.contains(&(from - 1)) && seqs.contains(&seq), "{from} {to}");
    assert!(!seqs.iter().any(|seq| (from..=to).contains(seq)));
    assert!(lines.iter().any(|line| line.contains("after it")));
}

/// A file that fails now and then, as a disk that is full does.
#[test]
fn a_gap_in_the_file_is_told_by_the_trail_itself() {
    struct Full(crate::file::FileOutput, Receiver<bool>);
    impl Output for Full {
        fn deliver(&mut self, batch: &Batch, done: &mut usize) -> io::Result<()> {
            match self.1.recv() {
                Ok(false) => Err(io::ErrorKind::StorageFull.into()),
                _ => self.0.deliver(batch, done),
            }
        }
        fn close(&mut self) {
            self.0.close();
        }
    }
    let (_folder, path) = in_folder();
    let mut settings = settings(Some(&path));
    settings.queue = 64 << 10;
    let (allow, permission) = channel();
    let (file, _) = crate::file::FileOutput::open(settings.file.as_ref().unwrap()).unwrap();
    let place: Box<dyn Output> = Box::new(Full(file, permission));
    let audit =
        Audit::with(&settings, vec![("file", "file".into(), place)], Position::START, Vec::new()).unwrap();
    assert!(audit.check().is_none(), "calls go on");
    allow.send(true).unwrap();
    until("it is full", || {
        audit.happens(&"x".repeat(200));
        audit.is_full()
    });
    for _ in 0..500 {
        audit.happens(&"y".repeat(200));
    }
    until("some are lost", || {
        audit.happens(&"y".repeat(200));
        audit.is_losing()
    });
    allow.send(false).unwrap();
    drop(allow);
    until("there is room again", || !audit.is_full());
    audit.happens("after it");
    audit.close(PATIENCE);
    let report = sound(&path);
    assert!(
        report.notes.iter().any(|note| note.contains("could not be written when they were made")),
        "{report:?}"
    );
    assert!(text(&path).contains("\"kind\":\"lost\",\"sink\":\"file\""));
}

#[cfg(target_os = "linux")]
#[test]
fn a_disk_that_is_full_is_an_error_and_a_reader_that_never_reads_is_left_behind() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (reader, writer) = io::pipe().unwrap();
    let (_folder, path) = in_folder();
    let mut settings = settings(Some(&path));
    settings.queue = 64 << 10;
    let (file, _) = crate::file::FileOutput::open(settings.file.as_ref().unwrap()).unwrap();
    let places: Vec<(&'static str, String, Box<dyn Output>)> = vec![
        ("file", "file".into(), Box::new(file)),
        ("full", "full".into(), Box::new(StdoutOutput::to(full))),
        ("pipe", "pipe".into(), Box::new(StdoutOutput::to(std::os::fd::OwnedFd::from(writer).into()))),
    ];
    let audit = Audit::with(&settings, places, Position::START, Vec::new()).unwrap();
    for call in 0..200 {
        audit.happens(&format!("{call} {}", "x".repeat(200)));
        if call % 50 == 0 {
            let on_disk = || text(&path).lines().count();
            let before = on_disk();
            until("the file goes on", || on_disk() > before);
        }
    }
    until("some are lost", || {
        audit.happens(&"x".repeat(200));
        audit.is_losing()
    });
    audit.close(Duration::from_millis(200));
    assert!(sound(&path).records > 200);
    drop(reader);
}

#[test]
fn records_that_find_no_room_are_counted_in_the_trail() {
    let (_folder, path) = in_folder();
    let mut settings = settings(Some(&path));
    settings.queue = 64 << 10;
    let audit = Audit::start(&settings, "1").unwrap();
    // Faster than they can be chained, sooner or later.
    let mut sent = 0;
    until("some are dropped", || {
        for _ in 0..2000 {
            audit.happens(&"x".repeat(200));
            sent += 1;
        }
        text(&path).contains("\"kind\":\"dropped\"")
    });
    audit.close(PATIENCE);
    let report = sound(&path);
    let count = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let lines: Vec<serde_json::Value> = text(&path).lines().map(count).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).cloned().collect::<Vec<_>>();
    let dropped: u64 = of("dropped").iter().map(|line| line["count"].as_u64().unwrap()).sum();
    let lost: u64 =
        of("lost").iter().map(|it| it["to"].as_u64().unwrap() - it["from"].as_u64().unwrap() + 1).sum();
    // What the file did not get may be calls, or records of what was dropped.
    match lost {
        0 => assert_eq!(of("call").len() as u64 + dropped, sent, "nothing is missing without a trace"),
        _ => assert_eq!(report.records + lost, report.head.unwrap().seq),
    }
}
