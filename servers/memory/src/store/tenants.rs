//! Tenants: what they are called, and the numbers that stand for them in all tables.

use super::schema::Schema;
use super::sql::{Sql, Value};
use crate::error::{Code, Fault, Result};

/// Whose memory it is if nobody says who calls.
pub(crate) const DEFAULT_TENANT: &str = "default";
/// What the name of every other tenant begins with here. People who have no tenant are called otherwise.
pub(crate) const TENANT_PREFIX: &str = "tenant:";

/// What [`Store::of`](super::Store::of) knows a tenant by, or whoever calls without one.
pub fn tenant_key(tenant: Option<&str>) -> String {
    tenant.map_or(DEFAULT_TENANT.to_owned(), |tenant| format!("{TENANT_PREFIX}{tenant}"))
}

/// The tenant whom a memory that nobody has written to belongs to. Nothing is ever kept for it.
pub(super) const NOBODY: i64 = 0;

/// The number of a tenant, who is made if need be and if there are fewer than `most`. The usual one always is.
pub(super) fn tenant(sql: &mut dyn Sql, schema: &Schema, name: &str, most: usize) -> Result<i64> {
    let known = find_tenant(sql, name)?;
    if let Some(id) = known {
        return Ok(id);
    }
    if name != DEFAULT_TENANT {
        let mut count = 0;
        let others = "SELECT COUNT(*) FROM tenants WHERE name <> ?1";
        sql.each(others, &[Value::Text(DEFAULT_TENANT.into())], &mut |row| {
            count = row.int(0)?;
            Ok(())
        })?;
        if count >= i64::try_from(most).unwrap_or(i64::MAX) {
            return Err(Fault::too_many_tenants(most));
        }
    }
    sql.run("INSERT INTO tenants (name) VALUES (?1) ON CONFLICT DO NOTHING", &[Value::Text(name.into())])?;
    let id =
        find_tenant(sql, name)?.ok_or_else(|| Fault::new(Code::Database, "The tenant cannot be created"))?;
    make_table(sql, schema, id)?;
    Ok(id)
}

/// Makes the table that the tenant has of its own.
pub(super) fn make_table(sql: &mut dyn Sql, schema: &Schema, tenant: i64) -> Result<()> {
    let table = (schema.tenant_table)(tenant, sql.dialect());
    sql.run(&table, &[]).map(drop)
}

/// The number of a tenant who is known.
pub(super) fn find_tenant(sql: &mut dyn Sql, name: &str) -> Result<Option<i64>> {
    let mut found = None;
    sql.each("SELECT id FROM tenants WHERE name = ?1", &[Value::Text(name.into())], &mut |row| {
        found = Some(row.int(0)?);
        Ok(())
    })?;
    Ok(found)
}
