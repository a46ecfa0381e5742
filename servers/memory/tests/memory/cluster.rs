//! [`Cluster`]: a PostgreSQL server of the tests' own, which ends with the process that started it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

/// How long the server may take to start.
const PATIENCE: Duration = Duration::from_secs(60);
/// The oldest version that will do.
const OLDEST: u32 = 15;

/// Starts the server and waits for lines: another start for each, and the end when the other side is gone.
const GUARD: &str = r#"
trap '' INT HUP
folder=$1; shift
"$@" >>"$folder/log" 2>&1 & server=$!
while read -r line; do
    kill -QUIT $server; wait $server
    "$@" >>"$folder/log" 2>&1 & server=$!
done
kill -QUIT $server; wait $server
rm -rf "$folder"
"#;

/// A server.
pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
    guard: Child,
}

impl Cluster {
    /// Starts a server. `None` if PostgreSQL is not installed, or not one that will do. One that is not durable may lose
    /// what it was told when the machine ends, and is quicker.
    pub(crate) fn start(durable: bool) -> Option<Cluster> {
        let quick: &[&str] = if durable { &[] } else { &["fsync=off", "full_page_writes=off"] };
        Cluster::start_with(5432, quick, &[])
    }

    /// Starts a server that also listens on a port of this machine, where it wants passwords and can encrypt.
    pub(crate) fn start_encrypted(certificate: &str, key: &str) -> Option<Cluster> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = ["listen_addresses=127.0.0.1", "ssl=on", "fsync=off"];
        Cluster::start_with(port, &settings, &[("server.crt", certificate), ("server.key", key)])
    }

    fn start_with(port: u16, settings: &[&str], files: &[(&str, &str)]) -> Option<Cluster> {
        let programs = programs()?;
        // The guard removes it, also when this process is killed.
        let folder = tempfile::Builder::new().prefix("tidegate-pg-").tempdir().unwrap().keep();
        let user = other_user();
        give(&folder, 0o700, user);
        let data = folder.join("data");
        // PostgreSQL refuses to run as root.
        let as_user = |program: &str| -> Vec<String> {
            let mut command: Vec<String> = Vec::new();
            if let Some((user, group)) = user {
                command.extend(["setpriv".to_owned(), format!("--reuid={user}"), format!("--regid={group}")]);
                command.push("--clear-groups".to_owned());
            }
            command.push(programs.join(program).display().to_string());
            command.extend(["-D".to_owned(), data.display().to_string()]);
            command
        };
        let init = as_user("initdb");
        let made = Command::new(&init[0])
            .args(&init[1..])
            .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
            .args(["-U", "tidegate", "-E", "UTF8", "--locale=C", "--no-sync"])
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for (name, content) in files {
            std::fs::write(data.join(name), content).unwrap();
            give(&data.join(name), 0o600, user);
        }
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard"]).arg(&folder).args(as_user("postgres")).arg("-k").arg(&folder);
        guard.args(["-p", &port.to_string()]);
        for setting in
            ["listen_addresses=", "max_connections=200", "shared_buffers=32MB"].iter().chain(settings)
        {
            guard.args(["-c", setting]);
        }
        guard.current_dir(&folder).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let cluster = Cluster { guard: guard.spawn().unwrap(), port, folder };
        cluster.run("SELECT 1");
        Some(cluster)
    }

    /// Where a database is.
    pub(crate) fn url(&self, database: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        format!("postgres://tidegate@{folder}:{}/{database}", self.port)
    }

    /// The port of this machine that it listens on, if it does.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Makes a database, unless it is there.
    pub(crate) fn database(&self, name: &str) -> String {
        self.run(&format!("CREATE DATABASE {name}"));
        self.url(name)
    }

    /// Runs a statement, once the server is there. What it makes may be there already.
    pub(crate) fn run(&self, statement: &str) {
        self.run_in("postgres", statement);
    }

    /// Runs a statement in a database.
    pub(crate) fn run_in(&self, database: &str, statement: &str) {
        let url = self.url(database);
        // Not in a thread that runs other tasks.
        let run = || {
            let until = Instant::now() + PATIENCE;
            let mut client = loop {
                match Client::connect(&url, NoTls) {
                    Ok(client) => break client,
                    Err(error) => assert!(Instant::now() < until, "{error:?}: {}", self.log()),
                }
                std::thread::sleep(Duration::from_millis(20));
            };
            match client.batch_execute(statement) {
                Err(error) if error.code().is_none_or(|code| code.code() != "42P04") => panic!("{error:?}"),
                _ => {}
            }
        };
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
    }

    /// The number that a query in a database finds.
    pub(crate) fn number(&self, database: &str, query: &str) -> i64 {
        let url = self.url(database);
        // Not in a thread that runs other tasks.
        let run = || Client::connect(&url, NoTls).unwrap().query_one(query, &[]).unwrap().get(0);
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    /// Ends the server without giving it time for anything, and starts it again.
    pub(crate) fn crash(&mut self) {
        writeln!(self.guard.stdin.as_mut().unwrap(), "again").unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Makes a file the server's own.
fn give(path: &Path, mode: u32, user: Option<(u32, u32)>) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{PermissionsExt, chown};
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        if let Some((user, group)) = user {
            chown(path, Some(user), Some(group)).unwrap();
        }
    }
    #[cfg(not(unix))]
    let _ = (path, mode, user);
}

/// The folder with the programs of PostgreSQL, if it is installed.
pub(crate) fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for versions in ["/usr/lib/postgresql", "/opt/homebrew/opt"] {
        let found = std::fs::read_dir(versions).into_iter().flatten().flatten();
        folders.extend(found.map(|version| version.path().join("bin")));
    }
    let fits = |folder: &Path| {
        let said = Command::new(folder.join("postgres")).arg("--version").output().ok()?;
        let said = String::from_utf8(said.stdout).ok()?;
        let version: u32 = said.split([' ', '.']).find_map(|word| word.parse().ok())?;
        (version >= OLDEST && folder.join("initdb").exists()).then_some(())
    };
    folders.into_iter().find(|folder| cfg!(unix) && fits(folder).is_some())
}

/// Whom to run the server as, if it cannot run as whoever runs the tests: the numbers of the user and the group.
fn other_user() -> Option<(u32, u32)> {
    let number = |args: &[&str]| -> Option<u32> {
        let said = Command::new("id").args(args).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(said.stdout).ok()?.trim().parse().ok()
    };
    if number(&["-u"]) != Some(0) {
        return None;
    }
    ["postgres", "nobody"].iter().find_map(|name| Some((number(&["-u", name])?, number(&["-g", name])?)))
}
