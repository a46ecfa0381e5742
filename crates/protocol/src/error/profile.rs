//! [`Profile`]: the numbers under which older clients and certain servers know the failures.

use super::{Error, Symbol};
use crate::revision::Revision;

/// A table of numbers under which older clients know the failures. See [`Symbol::code_in`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Only codes that the specification defines.
    #[default]
    Strict,
    /// The numbers of the GBIF server.
    Gbif,
    /// The numbers of the Percolate server.
    Percolate,
    /// The numbers of the Docling client.
    Docling,
}

impl Profile {
    /// The numbers of the profile and what they mean, beside those of the specification. Where a number stands twice, the first
    /// is what it means when it is read.
    pub const fn numbers(self) -> &'static [(i32, Symbol)] {
        match self {
            Profile::Strict => &[],
            Profile::Gbif => &[
                (-32000, Symbol::ToolNotFound),
                (-32001, Symbol::ToolExecution),
                (-32002, Symbol::Validation),
                (-32003, Symbol::RateLimited),
                (-32004, Symbol::Unavailable),
                (-32005, Symbol::CircuitOpen),
                (-32006, Symbol::Timeout),
            ],
            Profile::Percolate => &[
                (-32000, Symbol::TenantNotFound),
                (-32001, Symbol::AgentNotFound),
                (-32002, Symbol::RateLimited),
                (-32003, Symbol::Timeout),
            ],
            Profile::Docling => &[
                (-32000, Symbol::Unavailable),
                (-32000, Symbol::CircuitOpen),
                (-32001, Symbol::Timeout),
                (-32002, Symbol::ConversionFailed),
                (-32003, Symbol::ExportFailed),
            ],
        }
    }

    /// What a number means in this profile, if it is one of its own.
    pub fn symbol_of(self, code: i64) -> Option<Symbol> {
        self.numbers().iter().find(|(number, _)| i64::from(*number) == code).map(|(_, symbol)| *symbol)
    }
}

impl Symbol {
    /// The number under which a profile's clients know the failure, carried as `code` of the machine form.
    pub fn code_in(self, profile: Profile, revision: Revision) -> i32 {
        let own = profile.numbers().iter().find(|(_, symbol)| *symbol == self);
        own.map_or_else(|| self.code(revision), |(number, _)| *number)
    }
}

impl Error {
    /// The same failure for clients that know it by a number of their own ([`Symbol::code_in`]). The number goes into the
    /// data, except that legacy clients of the Percolate server look for it where the code is. An error of another
    /// server stays what it is.
    pub fn in_profile(self, profile: Profile, revision: Revision) -> Error {
        let number = self.0.symbol.code_in(profile, revision);
        if self.0.code.is_some() || number == self.0.symbol.code(revision) {
            return self;
        }
        match profile {
            Profile::Percolate if !revision.is_modern() => self.with_code(number),
            _ => self.with_code(number).code_in_data(),
        }
    }
}
