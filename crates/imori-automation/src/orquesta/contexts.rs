//! The variables of a workflow: what it began with, and what transitions published since. Each task refers to one
//! place in this tree, so that a long workflow keeps each published value once.

use std::collections::BTreeSet;

use crate::value::{Map, Value};

/// A place in the tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Context {
    /// What the workflow began with.
    Root(Map),
    /// What a transition published, after the place it came from.
    Change {
        /// The place it came from.
        parent: usize,
        /// The variables that it sets.
        published: Map,
    },
    /// Two places whose tasks lead to the same one.
    Join {
        /// The place that counts less.
        left: usize,
        /// The place that counts more.
        right: usize,
    },
}

/// All variables at a place.
pub fn variables(contexts: &[Context], place: usize) -> Map {
    merged(contexts, &[place])
}

/// All variables at several places, of which later ones count more.
pub(super) fn merged(contexts: &[Context], places: &[usize]) -> Map {
    let mut seen = BTreeSet::new();
    let mut latest_first = Vec::new();
    let mut open: Vec<usize> = places.to_vec();
    while let Some(place) = open.pop() {
        // A place that was seen has been followed to the root, and its later occurrence is the one that counts.
        if !seen.insert(place) {
            continue;
        }
        match contexts.get(place) {
            Some(Context::Change { parent, published }) => {
                latest_first.push(published);
                open.push(*parent);
            }
            Some(Context::Join { left, right }) => {
                open.push(*left);
                open.push(*right);
            }
            Some(Context::Root(_)) | None => {}
        }
    }
    let mut all = match contexts.first() {
        Some(Context::Root(map)) if !places.is_empty() => map.clone(),
        _ => Map::new(),
    };
    for published in latest_first.into_iter().rev() {
        merge(&mut all, published);
    }
    all
}

/// Adds the right object to the left one; objects under the same key are merged as well.
fn merge(left: &mut Map, right: &Map) {
    for (key, value) in right.iter() {
        match (left.get_mut(key), value) {
            (Some(Value::Map(inner)), Value::Map(value)) => merge(inner, value),
            _ => {
                left.insert(key, value.clone());
            }
        }
    }
}
