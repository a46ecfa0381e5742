//! [`Context`]: everything about a call that is not its method and parameters.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytestring::ByteString;
use tidegate_protocol::seal::Binding;
use tidegate_protocol::{ClientCapabilities, Error, Json, Level, Profile, Revision, Symbol};
use tokio_util::sync::CancellationToken;

use crate::correlation::CorrelationId;
use crate::extensions::Extensions;
use crate::outbox::Outbox;
use crate::principal::{Claims, Identity, Principal};
use crate::trace::{self, Origin, TraceContext};

/// Through how many gateways a call may go, so that loops end.
pub const HOP_LIMIT: u8 = 8;

#[cold]
fn looped() -> Error {
    let what = format!("The call passed through more than {HOP_LIMIT} gateways: they form a loop");
    Error::new(Symbol::LoopDetected, what)
}

/// One peer as the transport tells it from others: a legacy session, or a stdio connection. A stateless HTTP request
/// comes from nobody in particular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId(u64);

impl CallerId {
    /// A caller that is none of those before.
    #[allow(clippy::new_without_default)] // two defaults would differ
    pub fn new() -> CallerId {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        CallerId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether its session or connection is open, as far as a [`Connected`] says so.
    pub fn is_connected(self) -> bool {
        connected().contains(&self)
    }
}

/// The sessions and connections that are open. Whatever is kept for a caller may be kept until it has left.
static CONNECTED: Mutex<BTreeSet<CallerId>> = Mutex::new(BTreeSet::new());

fn connected() -> MutexGuard<'static, BTreeSet<CallerId>> {
    CONNECTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session or connection that is open, until this is dropped.
#[derive(Debug)]
pub struct Connected(CallerId);

impl Connected {
    /// A new caller that has just connected.
    #[allow(clippy::new_without_default)] // two defaults would differ
    pub fn new() -> Connected {
        let caller = CallerId::new();
        connected().insert(caller);
        Connected(caller)
    }

    /// Who it is.
    pub fn caller(&self) -> CallerId {
        self.0
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        connected().remove(&self.0);
    }
}

/// The `Mcp-Param-*` headers that came with a call, for tools that mirror parameters into headers.
#[derive(Debug, Clone, Default)]
pub struct ParamHeaders(pub Vec<(ByteString, Vec<u8>)>);

impl ParamHeaders {
    /// The value of a header by its full lower-case name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(n, _)| *n == name).map(|(_, v)| v.as_slice())
    }
}

/// Who calls, on which terms, and how to reach them while the call runs.
///
/// This is a handle on its [`ContextParts`], so that a call is cheap to move and to keep for another attempt. They read and
/// change like fields of the context; what others hold too is copied before it changes.
#[derive(Debug, Clone)]
pub struct Context(Arc<ContextParts>);

impl Deref for Context {
    type Target = ContextParts;

    fn deref(&self) -> &ContextParts {
        &self.0
    }
}

impl DerefMut for Context {
    fn deref_mut(&mut self) -> &mut ContextParts {
        Arc::make_mut(&mut self.0)
    }
}

impl From<ContextParts> for Context {
    fn from(parts: ContextParts) -> Context {
        Context(Arc::new(parts))
    }
}

/// What a [`Context`] says.
#[derive(Debug, Clone)]
pub struct ContextParts {
    /// Names the call in every log line.
    pub correlation: CorrelationId,
    /// The revision that the caller speaks. Replies to a modern caller are in their final form; replies to a legacy
    /// caller are lowered by the edge that serves it.
    pub revision: Revision,
    /// Who the client says it is.
    pub client_info: Option<Json>,
    /// What the client says it can do.
    pub capabilities: ClientCapabilities,
    /// Least severe log message the caller wants; none are sent without it.
    pub log_level: Option<Level>,
    /// The token under which the caller wants progress.
    pub progress_token: Option<Json>,
    /// Who is calling.
    pub principal: Principal,
    /// What else is known of the caller; `None` when nobody was authenticated.
    pub claims: Option<Arc<Claims>>,
    /// The endpoint that was called; `None` for the default one.
    pub endpoint: Option<Arc<str>>,
    /// Which session or connection the call came over, where there is such a thing.
    pub caller: Option<CallerId>,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Fires when the caller no longer wants the answer.
    pub cancel: CancellationToken,
    /// Where notifications about this call go; `None` when nobody listens.
    pub outbox: Option<Outbox>,
    /// Through how many gateways the call has come.
    pub hops: u8,
    /// Whose numbers the caller looks for in the errors of whatever answers it.
    pub errors: Profile,
    /// The `Mcp-Param-*` headers, when the transport has headers and the revision checks them.
    pub param_headers: Option<Arc<ParamHeaders>>,
    /// Whether the call, or the one that it is part of, has been let in by an `Admission`.
    pub is_admitted: bool,
    /// The span that whatever is done for the call belongs to: that of its caller, until it has one of its own.
    pub trace: Option<TraceContext>,
    /// Where it came from, while somebody wants to know.
    pub origin: Option<Arc<Origin>>,
    /// What layers know about the call.
    pub extensions: Extensions,
}

impl ContextParts {
    /// Says who calls, and what is known of them.
    pub fn identify(&mut self, identity: Identity) {
        self.principal = identity.principal;
        self.claims = identity.claims;
    }

    /// Decides whether a call is recorded that came in this way, and only then asks where it came from. A call that names no span itself
    /// belongs to that of what carried it.
    pub fn came_with(&mut self, carrier: Option<TraceContext>, origin: impl FnOnce() -> Origin) {
        let parent = self.trace.or(carrier);
        if let (None, Some(carrier)) = (self.trace, carrier) {
            self.correlation = carrier.into();
        }
        if let Some(span) = trace::sample(parent) {
            let span = Some((span, parent.map(|parent| parent.span)));
            self.origin = Some(Arc::new(Origin { carrier, span, ..origin() }));
        }
    }

    /// Binds what is sealed to the caller at this endpoint, a method, and the parameters with this digest.
    pub fn binding<'a>(&'a self, method: &'a str, params: [u8; 32]) -> Binding<'a> {
        let endpoint = self.endpoint.as_deref().unwrap_or_default();
        Binding { endpoint, ..self.principal.binding(method, params) }
    }
}

impl Context {
    /// Refuses a call that went through more gateways than [`HOP_LIMIT`]: they are connected in a loop.
    #[inline]
    pub fn check_hops(&self) -> Result<(), Error> {
        if self.hops <= HOP_LIMIT { Ok(()) } else { Err(looped()) }
    }

    /// The context of a call in `revision`, with nothing else said about it.
    pub fn new(correlation: CorrelationId, revision: Revision) -> Context {
        Context::from(ContextParts {
            correlation,
            revision,
            client_info: None,
            capabilities: ClientCapabilities::none(),
            log_level: None,
            progress_token: None,
            principal: Principal::default(),
            claims: None,
            endpoint: None,
            caller: None,
            deadline: None,
            cancel: CancellationToken::new(),
            outbox: None,
            hops: 0,
            errors: Profile::Strict,
            param_headers: None,
            is_admitted: false,
            trace: None,
            origin: None,
            extensions: Extensions::default(),
        })
    }

    /// A call from this very process, in the newest revision, with no client behind it.
    pub fn local() -> Context {
        Context::new(CorrelationId::new(), Revision::INTERNAL)
    }
}
