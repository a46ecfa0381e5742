//! [`Server`]: which database to use, and what every connection to it is told first.

use std::time::Duration;

use ::postgres::{Client, Config, Error, SimpleQueryMessage};

use super::tls::Tls;
use super::{Fault, Result, fault};
use crate::error::Code;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// After how long a peer that does not answer is given up: the first question, between questions, how many.
const KEEPALIVE: (Duration, Duration, u32) = (Duration::from_secs(30), Duration::from_secs(10), 3);
/// The oldest version of the server that will do.
const OLDEST: u32 = 15;

/// A database of a server.
pub(in crate::store) struct Server {
    config: Config,
    tls: Tls,
    /// What makes the table that only connections that write have.
    temporary: String,
}

impl Server {
    /// The database that the URL names.
    pub(in crate::store) fn new(url: &str, temporary: &str) -> Result<Server> {
        // The URL itself is not repeated: it may hold a password.
        let wrong = |why: String| Fault::input("url of the database", why);
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(wrong("must begin with postgres://".to_owned()));
        }
        let mut config: Config = url.parse().map_err(|error: Error| {
            let cause =
                std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            wrong(format!("cannot be read{cause}"))
        })?;
        if config.get_application_name().is_none() {
            config.application_name("tidegate-memory");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let (idle, between, times) = KEEPALIVE;
        if config.get_keepalives_interval().is_none() {
            config.keepalives_idle(idle).keepalives_interval(between).keepalives_retries(times);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(idle + between * times);
        }
        Ok(Server { config, tls: Tls::new()?, temporary: temporary.replace("INTEGER", "BIGINT") })
    }

    /// A new connection.
    pub(super) fn connect(&self, writes: bool) -> Result<Client, Error> {
        let mut client = self.config.connect(self.tls.clone())?;
        // Nothing waits without end, and what died with its locks does not keep them.
        client.batch_execute(
            "SET statement_timeout = '60s'; SET lock_timeout = '30s';
             SET idle_in_transaction_session_timeout = '60s'; SET standard_conforming_strings = on;
             SET pg_trgm.word_similarity_threshold = 0.35",
        )?;
        if writes {
            // Whoever is told that something is stored may rely on it.
            client.batch_execute(
                "SELECT set_config('synchronous_commit', 'on', false)
                 WHERE current_setting('synchronous_commit') = 'off'",
            )?;
            client.batch_execute(&self.temporary)?;
        }
        Ok(client)
    }
}

/// Whether the server is one that will do.
pub(super) fn check(client: &mut Client) -> Result<()> {
    let asked = "SELECT current_setting('server_version_num'), current_setting('server_encoding')";
    let said = client.simple_query(asked).map_err(|error| fault::of(&error))?;
    let row = said.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some((row.get(0)?.parse::<u32>().ok()?, row.get(1)?)),
        _ => None,
    });
    match row {
        Some((version, _)) if version / 10_000 < OLDEST => Err(Fault::new(
            Code::Database,
            format!("The server is PostgreSQL {}; version {OLDEST} or newer is required", version / 10_000),
        )),
        Some((_, encoding)) if encoding != "UTF8" => Err(Fault::new(
            Code::Database,
            format!("The encoding of the database is {encoding}; create one with ENCODING 'UTF8'"),
        )),
        Some(_) => Ok(()),
        None => Err(Fault::new(Code::Database, "The server does not report its PostgreSQL version")),
    }
}
