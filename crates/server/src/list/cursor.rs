//! Cursors: where a list goes on, sealed for one caller and one list.

use tidegate_protocol::seal::{Binding, digest};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Call;

use crate::registry::Shelf;
use crate::server::Core;

/// Where a list goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// After an entry of those that are registered.
    After(Last),
    /// In a source, at its beginning or after what it said itself.
    Source { at: usize, after: Option<String> },
}

/// The last entry that was listed. Its number is good in the process that gave it, even when the entry is gone; anywhere else
/// it is known by its name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Last {
    instance: [u8; 8],
    number: u64,
    name: String,
}

impl Last {
    /// The entry with this number.
    pub(super) fn new<T>(core: &Core, shelf: &Shelf<T>, number: u64) -> Last {
        let name = shelf.name_of(number).unwrap_or_default().to_owned();
        Last { instance: core.instance, number, name }
    }

    /// The number after which the list goes on.
    pub(super) fn number<T>(&self, core: &Core, shelf: &Shelf<T>) -> Result<u64, Error> {
        match self.instance == core.instance {
            true => Ok(self.number),
            false => shelf.number_of(&self.name).ok_or_else(refused),
        }
    }
}

const AFTER: u8 = 0;
const SOURCE: u8 = 1;
const SOURCE_AFTER: u8 = 2;

impl Position {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Position::After(Last { instance, number, name }) => {
                [&[AFTER][..], instance, &number.to_le_bytes(), name.as_bytes()].concat()
            }
            Position::Source { at, after } => {
                let kind = if after.is_some() { SOURCE_AFTER } else { SOURCE };
                let after = after.as_deref().unwrap_or_default();
                [&[kind][..], &(*at as u64).to_le_bytes(), after.as_bytes()].concat()
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Position> {
        let (kind, rest) = bytes.split_first()?;
        let (first, rest) = rest.split_first_chunk::<8>()?;
        let at = || usize::try_from(u64::from_le_bytes(*first)).ok();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        match (*kind, rest) {
            (AFTER, rest) => {
                let (number, name) = rest.split_first_chunk()?;
                let number = u64::from_le_bytes(*number);
                Some(Position::After(Last { instance: *first, number, name: text(name)? }))
            }
            (SOURCE, []) => Some(Position::Source { at: at()?, after: None }),
            (SOURCE_AFTER, after) => Some(Position::Source { at: at()?, after: Some(text(after)?) }),
            _ => None,
        }
    }
}

/// The place that a call's cursor names, if it has one.
pub(super) fn open(core: &Core, call: &Call) -> Result<Option<Position>, Error> {
    if !call.params.has("cursor") {
        return Ok(None);
    }
    let open = || {
        let cursor = call.params.str("cursor")?;
        Position::read(&core.sealer(call).open(&cursor, &binding(call), 0).ok()?)
    };
    open().map(Some).ok_or_else(refused)
}

/// The cursor that names a place to this caller.
pub(super) fn seal(core: &Core, call: &Call, place: &Position) -> Result<String, Error> {
    let sealed =
        core.sealer(call).seal(&place.to_bytes(), &binding(call), u64::MAX, tidegate_service::random());
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
    call.context.binding(call.method.as_str(), digest(["cursor"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        for place in [
            Position::After(Last { instance: [3; 8], number: 7, name: "ü".into() }),
            Position::Source { at: 0, after: None },
            Position::Source { at: 2, after: Some(String::new()) },
            Position::Source { at: 2, after: Some("ü".into()) },
        ] {
            assert_eq!(Position::read(&place.to_bytes()), Some(place));
        }
        for wrong in [
            &b""[..],
            b"\x011234567",
            b"\x0112345678x",
            b"\x0212345678\xff",
            b"\x00123456781234567",
            b"\x0312345678",
        ] {
            assert_eq!(Position::read(wrong), None);
        }
    }
}
