//! The commands of an internal client, and their answers.

use std::fmt;

use super::moves::{MoveBatch, MoveTarget};
use super::outgoing::OutgoingMessage;
use crate::broker::{DeleteOptions, QueueInspection, TakeReport};
use crate::confirm::Level;
use crate::delivery::Outcome;
use crate::error::BrokerError;
use crate::id::QueueId;
use crate::index::{Filter, StreamPurge};
use crate::message::Address;
use crate::name::Name;
use crate::queue::{Peek, QueueSettings};
use crate::record::ConsumerState;
use crate::route::{Arguments, BindingKey, ExchangeKind, Settings};
use crate::selector::Selector;
use crate::stream::{ArchivedMessage, ConsumerSettings};

/// A command and its number, which the answer repeats. A client never reuses a number.
#[derive(Debug)]
pub struct Command {
    /// The number. It also names the subscription, consumer or call that the command starts.
    pub number: u64,
    /// The command itself.
    pub verb: Verb,
}

/// The commands of an internal client.
#[derive(Debug)]
pub enum Verb {
    /// Publishes a message; the answer is its confirm.
    Publish {
        /// The exchange and the subject to publish to.
        to: Address,
        /// What is published.
        message: OutgoingMessage,
    },
    /// Publishes a request. The answer is the first reply, or a refusal.
    Call {
        /// The address of the responder.
        to: Address,
        /// The request.
        message: OutgoingMessage,
    },
    /// Stops waiting for the reply to the call with this number. Has no answer.
    Forget {
        /// The number of the [`Verb::Call`] command.
        call: u64,
    },
    /// Starts a live subscription, named by the command's number.
    Subscribe(Box<Subscribe>),
    /// Starts a consumer, named by the command's number.
    Consume(Box<Consume>),
    /// Grants further deliveries to a consumer that does not settle. Has no answer.
    Grant {
        /// The number of the consumer.
        subscription: u64,
        /// Deliveries that the consumer's receiver has taken so far.
        taken: u32,
        /// Deliveries allowed beyond the taken ones.
        credit: u32,
    },
    /// Ends a subscription or a consumer.
    Cancel {
        /// The number of the command that started it.
        subscription: u64,
    },
    /// Takes the first message of a queue. The answer is the delivery, or [`Done::Empty`].
    Get {
        /// The queue to take from.
        queue: Name,
        /// Whether the client settles the message; otherwise it is accepted at once.
        settles: bool,
    },
    /// Settles deliveries, all with one outcome.
    Settle {
        /// The numbers of the deliveries.
        numbers: Vec<u64>,
        /// What becomes of the messages.
        outcome: Outcome,
    },
    /// Creates a queue, or checks that it exists with the same settings.
    DeclareQueue(Box<DeclareQueue>),
    /// Deletes a queue with its messages.
    DeleteQueue {
        /// The queue to delete.
        queue: Name,
        /// The conditions under which the queue is deleted.
        options: DeleteOptions,
    },
    /// Drops the ready messages of a queue.
    Purge {
        /// The queue to empty.
        queue: Name,
    },
    /// Asks how many messages and consumers a queue has. The answer is [`Done::Queue`].
    LookUpQueue {
        /// The queue asked about.
        queue: Name,
    },
    /// Creates an exchange, or checks that it exists with the same settings.
    DeclareExchange {
        /// Its name, which must not be empty.
        exchange: Name,
        /// The routing algorithm.
        kind: ExchangeKind,
        /// Whether it is durable, deletes itself or is internal, and its alternate exchange.
        settings: Settings,
    },
    /// Deletes an exchange with its bindings.
    DeleteExchange {
        /// The exchange to delete.
        exchange: Name,
        /// Delete it only if nothing is bound to it.
        if_unused: bool,
    },
    /// Asks for the kind and settings of an exchange. The answer is [`Done::Exchange`].
    LookUpExchange {
        /// The exchange asked about.
        exchange: Name,
    },
    /// Adds a binding.
    Bind(Box<Bind>),
    /// Removes a binding; a missing one is no error.
    Unbind(Box<Bind>),
    /// Reads ready messages of a queue without changing anything.
    Peek {
        /// The queue to look into.
        queue: Name,
        /// Messages to skip.
        skip: usize,
        /// The maximum number of messages.
        count: usize,
    },
    /// Takes ready messages of a queue and settles them at once.
    Take {
        /// The queue to take from.
        queue: Name,
        /// The maximum number of messages.
        count: usize,
        /// The maximum size of their bodies together; the first message may exceed it.
        bytes_max: usize,
        /// What becomes of the messages once they are taken.
        outcome: Outcome,
    },
    /// Moves ready messages that are in memory, up to the first that cannot be moved.
    Move {
        /// The queue to move from.
        from: Name,
        /// The address to move to.
        target: MoveTarget,
        /// Messages to skip.
        skip: usize,
        /// The maximum number of messages.
        count: usize,
    },
    /// Declares or deletes a stream, reads it or removes its messages.
    Stream {
        /// The name of the stream; for a declaration or a restore it may be new.
        stream: Name,
        /// The command.
        verb: StreamVerb,
    },
    /// Runs commands that change definitions, in order, up to the first refusal.
    Define(Vec<Verb>),
    /// Checks whether the client has a right.
    Check(Check),
    /// Waits until every record so far is durable.
    Sync,
}

/// The commands on a stream.
#[derive(Debug)]
pub enum StreamVerb {
    /// Declares the stream; one that exists must have the same settings.
    Declare {
        /// Settings of the queue whose kind is a stream, with those of streams among them.
        settings: Box<QueueSettings>,
        /// The subjects of `amq.topic` whose messages it stores.
        subjects: Vec<Name>,
    },
    /// Makes a consumer, or gives it these settings.
    PutConsumer {
        /// The name of the consumer within the stream.
        consumer: Name,
        /// All settings; those of an existing consumer are replaced.
        settings: Box<ConsumerSettings>,
    },
    /// Deletes a consumer; a missing one is no error.
    DeleteConsumer {
        /// The name of the consumer within the stream.
        consumer: Name,
    },
    /// Deletes the stream with its messages and consumers.
    Delete,
    /// Removes messages.
    Purge(StreamPurge),
    /// Removes one message. The answer is the number of messages removed.
    DeleteMessage {
        /// The sequence number of the message.
        sequence: u64,
    },
    /// Declares the stream for the messages of an archive. The answer is [`Done::Existed`] if there is a queue
    /// of its name, which stays as it is.
    BeginRestore {
        /// The settings that the stream had when it was archived.
        settings: Box<QueueSettings>,
    },
    /// Puts messages of an archive into the stream. The answer is [`Done::Restored`].
    Restore(Vec<ArchivedMessage>),
    /// Ends the restore: the stream is used like any other from now on.
    EndRestore {
        /// The number of the next message.
        next: u64,
        /// The consumers that the stream had, each with its place.
        consumers: Vec<ConsumerState>,
        /// The subjects of `amq.topic` whose messages it stores.
        subjects: Vec<Name>,
    },
    /// Reads messages without changing anything.
    Peek {
        /// The lowest sequence number.
        from: u64,
        /// The subjects.
        filter: Filter,
        /// The maximum number of messages.
        count: usize,
    },
}

/// Options of a live subscription.
#[derive(Debug)]
pub struct Subscribe {
    /// The exchange to which messages are published.
    pub exchange: Name,
    /// The pattern or routing key.
    pub key: BindingKey,
    /// The group; each message goes to one member.
    pub group: Option<Name>,
    /// Only messages that match it are delivered.
    pub selector: Option<Selector>,
}

/// Options of a consumer.
#[derive(Debug)]
pub struct Consume {
    /// The queue to read.
    pub queue: Name,
    /// The maximum number of deliveries that are unsettled or, if the consumer does not settle, not yet taken by its
    /// receiver.
    pub credit: u32,
    /// Whether the client settles deliveries; otherwise they are accepted at once.
    pub settles: bool,
    /// The priority; consumers with a higher one are served first.
    pub priority: i32,
    /// Whether the queue must have no other consumer.
    pub is_exclusive: bool,
    /// Only messages that match it are delivered.
    pub selector: Option<Selector>,
    /// Whether the consumer only reads messages and leaves them in the queue.
    pub is_browser: bool,
}

/// A queue to be declared.
#[derive(Debug)]
pub struct DeclareQueue {
    /// The name; empty to let the broker choose one.
    pub name: Name,
    /// The settings, except the connection that it is exclusive to.
    pub settings: QueueSettings,
    /// Whether only this client may use the queue; the queue is then deleted with the client.
    pub is_exclusive: bool,
}

/// A binding to be added or removed; all parts together identify it.
#[derive(Debug)]
pub struct Bind {
    /// The exchange that routes messages to the target.
    pub source: Name,
    /// The pattern or routing key.
    pub key: BindingKey,
    /// Conditions on headers, for an exchange that routes by them; others are kept and compared.
    pub arguments: Arguments,
    /// What gets the messages that match.
    pub target: BindTarget,
}

/// What a binding leads to, by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindTarget {
    /// A queue, which stores the messages.
    Queue(Name),
    /// An exchange, which routes the messages on.
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

/// The answer to a command that succeeded.
#[derive(Debug)]
pub enum Done {
    /// The command succeeded without a result.
    Done,
    /// The message was published.
    Published {
        /// The number of queues, subscriptions and inboxes that received it; 0 if it is unroutable.
        receivers: usize,
        /// The durability that it has reached.
        level: Level,
    },
    /// The queue to get from has no ready message.
    Empty,
    /// This many deliveries were settled.
    Settled(usize),
    /// The queue was declared, or existed with the same settings.
    Declared {
        /// The queue's name.
        name: Name,
        /// Whether the queue is new.
        is_new: bool,
        /// Number of ready messages.
        ready: usize,
        /// Number of consumers on all connections.
        consumers: usize,
    },
    /// This many messages were dropped.
    Dropped(usize),
    /// There is a queue of the name already.
    Existed,
    /// The stream has taken this many messages of an archive: all, or those before the first whose sequence number does
    /// not rise.
    Restored(usize),
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
    /// Commands that change definitions were run, up to the first refusal.
    Defined {
        /// The number of commands that succeeded.
        done: usize,
        /// Those of them, counted from 0, that declared what was not there: with their opposites, all is as it was.
        new: Vec<usize>,
        /// Why the next command was refused.
        refused: Option<Box<CommandError>>,
    },
    /// Whether the client has the right.
    Allowed(bool),
}

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// The broker's refusal.
    Broker(BrokerError),
    /// A call's request has no receiver.
    NoResponder,
    /// The client has reached its limit of calls that wait for a reply.
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
                f.write_str("the request has no responder; start one or use another address")
            }
            CommandError::TooManyCalls => f.write_str(
                "too many calls of this client wait for a reply; wait for some, or use another client",
            ),
            CommandError::OtherUser => {
                f.write_str("the message names another user as its sender; leave the user id out")
            }
        }
    }
}

impl std::error::Error for CommandError {}

impl Verb {
    /// Whether the command publishes and must wait while publishers wait.
    pub(super) fn publishes(&self) -> bool {
        matches!(self, Verb::Publish { .. } | Verb::Call { .. })
    }

    /// Bytes of the body; a parked command is charged for them.
    pub(super) fn body_bytes(&self) -> usize {
        match self {
            Verb::Publish { message, .. } | Verb::Call { message, .. } => message.body().len(),
            _ => 0,
        }
    }
}
