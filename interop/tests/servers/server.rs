//! [`Program`]: a server that can be started, and [`Serving`]: one that listens.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use tidegate_client::{Remote, Target};

use crate::meeting::held;
use crate::paths;

/// How long a server may take to say where it listens.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// What to start.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Program {
    pub(crate) fn new(program: impl Into<String>, args: &[&str]) -> Program {
        let args = args.iter().map(|&arg| arg.to_owned()).collect();
        Program { program: program.into(), args, env: BTreeMap::new() }
    }

    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Program {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn arg(mut self, arg: impl Into<String>) -> Program {
        self.args.push(arg.into());
        self
    }

    /// The program with an argument that no other process has, and that argument.
    pub(crate) fn marked(self) -> (Program, String) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("--mark-{}-{number}", std::process::id());
        (self.arg(&mark), mark)
    }

    /// As a target that our client starts itself.
    pub(crate) fn target(self) -> Target {
        let command =
            tidegate_client::Command { program: self.program, args: self.args, env: self.env, cwd: None };
        Target::Command(command)
    }
}

/// A server that listens. Dropping it kills it.
pub(crate) struct Serving {
    child: Mutex<Child>,
    url: String,
}

impl Serving {
    /// Starts a server and waits for its line "listening on http://…".
    pub(crate) fn start(program: &Program) -> Serving {
        Serving::try_start(program).unwrap_or_else(|fault| panic!("{fault}"))
    }

    fn try_start(program: &Program) -> Result<Serving, String> {
        let mut child = Command::new(&program.program)
            .args(&program.args)
            .envs(&program.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(paths::log())
            .spawn()
            .unwrap_or_else(|e| panic!("{}: {e}", program.program));
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let (tell, told) = mpsc::channel();
        // Reads on after that: a server may not like a pipe that nobody reads.
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if let Some(url) = line.strip_prefix("listening on ") {
                    // Only the first is waited for.
                    let _ = tell.send(url.to_owned());
                }
            }
        });
        match told.recv_timeout(STARTS_WITHIN) {
            Ok(url) => Ok(Serving { child: Mutex::new(child), url }),
            Err(_) => {
                // It may have ended by itself.
                let _ = child.kill();
                Err(format!("{program:?} did not say where it listens ({:?})", child.wait()))
            }
        }
    }

    /// Kills it, and starts another one at the same address.
    pub(crate) fn replace(&self, program: &Program) -> Serving {
        self.kill();
        let program = program.clone().env("PORT", self.port().to_string());
        let mut outcome = Err(String::new());
        // Somebody may have got the port in the meantime, for a connection that ends soon.
        for _ in 0..50 {
            outcome = Serving::try_start(&program);
            if outcome.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let again = outcome.unwrap_or_else(|fault| panic!("{fault}"));
        assert_eq!(again.url, self.url, "at the same address");
        again
    }

    /// Ends it the hard way, if it has not ended by itself, and waits until it is gone.
    fn kill(&self) {
        let mut child = held(&self.child);
        let _ = child.kill();
        let _ = child.wait();
    }

    fn port(&self) -> u16 {
        self.target("").url.port().expect("no server has the port that need not be named")
    }

    /// As a target, at this path below the address.
    pub(crate) fn target(&self, path: &str) -> Remote {
        Remote::parse(&format!("{}{path}", self.url)).expect("an address")
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How many processes have this word in their command line.
pub(crate) fn processes_with(mark: &str) -> usize {
    let lines: Vec<String> = if cfg!(target_os = "linux") {
        let all = std::fs::read_dir("/proc").expect("Linux has /proc");
        let read = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
        all.flatten().filter_map(read).map(|line| String::from_utf8_lossy(&line).into_owned()).collect()
    } else {
        let ps = Command::new("ps").args(["axww", "-o", "args="]).output().expect("ps");
        String::from_utf8_lossy(&ps.stdout).lines().map(str::to_owned).collect()
    };
    lines.iter().filter(|line| line.contains(mark)).count()
}

/// Ends a process the hard way.
pub(crate) fn kill(pid: &str) {
    let status = Command::new("kill").args(["-9", pid]).status().expect("kill");
    assert!(status.success(), "kill -9 {pid}: {status}");
}
