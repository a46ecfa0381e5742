//! The end of connections: for a while, or for good.

use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::{Negotiated, Upstream};
use crate::modern::Via;

/// Something under way that a server must not be laid to rest under.
pub(crate) struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl Upstream {
    /// Notes that a call has begun. It has to come before anybody looks whether the server is known: whoever lays it to
    /// rest looks here while that is locked.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Busy(&self.in_flight)
    }

    /// How many calls are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// Whether there is a process or a session.
    pub(crate) fn is_running(&self) -> bool {
        let process = match &self.era().known {
            Some((Negotiated::Modern(modern), _)) => {
                matches!(modern.via, Via::Connection(_)) && modern.is_open()
            }
            _ => false,
        };
        process || !self.sessions.all().is_empty()
    }

    /// Whether a legacy server remembers something of somebody who may come back: a client that is connected, or has called
    /// within the time that sessions are kept.
    pub(crate) fn keeps_state(&self) -> bool {
        self.sessions.keep_state()
    }

    /// Ends sessions and processes that nobody uses; the next call opens others. Returns false, and ends nothing, while
    /// anything is under way.
    pub(crate) async fn rest(&self) -> bool {
        let (process, sessions) = {
            let mut era = self.era();
            let wanted = self.dialer.changes.is_wanted() || self.subscriptions.load(Ordering::Acquire) > 0;
            let waits = self.parked.len() > 0 || self.tasks.live() > 0;
            if era.finding.is_some() || wanted || waits || self.in_flight() > 0 {
                return false;
            }
            let Some(sessions) = self.sessions.take() else { return false };
            let process = match &era.known {
                Some((Negotiated::Modern(modern), _)) => match &modern.via {
                    Via::Connection(connection) => Some(connection.clone()),
                    Via::Http(_) => None,
                },
                _ => None,
            };
            if process.is_some() {
                era.known = None;
            }
            (process, sessions)
        };
        let connections = sessions.into_iter().map(|session| session.connection.clone()).chain(process);
        join_all(connections.map(|connection| async move { connection.channel.close().await })).await;
        self.dialer.transport.rest(false);
        true
    }

    /// Ends everything: sessions, processes, parked calls.
    pub(crate) async fn close(&self) {
        let known = {
            let mut era = self.era();
            era.closed = true;
            era.known.take()
        };
        self.over.cancel();
        self.dialer.changes.close();
        self.parked.close();
        self.tasks.close();
        if let Some((Negotiated::Modern(modern), _)) = known
            && let Via::Connection(connection) = &modern.via
        {
            connection.channel.close().await;
        }
        self.sessions.close().await;
        self.dialer.transport.rest(true);
    }
}
