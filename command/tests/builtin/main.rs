//! A program with one server more than `tidegate` has: one line, and everything that the server brings is there.

mod guestbook;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tidegate::client::Client;

/// Longer than this, and something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The arguments of the program, one a line, for a process of this test that is the program.
const ARGUMENTS: &str = "BUILTIN_TEST_ARGUMENTS";

/// The program. It does nothing where nobody started it as one.
#[test]
fn program() {
    let Ok(arguments) = std::env::var(ARGUMENTS) else { return };
    let words = ["tidegate"].into_iter().chain(arguments.lines()).map(OsString::from);
    let mut builtins = tidegate_command::builtins();
    builtins.push(guestbook::builtin().into());
    let _ = tidegate_command::run(words, builtins);
}

/// A directory with this configuration, removed at the end.
fn folder(configuration: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tidegate.toml"), configuration).unwrap();
    folder
}

/// A process that is ended with the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "program", "--nocapture"]).env_clear().current_dir(folder);
    command.env("HOME", folder).env(ARGUMENTS, arguments.join("\n"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The lines of a stream, as they come.
fn lines(stream: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    // To the end, so that nobody waits for a reader.
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let _ = sender.send(line + "\n");
        }
    });
    receiver
}

/// Both outputs of a command that ends.
fn output(folder: &TempDir, arguments: &[&str]) -> String {
    let mut program = Program(start(folder.path(), arguments).spawn().unwrap());
    let (out, err) = (lines(program.0.stdout.take().unwrap()), lines(program.0.stderr.take().unwrap()));
    let mut said = String::new();
    for stream in [out, err] {
        loop {
            match stream.recv_timeout(PATIENCE) {
                Ok(line) => said += &line,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not end: {said}"),
            }
        }
    }
    said
}

/// The program as it serves, its address without the path, and what it said until there.
fn serve(folder: &TempDir) -> (Program, String, String) {
    let mut program = Program(start(folder.path(), &["serve", "--listen", "127.0.0.1:0"]).spawn().unwrap());
    let out = lines(program.0.stdout.take().unwrap());
    drop(lines(program.0.stderr.take().unwrap()));
    let mut said = String::new();
    while !said.contains("  Config ") {
        said += &out.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("it does not serve: {said}"));
    }
    let (_, rest) = said.split_once("at http://").unwrap();
    let address = rest.split('/').next().unwrap().to_owned();
    (program, address, said)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[test]
fn its_configuration_its_tool_and_its_page_are_there() {
    let folder = folder(
        "state_dir = false\n[guestbook]\nmost = 1\nowner = \"${OWNER:-Ada}\"\n[servers.visits]\nbuiltin = \"guestbook\"\n",
    );
    let (_program, address, said) = serve(&folder);
    assert!(said.contains(&format!("  Guests    http://{address}/guestbook\n")), "{said}");
    let page = get(&address, "/guestbook");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Sign at /mcp"), "{page}");
    assert!(get(&address, "/").contains("<a href=\"/guestbook\">Read the guest book</a>"));
    let memory = get(&address, "/memory");
    assert!(memory.starts_with("HTTP/1.1 404"), "a server that is not configured has no pages: {memory}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let signing = async {
        let client = Client::connect(format!("http://{address}/mcp").as_str()).await.unwrap();
        let first = client.call("visits_sign", json!({"name": "Grace"})).await.unwrap();
        let second = client.call("visits_sign", json!({"name": "Mary"})).await.unwrap();
        (first.text(), second.text(), second.is_error())
    };
    let signed = runtime.block_on(async { tokio::time::timeout(PATIENCE, signing).await });
    let (first, second, failed) = signed.unwrap();
    assert_eq!(first, "Ada thanks guest 1");
    assert!(second.contains("the guest book is full") && failed, "{second}");
}

#[test]
fn what_is_wrong_with_its_section_is_said() {
    let folder = folder("[guestbook]\nmost = 0\nowmer = \"Ada\"\n[servers.visits]\nbuiltin = \"gestbook\"\n");
    let said = output(&folder, &["check"]);
    for part in [
        "2:1: guestbook.most: must be from 1 to 100",
        "3:1: guestbook: unknown field \"owmer\"; did you mean \"owner\"?",
        "only demo, memory, guestbook; did you mean \"guestbook\"?",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn every_command_knows_it() {
    let folder = folder("state_dir = false\n");
    let said = output(&folder, &["add", "visits", "--builtin", "guestbook"]);
    assert!(said.contains("1 tool"), "{said}");
    let file = std::fs::read_to_string(folder.path().join("tidegate.toml")).unwrap();
    assert!(file.contains("builtin = \"guestbook\""), "{file}");
    let said = output(&folder, &["call", "visits", "sign", "name=Grace"]);
    assert!(said.contains("nobody thanks guest 1"), "{said}");
}
