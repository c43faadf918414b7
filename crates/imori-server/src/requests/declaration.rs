//! A queue, an exchange or a binding that an operator declares, from either API or from a document.

use imori_core::arguments::{check_name, read_arguments, read_exchange};
use imori_core::broker::{self, Actor};
use imori_core::confirm::Confirm;
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Settings, Syntax};
use imori_core::world::World;
use serde_json::{Map, Value};

use super::arguments::{binding_arguments, entries};
use super::operation_error::OperationError;

/// Something that an operator declares.
#[derive(Debug)]
pub(crate) enum Declaration {
    /// A queue.
    Queue { name: String, is_durable: bool, is_auto_delete: bool, arguments: Map<String, Value> },
    /// An exchange.
    Exchange(ExchangeDeclaration),
    /// A binding.
    Binding(BindingDeclaration),
}

/// An exchange that an operator declares.
#[derive(Debug)]
pub(crate) struct ExchangeDeclaration {
    pub(crate) name: String,
    /// The name of its kind.
    pub(crate) kind: String,
    pub(crate) is_durable: bool,
    pub(crate) is_auto_delete: bool,
    pub(crate) is_internal: bool,
    pub(crate) arguments: Map<String, Value>,
}

/// A binding that an operator declares, or takes out.
#[derive(Debug)]
pub(crate) struct BindingDeclaration {
    pub(crate) ends: Ends,
    pub(crate) routing_key: String,
    pub(crate) arguments: Map<String, Value>,
}

/// The two ends of a binding.
#[derive(Debug, Clone)]
pub(crate) struct Ends {
    /// The exchange.
    pub(crate) source: String,
    pub(crate) destination: String,
    /// The destination is a queue, not an exchange.
    pub(crate) is_to_queue: bool,
}

impl Declaration {
    /// Declares it in the name of an operator. Returns the confirm after which no crash undoes that.
    ///
    /// # Errors
    /// An argument that it cannot have, or the core's refusal.
    pub(crate) fn declare<W: World>(&self, world: &W, actor: &Actor<'_>) -> Result<Confirm, OperationError> {
        match self {
            Declaration::Queue { name, is_durable, is_auto_delete, arguments } => {
                check_name(name)?;
                let (is_durable, is_auto_delete) = (*is_durable, *is_auto_delete);
                let declared = QueueSettings { is_durable, is_auto_delete, ..QueueSettings::default() };
                let settings = read_arguments(declared, entries(arguments))?;
                Ok(broker::declare_queue(world, actor, name.as_bytes(), &settings, true)?.confirm)
            }
            Declaration::Exchange(exchange) => exchange.declare(world, actor),
            Declaration::Binding(binding) => binding.set(world, actor, true),
        }
    }
}

impl ExchangeDeclaration {
    fn declare<W: World>(&self, world: &W, actor: &Actor<'_>) -> Result<Confirm, OperationError> {
        let declared = Settings {
            is_durable: self.is_durable,
            is_auto_delete: self.is_auto_delete,
            is_internal: self.is_internal,
            ..Settings::default()
        };
        let (kind, settings) = read_exchange(self.kind.as_bytes(), &declared, entries(&self.arguments))?;
        Ok(broker::declare_exchange(world, actor, self.name.as_bytes(), kind, settings)?)
    }
}

impl BindingDeclaration {
    /// Makes the binding, or with `is_bound` false takes it out. Returns the confirm after which no crash undoes that.
    ///
    /// # Errors
    /// The core's refusal.
    pub(crate) fn set<W: World>(
        &self,
        world: &W,
        actor: &Actor<'_>,
        is_bound: bool,
    ) -> Result<Confirm, OperationError> {
        let key = BindingKey::new(Syntax::Amqp, self.routing_key.as_bytes());
        let arguments = binding_arguments(&self.arguments);
        let (from, to) = (self.ends.source.as_bytes(), self.ends.destination.as_bytes());
        let set = if self.ends.is_to_queue {
            let queue = broker::find_queue(world, actor, to)?;
            match is_bound {
                true => broker::bind_queue(world, actor, from, &key, &arguments, queue),
                false => broker::unbind_queue(world, actor, from, &key, &arguments, queue),
            }
        } else {
            match is_bound {
                true => broker::bind_exchange(world, actor, from, &key, &arguments, to),
                false => broker::unbind_exchange(world, actor, from, &key, &arguments, to),
            }
        };
        Ok(set?)
    }
}
