//! Why something could not be stored or found.

use std::fmt;

/// What went wrong, as a code for programs and a sentence for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The kind of trouble.
    pub code: Code,
    /// What is wrong and what to do about it.
    pub message: String,
}

/// The kinds of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// Something about the arguments.
    InvalidInput,
    /// A name that cannot be one.
    InvalidEntityName,
    /// No such entity.
    EntityNotFound,
    /// No such relation.
    RelationNotFound,
    /// Somebody else changed it in between.
    Conflict,
    /// The database refused or is gone.
    Database,
    /// A document or a session that is not there.
    NotFound,
    /// No such agent.
    AgentNotFound,
    /// No such tenant.
    TenantNotFound,
    /// There is no room for more of it.
    Full,
    /// Something outside, such as a model or a page, did not do what it should.
    Outside,
    /// Something outside failed so often that it is not asked for a while.
    Unavailable,
    /// The database was lost while it kept a change: it is not known whether it did.
    Uncertain,
    /// A mistake in this program.
    Internal,
}

impl Code {
    /// The code as programs know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::InvalidInput => "INVALID_INPUT",
            Code::InvalidEntityName => "INVALID_ENTITY_NAME",
            Code::EntityNotFound => "ENTITY_NOT_FOUND",
            Code::RelationNotFound => "RELATION_NOT_FOUND",
            Code::Conflict => "CONFLICT",
            Code::Database => "DATABASE_ERROR",
            Code::NotFound => "NOT_FOUND",
            Code::AgentNotFound => "AGENT_NOT_FOUND",
            Code::TenantNotFound => "TENANT_NOT_FOUND",
            Code::Full => "LIMIT_REACHED",
            Code::Outside => "EXTERNAL_ERROR",
            Code::Unavailable => "SERVICE_UNAVAILABLE",
            Code::Uncertain => "OUTCOME_UNKNOWN",
            Code::Internal => "INTERNAL_ERROR",
        }
    }

    /// Whether something outside is to blame: then what can be done without it is done.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Code::Outside | Code::Unavailable)
    }

    /// Whether something is missing that has a name.
    pub(crate) fn is_absence(self) -> bool {
        use Code::{AgentNotFound, EntityNotFound, NotFound, RelationNotFound};
        matches!(self, EntityNotFound | RelationNotFound | NotFound | AgentNotFound)
    }
}

/// What storing and finding gives.
pub(crate) type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Fault {
        Fault { code, message: message.into() }
    }

    /// The field and the reason.
    pub(crate) fn input(field: &str, reason: impl fmt::Display) -> Fault {
        Fault::new(Code::InvalidInput, format!("{field}: {reason}"))
    }

    /// The field that the message is about and what is wrong with it, if it is about one.
    pub(crate) fn field(&self) -> Option<(&str, &str)> {
        let (field, reason) = self.message.split_once(": ")?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
        (field.starts_with(|c: char| c.is_ascii_lowercase()) && field.chars().all(fits))
            .then_some((field, reason))
    }

    /// A text that no database can keep.
    pub(crate) fn nul(field: &str) -> Fault {
        Fault::input(field, "must not contain the character U+0000")
    }

    /// Somebody else stored the same in the meantime.
    pub(crate) fn twice() -> Fault {
        Fault::new(Code::Conflict, "Another client stored the same at the same time; read it again and retry")
    }

    pub(crate) fn closed() -> Fault {
        Fault::new(Code::Database, "The memory is closed")
    }

    pub(crate) fn too_many_tenants(most: usize) -> Fault {
        let what = format!(
            "This memory has {most} tenants, which is the maximum; use an existing tenant, or ask the operator to \
             raise max_tenants"
        );
        Fault::new(Code::Full, what)
    }

    pub(crate) fn panicked() -> Fault {
        let what = "Internal error: nothing was stored; see the log for details";
        Fault::new(Code::Internal, what)
    }

    /// A tenant that nothing was ever stored for.
    pub(crate) fn no_tenant(name: &str) -> Fault {
        let what = format!(
            "tenant_id: Tenant not found: nothing is stored for {name:?}. Check its spelling; a tenant is created when \
             something is first stored for it"
        );
        Fault::new(Code::TenantNotFound, what)
    }

    /// A tenant that an authenticated caller names and that is not their own. Every such name gets this sentence, so that
    /// it says neither whether there is such a tenant nor what the caller's own is called.
    pub(crate) fn foreign_tenant() -> Fault {
        let what = "tenant_id: Tenant not found. Leave it out: whose memory is used follows from who you are";
        Fault::new(Code::TenantNotFound, what)
    }

    /// The same for a user.
    pub(crate) fn foreign_user() -> Fault {
        Fault::input("user_id", "must be your own. Leave it out: it follows from who you are")
    }

    pub(crate) fn no_entity(name: &str) -> Fault {
        Fault::new(Code::EntityNotFound, format!("Entity with name {name} not found"))
    }

    pub(crate) fn no_relation(from: &str, relation_type: &str, to: &str) -> Fault {
        let what = format!("Relation {from} {relation_type} {to} not found");
        Fault::new(Code::RelationNotFound, what)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}
