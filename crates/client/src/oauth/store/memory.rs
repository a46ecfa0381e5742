//! [`MemoryStore`]: tokens that end with the process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tidegate_protocol::Error;

use super::{Credentials, StoreGuard, TokenStore};
use crate::oauth::fault::Fault;

/// Keeps tokens in memory. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore {
    all: Arc<Mutex<Vec<Credentials>>>,
    busy: Arc<tokio::sync::Mutex<()>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, Vec<Credentials>> {
        self.all.lock().unwrap_or_else(|broken| broken.into_inner())
    }
}

impl TokenStore for MemoryStore {
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<Credentials>, Error>> {
        let found = self.all().iter().rev().filter(|own| own.server == server).cloned().collect();
        Box::pin(std::future::ready(Ok(found)))
    }

    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Error>> {
        let mut all = self.all();
        all.retain(|own| (&own.server, &own.issuer) != (&credentials.server, &credentials.issuer));
        all.push(credentials.clone());
        Box::pin(std::future::ready(Ok(())))
    }

    fn remove<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<usize, Error>> {
        let mut all = self.all();
        let before = all.len();
        all.retain(|own| own.server != server);
        Box::pin(std::future::ready(Ok(before - all.len())))
    }

    fn lock<'a>(&'a self, _: &'a str, wait: Duration) -> BoxFuture<'a, Result<StoreGuard, Error>> {
        Box::pin(async move {
            match tokio::time::timeout(wait, self.busy.clone().lock_owned()).await {
                Ok(guard) => Ok(StoreGuard::new(guard)),
                Err(_) => {
                    Err(Fault::Store("somebody else is logging in; try again when that is done".into())
                        .into())
                }
            }
        })
    }

    fn place(&self, _: &Credentials) -> String {
        "memory".to_owned()
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").field("entries", &self.all().len()).finish()
    }
}
