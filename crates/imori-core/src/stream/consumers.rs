//! The consumers of a stream by name. One that is touched has a turn, in which it looks for what to do.

use std::collections::BTreeMap;

use super::consumer::StreamConsumer;
use crate::name::Name;

/// The consumers of a stream.
#[derive(Debug, Default)]
pub(crate) struct Consumers(BTreeMap<Name, StreamConsumer>);

impl Consumers {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&StreamConsumer> {
        self.0.get(name)
    }

    /// A consumer to be changed, after which it has a turn.
    pub(crate) fn touch(&mut self, name: &[u8]) -> Option<&mut StreamConsumer> {
        let consumer = self.0.get_mut(name)?;
        consumer.rest = None;
        Some(consumer)
    }

    pub(crate) fn insert(&mut self, consumer: StreamConsumer) {
        self.0.insert(consumer.name.clone(), consumer);
    }

    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<StreamConsumer> {
        self.0.remove(name)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &StreamConsumer> {
        self.0.values()
    }

    /// All of them, to be changed in ways that give them nothing to do.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut StreamConsumer> {
        self.0.values_mut()
    }
}
