//! At a terminal: forms, colours, progress. `script` (util-linux) provides one; where it is missing, these are left out, which
//! is a failure when `CI` is set.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::rig::{Folder, PATIENCE, TIDEGATE, command};

/// Runs a command line in a terminal; sends each answer when its prompt has come. Gives the screen and the exit code.
fn at_a_terminal(line: &str, answers: &[(&str, &str)]) -> Option<(String, i32)> {
    at_a_terminal_in(&Folder::new(), line, answers)
}

/// The same in a directory.
pub(crate) fn at_a_terminal_in(
    folder: &Folder,
    line: &str,
    answers: &[(&str, &str)],
) -> Option<(String, i32)> {
    let version = Command::new("script").arg("--version").output();
    if !version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("util-linux")) {
        assert!(std::env::var_os("CI").is_none(), "script of util-linux is missing, and CI skips nothing");
        eprintln!("SKIPPED: script of util-linux is missing, so there is no terminal to test at");
        return None;
    }
    let mut script = Command::new("script");
    script.args(["-q", "-e", "-c", line, "/dev/null"]).current_dir(folder.path());
    script
        .env_clear()
        .envs(command(folder.path()).get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, pieces) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = output.read(&mut piece) {
            let _ = sender.send(String::from_utf8_lossy(&piece[..count]).into_owned());
        }
    });
    let (mut screen, mut seen) = (String::new(), 0);
    for (prompt, answer) in answers {
        while !screen[seen..].contains(prompt) {
            match pieces.recv_timeout(PATIENCE) {
                Ok(piece) => screen.push_str(&piece),
                Err(error) => panic!("{error} while waiting for {prompt:?} in\n{screen}"),
            }
        }
        seen = screen.len();
        input.write_all(answer.as_bytes()).unwrap();
    }
    while let Ok(piece) = pieces.recv_timeout(PATIENCE) {
        screen.push_str(&piece);
    }
    Some((screen.replace("\r\n", "\n"), child.wait().unwrap().code().unwrap_or(-1)))
}

#[test]
fn questions_are_asked_as_a_form() {
    for era in ["legacy", "modern"] {
        let line = format!("{TIDEGATE} call greet -- {TIDEGATE} serve --demo --stdio --era {era}");
        let answers = [("Answer? ", "y\n"), ("> ", "Ada\n"), ("Send? ", "y\n")];
        let Some((screen, code)) = at_a_terminal(&line, &answers) else { return };
        assert_eq!(code, 0, "{screen}");
        assert!(screen.contains("asks:") && screen.contains("| [demo] What is your name?"), "{screen}");
        assert!(screen.contains("\nHello, Ada!\n"), "{screen}");
    }
}

#[test]
fn ctrl_c_ends_a_form() {
    let line = format!("{TIDEGATE} call greet -- {TIDEGATE} serve --demo --stdio");
    let Some((screen, code)) = at_a_terminal(&line, &[("Answer? ", "\u{3}")]) else { return };
    assert_eq!(code, 130, "{screen}");
    assert!(screen.contains("Cancelling; press Ctrl-C again to stop at once.\n"), "{screen}");
}

#[test]
fn progress_is_a_bar() {
    let line = format!("{TIDEGATE} call count to=5 -- {TIDEGATE} serve --demo --stdio");
    let Some((screen, code)) = at_a_terminal(&line, &[]) else { return };
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("60% counted to 3") && screen.contains('━'), "{screen}");
    assert!(screen.ends_with("Counted to 5\n"), "{screen}");
}

#[test]
fn colours_only_where_they_help() {
    let line = format!("{TIDEGATE} tools -- {TIDEGATE} serve --demo --stdio");
    let Some((screen, _)) = at_a_terminal(&line, &[]) else { return };
    assert!(screen.contains("\u{1b}[1mNAME\u{1b}[0m"), "{screen}");
    let (screen, _) = at_a_terminal(&format!("NO_COLOR=1 {line}"), &[]).unwrap();
    assert!(screen.contains("NAME   PARAMETERS"), "{screen}");
}

#[test]
fn a_server_of_this_directory_is_used_after_a_yes() {
    let folder = Folder::new();
    let entry = format!(r#"{{"command": "{TIDEGATE}", "args": ["serve", "--demo", "--stdio"]}}"#);
    folder.write(".mcp.json", &format!(r#"{{"mcpServers": {{"tides": {entry}}}}}"#));
    for (line, question, yes, no) in [
        (
            "tools tides",
            "Use it? [y/N] ",
            "echo",
            "If you trust it, name the file as well: ./.mcp.json#tides",
        ),
        ("doctor", "Start them? [y/N] ", "1 server: 1 works", "1 server: 0 work, 1 not checked"),
    ] {
        let line = format!("{TIDEGATE} {line}");
        for (answer, expected) in [("y\n", yes), ("\n", no)] {
            let Some((screen, _)) = at_a_terminal_in(&folder, &line, &[(question, answer)]) else { return };
            assert!(screen.contains(expected), "{line} {answer:?}:\n{screen}");
            assert!(screen.contains("./.mcp.json"), "{screen}");
        }
    }
}
