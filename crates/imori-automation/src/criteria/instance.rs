//! The input of an evaluation of criteria.

use std::cell::OnceCell;

use crate::templates::Context;
use crate::times::Timestamp;
use crate::value::Value;

/// A trigger instance: a payload and when it is evaluated. It is made once for all rules, so that templates share what
/// they read.
#[derive(Debug)]
pub struct TriggerInstance<'a> {
    name: &'static str,
    payload: &'a Value,
    now: Timestamp,
    names: Option<&'a Context>,
    context: OnceCell<Context>,
}

impl<'a> TriggerInstance<'a> {
    /// The name of the payload in paths and templates.
    pub const PAYLOAD: &'static str = "trigger";

    /// The name of an item in the criteria of a search.
    pub const ITEM: &'static str = "item";

    /// An instance whose templates read the payload alone.
    pub fn new(payload: &'a Value, now: Timestamp) -> TriggerInstance<'a> {
        let name = TriggerInstance::PAYLOAD;
        TriggerInstance { name, payload, now, names: None, context: OnceCell::new() }
    }

    /// Adds names that templates can read, such as the datastore.
    #[must_use]
    pub fn with_names(self, names: &'a Context) -> TriggerInstance<'a> {
        TriggerInstance { names: Some(names), context: OnceCell::new(), ..self }
    }

    /// The payload.
    pub fn payload(&self) -> &'a Value {
        self.payload
    }

    /// When it is evaluated.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// What templates read: the payload as `trigger`, and the further names.
    pub fn context(&self) -> &Context {
        self.context.get_or_init(|| self.names.cloned().unwrap_or_default().with(self.name, self.payload))
    }

    /// The same for an item of a search, which takes the place of the payload.
    pub(super) fn item<'i>(&self, item: &'i Value) -> TriggerInstance<'i>
    where
        'a: 'i,
    {
        TriggerInstance {
            name: TriggerInstance::ITEM,
            payload: item,
            now: self.now,
            names: self.names,
            context: OnceCell::new(),
        }
    }
}
