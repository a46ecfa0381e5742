//! Log lines: what `[log]` means, and what is wrong with one.

use std::path::Path;

use tidegate_config::{LogFormat, LogSettings};

use crate::{parse, wrong};

fn log(fields: &str) -> LogSettings {
    parse(&format!("[log]\n{fields}")).unwrap().log
}

#[test]
fn what_it_means() {
    assert_eq!(parse("").unwrap().log, LogSettings::default());
    assert_eq!(log(""), LogSettings::default());
    let file = log("file = \"logs/tidegate.log\"").file.unwrap();
    assert_eq!(
        (file.path.as_path(), file.max_size, file.keep),
        (Path::new("/srv/app/logs/tidegate.log"), 100 << 20, 10)
    );
    let all = log(
        "format = \"json\"\nlevel = \"info,tidegate_edge=debug\"\nfile = \"/var/log/t.log\"\nmax_size = \"1MiB\"\nkeep = 3",
    );
    assert_eq!((all.format, all.level.as_deref()), (Some(LogFormat::Json), Some("info,tidegate_edge=debug")));
    let file = all.file.unwrap();
    assert_eq!((file.path.as_path(), file.max_size, file.keep), (Path::new("/var/log/t.log"), 1 << 20, 3));
    assert_eq!(log("format = \"pretty\"").format, Some(LogFormat::Pretty));
    let notes = parse("[log]\nkeep = 5\nmax_size = \"1MiB\"").unwrap().notes.join("\n");
    assert!(
        notes.contains("log.keep has no effect") && notes.contains("log.max_size has no effect"),
        "{notes}"
    );
}

#[test]
fn what_is_wrong() {
    for (fields, sentence) in [
        ("format = \"xml\"", "format"),
        ("level = \"loud\"", "is not a log level: use error, warn, info"),
        ("level = \"\"", "is not a log level"),
        ("level = \"info,tidegate_edge=loud\"", "is not a log level"),
        ("file = \"\"", "must be a path, and is empty"),
        ("file = \"/\"", "must be a file, and is a directory"),
        ("file = \"a\"\nmax_size = 100", "must be at least \"64KiB\""),
        ("file = \"a\"\nkeep = 0", "must be from 1 to 1000"),
        ("file = \"a\"\nkeep = 1001", "must be from 1 to 1000"),
        ("file = \"a\"\n[audit]\nfile = \"a\"", "must be another file than that of [audit]"),
        ("path = \"a\"", "path"),
    ] {
        wrong(&format!("[log]\n{fields}"), sentence);
    }
}
