//! A queue, an exchange or a binding that an operator declares, through either admin API or in a document.

use imori_core::arguments::{check_name, read_arguments, read_exchange};
use imori_core::broker::DeleteOptions;
use imori_core::internal::{Bind, BindTarget, DeclareQueue, Verb};
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Settings, Syntax};
use serde_json::{Map, Value};

use super::arguments::{binding_arguments, entries};
use super::operation_error::OperationError;

/// An object that an operator declares.
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
    /// The name of the exchange kind.
    pub(crate) kind: String,
    pub(crate) is_durable: bool,
    pub(crate) is_auto_delete: bool,
    pub(crate) is_internal: bool,
    pub(crate) arguments: Map<String, Value>,
}

/// A binding that an operator declares or removes.
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
    /// Whether the destination is a queue rather than an exchange.
    pub(crate) is_to_queue: bool,
}

impl Declaration {
    /// The command that declares it.
    ///
    /// # Errors
    /// A name or an argument is invalid.
    pub(crate) fn verb(&self) -> Result<Verb, OperationError> {
        match self {
            Declaration::Queue { name, is_durable, is_auto_delete, arguments } => {
                check_name(name)?;
                let (is_durable, is_auto_delete) = (*is_durable, *is_auto_delete);
                let declared = QueueSettings { is_durable, is_auto_delete, ..QueueSettings::default() };
                let (settings, name) =
                    (read_arguments(declared, entries(arguments))?, Name::from(name.as_str()));
                let declare = DeclareQueue { name, settings, is_exclusive: false };
                Ok(Verb::DeclareQueue(Box::new(declare)))
            }
            Declaration::Exchange(exchange) => exchange.verb(),
            Declaration::Binding(binding) => Ok(Verb::Bind(Box::new(binding.bind()))),
        }
    }

    /// The command that takes the declaration of a new object back.
    pub(crate) fn opposite(&self) -> Verb {
        match self {
            Declaration::Queue { name, .. } => {
                Verb::DeleteQueue { queue: Name::from(name.as_str()), options: DeleteOptions::default() }
            }
            Declaration::Exchange(ExchangeDeclaration { name, .. }) => {
                Verb::DeleteExchange { exchange: Name::from(name.as_str()), if_unused: false }
            }
            Declaration::Binding(binding) => Verb::Unbind(Box::new(binding.bind())),
        }
    }
}

impl ExchangeDeclaration {
    fn verb(&self) -> Result<Verb, OperationError> {
        let declared = Settings {
            is_durable: self.is_durable,
            is_auto_delete: self.is_auto_delete,
            is_internal: self.is_internal,
            ..Settings::default()
        };
        let (kind, settings) = read_exchange(self.kind.as_bytes(), &declared, entries(&self.arguments))?;
        Ok(Verb::DeclareExchange { exchange: Name::from(self.name.as_str()), kind, settings })
    }
}

impl BindingDeclaration {
    /// Converts the declaration to the core's binding.
    pub(crate) fn bind(&self) -> Bind {
        let Ends { source, destination, is_to_queue } = &self.ends;
        let to = Name::from(destination.as_str());
        Bind {
            source: Name::from(source.as_str()),
            key: BindingKey::new(Syntax::Amqp, self.routing_key.as_bytes()),
            arguments: binding_arguments(&self.arguments),
            target: if *is_to_queue { BindTarget::Queue(to) } else { BindTarget::Exchange(to) },
        }
    }
}
