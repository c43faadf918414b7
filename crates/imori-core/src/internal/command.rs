//! The commands of an internal client, and their answers.

use std::fmt;

use super::moves::{MoveBatch, MoveTarget};
use super::outgoing::OutgoingMessage;
use crate::broker::{DeleteOptions, QueueInspection, TakeReport};
use crate::confirm::Level;
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::message::Address;
use crate::name::Name;
use crate::queue::{Peek, QueueSettings};
use crate::route::{Arguments, BindingKey, ExchangeKind, Settings};
use crate::selector::Selector;

/// A command, with the number that its answer repeats. A client never uses a number twice.
#[derive(Debug)]
pub struct Command {
    /// The number. It also names the subscription, consumer or call that the command begins.
    pub number: u64,
    /// What to do.
    pub verb: Verb,
}

/// What an internal client can ask for.
#[derive(Debug)]
pub enum Verb {
    /// Publishes a message; the answer follows once it is as safe as its queues promise.
    Publish {
        /// The address.
        to: Address,
        /// The message.
        message: OutgoingMessage,
    },
    /// Publishes a request. Its answer is the first reply, or the refusal.
    Call {
        /// The address of the responder.
        to: Address,
        /// The request.
        message: OutgoingMessage,
    },
    /// Stops waiting for the reply to the call with this number. Has no answer.
    Forget {
        /// The number of the call.
        call: u64,
    },
    /// Begins a live subscription, which has the number of the command.
    Subscribe(Box<Subscribe>),
    /// Begins a consumer, which has the number of the command.
    Consume(Box<Consume>),
    /// Lets a consumer that does not settle have further deliveries. Has no answer.
    Grant {
        /// The number of the consumer.
        subscription: u64,
        /// The number of deliveries that its receiver has taken so far.
        taken: u32,
        /// The number of deliveries that it may have beyond those.
        credit: u32,
    },
    /// Ends a subscription or a consumer.
    Cancel {
        /// The number of the subscription.
        subscription: u64,
    },
    /// Takes the first message of a queue. The answer is the delivery, or [`Done::Empty`].
    Get {
        /// The queue.
        queue: Name,
        /// Whether the client settles the message; otherwise it is accepted at once.
        settles: bool,
    },
    /// Settles deliveries, all with one outcome.
    Settle {
        /// The numbers of the deliveries.
        numbers: Vec<u64>,
        /// The outcome.
        outcome: Outcome,
    },
    /// Declares a queue.
    DeclareQueue(Box<DeclareQueue>),
    /// Deletes a queue with its messages.
    DeleteQueue {
        /// The queue.
        queue: Name,
        /// The conditions.
        options: DeleteOptions,
    },
    /// Drops the ready messages of a queue.
    Purge {
        /// The queue.
        queue: Name,
    },
    /// Looks a queue up.
    LookUpQueue {
        /// The queue.
        queue: Name,
    },
    /// Declares an exchange.
    DeclareExchange {
        /// The name.
        exchange: Name,
        /// How it routes.
        kind: ExchangeKind,
        /// Its settings.
        settings: Settings,
    },
    /// Deletes an exchange.
    DeleteExchange {
        /// The exchange.
        exchange: Name,
        /// Delete it only if nothing is bound to it.
        if_unused: bool,
    },
    /// Looks an exchange up.
    LookUpExchange {
        /// The exchange.
        exchange: Name,
    },
    /// Adds a binding.
    Bind(Box<Bind>),
    /// Removes a binding; a missing one is no error.
    Unbind(Box<Bind>),
    /// Looks at ready messages of a queue and changes nothing.
    Peek {
        /// The queue.
        queue: Name,
        /// Messages to pass over.
        skip: usize,
        /// Messages to look at.
        count: usize,
    },
    /// Takes ready messages of a queue and settles them at once.
    Take {
        /// The queue.
        queue: Name,
        /// The most messages.
        count: usize,
        /// The most bytes of their bodies, except for the first.
        bytes_max: usize,
        /// The outcome.
        outcome: Outcome,
    },
    /// Moves ready messages that are in memory elsewhere, up to the first that cannot be moved.
    Move {
        /// The queue that they leave.
        from: Name,
        /// Where they go.
        target: MoveTarget,
        /// Messages to pass over.
        skip: usize,
        /// The most messages.
        count: usize,
    },
    /// Runs commands that change definitions, in order, up to the first that is refused.
    Define(Vec<Verb>),
    /// Asks whether the client has a right, and does nothing.
    Check(Check),
    /// Waits until every record so far is durable.
    Sync,
}

/// A live subscription to be.
#[derive(Debug)]
pub struct Subscribe {
    /// The exchange.
    pub exchange: Name,
    /// The pattern.
    pub key: BindingKey,
    /// The group, of which one member receives each message.
    pub group: Option<Name>,
    /// A condition on messages.
    pub selector: Option<Selector>,
}

/// A consumer to be.
#[derive(Debug)]
pub struct Consume {
    /// The queue.
    pub queue: Name,
    /// The most deliveries that are unsettled or, for a consumer that does not settle, not taken by its receiver.
    pub credit: u32,
    /// Whether the client settles deliveries; otherwise they are accepted at once.
    pub settles: bool,
    /// The priority; consumers with a higher one are served first.
    pub priority: i32,
    /// Whether the queue must have no other consumer.
    pub is_exclusive: bool,
    /// A condition on messages.
    pub selector: Option<Selector>,
    /// Whether the consumer sees all messages and takes none.
    pub is_browser: bool,
}

/// A queue to be declared.
#[derive(Debug)]
pub struct DeclareQueue {
    /// The name; empty to let the broker choose one.
    pub name: Name,
    /// The settings, except the connection that it is exclusive to.
    pub settings: QueueSettings,
    /// Whether only this client may use the queue, which is then deleted with it.
    pub is_exclusive: bool,
}

/// A binding.
#[derive(Debug)]
pub struct Bind {
    /// The exchange that routes.
    pub source: Name,
    /// The pattern or routing key.
    pub key: BindingKey,
    /// The arguments.
    pub arguments: Arguments,
    /// The target.
    pub target: BindTarget,
}

/// The target of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindTarget {
    /// A queue.
    Queue(Name),
    /// An exchange.
    Exchange(Name),
}

/// A right to be checked.
#[derive(Debug, Clone)]
pub enum Check {
    /// To read this queue, whether or not it exists.
    Consume(Name),
    /// To publish to this address.
    Publish(Address),
}

/// The answer to a command that was not refused.
#[derive(Debug)]
pub enum Done {
    /// It is done.
    Done,
    /// The message was published.
    Published {
        /// The number of queues, subscriptions and inboxes that received it; 0 if it is unroutable.
        receivers: usize,
        /// The level of safety that it has reached.
        level: Level,
    },
    /// The queue to get from has no ready message.
    Empty,
    /// Deliveries were settled.
    Settled(usize),
    /// The queue was declared, or existed with the same settings.
    Declared {
        /// Its name.
        name: Name,
        /// Whether it is new.
        is_new: bool,
        /// Its ready messages.
        ready: usize,
        /// Its consumers.
        consumers: usize,
    },
    /// Messages were dropped.
    Dropped(usize),
    /// The queue that was looked up.
    Queue(QueueInspection),
    /// The exchange that was looked up.
    Exchange(ExchangeKind, Box<Settings>),
    /// Ready messages; those on disk must still be read from the queue with this id.
    Peeked(QueueId, Peek),
    /// Messages that were taken.
    Taken(TakeReport),
    /// Messages that were moved.
    Moved(Box<MoveBatch>),
    /// Commands that change definitions were run.
    Defined {
        /// The number of commands that were not refused.
        done: usize,
        /// The refusal of the command behind these.
        refused: Option<Box<CommandError>>,
    },
    /// Whether the client has the right.
    Allowed(bool),
}

/// The reason why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// The broker's refusal.
    Broker(BrokerError),
    /// Nobody receives the request of a call.
    NoResponder,
    /// The client has as many calls without a reply as it may have.
    TooManyCalls,
    /// The message names another user as its sender.
    OtherUser,
}

impl From<BrokerError> for CommandError {
    fn from(error: BrokerError) -> CommandError {
        CommandError::Broker(error)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::Broker(error) => write!(f, "{error}"),
            CommandError::NoResponder => {
                f.write_str("nobody takes the request; start its responder or use another address")
            }
            CommandError::TooManyCalls => f.write_str(
                "as many calls wait for a reply as may; wait for some of them, or use another client",
            ),
            CommandError::OtherUser => {
                f.write_str("the message names another user as its sender; leave the user id out")
            }
        }
    }
}

impl std::error::Error for CommandError {}

impl Verb {
    /// Whether the verb publishes, and waits where publishers wait.
    pub(super) fn publishes(&self) -> bool {
        matches!(self, Verb::Publish { .. } | Verb::Call { .. })
    }

    /// Bytes of the body, for which a parked command is charged.
    pub(super) fn body_bytes(&self) -> usize {
        match self {
            Verb::Publish { message, .. } | Verb::Call { message, .. } => message.body().len(),
            _ => 0,
        }
    }
}
