//! Arguments of a queue's declaration: fields of a table become settings, or are refused in RabbitMQ's words.

use std::time::Duration;

use imori_core::confirm::Level;
use imori_core::id::ConnectionId;
use imori_core::name::Name;
use imori_core::policy::QueueKind;
use imori_core::queue::{DeadLetterTarget, Overflow, QueueSettings};
use imori_core::route::Arguments;

use crate::codec::methods::queue;
use crate::codec::table::{FieldValue, Table};
use crate::commands::arguments::{integer, type_name};
use crate::header_block::value;
use crate::protocol_error::{Code, ProtocolError};

/// Milliseconds of a time in a queue's arguments: ten years, as in RabbitMQ.
const MILLISECONDS_MAX: i64 = 315_360_000_000;

/// Priorities that a queue may tell apart, besides none.
const PRIORITY_MAX: i64 = 255;

/// The use of an argument that RabbitMQ knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// A setting of the queue.
    Setting,
    /// Nothing on one node; it is checked and kept, so that declarations can be compared.
    Noted(Check),
}

/// The check of an argument that has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Anything,
    Natural,
    Positive,
    Version,
    LeaderLocator,
    PlacementTag,
    DeadLetterStrategy,
}

/// The arguments that RabbitMQ knows: the types of queues that have them, and what they are here.
const KNOWN: [(&str, &[QueueKind], Use); 29] = {
    use Check::{Anything, DeadLetterStrategy, LeaderLocator, Natural, PlacementTag, Positive, Version};
    use QueueKind::{Classic, Quorum};
    use Use::{Noted, Setting};
    [
        ("x-queue-type", &[Classic, Quorum], Setting),
        ("x-expires", &[Classic, Quorum], Setting),
        ("x-message-ttl", &[Classic, Quorum], Setting),
        ("x-dead-letter-exchange", &[Classic, Quorum], Setting),
        ("x-dead-letter-routing-key", &[Classic, Quorum], Setting),
        ("x-dead-letter-strategy", &[Quorum], Noted(DeadLetterStrategy)),
        ("x-max-length", &[Classic, Quorum], Setting),
        ("x-max-length-bytes", &[Classic, Quorum], Setting),
        ("x-max-in-memory-length", &[Quorum], Noted(Natural)),
        ("x-max-in-memory-bytes", &[Quorum], Noted(Natural)),
        ("x-max-priority", &[Classic], Setting),
        ("x-overflow", &[Classic, Quorum], Setting),
        ("x-queue-mode", &[Classic], Noted(Anything)),
        ("x-queue-version", &[Classic], Noted(Version)),
        ("x-queue-master-locator", &[Classic], Noted(Anything)),
        ("x-single-active-consumer", &[Classic, Quorum], Setting),
        // RabbitMQ has it with quorum queues alone.
        ("x-delivery-limit", &[Classic, Quorum], Setting),
        ("x-consumer-timeout", &[Quorum], Noted(Natural)),
        ("x-consumer-disconnected-timeout", &[Quorum], Noted(Natural)),
        ("x-delayed-retry-type", &[Quorum], Noted(Anything)),
        ("x-delayed-retry-min", &[Quorum], Noted(Anything)),
        ("x-delayed-retry-max", &[Quorum], Noted(Anything)),
        ("x-quorum-initial-group-size", &[Quorum], Noted(Positive)),
        ("x-queue-leader-locator", &[Classic, Quorum], Noted(LeaderLocator)),
        ("x-member-placement-tag", &[Quorum], Noted(PlacementTag)),
        // Streams alone have these.
        ("x-max-age", &[], Setting),
        ("x-stream-max-segment-size-bytes", &[], Setting),
        ("x-stream-filter-size-bytes", &[], Setting),
        ("x-initial-cluster-size", &[], Setting),
    ]
};

/// A declaration of a queue, as its arguments are read.
struct Reading<'a> {
    queue: &'a str,
    vhost: &'a Name,
    arguments: Table<'a>,
}

/// The settings that a declaration asks for.
pub(crate) fn queue_settings(
    declare: &queue::Declare<'_>,
    name: &str,
    connection: ConnectionId,
    vhost: &Name,
) -> Result<QueueSettings, ProtocolError> {
    let reading = Reading { queue: name, vhost, arguments: declare.arguments };
    let kind = reading.queue_type()?;
    let others = reading.others(kind)?;
    if kind == QueueKind::Quorum {
        reading.check_quorum(declare)?;
    }
    let delivery_limit = reading.number("x-delivery-limit", -1, i64::from(u32::MAX))?;
    Ok(QueueSettings {
        // RabbitMQ: what belongs to a connection is not durable, whatever is said.
        is_durable: declare.durable && !declare.exclusive,
        exclusive_to: declare.exclusive.then_some(connection),
        is_auto_delete: declare.auto_delete,
        expires: reading.milliseconds("x-expires", 1)?,
        message_ttl: reading.milliseconds("x-message-ttl", 0)?,
        length_max: reading.number("x-max-length", 0, i64::MAX)?.map(i64::unsigned_abs),
        length_bytes_max: reading.number("x-max-length-bytes", 0, i64::MAX)?.map(i64::unsigned_abs),
        overflow: reading.overflow()?,
        dead_letter: reading.dead_letter()?,
        priority_max: reading
            .number("x-max-priority", 0, PRIORITY_MAX)?
            .and_then(|max| u8::try_from(max).ok())
            .filter(|max| *max > 0),
        // RabbitMQ 4: minus one is no limit.
        delivery_limit: delivery_limit.map_or(kind.delivery_limit(), |limit| u32::try_from(limit).ok()),
        dedup_window: reading.milliseconds("x-dedup-window", 0)?.filter(|window| !window.is_zero()),
        is_single_active: reading.flag("x-single-active-consumer")?,
        level: reading.level()?,
        others,
    })
}

impl Reading<'_> {
    #[cold]
    fn invalid(&self, argument: &str, why: impl std::fmt::Display) -> ProtocolError {
        self.refused(format_args!("invalid arg '{argument}'"), format_args!(": {why}"))
    }

    #[cold]
    fn refused(&self, what: impl std::fmt::Display, why: impl std::fmt::Display) -> ProtocolError {
        let (queue, vhost) = (self.queue.escape_default(), self.vhost);
        let text = format_args!("{what} for queue '{queue}' in vhost '{vhost}'{why}");
        ProtocolError::new(Code::PreconditionFailed, text)
    }

    #[cold]
    fn not_a(&self, name: &str, value: FieldValue<'_>) -> ProtocolError {
        self.invalid(name, format_args!("{{unacceptable_type,{}}}", type_name(value)))
    }

    /// A whole number within bounds, where it is there.
    fn number(&self, name: &str, min: i64, max: i64) -> Result<Option<i64>, ProtocolError> {
        let Some(value) = self.arguments.find(name) else { return Ok(None) };
        let Some(number) = integer(value) else {
            let why = format_args!("\"expected integer, got {}\"", type_name(value));
            return Err(self.invalid(name, why));
        };
        if (min..=max).contains(&number) {
            return Ok(Some(number));
        }
        let why = match () {
            () if max == PRIORITY_MAX && number > max => "max_value_exceeded",
            () if number > max => "value_too_large",
            () if number == 0 => "value_zero",
            () => "value_negative",
        };
        Err(self.invalid(name, format_args!("{{{why},{number}}}")))
    }

    fn milliseconds(&self, name: &str, min: i64) -> Result<Option<Duration>, ProtocolError> {
        let number = self.number(name, min, MILLISECONDS_MAX)?;
        Ok(number.map(|number| Duration::from_millis(number.unsigned_abs())))
    }

    fn text(&self, name: &str) -> Result<Option<&[u8]>, ProtocolError> {
        match self.arguments.find(name) {
            None => Ok(None),
            Some(FieldValue::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.not_a(name, other)),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, ProtocolError> {
        match self.arguments.find(name) {
            None => Ok(false),
            Some(FieldValue::Bool(flag)) => Ok(flag),
            Some(other) => Err(self.not_a(name, other)),
        }
    }

    fn queue_type(&self) -> Result<QueueKind, ProtocolError> {
        match self.text("x-queue-type")? {
            None | Some(b"classic" | b"undefined" | b"") => Ok(QueueKind::Classic),
            Some(b"quorum") => Ok(QueueKind::Quorum),
            Some(other) => {
                let why = format_args!("\"unsupported queue type '{}'\"", other.escape_ascii());
                Err(self.invalid("x-queue-type", why))
            }
        }
    }

    fn check_quorum(&self, declare: &queue::Declare<'_>) -> Result<(), ProtocolError> {
        if declare.queue.is_empty() {
            let text = "Cannot declare a server-named queue for type rabbit_quorum_queue";
            return Err(ProtocolError::new(Code::PreconditionFailed, text));
        }
        let property = match () {
            () if declare.auto_delete => "auto-delete",
            () if declare.exclusive => "exclusive-owner",
            () if !declare.durable => "non-durable",
            () => return Ok(()),
        };
        Err(self.refused(format_args!("invalid property '{property}'"), ""))
    }

    /// The arguments that have no effect, each checked. RabbitMQ compares what it knows and nothing else.
    fn others(&self, kind: QueueKind) -> Result<Arguments, ProtocolError> {
        let mut others = Vec::new();
        for (name, field) in self.arguments.iter() {
            if name == b"x-message-deduplication" && field != FieldValue::Bool(false) {
                let why = "use x-dedup-window, for which message-id says which messages are equal";
                return Err(self.invalid("x-message-deduplication", why));
            }
            let Some((known, types, what)) = KNOWN.iter().find(|(known, ..)| known.as_bytes() == name) else {
                continue;
            };
            if !types.contains(&kind) {
                let of_type = match kind {
                    QueueKind::Classic => " of queue type rabbit_classic_queue",
                    QueueKind::Quorum => " of queue type rabbit_quorum_queue",
                };
                return Err(self.refused(format_args!("invalid arg '{known}'"), of_type));
            }
            if let Use::Noted(check) = what {
                self.check(known, field, *check)?;
                others.push((Name::new(name), value(field).into_owned()));
            }
        }
        if kind == QueueKind::Quorum {
            others.push((Name::from("x-queue-type"), value(FieldValue::Text(b"quorum")).into_owned()));
        }
        let others = Arguments::new(others);
        others.check().map_err(|error| ProtocolError::new(Code::PreconditionFailed, error))?;
        Ok(others)
    }

    fn check(&self, name: &str, field: FieldValue<'_>, check: Check) -> Result<(), ProtocolError> {
        let among = |all: &[&[u8]], why: &str| match field {
            FieldValue::Text(text) if all.contains(&text) => Ok(()),
            FieldValue::Text(_) => Err(self.invalid(name, why)),
            other => Err(self.not_a(name, other)),
        };
        match check {
            Check::Anything => Ok(()),
            Check::Natural => self.number(name, 0, i64::MAX).map(|_| ()),
            Check::Positive => self.number(name, 1, i64::MAX).map(|_| ()),
            Check::Version => match self.number(name, 0, i64::MAX)? {
                // RabbitMQ 4 knows 2 alone; the first version's declarations are all over the world.
                None | Some(1 | 2) => Ok(()),
                Some(other) => {
                    Err(self.invalid(name, format_args!("\"unsupported queue version '{other}'\"")))
                }
            },
            Check::LeaderLocator => {
                let all: [&[u8]; 4] = [b"client-local", b"balanced", b"random", b"least-leaders"];
                among(&all, "invalid_queue_locator_arg")
            }
            Check::PlacementTag => match field {
                FieldValue::Text([_, ..]) => Ok(()),
                FieldValue::Text([]) => Err(self.invalid(name, "invalid_member_placement_tag_arg")),
                other => Err(self.not_a(name, other)),
            },
            Check::DeadLetterStrategy => among(&[b"at-most-once", b"at-least-once"], "invalid_dlx_strategy"),
        }
    }

    fn overflow(&self) -> Result<Overflow, ProtocolError> {
        match self.text("x-overflow")? {
            None | Some(b"drop-head") => Ok(Overflow::DropHead),
            Some(b"reject-publish") => Ok(Overflow::RejectPublish),
            Some(b"reject-publish-dlx") => Ok(Overflow::RejectPublishDeadLetter),
            Some(_) => Err(self.invalid("x-overflow", "invalid_overflow")),
        }
    }

    fn dead_letter(&self) -> Result<Option<DeadLetterTarget>, ProtocolError> {
        const EXCHANGE: &str = "x-dead-letter-exchange";
        let exchange = match self.arguments.find(EXCHANGE) {
            None => None,
            Some(FieldValue::Text(name)) => Some(Name::new(name)),
            Some(other) => {
                let kind = type_name(other);
                let (queue, vhost) = (self.queue.escape_default(), self.vhost);
                let text = format_args!(
                    "invalid type '{kind}' for arg '{EXCHANGE}' in queue '{queue}' in vhost '{vhost}'"
                );
                return Err(ProtocolError::new(Code::PreconditionFailed, text));
            }
        };
        let routing_key = self.text("x-dead-letter-routing-key")?.map(Name::new);
        match (exchange, &routing_key) {
            (Some(exchange), _) => Ok(Some(DeadLetterTarget { exchange, routing_key })),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                Err(self.invalid("x-dead-letter-routing-key", "routing_key_but_no_dlx_defined"))
            }
        }
    }

    fn level(&self) -> Result<Option<Level>, ProtocolError> {
        let Some(text) = self.text("x-level")? else { return Ok(None) };
        let level = Level::parse(text);
        level.map(Some).ok_or_else(|| self.invalid("x-level", "write memory, os or disk"))
    }
}
