//! [`View`] and [`Change`]: one tenant's part of the store, to read and to change.
//!
//! The first value of every query is the tenant, and it is put there here: a query that forgets it has a value too many
//! and does not run.

use std::ops::{Deref, DerefMut};

use super::sql::{Dialect, Row, Sql, Value};
use crate::error::{Fault, Result};

/// What one tenant can see.
pub(crate) struct View<'a> {
    sql: &'a mut dyn Sql,
    tenant: i64,
}

impl<'a> View<'a> {
    pub(super) fn new(sql: &'a mut dyn Sql, tenant: i64) -> View<'a> {
        View { sql, tenant }
    }

    /// The kind of database behind it, for what cannot be written in one way for all.
    pub(crate) fn dialect(&self) -> Dialect {
        self.sql.dialect()
    }

    /// Fails if this is the memory of a tenant that does not exist.
    pub(super) fn is_somebodys(&self) -> Result<()> {
        match self.tenant == super::tenants::NOBODY {
            true => Err(Fault::new(crate::error::Code::NotFound, "Nothing is stored for this tenant")),
            false => Ok(()),
        }
    }

    /// The name of a table that each tenant has of its own.
    pub(crate) fn own_table(&self, name: &str) -> String {
        format!("{name}_{}", self.tenant)
    }

    fn values<'v>(&self, values: &[Value<'v>]) -> Vec<Value<'v>> {
        let mut all = Vec::with_capacity(values.len() + 1);
        all.push(Value::Int(self.tenant));
        all.extend_from_slice(values);
        all
    }

    /// Hands each row to `each`. `?1` is the tenant, the values follow.
    pub(crate) fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        let values = self.values(values);
        self.sql.each(sql, &values, &mut each)
    }

    /// All rows.
    pub(crate) fn all<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Row) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut all = Vec::new();
        self.each(sql, values, |row| {
            all.push(read(row)?);
            Ok(())
        })?;
        Ok(all)
    }

    /// The first row, if there is one.
    pub(crate) fn one<T>(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&dyn Row) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut found = None;
        self.each(sql, values, |row| {
            if found.is_none() {
                found = Some(read(row)?);
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// A query on a table that is this tenant's own, which therefore has no `?1` for it.
    pub(crate) fn each_of_own(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut each: impl FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(sql.contains(&format!("_{}", self.tenant)), "not a table of this tenant: {sql}");
        self.sql.each(sql, values, &mut each)
    }
}

/// A change that is being made: all of it is kept, or nothing.
pub(crate) struct Change<'a> {
    view: View<'a>,
    /// Its number.
    pub(crate) id: i64,
    /// When it is made, in milliseconds.
    pub(crate) now: i64,
}

impl<'a> Change<'a> {
    /// Begins a change in the name of `who`.
    ///
    /// Its moment is taken here, where nobody else writes, and is never before that of the last change: several
    /// processes may write, and clocks are set back, but what comes later holds later.
    pub(super) fn begin(
        sql: &'a mut dyn Sql,
        tenant: i64,
        who: Option<&str>,
        what: &str,
    ) -> Result<Change<'a>> {
        let mut view = View::new(sql, tenant);
        let last =
            view.one("SELECT MAX(at) FROM changes WHERE tenant = ?1", &[], |row| row.maybe_int(0))?.flatten();
        let now = (tidegate_service::epoch_ms() as i64).max(last.unwrap_or_default());
        let who = who.map_or(Value::Null, |who| Value::Text(who.into()));
        let id = view.one(
            "INSERT INTO changes (tenant, at, who, what) VALUES (?1, ?2, ?3, ?4) RETURNING id",
            &[Value::Int(now), who, Value::Text(what.into())],
            |row| row.int(0),
        )?;
        let id = id.ok_or_else(|| Fault::new(crate::error::Code::Database, "The change has no number"))?;
        Ok(Change { view, id, now })
    }

    /// What is left to do when changes of a tenant have been made. It is no change of its own.
    pub(super) fn rest(sql: &'a mut dyn Sql, tenant: i64, now: i64) -> Change<'a> {
        Change { view: View::new(sql, tenant), id: 0, now }
    }

    /// Runs a statement. `?1` is the tenant, the values follow.
    pub(crate) fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        let values = self.view.values(values);
        self.view.sql.run(sql, &values)
    }

    /// A statement on a table that is this tenant's own.
    pub(crate) fn run_on_own(&mut self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        debug_assert!(sql.contains(&format!("_{}", self.view.tenant)), "not a table of this tenant: {sql}");
        self.view.sql.run(sql, values)
    }
}

impl<'a> Deref for Change<'a> {
    type Target = View<'a>;

    fn deref(&self) -> &View<'a> {
        &self.view
    }
}

impl<'a> DerefMut for Change<'a> {
    fn deref_mut(&mut self) -> &mut View<'a> {
        &mut self.view
    }
}
