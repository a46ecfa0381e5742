//! Runs the command, within bounds.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Longer than this, and something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program.
pub(crate) const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

/// A legacy server in a shell script. What it answers comes in variables: `TOOLS` to tools/list, `RESULT` to tools/call
/// (no answer without), `PAGE` the next cursor of every page. Cancellations are written to the file `SEEN`.
pub(crate) const CANNED: &str = r#"
while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
    say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
    case "$line" in
        *'"method":"initialize"'*) say '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"canned","version":"1"}}' ;;
        *'"method":"ping"'*) say '"result":{}' ;;
        *'"method":"tools/list"'*) say "\"result\":{\"tools\":${TOOLS:-[]}${PAGE:+,\"nextCursor\":\"$PAGE\"}}" ;;
        *'"method":"tools/call"'*) echo called >> "${SEEN:-/dev/null}"; [ -z "$RESULT" ] || say "\"result\":$RESULT" ;;
        *'"method":"notifications/cancelled"'*) echo cancelled >> "${SEEN:-/dev/null}" ;;
        *'"method":"notifications/'*) ;;
        *) say '"error":{"code":-32601,"message":"Method not found"}' ;;
    esac
done
"#;

/// A directory of its own, removed at the end.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    /// Checks the exit code, and returns the output.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Done {
        assert_eq!(self.code, code, "out:\n{}\nerr:\n{}", self.out, self.err);
        self
    }

    /// The output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A command line of the program in an empty environment and directory, nobody's files around.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(TIDEGATE);
    command.env_clear().env("HOME", folder).current_dir(folder);
    for name in ["PATH", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Runs `tidegate` with these arguments.
pub(crate) fn tidegate<S: AsRef<str>>(args: &[S]) -> Done {
    tidegate_in(&Folder::new(), args, "")
}

/// Runs `tidegate` in a directory, with something on standard input.
pub(crate) fn tidegate_in<S: AsRef<str>>(folder: &Folder, args: &[S], input: &str) -> Done {
    let mut command = command(folder.path());
    command.args(args.iter().map(AsRef::as_ref));
    let mut running = Running::start(command);
    let stdin = running.child.stdin.take();
    if let Some(mut stdin) = stdin {
        // It may end without reading.
        let _ = stdin.write_all(input.as_bytes());
    }
    running.wait()
}

/// A running program, killed if the test ends first.
pub(crate) struct Running {
    pub(crate) child: Child,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a command and reads along.
    pub(crate) fn start(mut command: Command) -> Running {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Running { child, out: Some(gather(out)), err: Some(gather(err)) }
    }

    /// Sends a signal, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end.
    pub(crate) fn wait(mut self) -> Done {
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > PATIENCE => panic!("it hangs"),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let text = |handle: Option<JoinHandle<String>>| handle.unwrap().join().unwrap();
        let (out, err) = (text(self.out.take()), text(self.err.take()));
        Done { code: status.code().unwrap_or(-1), out, err }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn gather(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits until something is so.
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Arguments, then `-- tidegate serve --stdio` in an era.
pub(crate) fn with_demo(args: &[&str], era: &str) -> Vec<String> {
    let server = ["--", TIDEGATE, "--log-level", "warn", "serve", "--demo", "--stdio", "--era", era];
    args.iter().chain(&server).map(|arg| (*arg).to_owned()).collect()
}

/// Runs `tidegate` with the demonstration server.
pub(crate) fn demo(args: &[&str], era: &str) -> Done {
    tidegate(&with_demo(args, era))
}

/// Arguments, then `-- sh` with the canned server.
pub(crate) fn with_canned(args: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
    let mut all: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    for (name, value) in variables {
        all.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    all.extend(["--", "sh", "-c", CANNED].map(str::to_owned));
    all
}
