//! The search: which pages are nearest.

use super::KINDS;
use super::tables::{Tables, name};
use crate::embeddings::vector_index::best;
use crate::error::Result;
use crate::pages::Hit;
use crate::store::{Value, View};

/// Since this version a search goes on if rows that it came upon are gone.
const GOES_ON: (u32, u32) = (0, 8);
/// How many candidates a search of the index holds at least and at most.
const CANDIDATES: (usize, usize) = (200, 1_000);

impl Tables {
    /// Has this transaction look at so many candidates that the best are among them.
    pub(super) fn look_wide(&self, view: &mut View<'_>, limit: usize) -> Result<()> {
        let candidates = limit.saturating_mul(2).clamp(CANDIDATES.0, CANDIDATES.1).to_string();
        let goes_on = self.version >= GOES_ON;
        let also = if goes_on { ", set_config('hnsw.iterative_scan', 'relaxed_order', true)" } else { "" };
        let sql = format!("SELECT set_config('hnsw.ef_search', ?2, true){also} FROM tenants WHERE id = ?1");
        view.one(&sql, &[Value::Text(candidates.into())], |_| Ok(()))?;
        Ok(())
    }

    /// The query for the pages of a kind that are nearest.
    pub(super) fn search(&self, view: &View<'_>, kind: i64, limit: usize) -> String {
        // What is looked for stands in a query of its own, so that it is read once and not for each row; and what is found
        // is found first, so that it is looked for once and not for each page.
        format!(
            "WITH n AS MATERIALIZED (
                 SELECT page, numbers <=> (SELECT ?2::{}) AS far FROM {} ORDER BY far LIMIT {limit})
             SELECT p.owner, n.page, n.far FROM n JOIN pages p ON p.id = n.page AND p.tenant = ?1
             JOIN page_states t ON t.page = n.page AND t.tenant = ?1 AND t.said = 1",
            self.form,
            name(view, self.id, kind)
        )
    }

    /// The pages of these kinds that are nearest, best first.
    pub(in crate::embeddings) fn nearest(
        &self,
        view: &mut View<'_>,
        query: &[f32],
        kinds: &[i64],
        limit: usize,
    ) -> Result<Vec<Hit>> {
        if !self.fits(query) {
            return Ok(Vec::new());
        }
        self.look_wide(view, limit)?;
        let (query, mut found) = (written(query), Vec::new());
        for kind in KINDS.into_iter().filter(|kind| kinds.contains(kind)) {
            let sql = self.search(view, kind, limit);
            view.each(&sql, &[Value::Text(query.as_str().into())], |row| {
                let score = (1.0 - row.maybe_real(2)?.unwrap_or(1.0)).clamp(-1.0, 1.0);
                found.push((score as f32, Hit { kind, owner: row.int(0)?, page: row.int(1)?, score }));
                Ok(())
            })?;
        }
        best(&mut found, limit);
        Ok(found.into_iter().map(|(_, hit)| hit).collect())
    }
}

/// A vector as the extension reads it.
pub(super) fn written(vector: &[f32]) -> String {
    let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
    format!("[{}]", numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_is_written_as_the_extension_reads_it() {
        assert_eq!(written(&[0.5, -1.0, 1e-7]), "[0.5,-1,0.0000001]");
    }
}
