//! Resources that are each caller's own: they are in no snapshot, because everybody has others and there may be very many.
//! Whoever lists resources gets them behind those that everybody has, page by page, from the servers that have them.

use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::json::{Edit, ObjectWriter, write_str};
use tidegate_protocol::{Error, Json, Limits, Object, Params, Symbol};
use tidegate_service::{Call, Context, OWN_RESOURCES, Reply};

use crate::build::State;
use crate::kind::Kind;
use crate::mount::Mount;
use crate::view::{OfferKind, Views};

/// How long a server may take for a page before the list does without it.
const WITHIN: Duration = Duration::from_secs(10);

/// Which resources somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceScope {
    All,
    /// Those that everybody has.
    Shared,
    /// Those that are the caller's own.
    OfCaller,
}

impl ResourceScope {
    pub(crate) fn of(kind: Kind, call: &Call) -> ResourceScope {
        let said = call.params.meta().and_then(|meta| meta.get(OWN_RESOURCES));
        match said {
            _ if kind != Kind::Resources => ResourceScope::Shared,
            Some("true") => ResourceScope::OfCaller,
            Some("false") => ResourceScope::Shared,
            _ => ResourceScope::All,
        }
    }
}

/// Where a list goes on at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPosition {
    /// The server, by its name: it may stand elsewhere by then.
    pub(crate) server: String,
    /// The server's own cursor; `None` at the beginning.
    pub(crate) cursor: Option<String>,
}

impl ServerPosition {
    /// The first server, from this place on, that has such resources and may have some for the caller.
    pub(crate) fn first(
        views: &Views,
        state: &State,
        from: usize,
        context: &Context,
    ) -> Option<ServerPosition> {
        let is_there = |mount: &&Arc<Mount>| {
            mount.has_own_resources() && views.may_have_resources_of(state, context, mount.name())
        };
        let mount = state.mounts[from..].iter().find(is_there)?;
        Some(ServerPosition { server: mount.name().to_owned(), cursor: None })
    }
}

/// Entries of one page, with commas in between, and where more follow.
#[derive(Debug, Default)]
pub(crate) struct CallerPage {
    pub(crate) entries: String,
    pub(crate) next: Option<ServerPosition>,
}

/// The resources of a caller's own that begin at a place.
pub(crate) async fn page(
    views: &Views,
    state: &State,
    place: ServerPosition,
    call: &Call,
) -> Result<CallerPage, Error> {
    let gone = || {
        let what =
            format!("Invalid params: the server {:?}, in whose list the cursor is, is gone", place.server);
        Error::new(Symbol::InvalidCursor, what)
    };
    let is_there = views.may_have_resources_of(state, &call.context, &place.server);
    let at =
        state.mounts.iter().position(|mount| is_there && mount.name() == place.server).ok_or_else(gone)?;
    let mount = &state.mounts[at];
    let began = place.cursor.is_none();
    let mut page = match ask(mount, place.cursor.as_deref(), &call.context).await {
        Ok(found) => {
            let sees = |uri: &str| views.sees(state, &call.context, OfferKind::Resource, uri, mount.name());
            offered(state, at, &found, sees)?
        }
        // One that cannot say what it has does not take away what others have.
        Err(error) if began => {
            tracing::debug!(server = mount.name(), %error, "cannot list the server's resources");
            CallerPage::default()
        }
        Err(error) => return Err(error),
    };
    if page.next.is_none() {
        page.next = ServerPosition::first(views, state, at + 1, &call.context);
    }
    Ok(page)
}

/// A server's page with the addresses as they are offered here, as far as they are seen.
fn offered(state: &State, at: usize, found: &Json, sees: impl Fn(&str) -> bool) -> Result<CallerPage, Error> {
    let mount = &state.mounts[at];
    let broken = || {
        let what = format!("The answer of {:?} to {} is not a list", mount.name(), Kind::Resources.method());
        Error::new(Symbol::Internal, what)
    };
    let found = Object::of(found).ok_or_else(broken)?;
    let listed = found.json(Kind::Resources.member()).and_then(|list| list.elements()).ok_or_else(broken)?;
    let mut entries = String::new();
    for entry in &listed {
        let Some(uri) = Object::of(entry).and_then(|entry| entry.text(Kind::Resources.key())) else {
            continue;
        };
        let offered = state.snapshot.uris.offered(at, &uri);
        if !sees(offered.as_ref().unwrap_or(&uri)) {
            continue;
        }
        if !entries.is_empty() {
            entries.push(',');
        }
        let changed = offered.and_then(|uri| {
            let mut edit = Edit::of(entry)?;
            edit.set(Kind::Resources.key(), Json::string(&uri));
            edit.finish()
        });
        entries.push_str(changed.as_ref().unwrap_or(entry).as_str());
    }
    let next = found.str("nextCursor").map(|cursor| cursor.into_owned());
    let next = next.map(|cursor| ServerPosition { server: mount.name().to_owned(), cursor: Some(cursor) });
    Ok(CallerPage { entries, next })
}

/// A page of the caller's own resources alone.
pub(crate) fn page_json(page: &CallerPage, modern: bool, cursor: Option<&str>, info: &str) -> Json {
    let mut out = Vec::with_capacity(page.entries.len() + 256);
    out.push(b'{');
    if modern {
        out.extend_from_slice(b"\"resultType\":\"complete\",");
    }
    write_str(&mut out, Kind::Resources.member());
    out.extend_from_slice(b":[");
    out.extend_from_slice(page.entries.as_bytes());
    out.push(b']');
    if let Some(cursor) = cursor {
        out.extend_from_slice(b",\"nextCursor\":");
        write_str(&mut out, cursor);
    }
    if modern {
        // What is one caller's own may be another's at any moment.
        out.extend_from_slice(b",\"ttlMs\":0,\"cacheScope\":\"private\",\"_meta\":{");
        out.extend_from_slice(info.as_bytes());
        out.push(b'}');
    }
    out.push(b'}');
    Json::from_written(out)
}

/// Asks a server for a page of what is the caller's own, in the caller's name.
async fn ask(mount: &Arc<Mount>, cursor: Option<&str>, context: &Context) -> Result<Json, Error> {
    if mount.is_down() {
        return Err(Error::new(Symbol::Unavailable, mount.down_in_words()));
    }
    let call = Call::new(Kind::Resources.method(), params(cursor, true)?, context.clone());
    match tokio::time::timeout(WITHIN, mount.call(call)).await {
        Ok(Reply::Complete(page)) => Ok(page),
        Ok(Reply::Error(error)) => Err(error),
        Ok(_) => Err(Error::new(Symbol::Internal, format!("{:?} did not return a list", mount.name()))),
        Err(_) => {
            Err(Error::new(Symbol::Timeout, format!("{:?} took too long to return its list", mount.name())))
        }
    }
}

/// The parameters of `resources/list` that ask for one part only: the caller's own, or what everybody has.
pub(crate) fn params(cursor: Option<&str>, own: bool) -> Result<Params, Error> {
    let mut meta = ObjectWriter::new();
    meta.value(OWN_RESOURCES, &own);
    let mut w = ObjectWriter::new();
    if let Some(cursor) = cursor {
        w.str("cursor", cursor);
    }
    w.json("_meta", &meta.finish());
    Params::parse(&w.finish(), &Limits::default()).map_err(|_| Error::internal())
}
