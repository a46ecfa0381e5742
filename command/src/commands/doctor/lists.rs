//! Everything that a server lists, page by page, as it came. The client's own lists leave out what is no good.

use std::collections::HashSet;

use serde_json::{Value, json};
use tidegate::protocol::Object;
use tidegate_client::{AppError, Client};

/// More pages than this are no list.
const MAX_PAGES: usize = 500;

/// A list, and what was wrong with it.
pub(super) struct Listing {
    /// What is on it.
    pub(super) items: Vec<Value>,
    /// Why there may be more.
    pub(super) fault: Option<ListFault>,
}

/// What can be wrong with a list as such.
pub(super) enum ListFault {
    /// A request failed.
    Failed(AppError),
    /// A page has no array.
    NoArray,
    /// A cursor leads back to where it was.
    Circle,
    /// Page after page.
    Endless,
}

/// Reads a list to its end, or to where something is wrong with it.
pub(super) async fn read(client: &Client, method: &str, member: &str) -> Listing {
    let (mut items, mut cursor, mut seen) = (Vec::new(), None::<String>, HashSet::new());
    for _ in 0..MAX_PAGES {
        let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = match client.request(method, params).await {
            Ok(page) => page,
            Err(error) => return Listing { items, fault: Some(ListFault::Failed(error)) },
        };
        let page = Object::of(&page);
        let Some(listed) = page.as_ref().and_then(|page| page.json(member)?.elements()) else {
            return Listing { items, fault: Some(ListFault::NoArray) };
        };
        items.extend(listed.iter().filter_map(|item| item.to::<Value>().ok()));
        match page.and_then(|page| page.str("nextCursor").map(|next| next.into_owned())) {
            None => return Listing { items, fault: None },
            Some(next) if !seen.insert(next.clone()) => {
                return Listing { items, fault: Some(ListFault::Circle) };
            }
            next => cursor = next,
        }
    }
    Listing { items, fault: Some(ListFault::Endless) }
}
