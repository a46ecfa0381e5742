//! Forgetting that can be taken back: how sure relations still are, the longer ago they were said.

use super::model::{Graph, Relation};
use super::relations;
use crate::error::{Fault, Result};
use crate::store::View;

/// How fast, and down to what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Decay {
    /// At which moment, in milliseconds.
    pub(crate) at: i64,
    /// After how long half of it is left, in days.
    pub(crate) half_life_days: f64,
    /// What is always left.
    pub(crate) floor: f64,
}

impl Decay {
    /// Half of it is left after thirty days, and a tenth for ever.
    pub(crate) fn usual(at: i64) -> Decay {
        Decay { at, half_life_days: 30.0, floor: 0.1 }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if !(self.half_life_days.is_finite() && self.half_life_days > 0.0) {
            return Err(Fault::input("half_life_days", "must be more than 0"));
        }
        match (0.0..=1.0).contains(&self.floor) {
            true => Ok(()),
            false => Err(Fault::input("min_confidence", "must be between 0 and 1")),
        }
    }

    /// The relation with what is left of its confidence.
    pub(crate) fn faded(&self, kept: relations::RelationRow) -> Relation {
        let left = self.left(kept.relation.confidence.unwrap_or(1.0), kept.said);
        Relation { confidence: Some(left), ..kept.relation }
    }

    /// What is left of `confidence` that was stated at `since`.
    fn left(&self, confidence: f64, since: i64) -> f64 {
        let days = (self.at - since).max(0) as f64 / 86_400_000.0;
        // What was less sure than the floor does not become surer.
        (confidence * 0.5_f64.powf(days / self.half_life_days)).max(self.floor.min(confidence))
    }
}

/// Everything that is known, with what is left of the confidence of each relation.
pub(crate) fn graph(view: &mut View<'_>, decay: Decay) -> Result<Graph> {
    decay.check()?;
    let mut graph = super::read::all(view)?;
    let sql = format!(
        "SELECT {} FROM relations WHERE tenant = ?1 AND gone IS NULL ORDER BY made, id",
        relations::COLUMNS
    );
    let kept = view.all(&sql, &[], relations::read)?;
    graph.relations = kept.into_iter().map(|kept| decay.faded(kept)).collect();
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_and_stops_at_the_floor() {
        let day = 86_400_000;
        let decay = Decay::usual(60 * day);
        assert!((decay.left(0.8, 30 * day) - 0.4).abs() < 1e-9);
        assert!((decay.left(0.8, 0) - 0.2).abs() < 1e-9);
        assert!((Decay::usual(10_000 * day).left(0.8, 0) - 0.1).abs() < 1e-9);
        assert!((Decay::usual(10_000 * day).left(0.05, 0) - 0.05).abs() < 1e-9);
        assert!((decay.left(0.8, 90 * day) - 0.8).abs() < 1e-9, "said later than asked for");
    }
}
