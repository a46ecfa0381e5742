//! `tenant_id` as tools about documents take it.

pub(crate) use crate::tenant::check;
