//! Answering `…/list`: from the snapshot, in pages whose cursors name what is listed, so that they are good in whichever
//! process.

use std::sync::Arc;
use std::time::Instant;

use futures_util::future::join_all;
use tidegate_protocol::seal::{Binding, digest};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::{Call, Reply};

use crate::build::State;
use crate::gateway::Inner;
use crate::kind::Kind;
use crate::mount::{Mount, PATIENCE};
use crate::own::{self, Wanted};

impl Inner {
    /// One page of a list.
    pub(crate) async fn list(self: &Arc<Self>, kind: Kind, call: &Call) -> Result<Reply, Error> {
        let wanted = Wanted::of(kind, call);
        let (state, place) = match call.params.has("cursor") {
            true => self.open_cursor(kind, call).await?,
            false => {
                self.look_again(kind).await;
                let state = self.state.load_full();
                let first = own::Place::first(&state.mounts).filter(|_| wanted == Wanted::Own);
                (state, first.map_or(Place::Snapshot(0), Place::Own))
            }
        };
        let page = match place {
            Place::Own(_) if wanted == Wanted::Shared => return Err(refused()),
            Place::Own(place) => {
                let page = self.own_resources(&state, place, call).await?;
                return self.own_reply(page, call);
            }
            Place::Snapshot(_) if wanted == Wanted::Own => return self.own_reply(own::Page::default(), call),
            Place::Snapshot(page) => page,
        };
        let list = self.list_for(&state, kind, call);
        // What is the caller's own begins on the last page of what everybody has: some clients ask for no other.
        if wanted == Wanted::All
            && !list.has_page(page + 1)
            && let Some(place) = own::Place::first(&state.mounts)
        {
            let mut own = self.own_resources(&state, place, call).await?;
            own.entries = list.joined(page, &own.entries);
            return self.own_reply(own, call);
        }
        let next = |page: usize| {
            let sealed = self.seal_cursor(call, &snapshot_place(list.digest(), page));
            sealed.expect("a few bytes are never too long")
        };
        Ok(Reply::Complete(list.page(page, call.context.revision, Instant::now(), &self.info, next)))
    }

    /// A page that is for this caller only.
    fn own_reply(&self, page: own::Page, call: &Call) -> Result<Reply, Error> {
        let cursor = match &page.next {
            Some(next) => Some(self.seal_cursor(call, &own_place(next)).ok_or_else(Error::internal)?),
            None => None,
        };
        let modern = call.context.revision.is_modern();
        Ok(Reply::Complete(self.own_page(&page, modern, cursor.as_deref())))
    }

    /// Waits for servers that were just mounted, but not for long: only they themselves know what else they have, even if
    /// their lists are known from the last time.
    pub(crate) async fn all_settled(&self) {
        let state = self.state.load_full();
        join_all(state.mounts.iter().map(|mount| mount.settled(PATIENCE))).await;
    }

    /// Waits for servers that are about to say what they offer, and asks those again whose word is too old. Nobody waits
    /// long for anybody.
    pub(crate) async fn look_again(self: &Arc<Self>, kind: Kind) {
        let state = self.state.load_full();
        let is_late = |mount: &&Arc<Mount>| !mount.is_listed(kind);
        if state.mounts.iter().any(|mount| is_late(&mount)) {
            join_all(state.mounts.iter().filter(is_late).map(|mount| mount.settled(PATIENCE))).await;
        }
        let is_old = |mount: &&Arc<Mount>| mount.is_stale(kind) && !mount.is_down() && !mount.is_held();
        let old: Vec<_> = state.mounts.iter().filter(is_old).cloned().collect();
        if old.is_empty() {
            return;
        }
        let reading = old.into_iter().map(|mount| {
            let inner = self.clone();
            // A task of its own: whoever does not wait for it does not stop it.
            tokio::spawn(async move {
                match mount.refresh(kind).await {
                    Ok(changed) => inner.take_in(mount, changed, Vec::new()).await,
                    Err(error) => {
                        tracing::debug!(server = mount.name(), %error, "cannot refresh an outdated list")
                    }
                }
            })
        });
        let _ = tokio::time::timeout(PATIENCE, join_all(reading)).await;
    }

    /// `None` if a server's own cursor is so long that there is no room for it.
    fn seal_cursor(&self, call: &Call, place: &[u8]) -> Option<String> {
        self.sealer.load().seal(place, &binding(call), u64::MAX, tidegate_service::random())
    }

    async fn open_cursor(self: &Arc<Self>, kind: Kind, call: &Call) -> Result<(Arc<State>, Place), Error> {
        let open = || {
            let cursor = call.params.str("cursor")?;
            read_place(&self.sealer.load().open(&cursor, &binding(call), 0).ok()?)
        };
        let (digest, page) = match open().ok_or_else(refused)? {
            Found::Own(place) => return Ok((self.state.load_full(), Place::Own(place))),
            Found::Snapshot(digest, page) => (digest, page),
        };
        let found = match self.state_with(kind, call, &digest, page) {
            Some(state) => Some(state),
            // The cursor may be older than this process, and the servers may not have said yet what they offer.
            None => {
                self.look_again(kind).await;
                self.state_with(kind, call, &digest, page)
            }
        };
        found.map(|state| (state, Place::Snapshot(page))).ok_or_else(refused)
    }

    /// The state whose list, as the caller sees it, has this content and such a page: this one, or one of those before.
    fn state_with(&self, kind: Kind, call: &Call, digest: &[u8; 32], page: usize) -> Option<Arc<State>> {
        let has = |state: &Arc<State>| {
            let list = self.list_for(state, kind, call);
            list.has_page(page) && list.digest() == digest
        };
        let now = self.state.load_full();
        if has(&now) {
            return Some(now);
        }
        let earlier: Vec<_> = self.earlier().iter().cloned().collect();
        earlier.into_iter().find(has)
    }
}

/// Where a list goes on.
enum Place {
    /// On this page of what everybody has.
    Snapshot(usize),
    /// In what is the caller's own.
    Own(own::Place),
}

/// A place as a cursor has it: a page is one of a list with a certain content.
#[derive(Debug, PartialEq, Eq)]
enum Found {
    Snapshot([u8; 32], usize),
    Own(own::Place),
}

const SNAPSHOT: u8 = 0;
const OWN: u8 = 1;

fn snapshot_place(digest: &[u8; 32], page: usize) -> Vec<u8> {
    let mut content = vec![SNAPSHOT];
    content.extend(digest);
    content.extend((page as u64).to_le_bytes());
    content
}

/// The name of a server has no line break.
fn own_place(place: &own::Place) -> Vec<u8> {
    let mut content = vec![OWN];
    content.extend(place.server.as_bytes());
    if let Some(cursor) = &place.cursor {
        content.push(b'\n');
        content.extend(cursor.as_bytes());
    }
    content
}

fn read_place(content: &[u8]) -> Option<Found> {
    let (kind, rest) = content.split_first()?;
    match *kind {
        SNAPSHOT => {
            let (digest, page) = rest.split_first_chunk()?;
            let page = u64::from_le_bytes(page.try_into().ok()?);
            Some(Found::Snapshot(*digest, usize::try_from(page).ok()?))
        }
        OWN => {
            let rest = std::str::from_utf8(rest).ok()?;
            Some(Found::Own(match rest.split_once('\n') {
                Some((server, cursor)) => {
                    own::Place { server: server.to_owned(), cursor: Some(cursor.to_owned()) }
                }
                None => own::Place { server: rest.to_owned(), cursor: None },
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
    call.context.principal.binding(call.method.as_str(), digest(["cursor"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        assert_eq!(read_place(&snapshot_place(&[7; 32], 3)), Some(Found::Snapshot([7; 32], 3)));
        for cursor in [None, Some(String::new()), Some("a\nb".to_owned())] {
            let place = own::Place { server: "memory".to_owned(), cursor };
            assert_eq!(read_place(&own_place(&place)), Some(Found::Own(place)));
        }
        for wrong in [&b""[..], b"\x00123", b"\x02x", b"\x01\xff"] {
            assert_eq!(read_place(wrong), None);
        }
    }
}
