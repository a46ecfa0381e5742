//! How much callers may do: [`LimitSettings`], what `[limits]` means.

use std::fmt;
use std::time::Duration;

use tidegate_service::fair_queue::Priority;

use tidegate_policy::Patterns;

/// How much callers may do.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitSettings {
    /// For everybody.
    pub scopes: LimitScopes,
    /// More of them for some calls, in the order of the file. Every rule that selects a call counts.
    pub rules: Vec<LimitRule>,
    /// How much one run may do: the calls of one principal with one trace, or else over one connection.
    pub run: Option<RunSettings>,
}

/// Limits by whom or what they are counted for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LimitScopes {
    /// Each tenant, all its users together. A caller without a tenant is one by itself.
    pub tenant: Option<LimitSet>,
    /// Each user.
    pub user: Option<LimitSet>,
    /// Each tool, all callers together.
    pub tool: Option<LimitSet>,
    /// Each server, all callers together.
    pub server: Option<LimitSet>,
    /// Each endpoint, all callers together.
    pub endpoint: Option<LimitSet>,
}

/// How much there may be of something. What is `None` is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitSet {
    /// How often.
    pub rate: Option<Rate>,
    /// How many at once.
    pub concurrency: Option<Concurrency>,
    /// How many bytes the parameters may have.
    pub request: Option<usize>,
    /// How many bytes the result may have.
    pub response: Option<usize>,
}

/// So many calls in a time. It is a bucket of that many calls that fills up again evenly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// How many, at least one.
    pub calls: u32,
    /// In which time.
    pub per: RateUnit,
}

/// The time of a [`Rate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RateUnit {
    /// A second.
    Second,
    /// A minute.
    Minute,
    /// An hour.
    Hour,
    /// A day.
    Day,
}

/// So many calls at once, and so many that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concurrency {
    /// How many run at once, at least one.
    pub running: usize,
    /// How many more wait for their turn; 0 if they are refused at once.
    pub waiting: usize,
    /// How long they wait.
    pub wait: Duration,
}

/// Limits for some calls.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitRule {
    /// Tools by their exposed names; `None` for all calls.
    pub tools: Option<Patterns>,
    /// Servers by their names; `None` for all calls.
    pub servers: Option<Patterns>,
    /// Endpoints by their names, `default` for the default one; `None` for all.
    pub endpoints: Option<Patterns>,
    /// Roles of which the caller has one; `None` for every caller.
    pub roles: Option<Patterns>,
    /// Tenants; `None` for every caller.
    pub tenants: Option<Patterns>,
    /// What is limited.
    pub scopes: LimitScopes,
    /// Who is let in first where calls wait. The first rule that says so counts.
    pub priority: Option<Priority>,
}

/// How much one run may do within its window. What is `None` is not limited.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSettings {
    /// How long what was done counts. The first call after that begins anew.
    pub window: Duration,
    /// How many calls.
    pub calls: Option<u64>,
    /// How often the same tool with the same arguments.
    pub repeats: Option<u32>,
    /// How many bytes of arguments and results together.
    pub bytes: Option<u64>,
    /// How much time spent in calls.
    pub time: Option<Duration>,
    /// Tools that may be called with the same arguments again and again.
    pub except: Patterns,
}

impl LimitSettings {
    /// How many calls a minute each tenant may make, if nobody says otherwise, and how many at once.
    pub(crate) const USUAL_TENANT: LimitSet = LimitSet {
        rate: Some(Rate { calls: 100, per: RateUnit::Minute }),
        concurrency: Some(Concurrency { running: 10, ..Concurrency::USUAL }),
        request: None,
        response: None,
    };
}

impl Default for LimitSettings {
    /// What an empty section means.
    fn default() -> LimitSettings {
        let scopes = LimitScopes { tenant: Some(LimitSettings::USUAL_TENANT), ..LimitScopes::default() };
        LimitSettings { scopes, rules: Vec::new(), run: None }
    }
}

impl LimitScopes {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == LimitScopes::default()
    }
}

impl Concurrency {
    pub(crate) const USUAL: Concurrency =
        Concurrency { running: 1, waiting: 100, wait: Duration::from_secs(60) };
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings {
            window: Duration::from_secs(600),
            calls: None,
            repeats: Some(5),
            bytes: None,
            time: None,
            except: Patterns::default(),
        }
    }
}

impl RateUnit {
    /// How long it is.
    pub const fn duration(self) -> Duration {
        Duration::from_secs(match self {
            RateUnit::Second => 1,
            RateUnit::Minute => 60,
            RateUnit::Hour => 3600,
            RateUnit::Day => 24 * 3600,
        })
    }

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            RateUnit::Second => "second",
            RateUnit::Minute => "minute",
            RateUnit::Hour => "hour",
            RateUnit::Day => "day",
        }
    }
}

impl fmt::Display for Rate {
    /// As it is written in a configuration: `100/m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.calls, &self.per.word()[..1])
    }
}
