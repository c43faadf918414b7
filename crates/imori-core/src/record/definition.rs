//! What is declared: each change is a record, and the rows that it changes are what a store of definitions holds.
//!
//! A record is `version u8, kind u8` and its fields. A row's key begins with big-endian numbers, so that
//! what belongs together stands together; its value begins with a version.

use std::time::Duration;

use super::fields::{Fields, RecordError, push_option, push_short};
use crate::confirm::{Level, Lsn};
use crate::id::{DurableQueueId, VhostId};
use crate::name::Name;
use crate::queue::{DeadLetter, Overflow, QueueSettings};
use crate::route::pattern::Syntax;
use crate::route::{BindingKey, ExchangeKind, Settings};

const VERSION: u8 = 1;

/// A change of what is declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// A durable queue is declared; its id is the number of this record.
    Queue {
        /// The vhost.
        vhost: VhostId,
        /// Its name.
        name: Name,
        /// What was asked of it.
        settings: QueueSettings,
    },
    /// A durable queue is deleted, with its bindings.
    QueueGone {
        /// The queue.
        queue: DurableQueueId,
    },
    /// A durable exchange is declared.
    Exchange {
        /// The vhost.
        vhost: VhostId,
        /// Its name.
        name: Name,
        /// How it chooses.
        kind: ExchangeKind,
        /// What it was declared with.
        settings: Settings,
    },
    /// A durable queue is bound to a durable exchange.
    Binding {
        /// The queue.
        queue: DurableQueueId,
        /// The exchange, in the queue's vhost.
        exchange: Name,
        /// The key.
        key: BindingKey,
    },
}

/// A table of a store of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// By the queue's id.
    Queues,
    /// By vhost and name.
    Exchanges,
    /// By the queue's id, exchange and key.
    Bindings,
}

/// A row that a definition makes, or takes away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// It is there from now on.
    Put {
        /// Where.
        table: Table,
        /// Its key.
        key: Vec<u8>,
        /// What it says.
        value: Vec<u8>,
    },
    /// All rows are gone whose keys begin so.
    Gone {
        /// Where.
        table: Table,
        /// The beginning of their keys.
        prefix: Vec<u8>,
    },
}

impl Definition {
    /// The payload of its record.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        match self {
            Definition::Queue { vhost, name, settings } => {
                out.push(1);
                push_queue(&mut out, *vhost, name, settings);
            }
            Definition::QueueGone { queue } => {
                out.push(2);
                out.extend_from_slice(&queue.0.to_le_bytes());
            }
            Definition::Exchange { vhost, name, kind, settings } => {
                out.push(3);
                out.extend_from_slice(&vhost.0.to_le_bytes());
                push_short(&mut out, name.as_bytes());
                push_exchange(&mut out, *kind, settings);
            }
            Definition::Binding { queue, exchange, key } => {
                out.push(4);
                out.extend_from_slice(&queue.0.to_le_bytes());
                push_short(&mut out, exchange.as_bytes());
                out.push(syntax_number(key.syntax));
                push_short(&mut out, key.text.as_bytes());
            }
        }
        out
    }

    /// Reads a record's payload.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn decode(payload: &[u8]) -> Result<Definition, RecordError> {
        let mut fields = Fields::of(payload, VERSION)?;
        Ok(match fields.u8()? {
            1 => {
                let (vhost, name, settings) = queue(&mut fields)?;
                Definition::Queue { vhost, name, settings }
            }
            2 => Definition::QueueGone { queue: DurableQueueId(fields.u64()?) },
            3 => {
                let (vhost, name) = (VhostId(fields.u32()?), Name::new(fields.short()?));
                let (kind, settings) = exchange(&mut fields)?;
                Definition::Exchange { vhost, name, kind, settings }
            }
            4 => Definition::Binding {
                queue: DurableQueueId(fields.u64()?),
                exchange: Name::new(fields.short()?),
                key: BindingKey { syntax: syntax(fields.u8()?)?, text: Name::new(fields.short()?) },
            },
            _ => return Err(RecordError::Unknown("kind of definition")),
        })
    }

    /// The rows that it changes; `lsn` is the number of its record.
    #[must_use]
    pub fn rows(&self, lsn: Lsn) -> Vec<Row> {
        match self {
            Definition::Queue { vhost, name, settings } => {
                let mut value = vec![VERSION];
                push_queue(&mut value, *vhost, name, settings);
                vec![Row::Put { table: Table::Queues, key: lsn.0.to_be_bytes().to_vec(), value }]
            }
            Definition::QueueGone { queue } => {
                let prefix = queue.0.to_be_bytes().to_vec();
                [Table::Queues, Table::Bindings]
                    .map(|table| Row::Gone { table, prefix: prefix.clone() })
                    .into()
            }
            Definition::Exchange { vhost, name, kind, settings } => {
                let mut key = vhost.0.to_be_bytes().to_vec();
                key.extend_from_slice(name.as_bytes());
                let mut value = vec![VERSION];
                push_exchange(&mut value, *kind, settings);
                vec![Row::Put { table: Table::Exchanges, key, value }]
            }
            Definition::Binding { queue, exchange, key: binding } => {
                let mut key = queue.0.to_be_bytes().to_vec();
                push_short(&mut key, exchange.as_bytes());
                key.push(syntax_number(binding.syntax));
                key.extend_from_slice(binding.text.as_bytes());
                vec![Row::Put { table: Table::Bindings, key, value: vec![VERSION] }]
            }
        }
    }

    /// The definition that a row stands for, and the queue's id where it is that of one.
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn of_row(table: Table, key: &[u8], value: &[u8]) -> Result<(Definition, Lsn), RecordError> {
        let mut fields = Fields::of(value, VERSION)?;
        let (head, rest) = key
            .split_first_chunk::<8>()
            .map_or((0, &[][..]), |(head, rest)| (u64::from_be_bytes(*head), rest));
        match table {
            Table::Queues => {
                let (vhost, name, settings) = queue(&mut fields)?;
                Ok((Definition::Queue { vhost, name, settings }, Lsn(head)))
            }
            Table::Exchanges => {
                let (vhost, name) = key.split_first_chunk::<4>().ok_or(RecordError::Truncated)?;
                let (kind, settings) = exchange(&mut fields)?;
                let (vhost, name) = (VhostId(u32::from_be_bytes(*vhost)), Name::new(name));
                Ok((Definition::Exchange { vhost, name, kind, settings }, Lsn::NONE))
            }
            Table::Bindings => {
                let (len, rest) = rest.split_first_chunk::<2>().ok_or(RecordError::Truncated)?;
                let len = usize::from(u16::from_le_bytes(*len));
                let (exchange, rest) = rest.split_at_checked(len).ok_or(RecordError::Truncated)?;
                let (number, text) = rest.split_first().ok_or(RecordError::Truncated)?;
                let key = BindingKey { syntax: syntax(*number)?, text: Name::new(text) };
                let (queue, exchange) = (DurableQueueId(head), Name::new(exchange));
                Ok((Definition::Binding { queue, exchange, key }, Lsn::NONE))
            }
        }
    }
}

const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];
const OVERFLOWS: [Overflow; 3] =
    [Overflow::DropHead, Overflow::RejectPublish, Overflow::RejectPublishDeadLetter];
const LEVELS: [Level; 3] = [Level::Memory, Level::Os, Level::Disk];
const SYNTAXES: [Syntax; 4] = [Syntax::Amqp, Syntax::Nats, Syntax::Mqtt, Syntax::Literal];

fn number_of<T: PartialEq>(all: &[T], one: &T) -> u8 {
    let number = all.iter().position(|other| other == one).unwrap_or_default();
    u8::try_from(number).expect("there are few")
}

fn of_number<T: Copy>(all: &[T], number: u8, what: &'static str) -> Result<T, RecordError> {
    all.get(usize::from(number)).copied().ok_or(RecordError::Unknown(what))
}

fn syntax_number(syntax: Syntax) -> u8 {
    number_of(&SYNTAXES, &syntax)
}

fn syntax(number: u8) -> Result<Syntax, RecordError> {
    of_number(&SYNTAXES, number, "syntax of a key")
}

/// `vhost u32, name short`, then what was asked of the queue. One that is exclusive or goes by itself is not durable.
fn push_queue(out: &mut Vec<u8>, vhost: VhostId, name: &Name, settings: &QueueSettings) {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    out.extend_from_slice(&vhost.0.to_le_bytes());
    push_short(out, name.as_bytes());
    push_option(out, settings.expires.map(millis));
    push_option(out, settings.message_ttl.map(millis));
    push_option(out, settings.length_max);
    push_option(out, settings.length_bytes_max);
    out.push(number_of(&OVERFLOWS, &settings.overflow));
    push_option(out, settings.priority_max.map(u64::from));
    push_option(out, settings.delivery_limit.map(u64::from));
    push_option(out, settings.dedup_window.map(millis));
    push_option(out, settings.level.map(|level| u64::from(number_of(&LEVELS, &level))));
    out.push(settings.dead_letter.as_ref().map_or(0, |to| 1 + u8::from(to.routing_key.is_some())));
    for name in settings.dead_letter.iter().flat_map(|to| [Some(&to.exchange), to.routing_key.as_ref()]) {
        name.into_iter().for_each(|name| push_short(out, name.as_bytes()));
    }
}

fn queue(fields: &mut Fields<'_>) -> Result<(VhostId, Name, QueueSettings), RecordError> {
    let (vhost, name) = (VhostId(fields.u32()?), Name::new(fields.short()?));
    let mut settings = QueueSettings {
        is_durable: true,
        expires: fields.option()?.map(Duration::from_millis),
        message_ttl: fields.option()?.map(Duration::from_millis),
        length_max: fields.option()?,
        length_bytes_max: fields.option()?,
        overflow: of_number(&OVERFLOWS, fields.u8()?, "overflow")?,
        ..QueueSettings::default()
    };
    settings.priority_max = fields.option()?.and_then(|max| u8::try_from(max).ok());
    settings.delivery_limit = fields.option()?.and_then(|limit| u32::try_from(limit).ok());
    settings.dedup_window = fields.option()?.map(Duration::from_millis);
    let level = fields.option()?.map(|number| u8::try_from(number).unwrap_or(u8::MAX));
    settings.level = level.map(|number| of_number(&LEVELS, number, "level")).transpose()?;
    settings.dead_letter = match fields.u8()? {
        0 => None,
        1 => Some(DeadLetter { exchange: Name::new(fields.short()?), routing_key: None }),
        2 => Some(DeadLetter {
            exchange: Name::new(fields.short()?),
            routing_key: Some(Name::new(fields.short()?)),
        }),
        _ => return Err(RecordError::Unknown("dead letter")),
    };
    Ok((vhost, name, settings))
}

const IS_INTERNAL: u8 = 1;
const HAS_ALTERNATE: u8 = 2;

fn push_exchange(out: &mut Vec<u8>, kind: ExchangeKind, settings: &Settings) {
    out.push(number_of(&KINDS, &kind));
    let flag = |is_so, flag| if is_so { flag } else { 0 };
    out.push(flag(settings.is_internal, IS_INTERNAL) | flag(settings.alternate.is_some(), HAS_ALTERNATE));
    settings.alternate.iter().for_each(|name| push_short(out, name.as_bytes()));
}

fn exchange(fields: &mut Fields<'_>) -> Result<(ExchangeKind, Settings), RecordError> {
    let kind = of_number(&KINDS, fields.u8()?, "kind of exchange")?;
    let flags = fields.u8()?;
    let alternate = if flags & HAS_ALTERNATE != 0 { Some(Name::new(fields.short()?)) } else { None };
    let is_internal = flags & IS_INTERNAL != 0;
    Ok((kind, Settings { is_durable: true, is_auto_delete: false, is_internal, alternate }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Definition> {
        let (vhost, name) = (VhostId(3), Name::from("orders"));
        let plain = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let full = QueueSettings {
            expires: Some(Duration::from_millis(5)),
            message_ttl: Some(Duration::ZERO),
            length_max: Some(7),
            length_bytes_max: Some(u64::MAX),
            overflow: Overflow::RejectPublishDeadLetter,
            priority_max: Some(9),
            delivery_limit: Some(0),
            dedup_window: Some(Duration::from_mins(2)),
            level: Some(Level::Os),
            dead_letter: Some(DeadLetter { exchange: Name::from("x"), routing_key: Some(Name::from("")) }),
            is_durable: true,
            ..QueueSettings::default()
        };
        let keyless = DeadLetter { exchange: Name::from(""), routing_key: None };
        let dead = QueueSettings { is_durable: true, dead_letter: Some(keyless), ..QueueSettings::default() };
        let settings = Settings { is_durable: true, alternate: Some(name.clone()), ..Settings::default() };
        let queues = [plain, full, dead].map(|settings| {
            let name = name.clone();
            Definition::Queue { vhost, name, settings }
        });
        let mut samples = queues.to_vec();
        samples.push(Definition::QueueGone { queue: DurableQueueId(9) });
        samples.push(Definition::Exchange { vhost, name, kind: ExchangeKind::Headers, settings });
        samples.extend(SYNTAXES.map(|syntax| Definition::Binding {
            queue: DurableQueueId(1 << 60),
            exchange: Name::from("amq.topic"),
            key: BindingKey { syntax, text: Name::from("a.b") },
        }));
        samples
    }

    #[test]
    fn decode_after_encode_is_identity() {
        for definition in samples() {
            let bytes = definition.encode();
            assert_eq!(Definition::decode(&bytes).as_ref(), Ok(&definition));
            for len in 0..bytes.len() {
                assert!(Definition::decode(&bytes[..len]).is_err(), "{definition:?} {len}");
            }
        }
    }

    #[test]
    fn rows_stand_for_definitions() {
        for definition in samples() {
            for row in definition.rows(Lsn(1 << 60)) {
                match row {
                    Row::Put { table, key, value } => {
                        let (read, id) = Definition::of_row(table, &key, &value).expect("it was written");
                        assert_eq!(read, definition);
                        assert!(table != Table::Queues || id == Lsn(1 << 60));
                    }
                    Row::Gone { table, prefix } => {
                        assert!(table != Table::Exchanges && prefix == 9u64.to_be_bytes());
                    }
                }
            }
        }
    }

    #[test]
    fn a_queue_takes_its_bindings_with_it() {
        let binding = Definition::Binding {
            queue: DurableQueueId(9),
            exchange: Name::from("x"),
            key: BindingKey::new(Syntax::Amqp, b"k"),
        };
        let [Row::Put { key, .. }] = &*binding.rows(Lsn(10)) else { panic!("a binding is one row") };
        let gone = Definition::QueueGone { queue: DurableQueueId(9) }.rows(Lsn(11));
        let is_hit = |row: &Row| matches!(row, Row::Gone { table: Table::Bindings, prefix } if key.starts_with(prefix));
        assert!(gone.iter().any(is_hit));
    }
}
