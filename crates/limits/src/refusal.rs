//! What callers are told who are over a limit: one sentence that a model can act on, and the same for machines.
//!
//! Nothing here names another tenant or user.

use std::time::Duration;

use tidegate_config::{Concurrency, Rate, RateUnit, RunSettings};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::fair_queue::Unserved;

use crate::runs::OverBudget;
use crate::scope::Scope;

/// After which time it is worth trying again where nobody knows when there will be a place.
const SOON: Duration = Duration::from_secs(1);

/// The limit that was reached.
#[derive(Debug, Clone)]
pub(crate) struct Reached<'a> {
    pub(crate) scope: Scope,
    /// The tool or the server, if it is worth a word.
    pub(crate) name: &'a str,
    /// Whether the caller has a tenant.
    pub(crate) has_tenant: bool,
    /// Whether it is for some calls only.
    pub(crate) is_rule: bool,
}

impl Reached<'_> {
    fn whose(&self) -> String {
        let what = match self.scope {
            Scope::User => "for each user".to_owned(),
            Scope::Tenant if self.has_tenant => "for your organisation".to_owned(),
            Scope::Tenant => "for each caller".to_owned(),
            Scope::Endpoint => "at this endpoint".to_owned(),
            Scope::Tool if self.name.is_empty() => "of this tool".to_owned(),
            Scope::Tool => format!("of the tool {}", self.name),
            Scope::Server if self.name.is_empty() => "to this server".to_owned(),
            Scope::Server => format!("to the server {}", self.name),
        };
        if self.is_rule { format!("of this kind {what}") } else { what }
    }

    /// An error about this limit. `write` adds what the limit is to its data.
    fn error(
        &self,
        symbol: Symbol,
        message: String,
        retry_after: Option<Duration>,
        write: impl FnOnce(&mut ObjectWriter),
    ) -> Error {
        let mut limit = ObjectWriter::new();
        limit.str("scope", self.scope.as_str());
        write(&mut limit);
        let mut data = ObjectWriter::new();
        data.str("symbol", symbol.as_str());
        if let Some(after) = retry_after {
            data.value("retryAfterMs", &milliseconds(after));
        }
        data.json("limit", &limit.finish()).value("remaining", &0);
        let error = Error::new(symbol, message).with_data(data.finish());
        match retry_after {
            Some(after) => error.with_retry_after(after),
            None => error,
        }
    }

    #[cold]
    pub(crate) fn rate(&self, rate: Rate, after: Duration) -> Error {
        let (calls, whose) = (many(u64::from(rate.calls), "call"), self.whose());
        let unit = if rate.per == RateUnit::Hour { "an hour" } else { &format!("a {}", rate.per.word()) };
        let message =
            format!("The limit of {calls} {unit} {whose} is reached; try again in {}", spoken(after));
        let error = self.error(Symbol::RateLimited, message, Some(after), |limit| {
            limit.str("rate", &rate.to_string());
        });
        error.unexecuted()
    }

    /// There is no room to wait.
    #[cold]
    pub(crate) fn full(&self, limit: Concurrency) -> Error {
        let (running, whose) = (many(limit.running as u64, "call"), self.whose());
        let message = match limit.waiting {
            0 => format!("Only {running} {whose} may run at once; try again when one has ended"),
            waiting => format!(
                "Only {running} {whose} may run at once, and too many are waiting ({waiting}); try again in a moment"
            ),
        };
        self.concurrency(limit, message)
    }

    /// The wait was in vain.
    #[cold]
    pub(crate) fn unserved(&self, limit: Concurrency, why: Unserved) -> Error {
        if why == Unserved::PushedOut {
            return self.full(limit);
        }
        let (running, whose) = (many(limit.running as u64, "call"), self.whose());
        let wait = spoken(limit.wait);
        let message = format!(
            "Only {running} {whose} may run at once, and this one waited for its turn too long (at most {wait}); try again later"
        );
        self.concurrency(limit, message)
    }

    fn concurrency(&self, limit: Concurrency, message: String) -> Error {
        let error = self.error(Symbol::RateLimited, message, Some(SOON), |data| {
            data.value("concurrent", &limit.running).value("queue", &limit.waiting);
        });
        error.unexecuted()
    }

    #[cold]
    pub(crate) fn request(&self, size: usize, most: usize) -> Error {
        let whose = self.whose();
        let message = format!(
            "The parameters have {size} bytes, more than the limit of {most} for calls {whose}. Send less, for example in parts"
        );
        let error = self.error(Symbol::TooLarge, message, None, |limit| {
            limit.value("request", &most);
        });
        error.unexecuted()
    }

    /// What came of the call is too large. The call was executed.
    #[cold]
    pub(crate) fn response(&self, size: usize, most: usize) -> Error {
        let whose = self.whose();
        let message = format!(
            "The result has {size} bytes, more than the limit of {most} for calls {whose}. Ask for less, for example with a \
             filter or a page"
        );
        let error = self.error(Symbol::TooLarge, message, None, |limit| {
            limit.value("response", &most);
        });
        error.with_code(-32603)
    }
}

/// A run has done what it may.
#[cold]
pub(crate) fn over_budget(settings: &RunSettings, why: OverBudget, tool: Option<&str>) -> Error {
    const FINISH: &str = "Finish with what you already have, and say what is missing.";
    let window = spoken(settings.window);
    let mut limit = ObjectWriter::new();
    limit.str("scope", "run");
    let message = match why {
        OverBudget::Repeats(times) => {
            limit.value("repeats", &times);
            let (tool, times) = (tool.unwrap_or("this tool"), many(u64::from(times), "time"));
            format!(
                "You have called {tool} with these arguments {times} in this run; the answer will not change. Use what you \
                 already have, change the arguments, or stop."
            )
        }
        OverBudget::Calls(calls) => {
            limit.value("calls", &calls);
            let calls = many(calls, "call");
            format!("This run has made {calls}, which is all that it may make in {window}. {FINISH}")
        }
        OverBudget::Bytes(bytes) => {
            limit.value("bytes", &bytes);
            format!(
                "This run has sent and received {bytes} bytes, which is all that it may in {window}. {FINISH}"
            )
        }
        OverBudget::Time(time) => {
            limit.value("timeMs", &milliseconds(time));
            let time = spoken(time);
            format!("This run has spent {time} in calls, which is all that it may in {window}. {FINISH}")
        }
    };
    let mut data = ObjectWriter::new();
    data.str("symbol", Symbol::BudgetExceeded.as_str()).json("limit", &limit.finish()).value("remaining", &0);
    Error::new(Symbol::BudgetExceeded, message).with_data(data.finish()).unexecuted()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// `1 call`, `2 calls`.
fn many(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A time as people say it, and never too short.
fn spoken(time: Duration) -> String {
    let seconds = time.as_nanos().div_ceil(1_000_000_000).max(1);
    match seconds {
        0..=120 => format!("{seconds} s"),
        121..=7200 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3600)),
    }
}
