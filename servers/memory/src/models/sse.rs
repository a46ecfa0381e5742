//! [`Events`]: server-sent events, out of pieces that end anywhere.

use crate::error::{Code, Fault, Result};

/// Most bytes of one event.
const MAX_EVENT: usize = 4 * 1024 * 1024;

/// What came so far of a stream of events.
#[derive(Default)]
pub(super) struct Events {
    /// Bytes of a line that has not ended.
    line: Vec<u8>,
    /// The data of an event that has not ended.
    data: Option<Vec<u8>>,
    /// Whether the last byte was `\r`, whose `\n` belongs to it.
    returned: bool,
}

impl Events {
    /// Takes a piece, and hands the data of each event that it completes to `each`.
    pub(super) fn take(&mut self, piece: &[u8], mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
        for &byte in piece {
            let after_return = std::mem::replace(&mut self.returned, byte == b'\r');
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => self.end_line(&mut each)?,
                _ => self.line.push(byte),
            }
            if self.line.len() + self.data.as_ref().map_or(0, Vec::len) > MAX_EVENT {
                return Err(Fault::new(Code::Outside, "The model sent an event that is too long"));
            }
        }
        Ok(())
    }

    /// The stream has ended: some end theirs without the empty line after the last event.
    pub(super) fn end(&mut self, mut each: impl FnMut(&str) -> Result<()>) -> Result<()> {
        if !self.line.is_empty() {
            self.end_line(&mut each)?;
        }
        self.end_event(&mut each)
    }

    fn end_line(&mut self, each: &mut impl FnMut(&str) -> Result<()>) -> Result<()> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.end_event(each);
        }
        // What else there is (the event's name, its id, comments) is said by the data again, or not needed.
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                none => *none = Some(value.to_vec()),
            }
        }
        Ok(())
    }

    fn end_event(&mut self, each: &mut impl FnMut(&str) -> Result<()>) -> Result<()> {
        match self.data.take() {
            Some(data) => each(&String::from_utf8_lossy(&data)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_wherever_they_are_cut() {
        let text =
            ": hello\r\nevent: a\r\ndata: {\"ä\":\r\ndata: 1}\r\n\r\n\ndata:two\n\nid: 3\r\rdata: last";
        for size in 1..text.len() {
            let (mut events, mut seen) = (Events::default(), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                events
                    .take(piece, |data| {
                        seen.push(data.to_owned());
                        Ok(())
                    })
                    .unwrap();
            }
            events
                .end(|data| {
                    seen.push(data.to_owned());
                    Ok(())
                })
                .unwrap();
            assert_eq!(seen, ["{\"ä\":\n1}", "two", "last"], "in pieces of {size}");
        }
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..5).try_for_each(|_| events.take(&piece, |_| Ok(())));
        assert!(taken.unwrap_err().message.contains("too long"));
    }
}
