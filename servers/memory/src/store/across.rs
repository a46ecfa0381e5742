//! The one query that looks beyond one tenant on behalf of a caller.
//!
//! Everything else goes through [`View`](super::View), which sees one tenant. The URI of an agent has a user and a name but
//! no tenant, and somebody who is not authenticated, and so could name any tenant, may read it without naming one. Only
//! which tenants have it is found here; the agent itself is then read through the tenant's own view.

use super::Store;
use super::sql::Value;
use super::tenants::TENANT_PREFIX;
use crate::error::Result;

impl Store {
    /// The tenants that have an agent of this user and name, two at most, as the store calls them. Only those that a
    /// caller can name: never the memory of an authenticated person.
    pub(crate) async fn tenants_with_agent(&self, owner: &str, name: &str) -> Result<Vec<String>> {
        let (owner, name) = (owner.to_owned(), name.to_lowercase());
        self.read(move |sql| {
            let mut found = Vec::new();
            sql.each(
                "SELECT t.name FROM agents a JOIN tenants t ON t.id = a.tenant
                 WHERE a.owner = ?1 AND a.name = ?2 AND a.gone IS NULL AND t.name LIKE ?3 LIMIT 2",
                &[
                    Value::Text(owner.into()),
                    Value::Text(name.into()),
                    Value::Text(format!("{TENANT_PREFIX}%").into()),
                ],
                &mut |row| {
                    found.push(row.text(0)?);
                    Ok(())
                },
            )?;
            Ok(found)
        })
        .await
    }
}
