//! What a configuration says about watching the gateway: the log file, the stories of calls, and the collector.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_config::{OtlpSettings, Settings};
use tokio::net::TcpStream;

use crate::term::clean;

/// How long a collector may take to be there.
const WITHIN: Duration = Duration::from_secs(5);

/// A line each, for people: what it is about, and what is said.
pub(super) fn rows(settings: &Settings) -> Vec<(&'static str, String)> {
    let shown = |path: &Path| clean::line(&path.display().to_string());
    let mut rows = Vec::new();
    if let Some(file) = &settings.log.file {
        rows.push(("log", shown(&file.path)));
    }
    let stories = &settings.telemetry.stories;
    if let Some(file) = stories.file.as_deref().filter(|_| stories.room > 0) {
        rows.push(("stories", shown(file)));
    }
    if let Some(otlp) = collector(settings) {
        rows.push(("collector", in_words(&otlp)));
    }
    rows
}

/// The same for programs.
pub(super) fn json(settings: &Settings) -> Value {
    let stories = &settings.telemetry.stories;
    json!({
        "log": settings.log.file.as_ref().map(|file| &file.path),
        "stories": stories.file.as_ref().filter(|_| stories.room > 0),
        "collector": collector(settings).map(|otlp| json!({
            "endpoint": otlp.endpoint.as_str(),
            "protocol": protocol(&otlp),
            "traces": otlp.traces,
            "sample": otlp.sample,
            "metrics": otlp.metrics,
        })),
    })
}

/// The collector of the configuration, else that of the environment.
fn collector(settings: &Settings) -> Option<OtlpSettings> {
    let said = || OtlpSettings::from_environment(|name| std::env::var(name).ok()).ok().flatten();
    settings.telemetry.otlp.clone().or_else(said)
}

fn protocol(otlp: &OtlpSettings) -> &'static str {
    if otlp.grpc { "grpc" } else { "http/protobuf" }
}

fn in_words(otlp: &OtlpSettings) -> String {
    let traces = otlp.traces.then(|| format!("traces ({} %)", otlp.sample * 100.0));
    let metrics =
        otlp.metrics.then(|| format!("metrics every {}", humantime::format_duration(otlp.interval)));
    let sent: Vec<String> = traces.into_iter().chain(metrics).collect();
    let sent = if sent.is_empty() { "nothing is sent".to_owned() } else { sent.join(", ") };
    format!("{} ({}): {sent}", clean::line(otlp.endpoint.as_str()), protocol(otlp))
}

/// Why the gateway would not start: sentences.
pub(super) fn problems(settings: &Settings) -> Vec<String> {
    let file = settings.log.file.as_ref().map(|file| &*file.path).filter(|path| !can_write(path));
    let sentence =
        |path: &Path| format!("log.file: {} cannot be written: the gateway would not start.", path.display());
    file.into_iter().map(sentence).collect()
}

/// What would not work: sentences.
pub(super) fn warnings(settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    let stories = &settings.telemetry.stories;
    if let Some(path) = stories.file.as_deref().filter(|path| stories.room > 0 && !can_write(path)) {
        let path = path.display();
        warnings.push(format!(
            "telemetry.stories_file: {path} cannot be written: calls are remembered in memory only."
        ));
    }
    if let Err(why) = OtlpSettings::from_environment(|name| std::env::var(name).ok())
        && settings.telemetry.otlp.is_none()
    {
        warnings.push(format!("{why}: nothing is sent to a collector."));
    }
    warnings
}

/// A sentence, if nobody listens where the collector should be.
pub(super) async fn unreachable(settings: &Settings) -> Option<String> {
    let otlp = collector(settings)?;
    let host = otlp.endpoint.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = otlp.endpoint.port_or_known_default()?;
    let why = match tokio::time::timeout(WITHIN, TcpStream::connect((host.as_str(), port))).await {
        Ok(Ok(_)) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {}", humantime::format_duration(WITHIN)),
    };
    Some(format!(
        "telemetry.otlp: the collector at {host}:{port} cannot be reached: {why}. Calls do not wait for it."
    ))
}

/// Whether a file could be written, or made. Nothing is.
fn can_write(path: &Path) -> bool {
    let is_there = |path: &&Path| path.as_os_str().is_empty() || path.exists();
    let Some(nearest) = path.ancestors().find(is_there) else { return false };
    let nearest = if nearest.as_os_str().is_empty() { Path::new(".") } else { nearest };
    let fits = if nearest == path { !nearest.is_dir() } else { nearest.is_dir() };
    fits && is_writable(nearest)
}

#[cfg(unix)]
fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

#[cfg(not(unix))]
fn is_writable(path: &Path) -> bool {
    !std::fs::metadata(path).is_ok_and(|about| about.permissions().readonly())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_file_can_be_written_without_writing_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("there.log");
        std::fs::write(&file, "").unwrap();
        assert!(can_write(&file) && can_write(&dir.path().join("a/b/new.log")));
        assert!(!can_write(dir.path()) && !can_write(&file.join("below.log")));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(can_write(Path::new("surely-not-there.log")));
    }
}
