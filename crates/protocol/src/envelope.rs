//! The envelope of a message: where its members stand, found in one pass over the text.

use bytestring::ByteString;

use crate::id::{Id, LONGEST_ID};
use crate::json::{FaultKind, Json, Key, Members, Object, Scan, Scanner, Seen, split_object, start_value};
use crate::method::Method;
use crate::params::Params;

/// The members of an envelope that mean something.
#[derive(Clone, Copy)]
pub(crate) enum Field {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl Field {
    /// Consumes a key and its colon.
    #[inline(always)]
    fn next(scanner: &mut Scanner<'_>) -> Scan<Option<Field>> {
        // Spelled as everybody does, they are told by their first eight bytes.
        const JSONRPC: u64 = u64::from_le_bytes(*b"\"jsonrpc");
        const METHOD: u64 = u64::from_le_bytes(*b"\"method\"");
        const PARAMS: u64 = u64::from_le_bytes(*b"\"params\"");
        const RESULT: u64 = u64::from_le_bytes(*b"\"result\"");
        const ERROR: u64 = u64::from_le_bytes(*b"\"error\":");
        if let Some((first, rest)) = scanner.bytes()[scanner.at..].split_first_chunk::<8>() {
            let (field, length) = match u64::from_le_bytes(*first) {
                METHOD if rest.starts_with(b":") => (Some(Field::Method), 9),
                PARAMS if rest.starts_with(b":") => (Some(Field::Params), 9),
                RESULT if rest.starts_with(b":") => (Some(Field::Result), 9),
                ERROR => (Some(Field::Error), 8),
                JSONRPC if rest.starts_with(b"\":") => (Some(Field::Jsonrpc), 10),
                _ if first.starts_with(b"\"id\":") => (Some(Field::Id), 5),
                _ => (None, 0),
            };
            if field.is_some() {
                scanner.key = Key::before_colon(scanner.at, length);
                scanner.at += length;
                return Ok(field);
            }
        }
        scanner.next_key()?;
        let key = scanner.key;
        Ok(match key.escaped {
            false => Field::named(key.raw(scanner.text)),
            true => Field::named(key.name(scanner.text).as_bytes()),
        })
    }

    fn named(name: &[u8]) -> Option<Field> {
        Some(match name {
            b"jsonrpc" => Field::Jsonrpc,
            b"id" => Field::Id,
            b"method" => Field::Method,
            b"params" => Field::Params,
            b"result" => Field::Result,
            b"error" => Field::Error,
            _ => return None,
        })
    }
}

/// From where to where something stands in the text. `u32` as for the members of an object.
#[derive(Clone, Copy)]
pub(crate) struct Span(u32, u32);

impl Span {
    fn new(start: usize, end: usize) -> Span {
        Span(start as u32, end as u32)
    }

    fn len(self) -> usize {
        (self.1 - self.0) as usize
    }

    pub(crate) fn of(self, text: &str) -> &str {
        &text[self.0 as usize..self.1 as usize]
    }

    pub(crate) fn json(self, text: &ByteString) -> Json {
        Json::from_span(text, self.0 as usize, self.1 as usize)
    }

    fn object(self, text: &ByteString, members: Members) -> Object {
        Object::from_parts(text, self.0 as usize, self.1 as usize, members)
    }
}

/// The only version of JSON-RPC there is.
pub(crate) const VERSION: &[u8] = b"\"2.0\"";

/// Where the parts of a message stand.
pub(crate) struct Envelope {
    /// By [`Field`].
    fields: [Option<Span>; 6],
    /// Whether the id is a string or an integer.
    id_is_good: bool,
    /// Whether the method is a string without escapes.
    method_is_plain: bool,
    params: Members,
    meta: Option<Span>,
    meta_members: Members,
}

impl Envelope {
    pub(crate) fn new() -> Envelope {
        Envelope {
            fields: [None; 6],
            id_is_good: false,
            method_is_plain: false,
            params: Members::default(),
            meta: None,
            meta_members: Members::default(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, field: Field) -> Option<Span> {
        self.fields[field as usize]
    }

    /// Consumes a message. What stood before a fault is known after it.
    #[inline(always)]
    pub(crate) fn scan(&mut self, scanner: &mut Scanner<'_>, depth: usize) -> Scan<()> {
        // Members that mean nothing still may not come twice.
        let mut others: Option<Box<(Members, Seen<'_>)>> = None;
        let mut more = scanner.open_object(depth)?;
        while more {
            let field = Field::next(scanner)?;
            let key = scanner.key;
            if let Some(field) = field {
                if self.get(field).is_some() {
                    let name = key.name(scanner.text).into_owned();
                    return scanner.fault(FaultKind::DuplicateKey(name));
                }
                self.scan_field(field, scanner, depth + 1)?;
            } else {
                let (members, seen) = &mut **others.get_or_insert_default();
                seen.check(scanner, members, key)?;
                let start = start_value(scanner);
                scanner.value(depth + 1)?;
                members.push(scanner, key, start);
            }
            more = scanner.more_members()?;
        }
        Ok(())
    }

    #[inline(always)]
    fn scan_field(&mut self, field: Field, scanner: &mut Scanner<'_>, depth: usize) -> Scan<()> {
        let (start, is_string) = start_value(scanner);
        match (field, scanner.peek()) {
            (Field::Jsonrpc, _) if scanner.bytes()[start..].starts_with(VERSION) => {
                scanner.at += VERSION.len();
            }
            (Field::Id, Some(b'-' | b'0'..=b'9')) => self.id_is_good = scanner.number()?,
            (Field::Params, Some(b'{')) => self.scan_params(scanner, depth)?,
            _ => scanner.value(depth)?,
        }
        if is_string {
            match field {
                Field::Id => self.id_is_good = true,
                Field::Method => self.method_is_plain = !scanner.escapes,
                _ => {}
            }
        }
        self.fields[field as usize] = Some(Span::new(start, scanner.at));
        Ok(())
    }

    #[inline(always)]
    fn scan_params(&mut self, scanner: &mut Scanner<'_>, depth: usize) -> Scan<()> {
        let mut seen = Seen::default();
        let mut more = scanner.open_object(depth)?;
        while more {
            scanner.next_key()?;
            let key = scanner.key;
            seen.check(scanner, &self.params, key)?;
            let start = start_value(scanner);
            if scanner.peek() == Some(b'{') && key.is(scanner.text, "_meta") {
                split_object(scanner, depth + 1, &mut self.meta_members)?;
                self.meta = Some(Span::new(start.0, scanner.at));
            } else {
                scanner.value(depth + 1)?;
            }
            self.params.push(scanner, key, start);
            more = scanner.more_members()?;
        }
        Ok(())
    }

    /// The id, if it is one that may be kept.
    #[inline(always)]
    pub(crate) fn id(&self, text: &ByteString) -> Option<Id> {
        let span = self.get(Field::Id).filter(|span| self.id_is_good && span.len() <= LONGEST_ID)?;
        Some(Id::trusted(span.json(text)))
    }

    /// Whether the id is a string or an integer, however long.
    pub(crate) fn id_is_good(&self) -> bool {
        self.id_is_good
    }

    pub(crate) fn method(&self, text: &ByteString, span: Span) -> Option<Method> {
        let raw = span.of(text);
        if self.method_is_plain {
            return Some(Method::from_name(&raw[1..raw.len() - 1]));
        }
        serde_json::from_str::<String>(raw).ok().map(|name| Method::from_name(&name))
    }

    pub(crate) fn split(self, text: &ByteString) -> Result<Params, &'static str> {
        let Some(span) = self.get(Field::Params) else { return Ok(Params::empty()) };
        if text.as_bytes()[span.0 as usize] != b'{' {
            return Err("Invalid params: \"params\" must be an object");
        }
        let object = span.object(text, self.params);
        if self.meta.is_none() && object.has("_meta") {
            return Err("Invalid params: \"_meta\" must be an object");
        }
        Ok(Params::new(object, self.meta.map(|span| span.object(text, self.meta_members))))
    }
}
