//! Where the audit trail goes: what `[audit]` means, and what is wrong with one.

use std::path::Path;

use tidegate_config::{AuditSettings, SyslogServer, WhenFull};

use crate::{parse, wrong};

fn audit(fields: &str) -> AuditSettings {
    parse(&format!("[audit]\n{fields}")).unwrap().audit.unwrap()
}

#[test]
fn what_is_written() {
    assert_eq!(parse("").unwrap().audit, None);
    let usual = audit("file = \"audit.jsonl\"");
    let file = usual.file.unwrap();
    assert_eq!(
        (file.path.as_path(), file.max_size, file.keep),
        (Path::new("/srv/app/audit.jsonl"), 100 << 20, 10)
    );
    assert_eq!((usual.stdout, usual.syslog, usual.queue), (false, None, 8 << 20));
    assert_eq!(usual.when_full, WhenFull::Drop);
    let all = audit(
        r#"
        file = "/var/log/tidegate/audit.jsonl"
        max_size = "1MiB"
        keep = 3
        stdout = true
        syslog = "tcp://logs.example.com:601"
        facility = "local3"
        queue = "1MiB"
        when_full = "refuse"
        "#,
    );
    let file = all.file.unwrap();
    assert_eq!((file.max_size, file.keep, all.stdout, all.queue), (1 << 20, 3, true, 1 << 20));
    let syslog = all.syslog.unwrap();
    assert_eq!((syslog.server.to_string().as_str(), syslog.facility), ("tcp://logs.example.com:601", 19));
    assert_eq!(all.when_full, WhenFull::Refuse);
    for (url, server) in [
        ("udp://127.0.0.1:514", SyslogServer::Udp("127.0.0.1:514".into())),
        ("udp://[::1]:514", SyslogServer::Udp("[::1]:514".into())),
        ("tcp://logs:6514/", SyslogServer::Tcp("logs:6514".into())),
        ("unix:///dev/log", SyslogServer::Unix("/dev/log".into())),
    ] {
        assert_eq!(audit(&format!("syslog = \"{url}\"")).syslog.unwrap().server, server);
    }
    let notes = parse("[audit]\nstdout = true\nkeep = 5\nfacility = \"local0\"").unwrap().notes.join("\n");
    assert!(
        notes.contains("audit.keep has no effect") && notes.contains("audit.facility has no effect"),
        "{notes}"
    );
}

#[test]
fn what_is_wrong() {
    for (fields, sentence) in [
        ("", "goes nowhere: add file = \"audit.jsonl\""),
        ("stdout = false", "goes nowhere"),
        ("file = \"\"", "must be a path, and is empty"),
        ("file = \"/\"", "must be a file, and is a directory"),
        ("file = \"a\"\nmax_size = 0", "must be more than 0"),
        ("file = \"a\"\nmax_size = 100", "must be at least \"64KiB\""),
        ("file = \"a\"\nkeep = 0", "must be from 1 to 10000"),
        ("file = \"a\"\nqueue = \"1KiB\"", "must be from \"64KiB\" to \"1GiB\""),
        ("file = \"a\"\nqueue = \"2GiB\"", "must be from \"64KiB\" to \"1GiB\""),
        ("file = \"a\"\nwhen_full = \"wait\"", "when_full"),
        ("syslog = \"logs:514\"", "must be \"udp://127.0.0.1:514\""),
        ("syslog = \"udp://127.0.0.1\"", "must have a port"),
        ("syslog = \"https://logs:514\"", "must be \"udp://127.0.0.1:514\""),
        ("syslog = \"udp://ann:hush@logs:514\"", "must be \"udp://127.0.0.1:514\""),
        ("syslog = \"unix://dev/log\"", "the whole path of the socket"),
        ("syslog = \"udp://logs:514\"\nfacility = \"kern\"", "must be one of user, daemon"),
        ("files = \"a\"", "files"),
    ] {
        wrong(&format!("[audit]\n{fields}"), sentence);
    }
}
