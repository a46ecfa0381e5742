//! Answering `…/list`: from the snapshot, in pages whose cursors name what is listed, so that they are good in whichever
//! process.

use std::sync::Arc;
use std::time::Instant;

use tidegate_protocol::seal::{Binding, digest};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::{Call, Reply};

use crate::build::State;
use crate::caller_resources::{self, CallerPage, ResourceScope, ServerPosition};
use crate::kind::Kind;
use crate::router::Router;

/// One page of a list.
pub(crate) async fn answer(router: &Arc<Router>, kind: Kind, call: &Call) -> Result<Reply, Error> {
    let wanted = ResourceScope::of(kind, call);
    let (state, place) = match call.params.has("cursor") {
        true => open_cursor(router, kind, call).await?,
        false => {
            router.look_again(kind).await;
            let state = router.state.load_full();
            let first = ServerPosition::first(&router.views, &state, 0, &call.context)
                .filter(|_| wanted == ResourceScope::OfCaller);
            (state, first.map_or(Position::Snapshot(0), Position::AtServer))
        }
    };
    let page = match place {
        Position::AtServer(_) if wanted == ResourceScope::Shared => return Err(refused()),
        Position::AtServer(place) => {
            let page = caller_resources::page(&router.views, &state, place, call).await?;
            return caller_reply(router, page, call);
        }
        Position::Snapshot(_) if wanted == ResourceScope::OfCaller => {
            return caller_reply(router, CallerPage::default(), call);
        }
        Position::Snapshot(page) => page,
    };
    let list = router.views.list_for(&state, kind, call);
    // What is the caller's own begins on the last page of what everybody has: some clients ask for no other.
    if wanted == ResourceScope::All
        && !list.has_page(page + 1)
        && let Some(place) = ServerPosition::first(&router.views, &state, 0, &call.context)
    {
        let mut own = caller_resources::page(&router.views, &state, place, call).await?;
        own.entries = list.joined(page, &own.entries);
        return caller_reply(router, own, call);
    }
    let next = |page: usize| {
        let sealed = seal_cursor(router, call, &snapshot_content(list.digest(), page));
        sealed.expect("a few bytes are never too long")
    };
    Ok(Reply::Complete(list.page(page, call.context.revision, Instant::now(), &router.info, next)))
}

/// A page that is for this caller only.
fn caller_reply(router: &Router, page: CallerPage, call: &Call) -> Result<Reply, Error> {
    let cursor = match &page.next {
        Some(next) => Some(seal_cursor(router, call, &server_content(next)).ok_or_else(Error::internal)?),
        None => None,
    };
    let modern = call.context.revision.is_modern();
    Ok(Reply::Complete(caller_resources::page_json(&page, modern, cursor.as_deref(), &router.info)))
}

/// `None` if a server's own cursor is so long that there is no room for it.
fn seal_cursor(router: &Router, call: &Call, place: &[u8]) -> Option<String> {
    router.sealer.load().seal(place, &binding(call), u64::MAX, tidegate_service::random())
}

async fn open_cursor(router: &Arc<Router>, kind: Kind, call: &Call) -> Result<(Arc<State>, Position), Error> {
    let open = || {
        let cursor = call.params.str("cursor")?;
        read_cursor(&router.sealer.load().open(&cursor, &binding(call), 0).ok()?)
    };
    let (digest, page) = match open().ok_or_else(refused)? {
        CursorContent::AtServer(place) => return Ok((router.state.load_full(), Position::AtServer(place))),
        CursorContent::Snapshot(digest, page) => (digest, page),
    };
    let found = match state_with(router, kind, call, &digest, page) {
        Some(state) => Some(state),
        // The cursor may be older than this process, and the servers may not have said yet what they offer.
        None => {
            router.look_again(kind).await;
            state_with(router, kind, call, &digest, page)
        }
    };
    found.map(|state| (state, Position::Snapshot(page))).ok_or_else(refused)
}

/// The state whose list, as the caller sees it, has this content and such a page: this one, or one of those before.
fn state_with(
    router: &Router,
    kind: Kind,
    call: &Call,
    digest: &[u8; 32],
    page: usize,
) -> Option<Arc<State>> {
    let has = |state: &Arc<State>| {
        let list = router.views.list_for(state, kind, call);
        list.has_page(page) && list.digest() == digest
    };
    let now = router.state.load_full();
    if has(&now) {
        return Some(now);
    }
    let earlier: Vec<_> = router.earlier().iter().cloned().collect();
    earlier.into_iter().find(has)
}

/// Where a list goes on.
enum Position {
    /// On this page of what everybody has.
    Snapshot(usize),
    /// At a server, in what is the caller's own.
    AtServer(ServerPosition),
}

/// What a cursor says: a page is one of a list with a certain content.
#[derive(Debug, PartialEq, Eq)]
enum CursorContent {
    Snapshot([u8; 32], usize),
    AtServer(ServerPosition),
}

const SNAPSHOT: u8 = 0;
const AT_SERVER: u8 = 1;

fn snapshot_content(digest: &[u8; 32], page: usize) -> Vec<u8> {
    let mut content = vec![SNAPSHOT];
    content.extend(digest);
    content.extend((page as u64).to_le_bytes());
    content
}

/// The name of a server has no line break.
fn server_content(place: &ServerPosition) -> Vec<u8> {
    let mut content = vec![AT_SERVER];
    content.extend(place.server.as_bytes());
    if let Some(cursor) = &place.cursor {
        content.push(b'\n');
        content.extend(cursor.as_bytes());
    }
    content
}

fn read_cursor(content: &[u8]) -> Option<CursorContent> {
    let (kind, rest) = content.split_first()?;
    match *kind {
        SNAPSHOT => {
            let (digest, page) = rest.split_first_chunk()?;
            let page = u64::from_le_bytes(page.try_into().ok()?);
            Some(CursorContent::Snapshot(*digest, usize::try_from(page).ok()?))
        }
        AT_SERVER => {
            let rest = std::str::from_utf8(rest).ok()?;
            Some(CursorContent::AtServer(match rest.split_once('\n') {
                Some((server, cursor)) => {
                    ServerPosition { server: server.to_owned(), cursor: Some(cursor.to_owned()) }
                }
                None => ServerPosition { server: rest.to_owned(), cursor: None },
            }))
        }
        _ => None,
    }
}

fn refused() -> Error {
    let what = "Invalid params: the cursor does not belong to this list, or the list has changed; start again without a cursor";
    Error::new(Symbol::InvalidCursor, what)
}

fn binding(call: &Call) -> Binding<'_> {
    call.context.binding(call.method.as_str(), digest(["cursor"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        assert_eq!(read_cursor(&snapshot_content(&[7; 32], 3)), Some(CursorContent::Snapshot([7; 32], 3)));
        for cursor in [None, Some(String::new()), Some("a\nb".to_owned())] {
            let place = ServerPosition { server: "memory".to_owned(), cursor };
            assert_eq!(read_cursor(&server_content(&place)), Some(CursorContent::AtServer(place)));
        }
        for wrong in [&b""[..], b"\x00123", b"\x02x", b"\x01\xff"] {
            assert_eq!(read_cursor(wrong), None);
        }
    }
}
