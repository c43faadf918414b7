//! One criterion: a path, an operator and a pattern.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::comparison::{contains, described, equal, order};
use super::date;
use super::expression::Expression;
use super::instance::TriggerInstance;
use super::operator::Operator;
use super::outcome::{CriteriaError, Failure};
use super::path::Path;
use super::pattern::Pattern;
use super::translation::Flags;
use super::wildcard;
use crate::limits::{CRITERIA_MAX, EXPRESSIONS_MAX, SEARCH_DEPTH_MAX};
use crate::value::{Map, Value};

/// The criteria's use of the rule's limits.
#[derive(Debug, Default)]
pub(super) struct Budget {
    criteria: usize,
    expressions: usize,
}

/// A compiled criterion.
#[derive(Debug, Clone)]
pub(super) struct Criterion {
    pub(super) key: String,
    pub(super) path: Path,
    pub(super) operator: Operator,
    pub(super) pattern: Pattern,
    compiled: Compiled,
}

/// A compiled pattern without templates.
#[derive(Debug, Clone)]
enum Compiled {
    Nothing,
    Expression(Box<Expression>),
    Search(Box<Search>),
}

#[derive(Debug, Clone)]
struct Search {
    is_any_item: bool,
    is_any_criterion: bool,
    criteria: Vec<Criterion>,
}

impl Criterion {
    /// Compiles the criteria of an object, and charges them to the rule's budget.
    ///
    /// # Errors
    /// One of them has a fault, or there are too many.
    pub(super) fn compile_all(
        criteria: &Map,
        root: &str,
        depth: usize,
        budget: &mut Budget,
    ) -> Result<Vec<Criterion>, CriteriaError> {
        let mut compiled = Vec::with_capacity(criteria.len().min(CRITERIA_MAX));
        for (key, criterion) in criteria.iter() {
            budget.criteria += 1;
            if budget.criteria > CRITERIA_MAX {
                let message = format!("the rule has more than {CRITERIA_MAX} criteria; split it");
                return Err(CriteriaError::new(&[key], message));
            }
            compiled.push(Criterion::compile(key, criterion, root, depth, budget)?);
        }
        Ok(compiled)
    }

    fn compile(
        key: &str,
        criterion: &Value,
        root: &str,
        depth: usize,
        budget: &mut Budget,
    ) -> Result<Criterion, CriteriaError> {
        let wrong = |message: &str| CriteriaError::new(&[key], message);
        let criterion = criterion
            .as_map()
            .ok_or_else(|| wrong("the criterion is no object; give it a `type` and a `pattern`"))?;
        let operator = match criterion.get("type") {
            Some(Value::String(name)) => {
                Operator::named(name).map_err(|message| CriteriaError::new(&[key, "type"], message))?
            }
            Some(_) => return Err(CriteriaError::new(&[key, "type"], "the operator is no text; name one")),
            None => return Err(wrong("the criterion has no `type`; name its operator there")),
        };
        let pattern = criterion.get("pattern").filter(|pattern| !pattern.is_null());
        if pattern.is_none() && depth == 0 && !operator.is_without_pattern() {
            return Err(wrong(&format!("operator `{operator}` has no `pattern`; add one")));
        }
        // What stands behind `#` tells criteria on one path apart.
        let path = key.split('#').next().unwrap_or_default();
        let path = Path::parse(path, root).map_err(|message| wrong(&message))?;
        let compiled = match operator {
            Operator::Search => {
                Compiled::Search(Box::new(Search::compile(key, criterion, pattern, depth, budget)?))
            }
            _ => Compiled::Nothing,
        };
        let in_pattern = |message: String| CriteriaError::new(&[key, "pattern"], message);
        let pattern = match compiled {
            Compiled::Search(_) => Pattern::Literal(pattern.cloned().unwrap_or_default()),
            _ => Pattern::compile(pattern).map_err(in_pattern)?,
        };
        let compiled = match pattern.literal() {
            Some(Value::String(text)) => match compile_expression(operator, text) {
                Some(_) if budget.expressions >= EXPRESSIONS_MAX => {
                    let message =
                        format!("the rule has more than {EXPRESSIONS_MAX} regular expressions; split it");
                    return Err(in_pattern(message));
                }
                Some(expression) => {
                    budget.expressions += 1;
                    Compiled::Expression(Box::new(expression.map_err(in_pattern)?))
                }
                None => compiled,
            },
            _ => compiled,
        };
        Ok(Criterion { key: key.to_owned(), path, operator, pattern, compiled })
    }

    /// Whether it cannot fail: it compares for equality, on a plain path, with a value that is known.
    pub(super) fn equality(&self) -> Option<(&Path, &Value)> {
        let literal =
            self.pattern.literal().filter(|_| self.operator == Operator::Equals && self.path.is_plain());
        literal.map(|literal| (&self.path, literal))
    }

    /// Whether it holds; if it fails, it does not, and the first failure is kept.
    pub(super) fn holds(&self, instance: &TriggerInstance<'_>, failure: &mut Option<Failure>) -> bool {
        let result = self.pattern.render(instance).and_then(|pattern| {
            let value = self.value(instance)?;
            self.compare(&value, &pattern, instance, failure)
        });
        result.unwrap_or_else(|reason| {
            failure.get_or_insert(Failure { key: self.key.clone(), reason });
            false
        })
    }

    /// The value at its path; `Null` if there is none.
    pub(super) fn value<'i>(&self, instance: &TriggerInstance<'i>) -> Result<Cow<'i, Value>, String> {
        Ok(self.path.first(instance.payload())?.unwrap_or(Cow::Owned(Value::Null)))
    }

    /// The operator's verdict.
    ///
    /// # Errors
    /// The operator has no answer for values of these types.
    pub(super) fn compare(
        &self,
        value: &Value,
        pattern: &Value,
        instance: &TriggerInstance<'_>,
        failure: &mut Option<Failure>,
    ) -> Result<bool, String> {
        match self.operator {
            Operator::Exists => Ok(!value.is_null()),
            Operator::Nexists => Ok(value.is_null()),
            Operator::Nequals => Ok(!equal(value, pattern)),
            Operator::Search => match &self.compiled {
                Compiled::Search(search) => search.holds(value, instance, failure),
                _ => Ok(false),
            },
            // StackStorm takes a pattern that renders to nothing for one that does not match.
            _ if pattern.is_null() => Ok(false),
            Operator::Equals => Ok(equal(value, pattern)),
            Operator::Contains => contains(value, pattern),
            Operator::Ncontains => contains(value, pattern).map(|is_there| !is_there),
            Operator::Inside => contains(pattern, value),
            Operator::Ninside => contains(pattern, value).map(|is_there| !is_there),
            Operator::Lessthan => Ok(order(value, pattern)? == Some(Ordering::Less)),
            Operator::Greaterthan => Ok(order(value, pattern)? == Some(Ordering::Greater)),
            Operator::TimediffLt => Ok(age(value, instance)? < period(pattern)?),
            Operator::TimediffGt => Ok(age(value, instance)? > period(pattern)?),
            _ => self.compare_texts(text(value)?, text(pattern)?),
        }
    }

    fn compare_texts(&self, value: &str, pattern: &str) -> Result<bool, String> {
        let lower = str::to_lowercase;
        Ok(match self.operator {
            Operator::Iequals => lower(value) == lower(pattern),
            Operator::Icontains => lower(value).contains(&lower(pattern)),
            Operator::Incontains => !lower(value).contains(&lower(pattern)),
            Operator::Startswith => value.starts_with(pattern),
            Operator::Istartswith => lower(value).starts_with(&lower(pattern)),
            Operator::Endswith => value.ends_with(pattern),
            Operator::Iendswith => lower(value).ends_with(&lower(pattern)),
            operator => match &self.compiled {
                Compiled::Expression(expression) => expression.is_match(value)?,
                _ => match compile_expression(operator, pattern) {
                    Some(expression) => expression?.is_match(value)?,
                    None => false,
                },
            },
        })
    }
}

/// The expression of an operator that has one.
fn compile_expression(operator: Operator, pattern: &str) -> Option<Result<Expression, String>> {
    let flags = match operator {
        Operator::Matchwildcard => return Some(wildcard::compile(pattern)),
        Operator::Regex => Flags::default(),
        Operator::Iregex => Flags { ignores_case: true, ..Flags::default() },
        Operator::Matchregex => Flags { is_dot_all: true, is_anchored: true, ..Flags::default() },
        _ => return None,
    };
    Some(Expression::compile(pattern, flags))
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| format!("{} is no text; use an operator for its type", described(value)))
}

/// Seconds since the time that the value writes.
fn age(value: &Value, instance: &TriggerInstance<'_>) -> Result<f64, String> {
    let written = match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        Value::Int(number) => Cow::Owned(number.to_string()),
        other => {
            return Err(format!(
                "{} is no time; use a text such as `2014-10-30T05:08:30Z`",
                described(other)
            ));
        }
    };
    let now = instance.now();
    let micros = date::parse(&written, now)?.micros();
    Ok((now.micros() - micros) as f64 / 1e6)
}

/// Seconds, as Python's `float` reads them.
fn period(pattern: &Value) -> Result<f64, String> {
    let wrong = || format!("{} is no number of seconds; use one such as 300", described(pattern));
    match pattern {
        Value::Bool(value) => Ok(f64::from(u8::from(*value))),
        Value::String(text) => {
            let text = text.trim();
            let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
            let bytes = text.as_bytes();
            let is_grouped = (0..bytes.len()).filter(|at| bytes.get(*at) == Some(&b'_')).all(|at| {
                at.checked_sub(1).is_some_and(|before| is_digit(bytes.get(before)))
                    && is_digit(bytes.get(at + 1))
            });
            if is_grouped { text.replace('_', "").parse().map_err(|_| wrong()) } else { Err(wrong()) }
        }
        other => other.as_number().ok_or_else(wrong),
    }
}

impl Search {
    fn compile(
        key: &str,
        criterion: &Map,
        pattern: Option<&Value>,
        depth: usize,
        budget: &mut Budget,
    ) -> Result<Search, CriteriaError> {
        if depth >= SEARCH_DEPTH_MAX {
            let message = format!("searches are nested more than {SEARCH_DEPTH_MAX} deep; use fewer");
            return Err(CriteriaError::new(&[key], message));
        }
        let (is_any_item, is_any_criterion) = match criterion.get("condition") {
            Some(Value::String(condition)) if condition == "any" => (true, false),
            Some(Value::String(condition)) if condition == "all" => (false, false),
            Some(Value::String(condition)) if condition == "all2any" => (false, true),
            Some(Value::String(condition)) if condition == "any2any" => (true, true),
            Some(other) => {
                let message =
                    format!("condition {} is unknown; use any, all, any2any or all2any", described(other));
                return Err(CriteriaError::new(&[key, "condition"], message));
            }
            None => {
                let message = "operator `search` has no `condition`; use any, all, any2any or all2any";
                return Err(CriteriaError::new(&[key], message));
            }
        };
        let Some(Value::Map(pattern)) = pattern else {
            let message = "the pattern of `search` is no object; give it criteria on `item`";
            return Err(CriteriaError::new(&[key, "pattern"], message));
        };
        let criteria = Criterion::compile_all(pattern, TriggerInstance::ITEM, depth + 1, budget)
            .map_err(|error| error.below(&[key, "pattern"]))?;
        Ok(Search { is_any_item, is_any_criterion, criteria })
    }

    /// Evaluates all criteria on all items, as StackStorm does, so that none hides the failure of another.
    fn holds(
        &self,
        value: &Value,
        instance: &TriggerInstance<'_>,
        failure: &mut Option<Failure>,
    ) -> Result<bool, String> {
        let items = match value {
            Value::List(items) => Cow::Borrowed(items.as_slice()),
            Value::Map(_) => Cow::Borrowed(std::slice::from_ref(value)),
            Value::String(text) => {
                Cow::Owned(text.chars().map(|character| Value::String(character.to_string())).collect())
            }
            other => return Err(format!("{} has no items; search in a list or an object", described(other))),
        };
        let mut held = 0;
        for item in items.iter() {
            let instance = instance.item(item);
            let criteria =
                self.criteria.iter().filter(|criterion| criterion.holds(&instance, failure)).count();
            let is_held = if self.is_any_criterion { criteria > 0 } else { criteria == self.criteria.len() };
            held += usize::from(is_held);
        }
        Ok(if self.is_any_item { held > 0 } else { held == items.len() })
    }
}
