//! Files of gateways that are gone, folders that cannot be used, and several gateways in one.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::http::until;
use crate::rig::Gateway;
use crate::{DEMO, json_said, note, refused, said, tidegate, url};

#[test]
fn who_was_killed_is_not_taken_for_running_and_is_swept_away() {
    let (folder, issuers) = Gateway::folder(&format!("listen = \"127.0.0.1:1\"\n{DEMO}"));
    let killed = Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"));
    let state = killed.folder.path().join("state/admin");
    let files = || std::fs::read_dir(&state).unwrap().count();
    let pid = note(&killed)["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap().success());
    until("nobody answers", || tidegate(killed.folder.path(), &["status"]).status.code() == Some(3));
    assert_eq!(files(), 2, "nobody removed anything");
    let (_, why) = refused(killed.folder.path(), &["restart", "demo"]);
    assert!(why.contains("no gateway answers at"), "{why}");
    // The next one removes them.
    let mut next = crate::rig::command(killed.folder.path());
    let mut next =
        next.args(["serve", "--listen", "127.0.0.1:0"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    until("it is found", || tidegate(killed.folder.path(), &["status"]).status.success());
    assert_eq!((files(), &json_said(killed.folder.path(), &["status"])["pid"]), (2, &json!(next.id())));
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn two_gateways_share_a_state_directory() {
    let first = Gateway::start_exactly(DEMO);
    let state = first.folder.path().join("state");
    let (folder, issuers) = Gateway::folder("");
    let config = format!("state_dir = {:?}\n[servers.other]\nbuiltin = \"demo\"\n", state.to_str().unwrap());
    crate::rig::write(folder.path(), "tidegate.toml", &config);
    let second = Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"));
    assert_eq!(std::fs::read_dir(state.join("admin")).unwrap().count(), 4);
    assert!(said(first.folder.path(), &["list"]).contains("demo"));
    assert!(said(second.folder.path(), &["list"]).contains("other"));
    drop(second);
    assert!(said(first.folder.path(), &["list"]).contains("demo"));
}

#[test]
fn a_path_that_is_too_long_for_a_socket_leaves_the_url() {
    let long = "x".repeat(120);
    let (folder, issuers) = Gateway::folder("");
    crate::rig::write(folder.path(), "tidegate.toml", &format!("state_dir = \"{long}\"\n{DEMO}"));
    let gateway = Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"));
    gateway.logs("There is no admin socket at");
    let folder = gateway.folder.path();
    assert_eq!(json_said(folder, &["status"])["running"], true);
    assert!(said(folder, &["restart", "demo"]).contains("Restarted"), "the token is in the note");
}

#[test]
fn a_folder_of_somebody_else_is_not_used_and_clients_are_served() {
    let (folder, issuers) = Gateway::folder(DEMO);
    std::fs::create_dir(folder.path().join("state")).unwrap();
    std::os::unix::fs::symlink("/tmp", folder.path().join("state/admin")).unwrap();
    let gateway = Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"));
    gateway.logs("will not find this gateway");
    assert!(gateway.nobody().call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    assert_eq!(json_said(gateway.folder.path(), &["status", "--url", &url(&gateway)])["running"], true);
}

#[test]
fn a_folder_that_others_could_look_into_is_closed() {
    let (folder, issuers) = Gateway::folder(DEMO);
    let admin = folder.path().join("state/admin");
    std::fs::create_dir_all(&admin).unwrap();
    std::fs::set_permissions(&admin, std::fs::Permissions::from_mode(0o755)).unwrap();
    let _gateway =
        Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"));
    assert_eq!(std::fs::metadata(&admin).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn without_a_state_directory_there_is_the_url_and_nothing_changes() {
    let (folder, issuers) = Gateway::folder("");
    crate::rig::write(folder.path(), "tidegate.toml", &format!("state_dir = false\n{DEMO}"));
    let gateway = Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"));
    let folder = gateway.folder.path();
    assert_eq!(json_said(folder, &["status", "--url", &url(&gateway)])["running"], true);
    let (code, why) = refused(folder, &["restart", "demo", "--url", &url(&gateway)]);
    assert!(code == Some(2) && why.contains("token"), "{why}");
    assert!(!folder.join(".local/state/tidegate/admin").exists());
}
