//! [`Condition`]: the `when` of a rule, an expression in CEL.
//!
//! It is compiled when the configuration is loaded, and everything that can be wrong with it is found then: fields that are not
//! there, functions that do not exist, regular expressions that are none. CEL always ends; how long that takes for certain
//! arguments is known before they are looked at (see [`cost`]), and what would take too long is not evaluated.

mod check;
mod cost;
mod functions;
mod values;

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::parser::{Expression, Parser};
use cel::{Context, Env, ExecutionError, Value};
use regex::Regex;
use tidegate_protocol::Json;
use tidegate_service::ContextParts;

use crate::object::{Object, ObjectKind};
pub(crate) use check::Uses;
use cost::Cost;
pub use cost::MAX_STEPS;

/// The longest condition.
pub const MAX_CONDITION_BYTES: usize = 4096;
/// What a text of that length can need of a stack, several times over.
const PARSER_STACK: usize = 256 * 1024 * 1024;

/// A compiled condition.
pub(crate) struct Condition {
    expression: Expression,
    uses: Uses,
    cost: Cost,
    /// The regular expressions in it, by their text.
    regexes: Option<Arc<HashMap<String, Regex>>>,
}

/// What a condition is evaluated over.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) caller: &'a ContextParts,
    pub(crate) object: &'a Object<'a>,
    /// The arguments of the call; none at all are an empty object.
    pub(crate) arguments: &'a Given<'a>,
}

/// What one decision is made with: the arguments, which are read once, and the steps that are left.
pub(crate) struct Given<'a> {
    json: Option<&'a Json>,
    read: OnceCell<Result<values::Arguments, String>>,
    steps: Cell<u64>,
}

impl<'a> Given<'a> {
    pub(crate) fn new(json: Option<&'a Json>) -> Given<'a> {
        Given { json, read: OnceCell::new(), steps: Cell::new(MAX_STEPS) }
    }

    fn arguments(&self) -> Result<&values::Arguments, String> {
        self.read.get_or_init(|| values::arguments(self.json)).as_ref().map_err(Clone::clone)
    }

    /// Takes as many steps as an evaluation may need, if there are as many left.
    fn spend(&self, cost: &Cost, elements: usize, bytes: usize) -> Result<(), String> {
        let needed = cost.steps_for(elements, bytes);
        match self.steps.get().checked_sub(needed) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err("the arguments are too large to be decided about".to_owned()),
        }
    }
}

/// What everything is evaluated with.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib().with_optional_support(false);
    functions::add(&mut env);
    Arc::new(env)
});

impl Condition {
    /// Compiles the condition of a rule about objects of these kinds. The error is the rest of a sentence.
    pub(crate) fn compile(text: &str, kinds: &[ObjectKind]) -> Result<Condition, String> {
        if text.len() > MAX_CONDITION_BYTES {
            return Err(format!("is longer than {MAX_CONDITION_BYTES} bytes: split it into several rules"));
        }
        if text.trim().is_empty() {
            return Err("is empty: leave it out for a rule without a condition".to_owned());
        }
        // Somebody else's parser goes as deep as the text does, so it has a stack for the deepest that there can be. Should it
        // have a mistake, that does not end the process.
        std::thread::scope(|scope| {
            let compiling = std::thread::Builder::new()
                .stack_size(PARSER_STACK)
                .spawn_scoped(scope, || Condition::compile_here(text, kinds));
            let compiled = compiling.ok().and_then(|compiling| compiling.join().ok());
            compiled.unwrap_or_else(|| Err("cannot be read as CEL: simplify it".to_owned()))
        })
    }

    fn compile_here(text: &str, kinds: &[ObjectKind]) -> Result<Condition, String> {
        let parsed = Parser::new().error_recovery_limit(1).parse(text);
        let expression = parsed.map_err(|errors| match errors.errors.first() {
            Some(error) => {
                let what = error.msg.lines().next().unwrap_or_default();
                format!("is not valid CEL, at character {}: {what}{}", error.pos.1.max(1), hint(text))
            }
            None => "is not valid CEL".to_owned(),
        })?;
        let checked = check::check(&expression, kinds)?;
        let regexes = (!checked.regexes.is_empty()).then(|| Arc::new(checked.regexes));
        Ok(Condition { expression, uses: checked.uses, cost: checked.cost, regexes })
    }

    pub(crate) fn uses(&self) -> Uses {
        self.uses
    }

    /// Whether it holds. The error says why that cannot be told.
    pub(crate) fn holds(&self, facts: &Facts<'_>) -> Result<bool, String> {
        let Uses { arguments, principal, claims, endpoint, object, server } = self.uses;
        let claimed = facts.caller.claims.as_deref();
        let mut context = Context::with_env(ENV.clone());
        let mut largest = 0;
        if claims && let Some(claimed) = claimed {
            let scopes = claimed.scopes.as_ref().map_or(0, Vec::len);
            largest = claimed.roles.len().max(claimed.actors.len()).max(scopes);
        }
        let mut bytes = if object { facts.object.name.len() } else { 0 };
        if arguments {
            let given = facts.arguments.arguments()?;
            bytes += given.bytes;
            largest = largest.max(given.largest);
            facts.arguments.spend(&self.cost, largest, bytes)?;
            context.add_variable_from_value("args", given.value.clone());
        } else {
            facts.arguments.spend(&self.cost, largest, bytes)?;
        }
        if principal {
            context.add_variable_from_value("principal", values::principal(&facts.caller.principal));
        }
        if claims {
            context.add_variable_from_value("claims", values::claims(claimed));
        }
        if endpoint {
            let name = facts.caller.endpoint.as_deref().unwrap_or(values::DEFAULT_ENDPOINT);
            context.add_variable_from_value("endpoint", values::text(name));
        }
        if object {
            context.add_variable_from_value(facts.object.kind.as_str(), values::text(facts.object.name));
        }
        if server {
            context.add_variable_from_value("server", values::text(facts.object.server));
        }
        if let Some(regexes) = &self.regexes {
            functions::add_matches(&mut context, regexes.clone());
        }
        match context.resolve(&self.expression) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("it is a {}, and neither true nor false", other.type_of())),
            Err(error) => Err(why(&error)),
        }
    }
}

/// What was probably meant, by those who know other languages.
fn hint(text: &str) -> &'static str {
    let words = || text.split(|c: char| !c.is_alphanumeric() && c != '_');
    let is_single = |at: usize| {
        let bytes = text.as_bytes();
        let before = at.checked_sub(1).map(|at| bytes[at]);
        !matches!(before, Some(b'=' | b'!' | b'<' | b'>')) && bytes.get(at + 1) != Some(&b'=')
    };
    match () {
        () if words().any(|word| matches!(word, "and" | "or" | "not")) => " (CEL writes &&, || and !)",
        () if text.match_indices('=').any(|(at, _)| is_single(at)) => " (values are compared with ==)",
        () if text.contains("has(") => " (has() takes a member, as in has(args.path))",
        () => "",
    }
}

/// Why an expression has no value, without the values in it: they are the caller's.
fn why(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => format!("there is no {key:?}: test for it with has()"),
        ExecutionError::NoSuchOverload(error) => {
            format!("{:?} cannot be applied to ({})", error.function(), error.argument_types().join(", "))
        }
        ExecutionError::ValuesNotComparable(..) => "values of different types are compared".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "an index is beyond the end of its list".to_owned(),
        ExecutionError::Overflow(operator, ..) => format!("{operator:?} overflows"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "a number is divided by zero".to_owned()
        }
        // It has the value in it.
        ExecutionError::UnexpectedType { .. } => {
            "a function is applied to a value of another type than it takes".to_owned()
        }
        ExecutionError::FunctionError { function, .. } => format!("{function} failed"),
        _ => "it cannot be evaluated for these values".to_owned(),
    }
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition").field("uses", &self.uses).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
