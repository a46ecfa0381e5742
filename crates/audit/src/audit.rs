//! [`Audit`]: a trail that is being written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_config::{AuditSettings, WhenFull};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Call;

use crate::backlog::{Backlog, Output};
use crate::chain::{Chain, Position};
use crate::error::AuditError;
use crate::file::{FileOutput, Found, shown};
use crate::queue::Queue;
use crate::record::hash;
use crate::recorder::AuditRecorder;
use crate::stdout::StdoutOutput;
use crate::syslog::SyslogOutput;
use crate::text::{key, member, number};
use crate::writer::Writer;

/// A trail that is being written. It has to be [closed](Audit::close), or its last records are not written.
#[derive(Debug)]
pub struct Audit {
    queue: Arc<Queue>,
    recorder: Arc<AuditRecorder>,
    full: Arc<AtomicUsize>,
    #[cfg(test)]
    places: Vec<Arc<Backlog>>,
    when_full: WhenFull,
    /// Hears when all threads have ended.
    ended: Receiver<()>,
}

/// After how long a refused caller may try again.
const RETRY_AFTER: Duration = Duration::from_secs(5);

impl Audit {
    /// Begins or continues a trail. `version` is what the first record says of the program.
    pub fn start(settings: &AuditSettings, version: &str) -> Result<Audit, AuditError> {
        let mut outputs: Vec<(&'static str, String, Box<dyn Output>)> = Vec::new();
        let mut found = Found { last: Position::START, torn: 0, missing: 0 };
        if let Some(file) = &settings.file {
            let (output, what) = FileOutput::open(file)?;
            found = what;
            outputs.push(("file", shown(&file.path), Box::new(output)));
        }
        if settings.stdout {
            let output = StdoutOutput::open().map_err(AuditError::Stdout)?;
            outputs.push(("stdout", "standard output".to_owned(), Box::new(output)));
        }
        if let Some(syslog) = &settings.syslog {
            outputs.push(("syslog", syslog.server.to_string(), Box::new(SyslogOutput::new(syslog))));
        }
        let start = start_members(settings, version, &found);
        if found.missing > 0 {
            let (missing, place) = (found.missing, settings.file.as_ref().map(|file| shown(&file.path)));
            tracing::warn!(
                missing,
                "The last {missing} records of the audit trail {} are not there any more: see tidegate audit verify",
                place.unwrap_or_default()
            );
        }
        Audit::with(settings, outputs, found.last, start)
    }

    /// The same with these places.
    pub(crate) fn with(
        settings: &AuditSettings,
        outputs: Vec<(&'static str, String, Box<dyn Output>)>,
        last: Position,
        start: Vec<u8>,
    ) -> Result<Audit, AuditError> {
        let limit = settings.queue;
        let (queue, full) = (Arc::new(Queue::new(limit)), Arc::new(AtomicUsize::new(0)));
        let (ends, ended) = channel();
        let mut places = Vec::new();
        for (name, shown, mut output) in outputs {
            let backlog = Arc::new(Backlog::new(name, shown, limit, queue.clone(), full.clone()));
            places.push(backlog.clone());
            spawn(&format!("audit-{name}"), ends.clone(), move || backlog.run(&mut *output))?;
        }
        #[cfg(test)]
        let all = places.clone();
        let writer = Writer { queue: queue.clone(), places, chain: Chain::new(last), limit };
        spawn("audit", ends, move || writer.run(&start))?;
        let recorder = Arc::new(AuditRecorder::new(queue.clone()));
        Ok(Audit {
            queue,
            recorder,
            full,
            #[cfg(test)]
            places: all,
            when_full: settings.when_full,
            ended,
        })
    }

    /// What hears of what happens: for [`events::add`](tidegate_service::events::add).
    pub fn recorder(&self) -> Arc<AuditRecorder> {
        self.recorder.clone()
    }

    /// With `when_full = "refuse"`: refuses calls while one of the places can take no more records.
    pub fn check(&self) -> Option<impl Fn(&Call) -> Result<(), Error> + Send + Sync + 'static> {
        let (queue, full) = (self.queue.clone(), self.full.clone());
        (self.when_full == WhenFull::Refuse).then_some(move |_: &Call| {
            match full.load(Ordering::Relaxed) > 0 || queue.is_crowded() {
                false => Ok(()),
                true => Err(refusal()),
            }
        })
    }

    /// Writes what there is, as far as that can be done within this time, and ends.
    pub fn close(self, within: Duration) {
        let by = Instant::now() + within;
        self.queue.close(by);
        // Something may hang in a system call: it is not waited for.
        let patience = within + Duration::from_millis(500);
        if self.ended.recv_timeout(patience) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("The audit trail could not be written to its end in time");
        }
    }
}

#[cfg(test)]
impl Audit {
    /// Whether a place can take no more.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) > 0
    }

    /// Whether a place has lost something and could not say so yet.
    pub(crate) fn is_losing(&self) -> bool {
        self.places.iter().any(|place| place.is_losing())
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.queue.close(Instant::now());
    }
}

fn refusal() -> Error {
    Error::new(
        Symbol::Overloaded,
        "Nothing can be called at the moment, because calls have to be recorded and the audit trail cannot be written. Try \
         again later, or tell the operator of the gateway.",
    )
    .with_retry_after(RETRY_AFTER)
}

fn spawn(name: &str, end: Sender<()>, work: impl FnOnce() + Send + 'static) -> Result<(), AuditError> {
    let work = move || {
        work();
        drop(end);
    };
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(AuditError::Thread)
}

/// What the first record says: the program, where records go, and how the trail was found.
fn start_members(settings: &AuditSettings, version: &str, found: &Found) -> Vec<u8> {
    let mut out = Vec::new();
    member!(&mut out, "version", version);
    number!(&mut out, "pid", u64::from(std::process::id()));
    if let Some(file) = &settings.file {
        member!(&mut out, "file", shown(&file.path).as_str());
    }
    if settings.stdout {
        key!(&mut out, "stdout");
        out.extend_from_slice(b"true");
    }
    if let Some(syslog) = &settings.syslog {
        member!(&mut out, "syslog", syslog.server.to_string().as_str());
    }
    member!(&mut out, "when_full", settings.when_full.as_str());
    if found.torn > 0 {
        number!(&mut out, "torn", found.torn);
    }
    if found.missing > 0 {
        number!(&mut out, "missing", found.missing);
    }
    key!(&mut out, "previous");
    hash(&mut out, &found.last.hash);
    out
}
