//! What an expression uses, and whether all of it is there.

use std::collections::HashMap;

use cel::common::ast::{EntryExpr, Expr, LiteralValue, SelectExpr};
use cel::parser::Expression;
use regex::Regex;
use tidegate_service::nearest_name;

use super::cost::{Cost, MAX_STEPS};
use super::functions;
use crate::object::ObjectKind;

/// What an expression uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub(crate) arguments: bool,
    pub(crate) principal: bool,
    pub(crate) claims: bool,
    pub(crate) endpoint: bool,
    /// The name of what the rule is about.
    pub(crate) object: bool,
    pub(crate) server: bool,
}

impl Uses {
    /// Whether it depends on who calls, or where.
    pub(crate) fn caller(self) -> bool {
        self.principal || self.claims || self.endpoint
    }

    /// Whether it depends on what is called, apart from its arguments.
    pub(crate) fn target(self) -> bool {
        self.object || self.server
    }
}

/// What is known of an expression that is as it should be.
pub(super) struct Checked {
    pub(super) uses: Uses,
    pub(super) cost: Cost,
    pub(super) regexes: HashMap<String, Regex>,
}

/// The fields of variables that have some.
const PRINCIPAL: [&str; 3] = ["issuer", "subject", "tenant"];
const CLAIMS: [&str; 4] = ["roles", "scopes", "client", "actors"];

/// What a regular expression may take, compiled.
const REGEX_BYTES: usize = 16 * 1024;

pub(super) fn check(expression: &Expression, kinds: &[ObjectKind]) -> Result<Checked, String> {
    let mut checker =
        Checker { kinds, uses: Uses::default(), regexes: HashMap::new(), bound: Vec::new(), depth: 0 };
    if let Some(what) = never_a_truth_value(expression) {
        return Err(format!("is {what}, and must be true or false"));
    }
    let cost = checker.cost(expression)?;
    // What is too much without any arguments is too much with all of them.
    if cost.steps_for(0, 0) > MAX_STEPS {
        return Err("takes too long to evaluate: simplify it, or split it into several rules".to_owned());
    }
    let Checker { uses, regexes, .. } = checker;
    Ok(Checked { uses, cost, regexes })
}

/// What an expression is that is surely neither true nor false.
fn never_a_truth_value(expression: &Expression) -> Option<&'static str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => None,
        Expr::Literal(LiteralValue::String(_)) => Some("a string"),
        Expr::Literal(LiteralValue::Null) => Some("null"),
        Expr::Literal(LiteralValue::Bytes(_)) => Some("a sequence of bytes"),
        Expr::Literal(_) => Some("a number"),
        Expr::List(_) => Some("a list"),
        Expr::Map(_) => Some("a map"),
        Expr::Ident(name) if name == "args" => Some("the arguments"),
        Expr::Ident(_) => Some("a name"),
        Expr::Select(select) if !select.test => match known_type(&expression.expr) {
            Some(KnownType::List) => Some("a list"),
            Some(KnownType::Text) => Some("a text"),
            None => None,
        },
        Expr::Call(call) => match call.func_name.as_str() {
            "_+_" | "_-_" | "_*_" | "_/_" | "_%_" | "-_" | "size" => Some("a number or a text"),
            "string" | "int" | "uint" | "double" | "lowerAscii" | "type" => Some("a value"),
            _ => None,
        },
        _ => None,
    }
}

/// What is known of the type of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownType {
    Text,
    List,
}

/// The type of a field of who calls.
fn known_type(expression: &Expr) -> Option<KnownType> {
    let Expr::Select(select) = expression else { return None };
    let Expr::Ident(variable) = &select.operand.expr else { return None };
    match (variable.as_str(), select.field.as_str()) {
        ("claims", "roles" | "scopes" | "actors") => Some(KnownType::List),
        ("claims", "client") | ("principal", _) => Some(KnownType::Text),
        _ => None,
    }
}

struct Checker<'a> {
    kinds: &'a [ObjectKind],
    uses: Uses,
    regexes: HashMap<String, Regex>,
    /// The variables of loops around what is looked at.
    bound: Vec<&'a str>,
    depth: usize,
}

/// How deep parts of an expression may be in one another: it is evaluated on the stack of whoever answers calls.
const MAX_DEPTH: usize = 100;

impl<'a> Checker<'a> {
    fn cost(&mut self, expression: &'a Expression) -> Result<Cost, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("is nested too deeply: split it into several rules".to_owned());
        }
        let cost = self.cost_of(&expression.expr);
        self.depth -= 1;
        cost
    }

    fn cost_of(&mut self, expression: &'a Expr) -> Result<Cost, String> {
        match expression {
            Expr::Unspecified => Err("is not valid CEL".to_owned()),
            Expr::Literal(_) => Ok(Cost::steps(1)),
            Expr::Ident(name) => {
                self.variable(name)?;
                Ok(Cost::steps(1))
            }
            Expr::Select(select) => self.select(select),
            Expr::List(list) => Ok(self.all(&list.elements)?.and_list(list.elements.len())),
            Expr::Map(map) => {
                let mut cost = Cost::steps(2).and_list(map.entries.len());
                for entry in &map.entries {
                    cost = match &entry.expr {
                        EntryExpr::MapEntry(entry) => {
                            cost.and(self.cost(&entry.key)?).and(self.cost(&entry.value)?)
                        }
                        EntryExpr::StructField(field) => cost.and(self.cost(&field.value)?),
                    };
                }
                Ok(cost)
            }
            Expr::Struct(made) => {
                Err(format!("makes a {}, and messages cannot be made here", made.type_name))
            }
            Expr::Call(call) => {
                let name = call.func_name.as_str();
                functions::known(name).map_err(|hint| format!("calls {name}(), {hint}"))?;
                if name == "_[_]"
                    && let [of, Expression { expr: Expr::Literal(LiteralValue::String(key)), .. }] =
                        &call.args[..]
                    && let Expr::Ident(variable) = &of.expr
                    && self.has_fields(variable)
                {
                    return self.field(variable, key.inner());
                }
                if functions::OF_TEXTS.contains(&name) {
                    match &call.target {
                        None => {
                            return Err(format!(
                                "calls {name}() by itself: it is written behind a text, as in args.path.{name}(…)"
                            ));
                        }
                        Some(target) if known_type(&target.expr) == Some(KnownType::List) => {
                            return Err(format!(
                                "calls {name}() of a list, and it is for texts: to look for something in a list, write \"dev\" in claims.roles"
                            ));
                        }
                        Some(_) => {}
                    }
                }
                if name == "matches" {
                    self.regex(call.args.last())?;
                }
                let mut cost = self.all(&call.args)?.and(functions::cost(name));
                if let Some(target) = &call.target {
                    cost = cost.and(self.cost(target)?);
                }
                Ok(cost)
            }
            Expr::Comprehension(each) => {
                let before = self.bound.len();
                let cost = self.cost(&each.iter_range)?.and(self.cost(&each.accu_init)?);
                for variable in [Some(&each.iter_var), each.iter_var2.as_ref()].into_iter().flatten() {
                    if variable_names(self.kinds).any(|taken| taken == variable) {
                        return Err(format!(
                            "uses {variable} as the variable of a loop, and it has a meaning already: choose another name"
                        ));
                    }
                    self.bound.push(variable);
                }
                self.bound.push(&each.accu_var);
                let step = self.cost(&each.loop_cond)?.and(self.cost(&each.loop_step)?);
                let result = self.cost(&each.result)?;
                self.bound.truncate(before);
                let step = step.and(Cost::steps(8)).for_each().ok_or_else(|| {
                    "has loops (all, exists, map, filter) more than three deep in one another".to_owned()
                })?;
                Ok(cost.and(step).and(result))
            }
        }
    }

    fn all(&mut self, expressions: &'a [Expression]) -> Result<Cost, String> {
        expressions.iter().try_fold(Cost::steps(2), |cost, one| Ok(cost.and(self.cost(one)?)))
    }

    fn select(&mut self, select: &'a SelectExpr) -> Result<Cost, String> {
        if let Expr::Ident(variable) = &select.operand.expr
            && self.has_fields(variable)
        {
            return self.field(variable, &select.field);
        }
        Ok(self.cost(&select.operand)?.and(Cost::steps(2)))
    }

    /// Whether a variable is one of those whose fields are known.
    fn has_fields(&self, variable: &str) -> bool {
        matches!(variable, "principal" | "claims") && !self.bound.contains(&variable)
    }

    fn field(&mut self, variable: &str, field: &str) -> Result<Cost, String> {
        let known = match variable {
            "principal" => &PRINCIPAL[..],
            _ => &CLAIMS[..],
        };
        if !known.contains(&field) {
            let other = [("principal", &PRINCIPAL[..]), ("claims", &CLAIMS[..])];
            let elsewhere = other.iter().find(|(name, all)| *name != variable && all.contains(&field));
            let hint = match (elsewhere, nearest_name(field, known.iter().copied())) {
                (Some((name, _)), _) => format!("; did you mean {name}.{field}?"),
                (None, Some(meant)) => format!("; did you mean {variable}.{meant}?"),
                (None, None) => String::new(),
            };
            return Err(format!(
                "uses {variable}.{field}, which does not exist: {variable} has {}{hint}",
                known.join(", ")
            ));
        }
        match variable {
            "principal" => self.uses.principal = true,
            _ => self.uses.claims = true,
        }
        Ok(Cost::steps(4))
    }

    fn variable(&mut self, name: &str) -> Result<(), String> {
        if self.bound.contains(&name) {
            return Ok(());
        }
        match name {
            "principal" => {
                Err(format!("uses principal as a whole: use one of its fields ({})", PRINCIPAL.join(", ")))
            }
            "claims" => Err(format!("uses claims as a whole: use one of its fields ({})", CLAIMS.join(", "))),
            "endpoint" => {
                self.uses.endpoint = true;
                Ok(())
            }
            "server" => {
                self.everywhere("server", |kind| kind != ObjectKind::Page)?;
                self.uses.server = true;
                Ok(())
            }
            "args" => {
                self.everywhere("args", ObjectKind::has_arguments)?;
                self.uses.arguments = true;
                Ok(())
            }
            name => {
                if let Some(kind) = ObjectKind::ALL.into_iter().find(|kind| kind.as_str() == name) {
                    self.everywhere(name, |other| other == kind)?;
                    self.uses.object = true;
                    return Ok(());
                }
                let known: Vec<&str> = variable_names(self.kinds).collect();
                let hint = match nearest_name(name, known.iter().copied()) {
                    Some(meant) => format!("; did you mean {meant}?"),
                    None => format!(": there are {}", known.join(", ")),
                };
                Err(format!("uses {name}, which does not exist{hint}"))
            }
        }
    }

    /// A variable must be there for everything that the rule is about: else the rule would mean something else in each place.
    fn everywhere(&self, variable: &str, is_there: impl Fn(ObjectKind) -> bool) -> Result<(), String> {
        let missing: Vec<&str> =
            self.kinds.iter().filter(|kind| !is_there(**kind)).map(|kind| kind.as_str()).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "uses {variable}, which is not there for everything that the rule is about ({}): select only what has it, \
                 for example \"tool:*\" in place of \"*\"",
                missing.iter().map(|kind| format!("{kind}s")).collect::<Vec<_>>().join(", ")
            )),
        }
    }

    fn regex(&mut self, pattern: Option<&Expression>) -> Result<(), String> {
        let Some(Expression { expr: Expr::Literal(LiteralValue::String(pattern)), .. }) = pattern else {
            return Err("calls matches() with a pattern that is not written down: patterns must be string literals, because \
                        those of callers could take forever"
                .to_owned());
        };
        let pattern = pattern.inner();
        let compiled =
            regex::RegexBuilder::new(pattern).size_limit(REGEX_BYTES).dfa_size_limit(REGEX_BYTES).build();
        let regex = compiled.map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            format!("has the pattern {pattern:?}, which is not a valid regular expression: {why}")
        })?;
        self.regexes.insert(pattern.to_owned(), regex);
        Ok(())
    }
}

/// The variables that rules about these kinds may use.
fn variable_names(kinds: &[ObjectKind]) -> impl Iterator<Item = &'static str> {
    let of_kind = match kinds {
        [only] => Some(only.as_str()),
        _ => None,
    };
    let arguments = kinds.iter().all(|kind| kind.has_arguments()).then_some("args");
    let server = kinds.iter().all(|kind| *kind != ObjectKind::Page).then_some("server");
    let of_rule = [arguments, of_kind, server].into_iter().flatten();
    of_rule.chain(["principal", "claims", "endpoint"])
}
