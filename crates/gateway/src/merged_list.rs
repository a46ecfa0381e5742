//! [`MergedList`]: one of the four lists over all servers, kept as text that is ready to send.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use tidegate_protocol::json::{Edit, write_str};
use tidegate_protocol::seal;
use tidegate_protocol::{Json, Revision};

use crate::kind::Kind;

/// A text with a time in it is written again when it says something else than this.
const STEP: Duration = Duration::from_secs(1);
/// The longest time that is ever promised.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A merged list.
#[derive(Debug)]
pub(crate) struct MergedList {
    kind: Kind,
    /// The entries of each page, with commas in between. There is always one page.
    pages: Vec<String>,
    /// Until when the shortest-lived part is good.
    good_until: Option<Instant>,
    /// Whether a part is for one caller only.
    private: bool,
    /// The first page as modern and as legacy callers get it, as last written.
    written: [ArcSwapOption<Written>; 2],
    /// See [`MergedList::digest`].
    digest: OnceLock<[u8; 32]>,
}

impl Clone for MergedList {
    fn clone(&self) -> MergedList {
        let MergedList { kind, pages, good_until, private, written: _, digest } = self;
        MergedList {
            kind: *kind,
            pages: pages.clone(),
            good_until: *good_until,
            private: *private,
            written: Default::default(),
            digest: digest.clone(),
        }
    }
}

#[derive(Debug)]
struct Written {
    text: Json,
    promised: Duration,
}

impl MergedList {
    /// A list of definitions, cut into pages of about `page_bytes`.
    pub(crate) fn new<'a>(
        kind: Kind,
        definitions: impl Iterator<Item = &'a Json>,
        page_bytes: usize,
    ) -> MergedList {
        let mut pages = vec![String::new()];
        for definition in definitions {
            let definition = definition.as_str();
            let page = pages
                .last_mut()
                .filter(|page| page.len() + definition.len() <= page_bytes || page.is_empty());
            match page {
                Some(page) => {
                    if !page.is_empty() {
                        page.push(',');
                    }
                    page.push_str(definition);
                }
                None => pages.push(definition.to_owned()),
            }
        }
        MergedList {
            kind,
            pages,
            good_until: None,
            private: false,
            written: Default::default(),
            digest: OnceLock::new(),
        }
    }

    /// Until when it is good and whether for everybody. A list without parts is good for no time.
    pub(crate) fn good(mut self, until: Option<Instant>, private: bool) -> MergedList {
        self.good_until = until;
        self.private = private;
        self
    }

    /// Some of the same entries, good for as long and for as many.
    pub(crate) fn narrowed<'a>(
        &self,
        definitions: impl Iterator<Item = &'a Json>,
        page_bytes: usize,
    ) -> MergedList {
        MergedList::new(self.kind, definitions, page_bytes).good(self.good_until, self.private)
    }

    /// The same for one caller only.
    pub(crate) fn for_one_caller(mut self) -> MergedList {
        self.private = true;
        self
    }

    /// Whether both would tell a client the same.
    pub(crate) fn same_as(&self, other: &MergedList) -> bool {
        self.pages == other.pages
    }

    /// What cursors name the list by: its content, so that it is the same list in whichever process. Made when first asked
    /// for, as most lists have one page and no cursors.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        self.digest.get_or_init(|| seal::digest(self.pages.iter().map(String::as_str)))
    }

    /// Whether there is such a page.
    pub(crate) fn has_page(&self, page: usize) -> bool {
        page < self.pages.len()
    }

    /// The entries of a page with others behind them, with commas in between.
    pub(crate) fn joined(&self, page: usize, more: &str) -> String {
        let entries = &self.pages[page];
        let comma = if entries.is_empty() || more.is_empty() { "" } else { "," };
        format!("{entries}{comma}{more}")
    }

    /// The result for one page. `cursor` names the next one.
    pub(crate) fn page(
        &self,
        page: usize,
        revision: Revision,
        now: Instant,
        info: &str,
        cursor: impl Fn(usize) -> String,
    ) -> Json {
        let left = self.good_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now));
        let left = left.min(LONGEST);
        // A cursor is for one caller, so what has one is written for each.
        if page > 0 || self.has_page(1) {
            return self.write(page, revision, left, info, cursor);
        }
        let modern = revision.is_modern();
        let slot = &self.written[usize::from(modern)];
        // Only modern callers are promised a time.
        let is_true = |promised: Duration| !modern || promised <= left && promised + STEP >= left;
        if let Some(written) = &*slot.load()
            && is_true(written.promised)
        {
            return written.text.clone();
        }
        // Rounded down, so that the text is still true a moment later.
        let promised = left.saturating_sub(STEP / 2);
        let text = self.write(page, revision, promised, info, cursor);
        slot.store(Some(Arc::new(Written { text: text.clone(), promised })));
        text
    }

    fn write(
        &self,
        page: usize,
        revision: Revision,
        ttl: Duration,
        info: &str,
        cursor: impl Fn(usize) -> String,
    ) -> Json {
        let entries = &self.pages[page];
        let mut out = Vec::with_capacity(entries.len() + 256);
        out.push(b'{');
        if revision.is_modern() {
            out.extend_from_slice(b"\"resultType\":\"complete\",");
        }
        write_str(&mut out, self.kind.member());
        out.extend_from_slice(b":[");
        out.extend_from_slice(entries.as_bytes());
        out.push(b']');
        if self.has_page(page + 1) {
            out.extend_from_slice(b",\"nextCursor\":");
            write_str(&mut out, &cursor(page + 1));
        }
        if revision.is_modern() {
            out.extend_from_slice(b",\"ttlMs\":");
            out.extend_from_slice(ttl.as_millis().to_string().as_bytes());
            out.extend_from_slice(b",\"cacheScope\":");
            write_str(&mut out, if self.private { "private" } else { "public" });
            out.extend_from_slice(b",\"_meta\":{");
            out.extend_from_slice(info.as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
        Json::from_written(out)
    }
}

/// A result that no cache shows to anybody else, if it says that any may.
pub(crate) fn for_one_caller(result: Json) -> Json {
    let mut edit = Edit::of(&result);
    if let Some(edit) =
        edit.as_mut().filter(|edit| edit.object().str("cacheScope").as_deref() == Some("public"))
    {
        edit.set("cacheScope", Json::trusted("\"private\""));
    }
    edit.and_then(Edit::finish).unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(page_bytes: usize) -> MergedList {
        let tools = [r#"{"name":"a"}"#, r#"{"name":"b"}"#, r#"{"name":"c"}"#].map(Json::trusted);
        MergedList::new(Kind::Tools, tools.iter(), page_bytes)
    }

    fn text(list: &MergedList, page: usize, revision: Revision, now: Instant) -> String {
        list.page(page, revision, now, r#""k":1"#, |next| format!("to {next}")).as_str().to_owned()
    }

    #[test]
    fn one_page_unless_it_is_too_large() {
        let now = Instant::now();
        assert_eq!(
            text(&list(1000), 0, Revision::LATEST_LEGACY, now),
            r#"{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#
        );
        let small = list(26);
        assert_eq!(
            text(&small, 0, Revision::LATEST_LEGACY, now),
            r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"to 1"}"#
        );
        assert_eq!(text(&small, 1, Revision::LATEST_LEGACY, now), r#"{"tools":[{"name":"c"}]}"#);
        assert!(!small.has_page(2));
    }

    #[test]
    fn the_digest_is_of_what_is_on_which_page() {
        assert_eq!(list(26).digest(), list(26).digest());
        assert_ne!(list(26).digest(), list(1).digest());
        let other = MergedList::new(Kind::Tools, [Json::trusted("{}")].iter(), 26);
        assert_ne!(list(26).digest(), other.digest());
    }

    #[test]
    fn the_time_that_is_promised_is_what_is_left() {
        let now = Instant::now();
        let list = list(1000).good(Some(now + Duration::from_secs(60)), false);
        let said = |at: Instant| {
            let text = text(&list, 0, Revision::LATEST_MODERN, at);
            let (_, ttl) = text.split_once("\"ttlMs\":").unwrap();
            ttl.split_once(',').unwrap().0.parse::<u64>().unwrap()
        };
        assert_eq!(said(now), 59_500);
        assert_eq!(said(now + Duration::from_millis(300)), 59_500, "still true");
        let later = said(now + Duration::from_secs(10));
        assert!((49_000..=50_000).contains(&later), "{later}");
        assert_eq!(said(now + Duration::from_secs(100)), 0);
        assert!(
            text(&list, 0, Revision::LATEST_MODERN, now).contains(r#""cacheScope":"public","_meta":{"k":1}"#)
        );
    }

    #[test]
    fn the_text_is_written_once() {
        let now = Instant::now();
        let list = list(1000);
        for revision in [Revision::LATEST_MODERN, Revision::LATEST_LEGACY] {
            let first = list.page(0, revision, now, "", |_| String::new());
            let second = list.page(0, revision, now, "", |_| String::new());
            assert_eq!(first.as_str().as_ptr(), second.as_str().as_ptr());
        }
    }
}
