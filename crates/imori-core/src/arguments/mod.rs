//! The arguments of declarations. For a queue's there is one table that every protocol, both admin APIs, policies and the records of
//! definitions read.
//!
//! An argument is a name and a [`Value`](crate::message::Value). This module decides which names exist, which values
//! they take and what they set; a protocol words the refusal. Names that the table lacks are ignored, as in RabbitMQ.

mod read;
mod exchange;
mod names;
mod table;
mod argument;
mod error;
mod takes;

pub use argument::{Argument, PolicyEffect, PolicyKey};
pub use error::{ArgumentError, Fault};
pub use exchange::{
    ALTERNATE_EXCHANGE, DELAYED, DELAYED_TYPE, ExchangeError, arguments_of_exchange, declared_kind,
    read_exchange,
};
pub use names::{NameError, check_name};
pub use read::{Difference, arguments_of, check_kind, difference, read_arguments};
pub(crate) use read::{read_recorded, recorded};
pub use table::{QUEUE_ARGUMENTS, find_argument, find_policy_key};
pub use takes::{Taken, Takes, ValueFault, shown};

/// The longest time that an argument takes, in milliseconds: ten years, as in RabbitMQ.
pub const MILLISECONDS_MAX: i64 = 315_360_000_000;

#[cfg(test)]
mod tests;
