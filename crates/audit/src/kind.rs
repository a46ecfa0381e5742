//! [`Kind`]: what a record is about.

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The gateway has started.
    Start,
    /// A call has ended.
    Call,
    /// A credential was refused, or was missing.
    LoginRefused,
    /// The `Host` or `Origin` of a request was not allowed.
    HostRefused,
    /// Records that were never made, because none could wait any more.
    Dropped,
    /// Records that one of the places did not get.
    Lost,
    /// The gateway ends in order.
    Stop,
    /// Another policy is in force.
    Policy,
    /// Somebody has changed something about the gateway while it runs.
    Operation,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Start,
        Kind::Call,
        Kind::LoginRefused,
        Kind::HostRefused,
        Kind::Dropped,
        Kind::Lost,
        Kind::Stop,
        Kind::Policy,
        Kind::Operation,
    ];

    /// The word for it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Kind::Start => "start",
            Kind::Call => "call",
            Kind::LoginRefused => "login_refused",
            Kind::HostRefused => "host_refused",
            Kind::Dropped => "dropped",
            Kind::Lost => "lost",
            Kind::Stop => "stop",
            Kind::Policy => "policy",
            Kind::Operation => "operation",
        }
    }

    /// How urgent it is (RFC 5424 6.2.1): informational, notice or warning.
    pub(crate) const fn severity(self) -> u8 {
        match self {
            Kind::Start | Kind::Call | Kind::Stop => 6,
            Kind::LoginRefused | Kind::HostRefused | Kind::Policy | Kind::Operation => 5,
            Kind::Dropped | Kind::Lost => 4,
        }
    }

    /// The kind with this number.
    pub(crate) fn of(number: u8) -> Option<Kind> {
        Kind::ALL.get(usize::from(number)).copied()
    }
}
