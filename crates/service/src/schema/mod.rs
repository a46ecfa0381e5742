//! JSON Schemas, compiled and bounded.
//!
//! In one place, because what compiles them is large: every crate that called it by itself would hold a copy. And
//! because a schema is a program that somebody else wrote: two kilobytes of `allOf` can ask for 10^12 checks. So a schema
//! is looked at before it is compiled (`graph.rs`: how deep, how many subschemas, how far its references unfold;
//! `references.rs`: where they lead),
//! and how much work a value makes is known before that work begins (`work.rs`).

mod graph;
mod portable;
mod references;
mod work;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;
use tokio::sync::Semaphore;

use self::graph::Graph;

pub use self::portable::{Construct, Obstacle, obstacles, portable, remove_sizes, restated};
pub use self::work::TooMuchWork;
pub use jsonschema::ValidationError;

/// Checking a value that takes up to this many steps is done where it is asked for: some milliseconds at most.
const SHORT: u64 = 50_000;
/// What is wrong with a value is told in detail up to this many steps: each may leave an error behind.
const DETAILED: u64 = 250_000;
/// What takes longer than this is refused.
const LONGEST: u64 = 20_000_000;
/// How many long checks run at once, in the whole process.
static LONG_CHECKS: Semaphore = Semaphore::const_new(2);
/// How long one may take, waiting included.
const DEADLINE: Duration = Duration::from_secs(10);
/// How often a pattern with look-around may try again before it counts as not matched.
const BACKTRACKS: usize = 100_000;

/// A schema that can be checked against, in a bounded amount of work.
///
/// ```
/// use tidegate_service::schema::Schema;
///
/// let schema = Schema::compile(&serde_json::json!({"type": "string", "maxLength": 3}))?;
/// assert_eq!(schema.first_problem(&"abc".into()), Ok(None));
/// assert!(schema.first_problem(&"abcd".into()).unwrap().is_some());
/// # Ok::<(), tidegate_service::schema::Unusable>(())
/// ```
pub struct Schema {
    validator: Validator,
    graph: Graph,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// Where in the schema, as a JSON pointer; empty for the whole of it.
    pub place: String,
    /// What is wrong there.
    pub reason: String,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => f.write_str(&self.reason),
            place => write!(f, "{place}: {}", self.reason),
        }
    }
}

impl std::error::Error for Unusable {}

/// How a value fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fit<P> {
    /// It does.
    Fits,
    /// It does not, for these reasons.
    Problems(P),
    /// It does not, and is too large for saying where.
    Misfits,
}

impl Schema {
    /// Compiles a schema. References are resolved inside it only: nothing is ever fetched.
    pub fn compile(schema: &Value) -> Result<Schema, Unusable> {
        build(schema, None)
    }

    /// The same, with formats (`email`, `date`, …) as part of what is checked.
    pub fn compile_with_formats(schema: &Value) -> Result<Schema, Unusable> {
        build(schema, Some(true))
    }

    /// Whether checking this value takes so little that it may be done wherever one is.
    pub fn is_short(&self, value: &Value) -> bool {
        work::steps(&self.graph, value, SHORT).is_ok()
    }

    /// Checks a value here and now. What is wrong is gathered by `tell`, which may stop early.
    ///
    /// For code that runs where nobody else waits, or after [`Schema::is_short`]; else see [`Schema::check_apart`].
    pub fn check<P>(
        &self,
        value: &Value,
        tell: impl FnOnce(&mut dyn Iterator<Item = ValidationError<'_>>) -> P,
    ) -> Result<Fit<P>, TooMuchWork> {
        let steps = work::steps(&self.graph, value, LONGEST)?;
        // Finding out whether is much cheaper than finding out what.
        Ok(match self.validator.is_valid(value) {
            true => Fit::Fits,
            false if steps > DETAILED => Fit::Misfits,
            false => Fit::Problems(tell(&mut self.validator.iter_errors(value))),
        })
    }

    /// Checks a value; one that takes long, away from the threads that everybody waits for and within a few seconds.
    pub async fn check_apart<P: Send + 'static>(
        self: &Arc<Self>,
        value: Value,
        tell: impl FnOnce(&mut dyn Iterator<Item = ValidationError<'_>>) -> P + Send + 'static,
    ) -> Result<(Value, Fit<P>), TooMuchWork> {
        if self.is_short(&value) {
            return self.check(&value, tell).map(|fit| (value, fit));
        }
        let work = async {
            let place = LONG_CHECKS.acquire().await.map_err(|_| TooMuchWork::Time)?;
            let schema = self.clone();
            let checked = tokio::task::spawn_blocking(move || {
                // The place is taken until the work is done, also when nobody waits for it any more.
                let _place = place;
                schema.check(&value, tell).map(|fit| (value, fit))
            });
            checked.await.unwrap_or(Err(TooMuchWork::Time))
        };
        tokio::time::timeout(DEADLINE, work).await.unwrap_or(Err(TooMuchWork::Time))
    }

    /// The first thing that is wrong with a value, in words.
    pub fn first_problem(&self, value: &Value) -> Result<Option<String>, TooMuchWork> {
        let told = self.check(value, |errors| {
            errors.next().map(|error| match error.instance_path().as_str() {
                "" => error.to_string(),
                place => format!("{place}: {error}"),
            })
        })?;
        Ok(match told {
            Fit::Fits => None,
            Fit::Problems(problem) => Some(problem.unwrap_or_default()),
            Fit::Misfits => Some("it does not fit, and is too large for saying where".to_owned()),
        })
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

#[inline(never)]
fn build(schema: &Value, formats: Option<bool>) -> Result<Schema, Unusable> {
    let graph = Graph::of(schema)?;
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS)
        .size_limit(graph.pattern_bytes())
        .dfa_size_limit(graph.pattern_bytes());
    let mut options = jsonschema::options().offline().with_pattern_options(patterns);
    if let Some(checked) = formats {
        options = options.should_validate_formats(checked);
    }
    let validator = options.build(schema).map_err(|error| Unusable {
        place: error.instance_path().as_str().to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Schema { validator, graph })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `allOf` of two references to the next level, `levels` times.
    fn doubling(levels: usize) -> Value {
        let mut defs = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({"allOf": [next, next]}));
        }
        defs.insert(format!("d{levels}"), json!({"type": "object"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    fn refused(schema: &Value) -> String {
        Schema::compile(schema).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn schemas_that_unfold_are_refused_before_anything_is_checked() {
        assert!(refused(&doubling(40)).contains("unfold"), "{}", refused(&doubling(40)));
        Schema::compile(&doubling(5)).unwrap();
        let branches = vec![json!({"$ref": "#/$defs/d"}); 200];
        let wide = json!({"anyOf": branches, "$defs": {"d": {"oneOf": vec![json!({"type": "null"}); 200]}}});
        assert!(refused(&wide).contains("unfold"));
    }

    #[test]
    fn schemas_that_lead_back_to_themselves_in_place_are_refused() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"$dynamicRef": "#n", "$defs": {"n": {"$dynamicAnchor": "n", "anyOf": [{"$dynamicRef": "#n"}]}}}),
        ] {
            assert!(refused(&schema).contains("itself"), "{schema}");
        }
    }

    #[test]
    fn schemas_are_bounded_in_depth_and_number() {
        let deep = (0..100).fold(json!({}), |inner, _| json!({"not": inner}));
        assert!(refused(&deep).contains("levels deep"));
        let many: serde_json::Map<_, _> =
            (0..20_000).map(|n| (n.to_string(), json!({"type": "string"}))).collect();
        assert!(refused(&json!({"properties": many})).contains("subschemas"));
        let branches = vec![json!({"properties": {"a": {}}}); 400];
        assert!(
            refused(&json!({"anyOf": branches, "unevaluatedProperties": false})).contains("not evaluated")
        );
        let patterns: Vec<_> = (0..2_000).map(|n| json!({"pattern": format!("a{n}")})).collect();
        assert!(refused(&json!({"anyOf": patterns})).contains("patterns"));
        let elsewhere = refused(&json!({"$ref": "https://example.com/schema.json"}));
        assert!(elsewhere.contains("https://example.com/schema.json"), "{elsewhere}");
    }

    /// A tree of conditions, as filters of real tools have it.
    fn conditions() -> Value {
        json!({
            "$ref": "#/$defs/condition",
            "$defs": {"condition": {"anyOf": [
                {"type": "object", "properties": {"all": {"items": {"$ref": "#/$defs/condition"}}}, "required": ["all"]},
                {"type": "object", "properties": {"any": {"items": {"$ref": "#/$defs/condition"}}}, "required": ["any"]},
                {"type": "object", "properties": {"all": {"items": {"$ref": "#/$defs/condition"}}}, "required": ["all", "none"]},
                {"type": "object", "properties": {"field": {"type": "string"}}, "required": ["field"]},
            ]}},
        })
    }

    #[test]
    fn schemas_that_call_themselves_for_what_is_inside_are_fine() {
        let schema = Schema::compile(&conditions()).unwrap();
        let nested =
            |levels: usize| (0..levels).fold(json!({"field": 1}), |inner, _| json!({"all": [inner]}));
        assert!(schema.is_short(&nested(3)));
        assert!(schema.first_problem(&nested(3)).unwrap().is_some());
        // Two branches look inside: 2^40 steps, which are counted and not made.
        assert!(!schema.is_short(&nested(40)));
        assert_eq!(schema.first_problem(&nested(40)), Err(TooMuchWork::Steps));
        // Everyday values of everyday types are short, however the types refer to each other.
        let tree = json!({"$defs": {"node": {"type": "object", "properties": {
            "left": {"$ref": "#/$defs/node"}, "right": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"});
        let tree = Schema::compile(&tree).unwrap();
        let full = (0..8).fold(json!({}), |inner, _| json!({"left": inner, "right": inner}));
        assert!(tree.is_short(&full));
        assert_eq!(tree.first_problem(&full), Ok(None));
        // Any JSON, as a type.
        let json = json!({"$defs": {"any": {"anyOf": [
            {"type": ["string", "number", "boolean", "null"]},
            {"type": "array", "items": {"$ref": "#/$defs/any"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/any"}}]}}, "$ref": "#/$defs/any"});
        let json = Schema::compile(&json).unwrap();
        let deep =
            (0..90).fold(json!(1), |inner, n| if n % 2 == 0 { json!([inner]) } else { json!({"a": inner}) });
        assert!(json.is_short(&deep));
        assert_eq!(json.first_problem(&deep), Ok(None));
    }

    #[test]
    fn large_values_are_told_without_a_list_of_errors() {
        let schema = json!({"anyOf": [{"items": {"type": "string"}}, {"type": "null"}]});
        let schema = Schema::compile(&schema).unwrap();
        let many = Value::Array(vec![json!(0); 500_000]);
        assert!(!schema.is_short(&many));
        assert_eq!(schema.check(&many, |_| ()), Ok(Fit::Misfits));
        assert_eq!(schema.check(&Value::Array(vec![json!("a"); 500_000]), |_| ()), Ok(Fit::Fits));
    }

    #[tokio::test]
    async fn long_checks_run_apart() {
        let schema = Arc::new(Schema::compile(&json!({"items": {"type": "integer"}})).unwrap());
        let (value, fit) = schema.check_apart(Value::Array(vec![json!(1); 100_000]), |_| ()).await.unwrap();
        assert_eq!((value.as_array().map(Vec::len), fit), (Some(100_000), Fit::Fits));
        let deep = (0..60).fold(json!({"field": 1}), |inner, _| json!({"all": [inner]}));
        let schema = Arc::new(Schema::compile(&conditions()).unwrap());
        assert_eq!(schema.check_apart(deep, |_| ()).await.map(drop), Err(TooMuchWork::Steps));
    }

    #[test]
    fn work_that_is_not_seen_at_first_sight_counts() {
        let wide = |members: usize| -> Value {
            Value::Object((0..members).map(|n| (format!("member{n}"), json!(n))).collect())
        };
        let branches: Vec<_> = (0..200).map(|n| json!({"properties": {format!("x{n}"): {}}})).collect();
        let names: Vec<_> = (0..2_000).map(|n| json!({"minLength": n % 3})).collect();
        let same = Value::Array(vec![json!({"a": [1, 2, 3]}); 20_000]);
        let values: Vec<_> = (0..500).map(|n| json!([n, [1, 2, 3, 4, 5, 6, 7, 8, 9]])).collect();
        for (what, schema, value) in [
            ("unevaluated", json!({"anyOf": branches, "unevaluatedProperties": true}), wide(60_000)),
            ("names", json!({"propertyNames": {"allOf": names}}), wide(20_000)),
            ("unique", json!({"allOf": vec![json!({"uniqueItems": true}); 300]}), same.clone()),
            ("enum", json!({"items": {"enum": values}}), same),
            (
                "the schema of schemas",
                json!({"allOf": vec![json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}); 200]}),
                wide(20_000),
            ),
        ] {
            let schema = Schema::compile(&schema).unwrap();
            assert_eq!(schema.first_problem(&value), Err(TooMuchWork::Steps), "{what}");
        }
    }

    #[test]
    fn patterns_are_bounded_too() {
        let schema = Schema::compile(&json!({"pattern": "^(?=(a+)+$)b"})).unwrap();
        assert!(schema.first_problem(&json!("a".repeat(60))).unwrap().is_some());
        // Each string costs as much as a pattern may try.
        let many = Value::Array(vec![json!("a".repeat(60)); 100_000]);
        let schema = Schema::compile(&json!({"items": {"pattern": "^(?=(a+)+$)b"}})).unwrap();
        assert_eq!(schema.first_problem(&many), Err(TooMuchWork::Steps));
        assert!(refused(&json!({"pattern": "(((a{100}){100}){100}){100}"})).contains("pattern"));
    }
}
