//! Names in a selector, some of which are headers common to all messages.

/// A name in a selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldName {
    /// A header that the broker knows for every message.
    Header(Header),
    /// A header set by the sender.
    Property(Box<[u8]>),
}

/// A header that the broker knows for every message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// `PERSISTENT` or `NON_PERSISTENT`.
    DeliveryMode,
    /// Whether the message is persistent.
    IsDurable,
    /// The priority; 4 if the sender set none.
    Priority,
    /// The message id that the sender chose.
    MessageId,
    /// The time of sending, in milliseconds since the UNIX epoch.
    Timestamp,
    /// The identifier that a reply repeats.
    CorrelationId,
    /// The application's name for the kind of message.
    Type,
    /// Whether the message was delivered before.
    IsRedelivered,
    /// The number of deliveries, including this one.
    DeliveryCount,
    /// The number of failed deliveries.
    Failures,
    /// The subject the message was published to; for a queue addressed by name, that name.
    Destination,
    /// The reply address, as the sender wrote it.
    ReplyTo,
    /// The user who sent it.
    UserId,
    /// The application that sent it.
    AppId,
    /// The type of the body.
    ContentType,
    /// The encoding of the body.
    ContentEncoding,
}

/// Names of JMS, names of Qpid's brokers (`amqp.`), and names of Artemis (`AMQ`).
const HEADERS: [(&str, Header); 32] = [
    ("JMSDeliveryMode", Header::DeliveryMode),
    ("JMSPriority", Header::Priority),
    ("JMSMessageID", Header::MessageId),
    ("JMSTimestamp", Header::Timestamp),
    ("JMSCorrelationID", Header::CorrelationId),
    ("JMSType", Header::Type),
    ("JMSRedelivered", Header::IsRedelivered),
    ("JMSDestination", Header::Destination),
    ("JMSReplyTo", Header::ReplyTo),
    ("JMSXDeliveryCount", Header::DeliveryCount),
    ("JMSXUserID", Header::UserId),
    ("JMSXAppID", Header::AppId),
    ("amqp.durable", Header::IsDurable),
    ("amqp.delivery_mode", Header::DeliveryMode),
    ("amqp.priority", Header::Priority),
    ("amqp.message_id", Header::MessageId),
    ("amqp.creation_time", Header::Timestamp),
    ("amqp.correlation_id", Header::CorrelationId),
    ("amqp.subject", Header::Type),
    ("amqp.redelivered", Header::IsRedelivered),
    ("amqp.delivery_count", Header::Failures),
    ("amqp.to", Header::Destination),
    ("amqp.reply_to", Header::ReplyTo),
    ("amqp.user_id", Header::UserId),
    ("amqp.app_id", Header::AppId),
    ("amqp.content_type", Header::ContentType),
    ("amqp.content_encoding", Header::ContentEncoding),
    ("AMQUserID", Header::MessageId),
    ("AMQTimestamp", Header::Timestamp),
    ("AMQPriority", Header::Priority),
    ("AMQAddress", Header::Destination),
    ("AMQDurable", Header::IsDurable),
];

/// Headers of JMS that cannot be selected by, with the reason.
const UNKNOWN: [(&str, &str); 2] = [
    ("JMSExpiration", "expired messages are not delivered anyway"),
    ("JMSDeliveryTime", "no message is delivered before its time anyway"),
];

impl FieldName {
    /// Resolves a name, which is case-sensitive.
    ///
    /// # Errors
    /// The reason why the name cannot be used in a selector.
    pub(super) fn of(name: &str) -> Result<FieldName, &'static str> {
        if let Some((_, header)) = HEADERS.iter().find(|(known, _)| *known == name) {
            return Ok(FieldName::Header(*header));
        }
        match UNKNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, reason)) => Err(reason),
            None => Ok(FieldName::Property(Box::from(name.as_bytes()))),
        }
    }
}
