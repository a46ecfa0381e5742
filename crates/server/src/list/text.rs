//! [`Text`]: a page of a list as it is written, entry by entry.

use tidegate_protocol::Json;
use tidegate_protocol::json::write_str;

use crate::server::Core;
use crate::settings::{CacheHint, Scope};
use crate::text;

/// A page that is being written.
pub(super) struct Text {
    out: Vec<u8>,
    modern: bool,
    empty: bool,
}

impl Text {
    /// A page without entries, which will stand under `name`.
    pub(super) fn new(modern: bool, name: &str) -> Text {
        let mut out = Vec::with_capacity(1024);
        out.extend_from_slice(if modern { b"{\"resultType\":\"complete\"," } else { b"{" });
        write_str(&mut out, name);
        out.extend_from_slice(b":[");
        Text { out, modern, empty: true }
    }

    /// One more entry.
    pub(super) fn add(&mut self, definition: &Json) {
        if !self.empty {
            self.out.push(b',');
        }
        self.out.extend_from_slice(definition.as_str().as_bytes());
        self.empty = false;
    }

    /// The page, with a cursor if more follow. A `private` one is for nobody else, whatever the server's hint says.
    pub(super) fn finish(mut self, core: &Core, cursor: Option<&str>, private: bool) -> Json {
        let out = &mut self.out;
        out.push(b']');
        if let Some(cursor) = cursor {
            out.extend_from_slice(b",\"nextCursor\":");
            write_str(out, cursor);
        }
        if self.modern {
            out.push(b',');
            let hint = core.settings.cache;
            let scope = if private { Scope::Private } else { hint.scope };
            CacheHint { scope, ..hint }.write(out);
            out.extend_from_slice(b",\"_meta\":{");
            out.extend_from_slice(core.info.meta_entry().as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
        text::json(self.out)
    }
}
