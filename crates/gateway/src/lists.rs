//! Answering `…/list`: from the snapshot, in pages whose cursors name it.

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

impl Inner {
    /// One page of a list.
    pub(crate) async fn list(self: &Arc<Self>, kind: Kind, call: &Call) -> Result<Reply, Error> {
        let (state, page) = match call.params.has("cursor") {
            true => self.open_cursor(kind, call)?,
            false => {
                self.look_again(kind).await;
                (self.state.load_full(), 0)
            }
        };
        let list = state.snapshot.list(kind);
        let number = state.snapshot.number;
        let next = |page: usize| self.seal_cursor(call, number, page);
        Ok(Reply::Complete(list.page(page, call.context.revision, Instant::now(), &self.info, next)))
    }

    /// Waits for servers that are about to say what they offer, and asks those again whose word is too old. Nobody waits
    /// long for anybody.
    pub(crate) async fn look_again(self: &Arc<Self>, kind: Kind) {
        let state = self.state.load_full();
        let is_late = |mount: &Arc<Mount>| !mount.is_settled() && mount.catalog().part(kind).is_none();
        if state.mounts.iter().any(is_late) {
            join_all(state.mounts.iter().filter(|mount| is_late(mount)).map(|mount| mount.settled(PATIENCE)))
                .await;
        }
        let old: Vec<_> =
            state.mounts.iter().filter(|mount| mount.is_stale(kind) && !mount.is_down()).cloned().collect();
        if old.is_empty() {
            return;
        }
        let reading = old.into_iter().map(|mount| {
            let inner = self.clone();
            // A task of its own: whoever does not wait for it does not stop it.
            tokio::spawn(async move {
                match mount.read(&[kind]).await {
                    Ok(changed) => inner.read(&mount, &changed, &[]),
                    Err(error) => {
                        tracing::debug!(server = mount.name(), %error, "an old list cannot be read anew")
                    }
                }
            })
        });
        let _ = tokio::time::timeout(PATIENCE, join_all(reading)).await;
    }

    fn seal_cursor(&self, call: &Call, number: u64, page: usize) -> String {
        let mut content = number.to_le_bytes().to_vec();
        content.extend((page as u64).to_le_bytes());
        let sealed = self.sealer.seal(&content, &binding(call), u64::MAX, Inner::nonce());
        sealed.expect("a few bytes are never too long")
    }

    fn open_cursor(&self, kind: Kind, call: &Call) -> Result<(Arc<State>, usize), Error> {
        let open = || {
            let cursor = call.params.str("cursor")?;
            let content = self.sealer.open(&cursor, &binding(call), 0).ok()?;
            let (number, page) = content.split_at_checked(8)?;
            let number = u64::from_le_bytes(number.try_into().ok()?);
            let page = u64::from_le_bytes(page.try_into().ok()?) as usize;
            let now = self.state.load_full();
            let state = match now.snapshot.number == number {
                true => now,
                false => {
                    self.building().earlier.iter().find(|state| state.snapshot.number == number)?.clone()
                }
            };
            state.snapshot.list(kind).has_page(page).then_some((state, page))
        };
        open().ok_or_else(|| {
            let what = "Invalid params: the cursor is not one of this list, or the list has changed since; start without one";
            Error::new(Symbol::InvalidCursor, what)
        })
    }
}

fn binding(call: &Call) -> Binding<'_> {
    let principal = &call.context.principal;
    Binding {
        principal: principal.subject.as_deref().unwrap_or_default(),
        tenant: principal.tenant.as_deref().unwrap_or_default(),
        method: call.method.as_str(),
        params: digest(["cursor"]),
    }
}
