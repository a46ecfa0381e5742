//! Errors on the wire, and in the log.

use std::fmt;

use super::Error;
use crate::json::{Edit, Json, Object, write_str};
use crate::revision::{Feature, Revision};

/// Whether an error with this code may be sent to a peer of `revision`. 2026-07-28 changelog: -32002 became -32602, and
/// -32042 is gone; neither may be sent, whatever a server behind meant by it.
const fn may_send(code: i32, revision: Revision) -> bool {
    !(revision.is_modern() && matches!(code, -32002 | -32042))
}

impl Error {
    /// The JSON-RPC code towards a peer of `revision`.
    pub fn code(&self, revision: Revision) -> i32 {
        match self.0.code {
            Some(code) if !self.hides_code(revision) => code,
            _ => self.0.symbol.code(revision),
        }
    }

    /// The code that another server gave it, whatever callers are told.
    pub fn original_code(&self) -> Option<i32> {
        self.0.code
    }

    /// Whether that code belongs to a numbering of its own: see [`Error::code_in_data`].
    pub fn has_code_in_data(&self) -> bool {
        self.0.code.is_some() && self.0.code_in_data
    }

    /// Whether its own code is not sent to a peer of `revision` as such.
    fn hides_code(&self, revision: Revision) -> bool {
        self.0.code.is_some_and(|code| self.0.code_in_data || !may_send(code, revision))
    }

    /// The data as a peer of `revision` gets it: with the code that could not be sent as such.
    fn data_for(&self, revision: Revision) -> Option<Json> {
        let Some(code) = self.0.code.filter(|_| self.hides_code(revision)) else {
            return self.0.data.clone();
        };
        let (code, symbol) = (Json::trusted(code.to_string()), Json::string(self.0.symbol.as_str()));
        let said = self.0.data.as_ref();
        let mut edit = said.and_then(Edit::of).unwrap_or_else(|| Edit::new(Object::empty()));
        for (name, value) in [("originalCode", code), ("symbol", symbol)] {
            // What the server itself says there stays.
            if !edit.object().has(name) {
                edit.set(name, value);
            }
        }
        if let Some(other) = said.filter(|data| Object::of(data).is_none()) {
            edit.set("data", other.clone());
        }
        edit.finish().or_else(|| self.0.data.clone())
    }

    /// Appends the JSON-RPC error object: `{"code":…,"message":…,"data":…}`.
    pub fn write(&self, out: &mut Vec<u8>, revision: Revision) {
        if let Some(original) = &self.0.original {
            let edited = Edit::of(original).and_then(|mut edit| {
                if self.0.code.is_none() || self.hides_code(revision) {
                    edit.set("code", Json::trusted(self.code(revision).to_string()));
                }
                if self.hides_code(revision)
                    && let Some(data) = self.data_for(revision)
                {
                    edit.set("data", data);
                }
                edit.finish()
            });
            out.extend_from_slice(edited.as_ref().unwrap_or(original).as_str().as_bytes());
            return;
        }
        out.extend_from_slice(b"{\"code\":");
        out.extend_from_slice(self.code(revision).to_string().as_bytes());
        out.extend_from_slice(b",\"message\":");
        write_str(out, self.message());
        if let Some(data) = self.data_for(revision) {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(data.as_str().as_bytes());
        }
        out.push(b'}');
    }

    /// The JSON-RPC error object.
    pub fn to_json(&self, revision: Revision) -> Json {
        let mut out = Vec::with_capacity(96);
        self.write(&mut out, revision);
        Json::from_written(out)
    }

    /// Whether an error response to a peer of `revision` leaves the id out when it could not be read.
    ///
    /// JSON-RPC says `null`; the MCP schema made it optional in 2025-11-25 and never allowed `null`.
    pub fn omits_unknown_id(revision: Option<Revision>) -> bool {
        revision.is_none_or(|r| r.allows(Feature::OptionalErrorId))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.symbol.as_str(), self.detail())?;
        match &self.0.data {
            Some(data) => write!(f, " {data}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.detail())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::Capability;
    use crate::error::Symbol;

    #[test]
    fn wire_forms_per_era() {
        let e = Error::resource_not_found("x:y");
        assert_eq!(
            e.to_json(Revision::V2025_11_25).as_str(),
            r#"{"code":-32002,"message":"Resource not found: x:y","data":{"uri":"x:y"}}"#
        );
        assert_eq!(e.code(Revision::V2026_07_28), -32602);
        let e = Error::missing_capabilities(&[Capability::Sampling]);
        for revision in Revision::ALL {
            assert_eq!(e.code(revision), -32021);
        }
        assert_eq!(e.data().unwrap().as_str(), r#"{"requiredCapabilities":{"sampling":{}}}"#);
    }

    #[test]
    fn codes_that_are_gone_are_not_sent_to_modern_peers() {
        let passed = |text: &'static str, symbol, code| {
            let original = Json::trusted(text);
            let data = Object::of(&original).unwrap().json("data");
            let error = Error::new(symbol, "m").with_code(code);
            match data {
                Some(data) => error.with_data(data),
                None => error,
            }
            .with_original(original)
        };
        for (text, symbol, code, modern) in [
            (
                r#"{"code":-32002,"x": 1.0,"message":"m"}"#,
                Symbol::Internal,
                -32002,
                r#"{"code":-32603,"x": 1.0,"message":"m","data":{"originalCode":-32002,"symbol":"INTERNAL_ERROR"}}"#,
            ),
            (
                r#"{"code":-32002,"message":"m","data":{"a": 1E+2}}"#,
                Symbol::Validation,
                -32002,
                r#"{"code":-32602,"message":"m","data":{"a": 1E+2,"originalCode":-32002,"symbol":"VALIDATION_ERROR"}}"#,
            ),
            (
                r#"{"code":-32042,"message":"m","data":[1.0]}"#,
                Symbol::UrlElicitationRequired,
                -32042,
                r#"{"code":-32603,"message":"m","data":{"originalCode":-32042,"symbol":"URL_ELICITATION_REQUIRED","data":[1.0]}}"#,
            ),
        ] {
            let error = passed(text, symbol, code);
            assert_eq!(error.to_json(Revision::LATEST_MODERN).as_str(), modern);
            assert_eq!(error.to_json(Revision::LATEST_LEGACY).as_str(), text, "untouched");
            assert_eq!(error.original_code(), Some(code));
        }
        // A number of somebody's own is in the data for everybody; what the server says there stays.
        let text = r#"{"code":-32003,"message":"m","data":{"symbol":"SLOW"}}"#;
        let error = passed(text, Symbol::Timeout, -32003).code_in_data();
        for revision in Revision::ALL {
            assert_eq!(
                error.to_json(revision).as_str(),
                r#"{"code":-32603,"message":"m","data":{"symbol":"SLOW","originalCode":-32003}}"#
            );
        }
    }
}
