//! Attributes as OTLP has them: `KeyValue`, in whichever field of a message they are.

use super::protobuf::Message;

/// A text by its name.
pub(super) fn text(out: &mut Vec<u8>, field: u32, name: &str, value: &str) {
    out.message(field, |pair| {
        pair.text(1, name);
        pair.message(2, |any| any.text(1, value));
    });
}

/// A whole number by its name.
pub(super) fn number(out: &mut Vec<u8>, field: u32, name: &str, value: u64) {
    out.message(field, |pair| {
        pair.text(1, name);
        pair.message(2, |any| any.number(3, value));
    });
}
