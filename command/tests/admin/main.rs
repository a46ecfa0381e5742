//! The admin API of the built program, and the commands that use it: over the socket, over the URL, and without a gateway.
#![cfg(unix)]

#[path = "../identity/http.rs"]
#[allow(dead_code)]
mod http;
#[path = "../identity/issuer.rs"]
#[allow(dead_code)]
mod issuer;
#[path = "../identity/rig.rs"]
#[allow(dead_code)]
mod rig;

mod access;
mod commands;
mod document;
mod leftovers;
mod listener;
mod operations;
mod streams;
mod without;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::rig::{Gateway, command};

/// The demonstration, and nothing that takes long.
const DEMO: &str = "[servers.demo]\nbuiltin = \"demo\"\n";

/// `tidegate …` beside a gateway.
fn tidegate(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).args(arguments).output().unwrap()
}

/// What it prints, where it must succeed.
#[track_caller]
fn said(folder: &Path, arguments: &[&str]) -> String {
    let done = tidegate(folder, arguments);
    assert!(done.status.success(), "{arguments:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// The same as JSON.
#[track_caller]
fn json_said(folder: &Path, arguments: &[&str]) -> Value {
    let text = said(folder, &[arguments, &["--json"]].concat());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}"))
}

/// The exit code, and what it says is wrong.
fn refused(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let done = tidegate(folder, arguments);
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
}

fn url(gateway: &Gateway) -> String {
    format!("http://{}", gateway.address)
}

/// What a gateway says of itself in its state directory.
fn note(gateway: &Gateway) -> Value {
    let folder = gateway.folder.path().join("state/admin");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let note = files.into_iter().find(|path| path.extension().is_some_and(|it| it == "json")).unwrap();
    serde_json::from_str(&std::fs::read_to_string(note).unwrap()).unwrap()
}
