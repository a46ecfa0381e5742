//! Queries as PostgreSQL writes them.

use super::{Fault, Result, Value};
use crate::error::Code;

/// The query with `$1` for `?1`, and `NULL` for a value that is none: PostgreSQL wants a type for every other.
///
/// A value that the query does not use is a mistake in the query: above all, the first is whose memory it is.
pub(super) fn numbered(sql: &str, values: &[Value<'_>]) -> Result<String> {
    let mut numbered = String::with_capacity(sql.len());
    let mut used = vec![false; values.len()];
    let mut rest = sql;
    while let Some(at) = rest.find(['?', '\'', '"']) {
        let (before, mark) = rest.split_at(at);
        numbered.push_str(before);
        let quote = &mark[..1];
        if quote != "?" {
            // A quote in a literal is doubled, and so looks like two literals side by side.
            let end = mark[1..].find(quote).map_or(mark.len(), |end| end + 2);
            numbered.push_str(&mark[..end]);
            rest = &mark[end..];
            continue;
        }
        let digits = mark[1..].find(|c: char| !c.is_ascii_digit()).map_or(mark.len(), |end| end + 1);
        let number: usize = mark[1..digits].parse().map_err(|_| mistaken(sql, "a ? without a number"))?;
        let value = number.checked_sub(1).and_then(|at| values.get(at));
        match value.ok_or_else(|| mistaken(sql, "a number without a value"))? {
            Value::Null => numbered.push_str("NULL"),
            _ => numbered.push_str(&format!("${number}")),
        }
        used[number - 1] = true;
        rest = &mark[digits..];
    }
    numbered.push_str(rest);
    match used.contains(&false) {
        true => Err(mistaken(sql, "a value that is not used")),
        false => Ok(numbered),
    }
}

fn mistaken(sql: &str, what: &str) -> Fault {
    tracing::error!(sql, "a query has {what}");
    Fault::new(Code::Internal, format!("A query of this program has {what}; the log says which"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_out_of_literals() {
        let values = [Value::Int(1), Value::Null, Value::Text("a".into())];
        let sql = "SELECT '?1 it''s', \"a?2\" FROM t WHERE a = ?1 AND (?2 IS NULL OR b = ?2) AND c = ?3 ESCAPE '\\'";
        let wanted = "SELECT '?1 it''s', \"a?2\" FROM t WHERE a = $1 AND (NULL IS NULL OR b = NULL) AND c = $3 ESCAPE '\\'";
        assert_eq!(numbered(sql, &values).unwrap(), wanted);
        assert_eq!(numbered("SELECT 1", &[]).unwrap(), "SELECT 1");
    }

    #[test]
    fn a_query_that_forgets_whose_it_is_does_not_run() {
        for sql in
            ["SELECT a FROM t WHERE b = ?2", "SELECT a FROM t WHERE b = ?1", "SELECT ?1, ?2, ?3", "SELECT ?"]
        {
            let fault = numbered(sql, &[Value::Int(1), Value::Int(2)]).unwrap_err();
            assert_eq!(fault.code, Code::Internal, "{sql}");
        }
    }
}
