//! Cursors: where a list goes on, sealed for one caller and one list.

use tidegate_protocol::seal::{Binding, digest};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Call;

use crate::server::Core;

/// Where a list goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// After what was registered under this number.
    Shelf(u64),
    /// In a source, at its beginning or after what it said itself.
    Source { at: usize, after: Option<String> },
}

impl Place {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Place::Shelf(number) => number.to_le_bytes().to_vec(),
            Place::Source { at, after } => {
                let mut bytes = (*at as u64).to_le_bytes().to_vec();
                bytes.push(u8::from(after.is_some()));
                bytes.extend_from_slice(after.as_deref().unwrap_or_default().as_bytes());
                bytes
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Place> {
        let (number, rest) = bytes.split_first_chunk()?;
        let number = u64::from_le_bytes(*number);
        Some(match rest.split_first() {
            None => Place::Shelf(number),
            Some((0, [])) => Place::Source { at: number as usize, after: None },
            Some((1, after)) => {
                Place::Source { at: number as usize, after: Some(String::from_utf8(after.to_vec()).ok()?) }
            }
            Some(_) => return None,
        })
    }
}

/// The place that a call's cursor names, if it has one.
pub(super) fn open(core: &Core, call: &Call) -> Result<Option<Place>, Error> {
    if !call.params.has("cursor") {
        return Ok(None);
    }
    let open = || {
        let cursor = call.params.str("cursor")?;
        Place::read(&core.sealer.open(&cursor, &binding(call), 0).ok()?)
    };
    open().map(Some).ok_or_else(refused)
}

/// The cursor that names a place to this caller.
pub(super) fn seal(core: &Core, call: &Call, place: &Place) -> Result<String, Error> {
    let sealed = core.sealer.seal(&place.to_bytes(), &binding(call), u64::MAX, tidegate_service::random());
    sealed.ok_or_else(|| {
        tracing::error!("a source of resources goes on after a text that is too long for a cursor");
        Error::internal()
    })
}

pub(super) fn refused() -> Error {
    Error::new(
        Symbol::InvalidCursor,
        "Invalid params: the cursor does not belong to this list; start again without a cursor",
    )
}

fn binding(call: &Call) -> Binding<'_> {
    call.context.principal.binding(call.method.as_str(), digest(["cursor"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        for place in [
            Place::Shelf(7),
            Place::Source { at: 0, after: None },
            Place::Source { at: 2, after: Some(String::new()) },
            Place::Source { at: 2, after: Some("ü".into()) },
        ] {
            assert_eq!(Place::read(&place.to_bytes()), Some(place));
        }
        for wrong in [&b""[..], b"1234567", b"12345678\x02", b"12345678\x00x", b"12345678\x01\xff"] {
            assert_eq!(Place::read(wrong), None);
        }
    }
}
