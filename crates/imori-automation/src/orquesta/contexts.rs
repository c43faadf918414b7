//! The variables of a workflow: what it began with, and what transitions published since. Each task refers to one
//! place in this tree, so that a long workflow keeps each published value once.

use std::collections::BTreeSet;

use crate::value::{Map, Value};

/// A place in the tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Context {
    /// What the workflow began with.
    Root(Map),
    /// What a transition published, after the place it came from.
    Change { parent: usize, published: Map },
    /// Two places whose tasks lead to the same one: the right one counts more.
    Join { left: usize, right: usize },
}

/// All variables at a place.
pub(super) fn variables(contexts: &[Context], place: usize) -> Map {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn map(json: &str) -> Map {
        Value::from_json(json.as_bytes()).unwrap().as_map().unwrap().clone()
    }

    fn change(parent: usize, json: &str) -> Context {
        Context::Change { parent, published: map(json) }
    }

    #[test]
    fn later_places_count_more() {
        let contexts = [
            Context::Root(map(r#"{"x": 0, "o": {"a": 1}}"#)),
            change(0, r#"{"x": 1}"#),
            change(1, r#"{"y": 2, "o": {"b": 2}}"#),
            change(1, r#"{"y": 3, "x": 3}"#),
            Context::Join { left: 2, right: 3 },
            Context::Join { left: 3, right: 2 },
            change(4, r#"{"o": 5}"#),
        ];
        let rows = [
            (0, r#"{"x":0,"o":{"a":1}}"#),
            (2, r#"{"x":1,"o":{"a":1,"b":2},"y":2}"#),
            (4, r#"{"x":3,"o":{"a":1,"b":2},"y":3}"#),
            // A value that both branches have from before the split counts again with the second one.
            (5, r#"{"x":1,"o":{"a":1,"b":2},"y":2}"#),
            (6, r#"{"x":3,"o":5,"y":3}"#),
            (99, r#"{"x":0,"o":{"a":1}}"#),
        ];
        for (place, expected) in rows {
            assert_eq!(Value::Map(variables(&contexts, place)).to_json(), expected, "{place}");
        }
    }

    #[test]
    fn joins_of_joins_take_no_longer_than_their_number() {
        let mut contexts = vec![Context::Root(Map::new())];
        for at in 0..1_000 {
            contexts.push(Context::Join { left: at, right: at });
        }
        assert!(variables(&contexts, 1_000).is_empty());
    }
}
