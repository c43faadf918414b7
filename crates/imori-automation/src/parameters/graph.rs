//! Which parameters refer to which.

use std::collections::{BTreeMap, BTreeSet};

use super::ParameterError;
use crate::python::repr;
use crate::templates::Template;
use crate::value::Value;

/// A name: its value, its template, or both, of which the template counts.
#[derive(Debug, Default)]
struct Node {
    value: Option<Value>,
    template: Option<Value>,
    /// The names that the templates of this one refer to.
    needs: BTreeSet<String>,
}

/// Names with what they refer to.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: Vec<(String, Node)>,
    positions: BTreeMap<String, usize>,
}

impl Graph {
    fn node(&mut self, name: &str) -> &mut Node {
        let at = *self.positions.entry(name.to_owned()).or_insert(self.nodes.len());
        if at == self.nodes.len() {
            self.nodes.push((name.to_owned(), Node::default()));
        }
        &mut self.nodes[at].1
    }

    fn find(&self, name: &str) -> Option<&Node> {
        self.positions.get(name).and_then(|at| self.nodes.get(*at)).map(|(_, node)| node)
    }

    /// Sets a value that is not rendered.
    pub(super) fn set_value(&mut self, name: &str, value: &Value) {
        self.node(name).value = Some(value.clone());
    }

    /// Sets a template, or a value where it is none: also a text that only looks like one.
    pub(super) fn set(&mut self, name: &str, value: &Value) {
        // StackStorm looks for templates in what Python writes of a list or an object.
        let source = match value {
            Value::String(text) => text.clone(),
            Value::List(_) | Value::Map(_) => repr(value),
            _ => String::new(),
        };
        let template = Some(source).filter(|source| Template::is_template(source));
        let Some(Ok(template)) = template.map(|source| Template::compile(&source)) else {
            return self.set_value(name, value);
        };
        let needs = template.names();
        for needed in &needs {
            self.node(needed);
        }
        let node = self.node(name);
        node.template = Some(value.clone());
        node.needs.extend(needs);
    }

    /// The value of a name, where it has one.
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.find(name).and_then(|node| node.value.as_ref())
    }

    /// The template of a name, where it has one.
    pub(super) fn template(&self, name: &str) -> Option<&Value> {
        self.find(name).and_then(|node| node.template.as_ref())
    }

    /// The names in the order in which they became known.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|(name, _)| name.as_str())
    }

    /// The names in an order in which each stands after those that it refers to.
    ///
    /// # Errors
    /// A name has neither value nor template, or refers to itself.
    pub(super) fn order(&self) -> Result<Vec<&str>, ParameterError> {
        if let Some((name, _)) =
            self.nodes.iter().find(|(_, node)| node.value.is_none() && node.template.is_none())
        {
            return Err(ParameterError::new(format!("Dependency unsatisfied in variable \"{name}\"")));
        }
        let mut waiting: BTreeMap<&str, usize> =
            self.nodes.iter().map(|(name, node)| (name.as_str(), node.needs.len())).collect();
        let mut needed_by: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, node) in &self.nodes {
            for needed in &node.needs {
                needed_by.entry(needed).or_default().push(name);
            }
        }
        let mut order: Vec<&str> = self.names().filter(|name| waiting.get(name) == Some(&0)).collect();
        let mut at = 0;
        while let Some(name) = order.get(at).copied() {
            at += 1;
            for waiter in needed_by.get(name).into_iter().flatten().copied() {
                let Some(count) = waiting.get_mut(waiter) else { continue };
                *count -= 1;
                if *count == 0 {
                    order.push(waiter);
                }
            }
        }
        match order.len() == self.nodes.len() {
            true => Ok(order),
            false => Err(self.cyclic()),
        }
    }

    /// The error of a cycle: it names one of each group of names that need each other.
    fn cyclic(&self) -> ParameterError {
        let mut named: BTreeSet<&str> = BTreeSet::new();
        let mut told: BTreeSet<&str> = BTreeSet::new();
        // Of each group the first name in their order is told.
        for name in self.positions.keys().map(String::as_str) {
            let reached = self.reached(name);
            if told.contains(name) || !reached.contains(name) {
                continue;
            }
            named.insert(name);
            told.extend(reached.into_iter().filter(|other| self.reached(other).contains(name)));
        }
        let named: Vec<&str> = named.into_iter().collect();
        ParameterError::new(format!(
            "Cyclic dependency found in the following variables: {}. Likely the variable is referencing itself",
            named.join(", ")
        ))
    }

    /// All names that a name needs, directly or by others.
    fn reached<'a>(&'a self, name: &str) -> BTreeSet<&'a str> {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&str> =
            self.find(name).into_iter().flat_map(|node| &node.needs).map(String::as_str).collect();
        while let Some(name) = next.pop() {
            if reached.insert(name) {
                next.extend(self.find(name).into_iter().flat_map(|node| &node.needs).map(String::as_str));
            }
        }
        reached
    }
}
