//! [`Cache`]: small documents that many ask for and that seldom change: keys, metadata, descriptions of APIs.
//!
//! What the server allows is kept as long as it allows (`Cache-Control: max-age`), and asked about with its `ETag`
//! after that. Nothing is kept that came for somebody's credentials.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};

/// Nothing is believed for longer than this, whatever the server says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Document {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// What is known of a document.
#[derive(Debug)]
pub enum CacheLookup {
    /// It is still good.
    Fresh(Document),
    /// It may have changed: the server says so if it is asked with this `If-None-Match`.
    Stale(HeaderValue),
    /// Nothing.
    Nothing,
}

/// Documents by their addresses. Those that were not used for longest make room for others.
#[derive(Debug)]
pub struct Cache {
    most: usize,
    most_bytes: usize,
    bytes: usize,
    /// The one that was used last comes first.
    entries: VecDeque<Entry>,
}

#[derive(Debug)]
struct Entry {
    url: String,
    document: Document,
    fresh_until: Instant,
}

impl Cache {
    /// At most so many documents, and so many bytes of them.
    pub fn new(most: usize, most_bytes: usize) -> Cache {
        Cache { most, most_bytes, bytes: 0, entries: VecDeque::new() }
    }

    /// What is known of the document at `url`.
    pub fn look(&mut self, url: &str, now: Instant) -> CacheLookup {
        let Some(entry) = self.take(url) else { return CacheLookup::Nothing };
        let kept = match entry.document.headers.get(header::ETAG) {
            _ if now < entry.fresh_until => CacheLookup::Fresh(entry.document.clone()),
            Some(tag) => CacheLookup::Stale(tag.clone()),
            None => return CacheLookup::Nothing,
        };
        self.put(entry);
        kept
    }

    /// Keeps what came from `url`, if the server allows it.
    pub fn keep(&mut self, url: &str, document: &Document, now: Instant) {
        self.take(url);
        let fits = document.status == StatusCode::OK && document.body.len() <= self.most_bytes / 4;
        let Some(life) = lifetime(&document.headers).filter(|_| fits) else { return };
        if life.is_zero() && !document.headers.contains_key(header::ETAG) {
            return;
        }
        self.put(Entry { url: url.to_owned(), document: document.clone(), fresh_until: now + life });
    }

    /// The server says (304) that what is kept is still right. `None` if it has made room for something else meanwhile.
    pub fn renew(&mut self, url: &str, headers: &HeaderMap, now: Instant) -> Option<Document> {
        let mut entry = self.take(url)?;
        for name in [header::CACHE_CONTROL, header::ETAG, header::AGE] {
            if let Some(value) = headers.get(&name) {
                entry.document.headers.insert(name, value.clone());
            }
        }
        let document = entry.document.clone();
        if let Some(life) = lifetime(&document.headers) {
            entry.fresh_until = now + life;
            self.put(entry);
        }
        Some(document)
    }

    fn take(&mut self, url: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.url == url)?;
        let entry = self.entries.remove(at)?;
        self.bytes -= entry.document.body.len();
        Some(entry)
    }

    fn put(&mut self, entry: Entry) {
        self.bytes += entry.document.body.len();
        self.entries.push_front(entry);
        while self.entries.len() > self.most || self.bytes > self.most_bytes {
            let Some(oldest) = self.entries.pop_back() else { return };
            self.bytes -= oldest.document.body.len();
        }
    }
}

/// How long an answer is good. `None` if it must not be kept; zero if it must be asked about each time.
fn lifetime(headers: &HeaderMap) -> Option<Duration> {
    // What else an answer depends on, requests may differ in. These two we never send.
    let words = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.split(',').all(is_never_sent));
    if !headers.get_all(header::VARY).iter().all(words) {
        return None;
    }
    let mut life = Duration::ZERO;
    let mut again = false;
    for value in headers.get_all(header::CACHE_CONTROL) {
        for word in value.to_str().ok()?.split(',') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "no-store" | "private" => return None,
                "no-cache" => again = true,
                "max-age" => {
                    let seconds = value.trim().trim_matches('"').parse().unwrap_or_default();
                    life = Duration::from_secs(seconds);
                }
                _ => {}
            }
        }
    }
    let age = headers.get(header::AGE).and_then(|age| age.to_str().ok()?.trim().parse().ok());
    let left = life.min(LONGEST).saturating_sub(Duration::from_secs(age.unwrap_or_default()));
    Some(if again { Duration::ZERO } else { left })
}

fn is_never_sent(name: &str) -> bool {
    let name = name.trim();
    name.eq_ignore_ascii_case("accept-encoding") || name.eq_ignore_ascii_case("origin")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn document(lines: &[(&'static str, &str)], size: usize) -> Document {
        Document { status: StatusCode::OK, headers: headers(lines), body: vec![b'x'; size].into() }
    }

    #[test]
    fn how_long_an_answer_is_good() {
        for (lines, life) in [
            (&[][..], Some(0)),
            (&[("cache-control", "max-age=60")], Some(60)),
            (&[("cache-control", "public, Max-Age=\"60\"")], Some(60)),
            (&[("cache-control", "max-age=60"), ("age", "20")], Some(40)),
            (&[("cache-control", "max-age=60"), ("age", "90")], Some(0)),
            (&[("cache-control", "max-age=60, no-cache")], Some(0)),
            (&[("cache-control", "max-age=99999999")], Some(24 * 3600)),
            (&[("cache-control", "max-age=soon")], Some(0)),
            (&[("cache-control", "no-store")], None),
            (&[("cache-control", "private, max-age=60")], None),
            (&[("cache-control", "max-age=60"), ("vary", "*")], None),
            (&[("cache-control", "max-age=60"), ("vary", "Accept-Encoding, Accept")], None),
            (&[("cache-control", "max-age=60"), ("vary", "Accept-Encoding, Origin")], Some(60)),
        ] {
            assert_eq!(lifetime(&headers(lines)), life.map(Duration::from_secs), "{lines:?}");
        }
    }

    #[test]
    fn documents_are_fresh_then_asked_about_then_fresh_again() {
        let mut cache = Cache::new(4, 1000);
        let now = Instant::now();
        cache.keep("u", &document(&[("cache-control", "max-age=60"), ("etag", "\"1\"")], 10), now);
        assert!(
            matches!(cache.look("u", now + 59 * SECOND), CacheLookup::Fresh(own) if own.body.len() == 10)
        );
        assert!(matches!(cache.look("u", now + 60 * SECOND), CacheLookup::Stale(tag) if tag == "\"1\""));
        assert!(cache.renew("u", &HeaderMap::new(), now + 60 * SECOND).is_some());
        assert!(matches!(cache.look("u", now + 119 * SECOND), CacheLookup::Fresh(_)));
        // Without a tag there is nothing to ask with.
        cache.keep("v", &document(&[("cache-control", "max-age=60")], 10), now);
        assert!(matches!(cache.look("v", now), CacheLookup::Fresh(_)));
        assert!(matches!(cache.look("v", now + 60 * SECOND), CacheLookup::Nothing));
        assert!(cache.renew("v", &HeaderMap::new(), now).is_none());
        // What must not be kept any more is gone.
        cache.keep("u", &document(&[("cache-control", "no-store")], 10), now);
        assert!(matches!(cache.look("u", now), CacheLookup::Nothing));
        let mut missing = document(&[("cache-control", "max-age=60")], 10);
        missing.status = StatusCode::NOT_FOUND;
        cache.keep("u", &missing, now);
        assert!(matches!(cache.look("u", now), CacheLookup::Nothing));
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn it_stays_small() {
        let mut cache = Cache::new(3, 400);
        let now = Instant::now();
        let lines = &[("cache-control", "max-age=60")];
        for url in ["a", "b", "c"] {
            cache.keep(url, &document(lines, 10), now);
        }
        assert!(matches!(cache.look("a", now), CacheLookup::Fresh(_)));
        cache.keep("d", &document(lines, 10), now);
        assert!(
            matches!(cache.look("b", now), CacheLookup::Nothing),
            "the one that was not used for longest"
        );
        assert!(matches!(cache.look("a", now), CacheLookup::Fresh(_)));
        for n in 0..10 {
            cache.keep(&n.to_string(), &document(lines, 100), now);
        }
        assert!(cache.entries.len() == 3 && cache.bytes == 300);
        cache.keep("huge", &document(lines, 101), now);
        assert!(matches!(cache.look("huge", now), CacheLookup::Nothing));
    }
}
