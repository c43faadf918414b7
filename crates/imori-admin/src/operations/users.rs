//! Users' NATS keys and tokens, and whether a user may do something.

use imori_core::authorize::{Action, Identity, Object, Refusal, authorize};
use imori_core::id::VhostId;
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::route::{BindingKey, ExchangeKind, Syntax};
use imori_server::access::AccessError;
use imori_server::broker::Broker;
use imori_server::credentials::{Token, is_user_key};

use crate::objects::change::change;
use crate::objects::operation_error::OperationError;

/// Checks that these are public keys of NATS users.
///
/// # Errors
/// Names the first key that is not.
pub(crate) fn check_nkeys(nkeys: &[String]) -> Result<(), AccessError> {
    match nkeys.iter().find(|key| !is_user_key(key)) {
        None => Ok(()),
        Some(wrong) => Err(AccessError::bad(format_args!(
            "`{}` is no public key of a NATS user; one begins with `U`",
            wrong.escape_debug()
        ))),
    }
}

/// Creates a token for a user. The broker keeps only a digest, so the text cannot be shown again.
///
/// # Errors
/// There is no such user, or [`OperationError`].
pub(crate) async fn make_token(broker: &Broker, name: String) -> Result<String, OperationError> {
    let made = change(broker, move |draft| {
        let token = Token::make().ok_or(AccessError::NoRandomness)?;
        let mut user = draft.user(&name)?;
        user.tokens.push(token.digest());
        draft.put_user(&name, user).map(|_| token)
    });
    Ok(made.await?.reveal().to_string())
}

/// Deletes all tokens of a user, with what else was made for the user: sessions, and the automation's tokens and API keys.
///
/// # Errors
/// There is no such user, or [`OperationError`].
pub(crate) async fn delete_tokens(broker: &Broker, name: String) -> Result<(), OperationError> {
    change(broker, move |draft| draft.revoke_tokens(&name)).await
}

/// What a user may be asked to do in a vhost, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed<'a> {
    /// Enter the vhost.
    Enter,
    /// Publish a key to an exchange; the default exchange's keys are names of queues.
    Publish(&'a str, &'a str),
    /// Subscribe to a pattern of an exchange.
    Subscribe(&'a str, &'a str),
    /// Consume from a queue.
    Consume(&'a str),
    /// Purge a queue.
    Purge(&'a str),
    /// Declare a queue that is not there.
    DeclareQueue(&'a str),
    /// Delete a queue.
    DeleteQueue(&'a str),
    /// Declare an exchange that is not there.
    DeclareExchange(&'a str),
    /// Delete an exchange.
    DeleteExchange(&'a str),
}

/// Whether a user may do this in a vhost: the decision of the broker itself, for a client of any protocol.
pub(crate) fn decide(
    broker: &Broker,
    identity: &Identity,
    vhost: VhostId,
    deed: Deed<'_>,
) -> Result<(), Refusal> {
    let is_topic = |exchange: &str| {
        let table = broker.table();
        table.exchange(vhost, exchange.as_bytes()).is_some_and(|found| found.kind() == ExchangeKind::Topic)
    };
    authorize(identity, Action::Enter, vhost, Object::Vhost)?;
    match deed {
        Deed::Enter => Ok(()),
        Deed::Publish(exchange, key) => {
            let (is_topic, exchange, subject) = (is_topic(exchange), exchange.as_bytes(), key.as_bytes());
            authorize(identity, Action::Publish, vhost, Object::Subject { exchange, subject, is_topic })
        }
        Deed::Subscribe(exchange, pattern) => {
            // NATS clients subscribe to the topic exchange in their own syntax.
            let is_of_nats = exchange.as_bytes() == TOPIC_EXCHANGE && pattern.contains('>');
            let syntax = if is_of_nats { Syntax::Nats } else { Syntax::Amqp };
            let (is_topic, key) = (is_topic(exchange), BindingKey::new(syntax, pattern.as_bytes()));
            let object = Object::Pattern { exchange: exchange.as_bytes(), key: &key, group: None, is_topic };
            authorize(identity, Action::Subscribe, vhost, object)
        }
        Deed::Consume(queue) => authorize(identity, Action::Consume, vhost, Object::Queue(queue.as_bytes())),
        Deed::Purge(queue) => authorize(identity, Action::Purge, vhost, Object::Queue(queue.as_bytes())),
        Deed::DeclareQueue(queue) => {
            authorize(identity, Action::Create, vhost, Object::Queue(queue.as_bytes()))
        }
        Deed::DeleteQueue(queue) => {
            authorize(identity, Action::Delete, vhost, Object::Queue(queue.as_bytes()))
        }
        Deed::DeclareExchange(name) => {
            authorize(identity, Action::Create, vhost, Object::Exchange(name.as_bytes()))
        }
        Deed::DeleteExchange(name) => {
            authorize(identity, Action::Delete, vhost, Object::Exchange(name.as_bytes()))
        }
    }
}

impl<'a> Deed<'a> {
    /// Reads a deed: its verb, and the names that the verb asks for.
    ///
    /// # Errors
    /// Says which names are missing or of no use.
    pub fn read(
        verb: &str,
        (queue, exchange, key): (Option<&'a str>, Option<&'a str>, Option<&'a str>),
    ) -> Result<Deed<'a>, OperationError> {
        let wrong = |needs: &str| Err(OperationError::Bad(format!("to {verb} takes {needs}")));
        match (verb, queue, exchange, key) {
            ("enter", None, None, None) => Ok(Deed::Enter),
            ("enter", ..) => wrong("no other parameter"),
            ("publish", Some(queue), None, None) => Ok(Deed::Publish("", queue)),
            ("publish", None, Some(exchange), key) => Ok(Deed::Publish(exchange, key.unwrap_or_default())),
            ("publish", ..) => wrong("`queue`, or `exchange` and `key`"),
            ("subscribe", None, Some(exchange), Some(key)) => Ok(Deed::Subscribe(exchange, key)),
            ("subscribe", ..) => wrong("`exchange` and `key`"),
            ("consume", Some(queue), None, None) => Ok(Deed::Consume(queue)),
            ("purge", Some(queue), None, None) => Ok(Deed::Purge(queue)),
            ("consume" | "purge", ..) => wrong("`queue`"),
            ("declare", Some(queue), None, None) => Ok(Deed::DeclareQueue(queue)),
            ("delete", Some(queue), None, None) => Ok(Deed::DeleteQueue(queue)),
            ("declare", None, Some(exchange), None) => Ok(Deed::DeclareExchange(exchange)),
            ("delete", None, Some(exchange), None) => Ok(Deed::DeleteExchange(exchange)),
            ("declare" | "delete", ..) => wrong("`queue` or `exchange`"),
            _ => Err(OperationError::Bad(format!(
                "`{}` is no verb; it is one of enter, publish, subscribe, consume, purge, declare and delete",
                verb.escape_debug()
            ))),
        }
    }
}
