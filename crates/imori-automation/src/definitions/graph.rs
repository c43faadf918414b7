//! Which tasks lead to which.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::{COMMANDS, Definition, Join, Retry};
use crate::value::Value;

/// The graph of a workflow: the tasks that can be reached from those at its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Graph {
    /// The tasks that start the workflow, by name.
    pub roots: Vec<String>,
    nodes: BTreeMap<String, Node>,
    edges: Vec<Edge>,
}

/// A task or a command of the engine.
#[derive(Debug, Clone, Default, PartialEq)]
struct Node {
    join: Option<Join>,
    retry: Option<Retry>,
    /// Several transitions lead to it, and each makes a run of its own.
    makes_routes: bool,
    next: Vec<usize>,
    prev: Vec<usize>,
}

/// A transition.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Tells transitions between the same tasks apart.
    pub(crate) key: usize,
    pub(crate) when: Option<String>,
    /// The position in `next` of the task before.
    pub(crate) position: usize,
}

impl Edge {
    /// The name of the transition among those of the task before.
    pub fn id(&self) -> String {
        format!("{}__t{}", self.to, self.key)
    }

    /// The name of the transition among those of the task after.
    pub(crate) fn origin(&self) -> String {
        format!("{}__t{}", self.from, self.key)
    }
}

impl Graph {
    /// The graph of a definition.
    pub fn of(definition: &Definition) -> Graph {
        let mut graph = Graph { roots: starts(definition), ..Graph::default() };
        let mut open: Vec<String> = graph.roots.clone();
        let mut seen: BTreeSet<String> = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            let mut node = Node::default();
            if let Some(task) = definition.tasks.get(&name) {
                node.join = task.join;
                node.retry.clone_from(&task.retry);
            }
            for (to, when, position) in targets(definition, &name) {
                if to == "retry" {
                    let when = when.unwrap_or_else(|| "<% completed() %>".to_owned());
                    node.retry = Some(Retry { when: Some(when), count: Value::Int(3), delay: None });
                    continue;
                }
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
                graph.add(&name, to, when, position);
            }
            graph.nodes.insert(name, node);
        }
        graph.link();
        let cyclic: BTreeSet<String> =
            graph.nodes.keys().filter(|name| graph.is_in_cycle(name)).cloned().collect();
        for (name, node) in &mut graph.nodes {
            let is_split = definition.tasks.get(name).is_none_or(|task| task.join.is_none());
            let incoming = incoming(definition, name);
            node.makes_routes = is_split && incoming > 1 && !cyclic.contains(name);
        }
        graph
    }

    fn add(&mut self, from: &str, to: String, when: Option<String>, position: usize) {
        // The transitions from one task stand together.
        let siblings = self.edges.iter().rev().take_while(|edge| edge.from == from);
        let mut between = siblings.filter(|edge| edge.to == to);
        if between.clone().any(|edge| edge.when == when && edge.position == position) {
            return;
        }
        let key = between.by_ref().count();
        self.edges.push(Edge { from: from.to_owned(), to, key, when, position });
    }

    fn link(&mut self) {
        for (at, edge) in self.edges.iter().enumerate() {
            if let Some(node) = self.nodes.get_mut(&edge.from) {
                node.next.push(at);
            }
            if let Some(node) = self.nodes.get_mut(&edge.to) {
                node.prev.push(at);
            }
        }
    }

    /// The transitions from a task, by the name of the task after.
    pub fn next(&self, name: &str) -> impl Iterator<Item = &Edge> {
        let indexes = self.nodes.get(name).map_or(&[][..], |node| node.next.as_slice());
        indexes.iter().filter_map(|at| self.edges.get(*at))
    }

    /// The transitions to a task.
    pub fn prev(&self, name: &str) -> impl Iterator<Item = &Edge> {
        let indexes = self.nodes.get(name).map_or(&[][..], |node| node.prev.as_slice());
        indexes.iter().filter_map(|at| self.edges.get(*at))
    }

    /// How many tasks must lead to a task, if it joins them.
    pub(crate) fn join(&self, name: &str) -> Option<Join> {
        self.nodes.get(name).and_then(|node| node.join)
    }

    /// When a task runs again by itself.
    pub fn retry(&self, name: &str) -> Option<&Retry> {
        self.nodes.get(name).and_then(|node| node.retry.as_ref())
    }

    /// Whether each transition to a task makes a route of its own.
    pub fn makes_routes(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| node.makes_routes)
    }

    fn is_in_cycle(&self, name: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = self.next(name).map(|edge| edge.to.as_str()).collect();
        while let Some(next) = open.pop() {
            if next == name {
                return true;
            }
            if seen.insert(next) {
                open.extend(self.next(next).map(|edge| edge.to.as_str()));
            }
        }
        false
    }
}

/// The tasks that a task leads to, with conditions and positions in its `next`, by name.
pub(crate) fn targets(definition: &Definition, name: &str) -> Vec<(String, Option<String>, usize)> {
    let mut targets = Vec::new();
    let next = definition.tasks.get(name).filter(|_| !COMMANDS.contains(&name)).map(|task| &task.next);
    for (position, next) in next.into_iter().flatten().enumerate() {
        for task in &next.tasks {
            targets.push((task.clone(), next.when.clone(), position));
        }
    }
    targets.sort_by(|a, b| a.0.cmp(&b.0));
    targets
}

/// The tasks that no task leads to, by name.
pub(crate) fn starts(definition: &Definition) -> Vec<String> {
    let reached: BTreeSet<&String> =
        definition.tasks.values().flat_map(|task| &task.next).flat_map(|next| &next.tasks).collect();
    definition.tasks.keys().filter(|name| !reached.contains(name)).cloned().collect()
}

/// The number of transitions to a task.
fn incoming(definition: &Definition, name: &str) -> usize {
    let next = definition.tasks.values().flat_map(|task| &task.next);
    next.flat_map(|next| &next.tasks).filter(|task| *task == name).count()
}
