//! The figures of the gateway, as the client of Prometheus from PyPI reads them.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::gateway::Gateway;
use crate::paths;

#[tokio::test]
async fn every_documented_series_is_what_prometheus_reads() {
    read_as("opentelemetry").await;
}

#[tokio::test]
async fn the_same_by_the_names_of_percolate() {
    read_as("percolate").await;
}

async fn read_as(names: &str) {
    let folder = paths::scratch(&format!("metrics-{names}"));
    let file = folder.join("tidegate.toml");
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    let program = paths::tidegate();
    let config = format!(
        "state_dir = \"state\"\n[telemetry]\nnames = {names:?}\n[telemetry.otlp]\nendpoint = \"http://127.0.0.1:{port}\"\n[auth]\nkeys = \"keys.toml\"\n\
         [limits]\ntenant = false\nuser = {{ rate = \"1000/m\", concurrent = 10 }}\n\
         [servers.demo]\nbuiltin = \"demo\"\n[servers.unwell]\nurl = \"http://127.0.0.1:{port}/mcp\"\n\
         breaker = {{ failures = 1 }}\nretry = {{ attempts = 2, base = \"10ms\" }}\n\
         [servers.old]\ncommand = [{program:?}, \"serve\", \"--stdio\", \"--demo\", \"--era\", \"legacy\"]\n"
    );
    std::fs::write(&file, config).expect("a writable directory");
    let keys = folder.join("keys.toml");
    std::fs::write(&keys, "").expect("a writable directory");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).expect("its mode");
    let mut add = Command::new(&program);
    let added = add.args(["keys", "add", "prometheus"]).current_dir(&folder).output().expect("tidegate");
    let key = String::from_utf8(added.stdout).expect("text").trim().to_owned();
    assert!(added.status.success() && !key.is_empty(), "{}", String::from_utf8_lossy(&added.stderr));

    let gateway = Gateway::start(&file).await;
    let base = gateway.url.trim_end_matches("/mcp").to_owned();
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/operating.md");
    let mut read = tokio::process::Command::new(paths::prometheus_python());
    read.arg(paths::client("python/figures.py")).arg(base).arg(key).arg(&file).args([page, names]);
    let read = read.arg(port.to_string()).output().await.expect("Python");
    assert!(
        read.status.success(),
        "{}{}",
        String::from_utf8_lossy(&read.stdout),
        String::from_utf8_lossy(&read.stderr)
    );
    gateway.stop().await;
}
