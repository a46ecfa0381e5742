//! A server over stdio: a process of its own, in which this program runs again.
//!
//! libtest greets on standard output before it lets us run, so that the gateway meets servers that print banners.

use std::io::Write;
use std::time::Duration;

use tidegate_edge::{Eras, stdio};
use tidegate_protocol::Method;
use tidegate_service::{Call, Door};
use tower::service_fn;

/// Which server it is.
pub(crate) const NUMBER: &str = "CHAOS_NUMBER";
/// The era it speaks.
pub(crate) const ERA: &str = "CHAOS_ERA";
/// The file with its mood.
pub(crate) const MOOD: &str = "CHAOS_MOOD";
/// The test that it belongs to.
pub(crate) const OF: &str = "CHAOS_OF";

/// Runs the server if this process was started for that, and does not come back then.
pub(crate) fn run_if_asked() {
    let Ok(number) = std::env::var(NUMBER) else { return };
    let number: usize = number.parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::spawn(garble());
        let mut settings = stdio::Settings::default();
        let legacy = std::env::var(ERA).as_deref() == Ok("legacy");
        settings.edge.eras = if legacy { Eras::Legacy } else { Eras::Modern };
        let door = super::server(number);
        let moody = service_fn(move |call: Call| {
            let door = door.clone();
            async move {
                while mood() != "fine" && call.method != Method::Listen {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                door.answer(call).await
            }
        });
        stdio::serve(moody, settings).await
    });
    std::process::exit(0);
}

fn mood() -> String {
    let mood =
        std::env::var(MOOD).ok().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    if mood == "gone" {
        std::process::exit(9);
    }
    mood
}

/// Writes nonsense while that is the mood.
async fn garble() {
    loop {
        if mood() == "garbling" {
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":\nnonsense\n\xff\xfe\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
            let _ = out.flush();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The processes of one server, or of all.
pub(crate) fn running(number: Option<usize>) -> Vec<i32> {
    let own = format!("{OF}={}", std::process::id());
    let number = number.map(|number| format!("{NUMBER}={number}"));
    let all = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let id = entry.ok()?.file_name().to_str()?.parse::<i32>().ok()?;
        let environment = std::fs::read(format!("/proc/{id}/environ")).ok()?;
        let has = |wanted: &str| environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
        (has(&own) && number.as_deref().is_none_or(has)).then_some(id)
    });
    all.collect()
}

/// Kills them, one by one.
pub(crate) fn kill_all(number: Option<usize>) {
    for id in running(number) {
        if let Some(id) = rustix::process::Pid::from_raw(id) {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::KILL);
        }
    }
}
