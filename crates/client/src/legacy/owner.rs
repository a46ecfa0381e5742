//! Whose a session with a legacy server is.

use std::sync::Arc;

use tidegate_protocol::{ClientCapabilities, Json};
use tidegate_service::{CallerId, Context, Principal};

use crate::settings::{ClientSettings, Instances};

/// One client of a user, as far as it can be told from others.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ClientIdentity {
    pub(crate) principal: Principal,
    known_by: KnownBy,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum KnownBy {
    /// A legacy session, or a stdio connection.
    Connection(CallerId),
    /// A modern client over HTTP: what it says of itself, and the endpoint that it uses, are all there is.
    Info(Option<Json>, Option<Arc<str>>),
}

impl ClientIdentity {
    /// Who makes a call.
    pub(crate) fn of(context: &Context) -> ClientIdentity {
        let known_by = match context.caller {
            Some(caller) => KnownBy::Connection(caller),
            None => KnownBy::Info(context.client_info.clone(), context.endpoint.clone()),
        };
        ClientIdentity { principal: context.principal.clone(), known_by }
    }

    /// Its connection, if it has one.
    pub(crate) fn connection(&self) -> Option<CallerId> {
        match &self.known_by {
            KnownBy::Connection(caller) => Some(*caller),
            KnownBy::Info(..) => None,
        }
    }
}

/// Whose a session is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum SessionOwner {
    /// All users'.
    Everybody,
    /// One user's, whichever client they use.
    User(Principal),
    /// One client's.
    Client(ClientIdentity),
    /// One client's, which speaks for itself: under its own name, with what it has declared.
    Own { client: ClientIdentity, capabilities: Json, info: Json },
}

impl SessionOwner {
    /// Whether this client's calls may be made in such a session.
    pub(crate) fn serves(&self, client: &ClientIdentity) -> bool {
        match self {
            SessionOwner::Everybody => true,
            SessionOwner::User(principal) => *principal == client.principal,
            SessionOwner::Client(whose) | SessionOwner::Own { client: whose, .. } => whose == client,
        }
    }

    /// The one client whose it is, if it is one's.
    pub(crate) fn client(&self) -> Option<&ClientIdentity> {
        match self {
            SessionOwner::Client(client) | SessionOwner::Own { client, .. } => Some(client),
            SessionOwner::Everybody | SessionOwner::User(_) => None,
        }
    }

    /// Whether several clients may use the session.
    pub(crate) fn is_shared(&self) -> bool {
        self.client().is_none()
    }
}

/// On which terms a session is opened, and for whom.
#[derive(Debug, Clone)]
pub(crate) struct SessionSpec {
    pub(crate) owner: SessionOwner,
    /// Whose call needs it.
    pub(crate) client: ClientIdentity,
}

impl SessionSpec {
    /// The terms on which a call of this caller is made.
    pub(crate) fn of(context: &Context, settings: &ClientSettings) -> SessionSpec {
        let client = ClientIdentity::of(context);
        let owner = match settings.sessions.instances {
            Instances::One => SessionOwner::Everybody,
            Instances::PerUser => SessionOwner::User(client.principal.clone()),
            Instances::PerClient => SessionOwner::Client(client.clone()),
            Instances::Own => SessionOwner::Own {
                client: client.clone(),
                capabilities: context.capabilities.as_json().clone(),
                info: context.client_info.clone().unwrap_or_else(|| settings.client_info.clone()),
            },
        };
        SessionSpec { owner, client }
    }

    /// What is declared to the server.
    pub(crate) fn capabilities(&self, settings: &ClientSettings) -> ClientCapabilities {
        match &self.owner {
            SessionOwner::Own { capabilities, .. } => ClientCapabilities::from_json(capabilities.clone()),
            _ => ClientCapabilities::on_behalf(&settings.sessions.capabilities),
        }
    }

    /// Who the server is told is calling.
    pub(crate) fn info(&self, settings: &ClientSettings) -> Json {
        match &self.owner {
            SessionOwner::Own { info, .. } => info.clone(),
            _ => settings.client_info.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_has_one_session_at_all_endpoints_and_each_is_another_client() {
        let at = |endpoint: Option<&str>| {
            let mut context = Context::local();
            context.principal = Principal::subject("ann");
            context.client_info = Some(Json::trusted(r#"{"name":"editor"}"#));
            context.endpoint = endpoint.map(Into::into);
            ClientIdentity::of(&context)
        };
        let (default, work, home) = (at(None), at(Some("work")), at(Some("home")));
        assert!(work == at(Some("work")) && work != home && work != default);
        let session = SessionOwner::User(Principal::subject("ann"));
        assert!([&default, &work, &home].iter().all(|client| session.serves(client)));
        assert!(!SessionOwner::Client(work).serves(&home), "what is one's own is not another's");
    }
}
