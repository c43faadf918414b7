//! Values of a template that Python has types of their own for.

use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};

/// What iterates a dict: its keys, values or items.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) kind: ViewKind,
    pub(crate) items: Vec<Value>,
}

/// Which method of a dict gave the view.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ViewKind {
    Keys,
    Values,
    Items,
}

impl ViewKind {
    /// The name of its type.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ViewKind::Keys => "dict_keys",
            ViewKind::Values => "dict_values",
            ViewKind::Items => "dict_items",
        }
    }

    /// What its items are written between.
    pub(crate) fn brackets(self) -> (&'static str, &'static str) {
        match self {
            ViewKind::Keys => ("dict_keys([", "])"),
            ViewKind::Values => ("dict_values([", "])"),
            ViewKind::Items => ("dict_items([", "])"),
        }
    }
}

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

/// What `range` gives.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) start: i128,
    pub(crate) stop: i128,
    pub(crate) step: i128,
    pub(crate) len: usize,
}

impl Range {
    /// What `repr` gives.
    pub(crate) fn as_text(&self) -> String {
        match self.step {
            1 => format!("range({}, {})", self.start, self.stop),
            step => format!("range({}, {}, {step})", self.start, self.stop),
        }
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let at = key.as_usize().filter(|at| *at < self.len)?;
        Some(Value::from(i64::try_from(self.start + self.step * at as i128).ok()?))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.len)
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len)
    }
}

/// A group of `groupby`: a tuple whose parts also have names.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) grouper: Value,
    pub(crate) list: Vec<Value>,
}

impl Object for Group {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match (key.as_str(), key.as_usize()) {
            (Some("grouper"), _) | (_, Some(0)) => Some(self.grouper.clone()),
            (Some("list"), _) | (_, Some(1)) => Some(Value::from(self.list.clone())),
            _ => None,
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(2)
    }
}
