//! Copies of a memory: the one file after an orderly end, and `tidegate memory backup` at any time.
//!
//! `BACKUP_ROUNDS=200 cargo test -p tidegate-command --test cli backup` runs as many rounds as are asked for.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::rig::{Folder, PATIENCE, command, tidegate_in, until};

const MEMORY: &str = ".local/share/tidegate/memory.db";

/// A memory that is served over its standard streams, to one modern client.
struct Served {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Served {
    fn start(folder: &Folder) -> Served {
        let mut served = command(folder.path());
        served.args(["--log-level", "error", "serve", "--stdio"]);
        let mut child = served.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Served { child, to, from }
    }

    /// Calls a tool, and waits for what it says.
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "backup", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        writeln!(self.to.as_mut().unwrap(), "{request}").unwrap();
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(answer["result"].is_object() && answer["result"]["isError"] != true, "{answer}");
        answer["result"].clone()
    }

    fn keep(&mut self, name: &str) {
        let entity = json!({"name": name, "entityType": "t", "observations": ["said"]});
        self.call("create_entities", &json!({"entities": [entity]}));
    }

    /// Ends it in this way, and waits until it is over.
    fn end(mut self, how: &str) {
        match how {
            "stdin" => drop(self.to.take()),
            signal => {
                let pid = self.child.id().to_string();
                assert!(Command::new("kill").args([format!("-{signal}"), pid]).status().unwrap().success());
            }
        }
        let mut ended = None;
        until(|| {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(0), "after {how}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names of all entities in the copy, which is a folder's only file.
fn names_in(folder: &Folder, copy: &str) -> Vec<String> {
    let told = tidegate_in(folder, &["memory", "export", "--store", copy], "").exits(0).out;
    let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
    told.lines().map(name).collect()
}

#[test]
fn a_copy_of_the_one_file_after_an_orderly_end_has_everything() {
    let rounds = std::env::var("BACKUP_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(8);
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let how = ["INT", "TERM", "stdin", "import"][round % 4];
        let names: Vec<String> = (0..=round % 7).map(|n| format!("round {round} name {n}")).collect();
        if how == "import" {
            let line = |name: &String| json!({"type": "entity", "name": name, "entityType": "t"}).to_string();
            let lines: Vec<String> = names.iter().map(line).collect();
            tidegate_in(&folder, &["memory", "import", "-"], &lines.join("\n")).exits(0);
        } else {
            let mut served = Served::start(&folder);
            names.iter().for_each(|name| served.keep(name));
            served.end(how);
        }
        acknowledged.extend(names);
        // Nothing but the file, as the guide says.
        let copy = elsewhere.path().join("copy.db");
        std::fs::copy(folder.path().join(MEMORY), &copy).unwrap();
        let known = names_in(&elsewhere, "copy.db");
        let missing: Vec<_> = acknowledged.iter().filter(|name| !known.contains(name)).collect();
        assert!(missing.is_empty(), "round {round}, {how}: {missing:?} of {}", acknowledged.len());
    }
    let beside = std::fs::read_dir(folder.path().join(MEMORY).parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing stands beside the file");
}

#[test]
fn a_memory_that_is_taken_out_of_the_configuration_is_whole() {
    let folder = Folder::new();
    let web = "[servers.web]\nurl = \"http://127.0.0.1:9/\"\n";
    let memory = "[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n";
    folder.write("tidegate.toml", &format!("{web}{memory}"));
    let mut served = Served::start(&folder);
    served.keep("Ann");
    folder.write("tidegate.toml", web);
    let folder_of = folder.path().join(MEMORY).parent().unwrap().to_owned();
    until(|| std::fs::read_dir(&folder_of).unwrap().count() == 1);
    assert_eq!(names_in(&folder, MEMORY), ["Ann"]);
    served.end("TERM");
}

#[test]
fn a_copy_can_be_made_while_somebody_writes() {
    let folder = Folder::new();
    let mut served = Served::start(&folder);
    served.keep("before");
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stop = done.clone();
    let writer = std::thread::spawn(move || {
        let mut count = 0;
        while !stop.load(std::sync::atomic::Ordering::SeqCst) {
            served.keep(&format!("n{count}"));
            count += 1;
        }
        (served, count)
    });
    let started = Instant::now();
    for round in 0..5 {
        let copy = format!("copy{round}.db");
        let said = tidegate_in(&folder, &["memory", "backup", &copy], "").exits(0);
        assert!(said.out.starts_with(&format!("Backed up the memory to {copy} (")), "{said:?}");
        let mode = std::os::unix::fs::MetadataExt::mode(&folder.path().join(&copy).metadata().unwrap());
        assert_eq!(mode & 0o777, 0o600, "nobody else can read it");
        assert!(!folder.path().join(format!("{copy}-wal")).exists());
        // All up to some change, and nothing of what came later.
        let known = names_in(&folder, &copy);
        assert_eq!(known[0], "before");
        for (at, name) in known[1..].iter().enumerate() {
            assert_eq!(*name, format!("n{at}"), "in their order, without a gap");
        }
        if round == 0 {
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    assert!(started.elapsed() < PATIENCE);
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    let (served, count) = writer.join().unwrap();
    assert!(count > 0);
    served.end("stdin");
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.contains(".part")), "{left:?}");

    // It can be put back.
    std::fs::copy(folder.path().join("copy0.db"), folder.path().join(MEMORY)).unwrap();
    let mut served = Served::start(&folder);
    let found = served.call("search_nodes", &json!({"query": "before"}));
    assert!(found.to_string().contains("before"), "{found}");
}

#[test]
fn a_copy_takes_the_place_of_nothing() {
    let folder = Folder::new();
    let said = tidegate_in(&folder, &["memory", "backup", "copy.db"], "").exits(2).err;
    assert!(said.contains("there is no memory at"), "{said}");
    let line = r#"{"type":"entity","name":"Ann","entityType":"person"}"#;
    tidegate_in(&folder, &["memory", "import", "-"], line).exits(0);
    folder.write("copy.db", "a letter");
    let said = tidegate_in(&folder, &["memory", "backup", "copy.db"], "").exits(2).err;
    assert!(said.contains("copy.db already exists") && said.contains("--force"), "{said}");
    assert_eq!(folder.read("copy.db"), "a letter");
    let told =
        tidegate_in(&folder, &["memory", "backup", "copy.db", "--force", "--json"], "").exits(0).json();
    assert_eq!(told["file"], "copy.db");
    assert_eq!(told["bytes"].as_u64().unwrap(), folder.path().join("copy.db").metadata().unwrap().len());
    assert_eq!(names_in(&folder, "copy.db"), ["Ann"]);

    let said = tidegate_in(&folder, &["memory", "backup", MEMORY, "--force"], "").exits(2).err;
    assert!(said.contains("is part of the memory itself"), "{said}");
    let said = tidegate_in(&folder, &["memory", "backup", ".", "--force"], "").exits(2).err;
    assert!(said.contains("already exists"), "{said}");
    // What stands beside another memory would be taken for a part of the copy.
    folder.write("copy.db-wal", "");
    let said = tidegate_in(&folder, &["memory", "backup", "copy.db", "--force"], "").exits(2).err;
    assert!(said.contains("in use or was not closed properly"), "{said}");
    let said = tidegate_in(&folder, &["memory", "backup", "nowhere/copy.db"], "").exits(2).err;
    assert!(said.contains("cannot write nowhere/copy.db"), "{said}");
    let postgres = ["memory", "backup", "new.db", "--store", "postgres://db.example.com/memory"];
    let said = tidegate_in(&folder, &postgres, "").exits(2).err;
    assert!(said.contains("PostgreSQL") && said.contains("pg_dump"), "{said}");
    folder.write("not.db", "a text and no database");
    let said = tidegate_in(&folder, &["memory", "backup", "new.db", "--store", "not.db"], "").exits(3).err;
    assert!(said.contains("It is not a Tidegate memory"), "{said}");
    assert!(!folder.path().join("new.db").exists());
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    assert!(!left.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().contains(".part")));
}

#[test]
fn nothing_is_written_over_the_memory_itself() {
    let folder = Folder::new();
    let mut served = Served::start(&folder);
    served.keep("kept");
    // Also while it is in use, and what SQLite keeps beside it.
    for (ending, action) in [
        ("", "export"),
        ("-wal", "export"),
        ("", "backup"),
        ("-wal", "backup"),
        ("-shm", "backup"),
        ("-journal", "backup"),
    ] {
        let file = format!("{MEMORY}{ending}");
        let mut args = vec!["memory", action, &file];
        args.extend((action == "backup").then_some("--force"));
        let refused = tidegate_in(&folder, &args, "").exits(2);
        assert!(refused.err.contains("is part of the memory itself"), "{action} {ending}: {refused:?}");
    }
    served.keep("kept too");
    served.end("TERM");
    let exported = tidegate_in(&folder, &["memory", "export"], "").exits(0);
    assert!(exported.out.contains("\"kept\"") && exported.out.contains("\"kept too\""), "{exported:?}");
}

/// Without a configuration there is nothing that SIGHUP could make it read again, so it ends like with any other signal.
#[test]
fn a_hangup_is_an_orderly_end_too() {
    let folder = Folder::new();
    let mut served = Served::start(&folder);
    served.keep("kept");
    served.end("HUP");
    let copy = folder.path().join("copy.db");
    std::fs::copy(folder.path().join(MEMORY), &copy).unwrap();
    let exported = tidegate_in(&folder, &["memory", "export", "--store", "copy.db"], "").exits(0);
    assert!(exported.out.contains("\"kept\""), "{exported:?}");
}

/// Whoever reads the log may go away, and the disk that it is written to may be full.
#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_written_ends_nothing() {
    let folder = Folder::new();
    for format in ["pretty", "json"] {
        let mut served = command(folder.path());
        served.args(["--log-level", "debug", "--log-format", format, "serve", "--stdio"]);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut child = served.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(full).spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut served = Served { child, to, from };
        served.keep(format);
        served.end("TERM");
    }
    let exported = tidegate_in(&folder, &["memory", "export"], "").exits(0);
    assert!(exported.out.contains("\"pretty\"") && exported.out.contains("\"json\""), "{exported:?}");
}
