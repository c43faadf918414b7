//! The workflows that are led, in memory: each has a lock, so that its transitions follow one another.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use imori_automation::value::Map;
use imori_automation::workflows::Conductor;

use super::execution::Execution;
use crate::limits::WORKFLOWS_NESTED_MAX;

/// The workflows that are led.
#[derive(Default)]
pub(crate) struct Workflows {
    slots: Mutex<BTreeMap<String, Slot>>,
    /// By the execution of the outermost workflow.
    trees: Mutex<BTreeMap<String, Tree>>,
}

/// An outermost workflow and those below it.
#[derive(Default)]
struct Tree {
    open: BTreeSet<String>,
    /// There were too many at a time, and no more are started.
    is_runaway: bool,
}

/// The place of a workflow; empty until it is read from the store.
pub(crate) type Slot = Arc<tokio::sync::Mutex<Option<Active>>>;

/// A workflow that is led.
#[derive(Clone)]
pub(crate) struct Active {
    pub(crate) execution: Execution,
    pub(crate) conductor: Arc<dyn Conductor>,
    /// The conductor's state; `None` until the workflow has started.
    pub(crate) state: Option<Map>,
    /// The id of the stored definition.
    pub(crate) definition: String,
    /// The number of workflows above this one.
    pub(crate) depth: i64,
    /// The execution of the outermost workflow above this one, or its own.
    pub(crate) root: String,
}

impl Workflows {
    /// The place of this execution's workflow.
    pub(crate) fn slot(&self, id: &str) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(id.to_owned()).or_default())
    }

    /// Forgets a workflow that has ended, for a caller that holds its place. A place that others wait for stays: one of
    /// them may be about to start the workflow.
    pub(crate) fn forget(&self, id: &str) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        // The map and the caller.
        if slots.get(id).is_some_and(|slot| Arc::strong_count(slot) <= 2) {
            slots.remove(id);
        }
    }

    /// Adds a workflow to those below an outermost one. Returns false if there are too many, or were before: workflows
    /// that start others without end are stopped as a whole.
    pub(crate) fn join(&self, root: &str, id: &str) -> bool {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let tree = trees.entry(root.to_owned()).or_default();
        tree.is_runaway |= tree.open.len() >= WORKFLOWS_NESTED_MAX;
        if !tree.is_runaway {
            tree.open.insert(id.to_owned());
        }
        !tree.is_runaway
    }

    /// Removes a workflow that has ended.
    pub(crate) fn leave(&self, root: &str, id: &str) {
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        if root == id {
            trees.remove(root);
        } else if let Some(tree) = trees.get_mut(root) {
            tree.open.remove(id);
        }
    }
}

impl fmt::Debug for Active {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Active").field("execution", &self.execution).finish_non_exhaustive()
    }
}
