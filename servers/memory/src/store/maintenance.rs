//! Upkeep: work on the store that nobody asked for and that is no change to what is known.

use std::sync::Arc;

use tokio::sync::Notify;

use super::sql::{Sql, Value};
use super::view::Change;
use super::{Memory, Store};
use crate::error::Result;

/// What was changed since some moment, by any process.
pub(crate) struct ChangedTenants {
    /// The names of the tenants whose memory was changed.
    pub(crate) tenants: Vec<String>,
    /// The number of the last change.
    pub(crate) last: i64,
}

impl Store {
    /// Rings after each change that this process makes.
    pub(crate) fn change_signal(&self) -> Arc<Notify> {
        self.0.change_signal.clone()
    }

    /// Whose memory was changed after the change with this number.
    pub(crate) async fn changed_since(&self, after: i64) -> Result<ChangedTenants> {
        self.read(move |sql| {
            let mut changed = ChangedTenants { tenants: Vec::new(), last: after };
            sql.each(
                "SELECT t.name, MAX(c.id) FROM changes c JOIN tenants t ON t.id = c.tenant WHERE c.id > ?1
                 GROUP BY t.name ORDER BY t.name",
                &[Value::Int(after)],
                &mut |row| {
                    changed.tenants.push(row.text(0)?);
                    changed.last = changed.last.max(row.int(1)?);
                    Ok(())
                },
            )?;
            Ok(changed)
        })
        .await
    }
}

impl Memory {
    /// Whose memory it is.
    pub(crate) fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    /// Does upkeep: all of it, or nothing. The history does not show it.
    pub(crate) async fn maintain<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Change<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let tenant = self.store.tenant(&self.tenant).await?;
        let now = tidegate_service::epoch_ms() as i64;
        let work = move |sql: &mut dyn Sql| work(&mut Change::rest(sql, tenant, now));
        self.store.write(work).await
    }
}
