//! The refusal of an argument, which each protocol puts into its own words.

use std::fmt;

use super::takes::{Takes, ValueFault};
use crate::policy::QueueKind;
use crate::route::ArgumentsError;

/// An argument that a queue cannot be declared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    /// The name of the argument.
    pub argument: &'static str,
    /// The fault of its value, or of its presence.
    pub fault: Fault,
}

/// The fault of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// The argument does not take this value.
    Value {
        /// The value and what is wrong with it.
        fault: ValueFault,
        /// The values that the argument takes.
        takes: Takes,
    },
    /// Queues of this kind do not have the argument.
    NotOfKind(QueueKind),
    /// A routing key for dead letters comes without their exchange.
    NoExchange,
    /// RabbitMQ's plugin marks equal messages by a header; here a queue has `x-dedup-window`.
    Deduplication,
    /// A queue of this kind does not have this property: `auto-delete`, `exclusive-owner` or `non-durable`.
    Property(QueueKind, &'static str),
    /// The arguments without effect take too much space.
    TooLarge(ArgumentsError),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.argument;
        match &self.fault {
            Fault::Value { fault, takes } if name == "x-queue-type" => {
                write!(f, "invalid arg '{name}': unsupported queue type '{fault}'; write {takes}")
            }
            Fault::Value { fault, takes } => {
                write!(f, "invalid arg '{name}': it is `{fault}`; write {takes}")
            }
            Fault::NotOfKind(kind) => {
                write!(f, "invalid arg '{name}': {} does not have it; leave it out", kind.in_words())
            }
            Fault::NoExchange => write!(
                f,
                "invalid arg '{name}': it needs `x-dead-letter-exchange`; add that, empty for the default exchange"
            ),
            Fault::Deduplication => write!(
                f,
                "invalid arg '{name}': use `x-dedup-window`, which tells equal messages by their message id"
            ),
            Fault::Property(kind, property) => {
                let why = match *property {
                    "non-durable" => "is durable; declare it so",
                    "auto-delete" => "is not deleted with its last consumer; leave `auto-delete` out",
                    _ => "is not exclusive to a connection; leave `exclusive` out",
                };
                write!(f, "{} {why}", kind.in_words())
            }
            Fault::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for ArgumentError {}
