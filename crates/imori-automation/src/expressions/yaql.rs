//! The value of a YAQL expression, as yaql gives it or not at all.

use std::borrow::Cow;

use super::scope::Scope;
use super::yaql_functions::{function, item_of, method, variable};
use super::yaql_parser::{Argument, Node, parse};
use super::yaql_values::{Fault, ValueResult, compare, contains, entry, equal, sum};
use crate::python::repr_text;
use crate::value::{Map, Value};

/// Evaluates an expression without its delimiters.
///
/// # Errors
/// The expression fails, or it is left to yaql.
pub fn evaluate(source: &str, scope: &Scope) -> Result<Value, Fault> {
    let node = parse(source).ok_or(Fault::Unsure)?;
    let mut evaluation = Evaluation { scope, has_mutable_lists: false };
    evaluation.value(&node).map(Cow::into_owned)
}

/// One evaluation.
struct Evaluation<'a> {
    scope: &'a Scope,
    /// `json` and `zip` give lists that are not equal to those of yaql.
    has_mutable_lists: bool,
}

impl<'a> Evaluation<'a> {
    /// The value of a node.
    fn value(&mut self, node: &Node) -> ValueResult<'a> {
        match node {
            Node::Constant(value) => Ok(Cow::Owned(value.clone())),
            Node::Word(word) => Ok(Cow::Owned(Value::String(word.clone()))),
            Node::Call(name, arguments) => self.call(name, arguments),
            Node::Dot(left, right) => self.dot(left, right),
            Node::Index(left, index) => {
                let left = self.value(left)?;
                let index = self.value(index)?;
                item(left, &index)
            }
            Node::List(nodes) => self.owned(nodes).map(|items| Cow::Owned(Value::List(items))),
            Node::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let key = self.value(key)?;
                    let value = self.value(value)?.into_owned();
                    map.insert(key.as_str().ok_or(Fault::Unsure)?, value);
                }
                Ok(Cow::Owned(Value::Map(map)))
            }
            Node::Unary(sign, operand) => {
                let operand = self.value(operand)?;
                let value = match (*sign, operand.as_ref()) {
                    ("not", operand) => Some(Value::Bool(!operand.is_truthy())),
                    ("-", Value::Int(number)) => number.checked_neg().map(Value::Int),
                    ("-", Value::Float(number)) => Some(Value::Float(-number)),
                    ("+", number @ (Value::Int(_) | Value::Float(_))) => Some(number.clone()),
                    _ => None,
                };
                value.map(Cow::Owned).ok_or(Fault::Unsure)
            }
            Node::Binary(sign @ ("and" | "or"), left, right) => {
                let left = self.value(left)?;
                match left.is_truthy() == (*sign == "and") {
                    true => self.value(right),
                    false => Ok(left),
                }
            }
            Node::Binary(sign, left, right) => {
                let left = self.value(left)?;
                let right = self.value(right)?;
                self.binary(sign, &left, &right).map(Cow::Owned).ok_or(Fault::Unsure)
            }
        }
    }

    fn owned(&mut self, nodes: &[Node]) -> Result<Vec<Value>, Fault> {
        nodes.iter().map(|node| self.value(node).map(Cow::into_owned)).collect()
    }

    /// The values of arguments without names.
    fn arguments(&mut self, arguments: &[Argument]) -> Result<Vec<Value>, Fault> {
        let values = arguments.iter().map(|argument| match argument {
            Argument::Value(node) => self.value(node).map(Cow::into_owned),
            Argument::Rule(..) => Err(Fault::Unsure),
        });
        values.collect()
    }

    fn call(&mut self, name: &str, arguments: &[Argument]) -> ValueResult<'a> {
        match name {
            "switch" => return self.switch(arguments),
            "coalesce" => return self.coalesce(arguments),
            _ => {}
        }
        self.has_mutable_lists |= matches!(name, "json" | "zip");
        let arguments = self.arguments(arguments)?;
        match name {
            "ctx" => variable(self.scope, &arguments),
            "item" => item_of(self.scope, &arguments),
            name => function(self.scope, name, &arguments),
        }
    }

    fn switch(&mut self, arguments: &[Argument]) -> ValueResult<'a> {
        let rules = arguments.iter().map(|argument| match argument {
            Argument::Rule(condition, value) => Some((condition, value)),
            Argument::Value(_) => None,
        });
        let rules: Option<Vec<(&Node, &Node)>> = rules.collect();
        for (condition, value) in rules.ok_or(Fault::Unsure)? {
            if self.value(condition)?.is_truthy() {
                return self.value(value);
            }
        }
        Ok(Cow::Owned(Value::Null))
    }

    fn coalesce(&mut self, arguments: &[Argument]) -> ValueResult<'a> {
        for argument in arguments {
            let Argument::Value(node) = argument else { return Err(Fault::Unsure) };
            let value = self.value(node)?;
            if !value.is_null() {
                return Ok(value);
            }
        }
        Ok(Cow::Owned(Value::Null))
    }

    fn dot(&mut self, left: &Node, right: &Node) -> ValueResult<'a> {
        // The whole context would be copied for one of its variables.
        if let (Node::Call(name, arguments), Node::Word(key)) = (left, right)
            && name == "ctx"
            && arguments.is_empty()
        {
            let found = self.scope.variables().get(key).filter(|_| !key.starts_with("__"));
            return found.map(Cow::Borrowed).ok_or_else(|| Fault::NoKey(key.clone()));
        }
        let receiver = self.value(left)?;
        match right {
            Node::Word(key) if receiver.as_map().is_some() => entry(receiver, key),
            Node::Call(name, arguments) => {
                let arguments = self.arguments(arguments)?;
                let is_comparison = name == "contains" && self.has_mutable_lists;
                let value = if is_comparison { None } else { method(&receiver, name, &arguments) };
                value.map(Cow::Owned).ok_or(Fault::Unsure)
            }
            _ => Err(Fault::Unsure),
        }
    }

    fn binary(&self, sign: &str, left: &Value, right: &Value) -> Option<Value> {
        let is_list = |value: &Value| value.as_list().is_some() || value.as_map().is_some();
        if self.has_mutable_lists && (is_list(left) || is_list(right)) {
            return None;
        }
        match sign {
            "=" => equal(left, right).map(Value::Bool),
            "!=" => equal(left, right).map(|is_equal| Value::Bool(!is_equal)),
            "in" => contains(right, left).map(Value::Bool),
            "<" | ">" | "<=" | ">=" => compare(sign, left, right).map(Value::Bool),
            sign => sum(sign, left, right),
        }
    }
}

/// The item of a list by position, or the value of a key.
fn item<'a>(value: Cow<'a, Value>, index: &Value) -> ValueResult<'a> {
    match (value.as_ref(), index) {
        (Value::Map(_), Value::String(key)) if repr_text(key).trim_matches('\'') == key => {
            let key = key.clone();
            entry(value, &key)
        }
        (Value::List(items), Value::Int(at)) => {
            let from_end = i64::try_from(items.len()).unwrap_or(i64::MAX).saturating_add(*at);
            let at = usize::try_from(if *at < 0 { from_end } else { *at }).map_err(|_| Fault::Unsure)?;
            let found = match value {
                Cow::Borrowed(value) => value.as_list().and_then(|items| items.get(at)).map(Cow::Borrowed),
                Cow::Owned(value) => value.as_list().and_then(|items| items.get(at)).cloned().map(Cow::Owned),
            };
            found.ok_or(Fault::Unsure)
        }
        _ => Err(Fault::Unsure),
    }
}
