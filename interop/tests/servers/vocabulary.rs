//! What the small servers in `interop/servers` offer, each written on the SDK of somebody else.
//!
//! Tools: `echo {message}`; `add {a, b}` → `{sum}`; `lie` has `add`'s output schema and breaks it; `fail`; `count {to}`
//! with progress; `greet` asks the person, `think` the model, `where` for the roots; `wait` until it is cancelled, and
//! `waited`: how often it was; `grow` adds the tool `grown`; `touch` changes `memo://about`; `say` writes to the log;
//! `pid`. A resource `memo://about`, a template `memo://city/{city}`, a prompt `explain {topic}`; cities are completed.

use tidegate_client::EraChoice;
use tidegate_protocol::Revision;

use crate::meeting::{Meeting, Over, Scenario, try_all};
use crate::scenarios::SCENARIOS;
use crate::server::Program;
use crate::{lifecycle, meeting};

/// A server, how it is reached, and what has to come of it.
pub(crate) struct Way {
    /// What the server calls itself.
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    pub(crate) over: Over,
    /// What our client is told about the era.
    pub(crate) era: EraChoice,
    /// What is spoken then.
    pub(crate) revision: Revision,
    /// Whether our client is behind the door of another, as behind a gateway.
    pub(crate) door: bool,
    /// What a call of a tool that is not there leads to.
    pub(crate) unknown_tool: UnknownTool,
    /// The scenarios that the server cannot take part in, and why.
    pub(crate) without: &'static [(&'static str, &'static str)],
}

/// What a server says about a tool that it does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownTool {
    /// An error of the protocol, as the specification wants it.
    Error,
    /// A result that says in words that the call failed.
    Result,
}

/// Our client with such a server.
pub(crate) struct Talk {
    pub(crate) way: Way,
    pub(crate) meeting: Meeting,
}

impl Way {
    /// The same, behind a door.
    pub(crate) fn behind_a_door(self) -> Way {
        Way { door: true, ..self }
    }

    /// The same, with a word more on the server's command line.
    pub(crate) fn arg(self, word: &str) -> Way {
        Way { program: self.program.arg(word), ..self }
    }

    /// The same, without these scenarios: each with why.
    pub(crate) fn without(self, without: &'static [(&'static str, &'static str)]) -> Way {
        Way { without, ..self }
    }
}

/// Tests that do nothing but [`speak`]: `name => way;`.
macro_rules! speaks {
    ($($(#[$about:meta])* $name:ident => $way:expr;)+) => {$(
        $(#[$about])*
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            $crate::vocabulary::speak($way).await;
        }
    )+};
}

pub(crate) use speaks;

/// Does everything that the server can take part in.
pub(crate) async fn speak(way: Way) {
    let door = if way.door { " behind a door" } else { "" };
    let what = format!("{} {} {}{door}", way.name, way.over.name(), way.revision);
    let scenarios: Vec<Scenario<Talk>> = SCENARIOS
        .iter()
        .filter(|(name, _)| !way.without.iter().any(|(without, _)| without == name))
        .copied()
        .collect();
    for (name, why) in way.without {
        assert!(SCENARIOS.iter().any(|(scenario, _)| scenario == name), "no scenario is called {name:?}");
        eprintln!("{what}: without {name}: {why}");
    }
    let meeting = match way.door {
        false => Meeting::open(&way.program, way.over, "", way.era).await,
        true => Meeting::behind_a_door(&way.program, way.over, "", way.era).await,
    };
    let talk = Talk { way, meeting };
    try_all(&what, &talk, scenarios).await;
    let pid = talk.meeting.text("pid", serde_json::Value::Null).await;
    match talk.way.over {
        Over::Stdio => lifecycle::comes_back_after_a_kill(&talk.meeting, &pid).await,
        Over::Http | Over::Sse => lifecycle::comes_back_after_a_restart(&talk, &pid).await,
    }
    meeting::soon("closing", lifecycle::leaves_nothing_behind(talk.meeting)).await;
}
