//! Definitions: each change of the durable topology is a record, and the store of definitions has the
//! resulting rows.
//!
//! A record is `version u8, kind u8` and its fields. The key of a row begins with big-endian numbers, so that
//! related rows are adjacent, and no key is a prefix of another; the value begins with a version.

use std::collections::BTreeSet;

use super::fields::{Fields, RecordError, push_short};
use super::stream_settings::{push_stream_settings, stream_settings};
use crate::arguments::{read_recorded, recorded};
use crate::confirm::Lsn;
use crate::id::{DurableQueueId, VhostId};
use crate::name::Name;
use crate::queue::QueueSettings;
use crate::route::pattern::Syntax;
use crate::route::{Arguments, BindingKey, ExchangeKind, Settings};

const VERSION: u8 = 4;

/// A change of the durable topology.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Definition {
    /// A durable queue is declared; the number of this record becomes its id.
    Queue {
        /// The vhost that the queue is in.
        vhost: VhostId,
        /// The name, unique in its vhost.
        name: Name,
        /// The settings of its declaration.
        settings: QueueSettings,
    },
    /// A durable queue gets other settings, and keeps its id.
    QueueChanged {
        /// The id that the declaration gave the queue.
        queue: DurableQueueId,
        /// The vhost that the queue is in.
        vhost: VhostId,
        /// The name, which stays as it was.
        name: Name,
        /// The new settings.
        settings: QueueSettings,
    },
    /// A durable queue is deleted, with its bindings.
    QueueGone {
        /// The id that the declaration gave the queue.
        queue: DurableQueueId,
    },
    /// A durable exchange is declared.
    Exchange {
        /// The vhost that the exchange is in.
        vhost: VhostId,
        /// The name, unique in its vhost.
        name: Name,
        /// The kind, which decides how it routes.
        kind: ExchangeKind,
        /// The settings of its declaration.
        settings: Settings,
    },
    /// A durable exchange is deleted, with the bindings from it and to it.
    ExchangeGone {
        /// The vhost that the exchange is in.
        vhost: VhostId,
        /// The name by which it was declared.
        name: Name,
    },
    /// A durable queue or exchange is bound to a durable exchange.
    Binding(BindingDefinition),
    /// A binding is removed.
    BindingGone(BindingDefinition),
}

/// A binding from a durable exchange to a durable target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindingDefinition {
    /// The vhost of both ends.
    pub vhost: VhostId,
    /// The exchange that routes by the binding.
    pub exchange: Name,
    /// The routing key or pattern, in the syntax of its client.
    pub key: BindingKey,
    /// Conditions on headers; with the key they tell bindings apart.
    pub arguments: Arguments,
    /// What gets the messages that match.
    pub target: BindingTarget,
}

/// The durable target of a binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindingTarget {
    /// A queue, by its id.
    Queue(DurableQueueId),
    /// An exchange of the same vhost.
    Exchange(Name),
}

/// A table of the store of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Keyed by the queue's id.
    Queues,
    /// Keyed by vhost and name.
    Exchanges,
    /// Keyed by target, exchange, key and arguments.
    Bindings,
}

/// A change of rows that a definition makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Row {
    /// A row is inserted, or replaced.
    Put {
        /// The table of the row.
        table: Table,
        /// The key of the row.
        key: Vec<u8>,
        /// The content of the row.
        value: Vec<u8>,
    },
    /// Rows are removed.
    Gone(RowsGone),
}

/// The rows of a table that a definition removes: those with keys that have a prefix, and of the bindings
/// possibly only those from one exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsGone {
    table: Table,
    prefix: Vec<u8>,
    /// Vhost and name of that exchange, encoded as in the key of a binding.
    source: Option<Vec<u8>>,
}

impl RowsGone {
    fn beginning(table: Table, prefix: Vec<u8>) -> RowsGone {
        RowsGone { table, prefix, source: None }
    }

    /// Whether the row with this key is removed.
    #[must_use]
    pub fn takes(&self, table: Table, key: &[u8]) -> bool {
        let is_from = |source: &[u8]| split_binding(key).is_ok_and(|(_, rest)| rest.starts_with(source));
        let is_begun = table == self.table && key.starts_with(&self.prefix);
        is_begun && self.source.as_deref().is_none_or(is_from)
    }

    /// Finds the removed rows in a sorted set of keys.
    #[must_use]
    pub fn among(&self, keys: &BTreeSet<(Table, Vec<u8>)>) -> Vec<(Table, Vec<u8>)> {
        let from = keys.range((self.table, self.prefix.clone())..);
        let near = from.take_while(|(table, key)| *table == self.table && key.starts_with(&self.prefix));
        near.filter(|(table, key)| self.takes(*table, key)).cloned().collect()
    }
}

impl Definition {
    /// Encodes the definition as a record's payload.
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
            Definition::ExchangeGone { vhost, name } => {
                out.push(4);
                out.extend_from_slice(&vhost.0.to_le_bytes());
                push_short(&mut out, name.as_bytes());
            }
            Definition::Binding(binding) => {
                out.push(5);
                push_binding(&mut out, binding);
            }
            Definition::BindingGone(binding) => {
                out.push(6);
                push_binding(&mut out, binding);
            }
            Definition::QueueChanged { queue, vhost, name, settings } => {
                out.push(7);
                out.extend_from_slice(&queue.0.to_le_bytes());
                push_queue(&mut out, *vhost, name, settings);
            }
        }
        out
    }

    /// Decodes a record's payload.
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
            4 => {
                let (vhost, name) = (VhostId(fields.u32()?), Name::new(fields.short()?));
                Definition::ExchangeGone { vhost, name }
            }
            5 => Definition::Binding(binding(fields.rest())?),
            6 => Definition::BindingGone(binding(fields.rest())?),
            7 => {
                let id = DurableQueueId(fields.u64()?);
                let (vhost, name, settings) = queue(&mut fields)?;
                Definition::QueueChanged { queue: id, vhost, name, settings }
            }
            _ => return Err(RecordError::Unknown("kind of definition")),
        })
    }

    /// The changes of rows that the definition makes; `lsn` is the number of its record.
    #[must_use]
    pub fn rows(&self, lsn: Lsn) -> Vec<Row> {
        match self {
            Definition::Queue { vhost, name, settings } => {
                let mut value = vec![VERSION];
                push_queue(&mut value, *vhost, name, settings);
                vec![Row::Put { table: Table::Queues, key: lsn.0.to_be_bytes().to_vec(), value }]
            }
            Definition::QueueChanged { queue, vhost, name, settings } => {
                let mut value = vec![VERSION];
                push_queue(&mut value, *vhost, name, settings);
                vec![Row::Put { table: Table::Queues, key: queue.0.to_be_bytes().to_vec(), value }]
            }
            Definition::QueueGone { queue } => {
                let mut target = Vec::new();
                push_target(&mut target, &BindingTarget::Queue(*queue), VhostId(0));
                let queue = RowsGone::beginning(Table::Queues, queue.0.to_be_bytes().to_vec());
                [queue, RowsGone::beginning(Table::Bindings, target)].map(Row::Gone).into()
            }
            Definition::Exchange { vhost, name, kind, settings } => {
                let mut value = vec![VERSION];
                push_exchange(&mut value, *kind, settings);
                vec![Row::Put { table: Table::Exchanges, key: exchange_key(*vhost, name), value }]
            }
            Definition::ExchangeGone { vhost, name } => {
                let (mut target, source) = (Vec::new(), exchange_key(*vhost, name));
                push_target(&mut target, &BindingTarget::Exchange(name.clone()), *vhost);
                let exchange = RowsGone::beginning(Table::Exchanges, source.clone());
                let to = RowsGone::beginning(Table::Bindings, target);
                let from = RowsGone { table: Table::Bindings, prefix: Vec::new(), source: Some(source) };
                [exchange, to, from].map(Row::Gone).into()
            }
            Definition::Binding(binding) => {
                let mut key = Vec::new();
                push_binding(&mut key, binding);
                vec![Row::Put { table: Table::Bindings, key, value: vec![VERSION] }]
            }
            Definition::BindingGone(binding) => {
                let mut key = Vec::new();
                push_binding(&mut key, binding);
                vec![Row::Gone(RowsGone::beginning(Table::Bindings, key))]
            }
        }
    }

    /// Decodes the definition from a row. Also returns the id of a queue; for other definitions this is
    /// [`Lsn::NONE`].
    ///
    /// # Errors
    /// [`RecordError`].
    pub fn of_row(table: Table, key: &[u8], value: &[u8]) -> Result<(Definition, Lsn), RecordError> {
        let mut fields = Fields::of(value, VERSION)?;
        match table {
            Table::Queues => {
                let id = key.first_chunk().map_or(Lsn::NONE, |id| Lsn(u64::from_be_bytes(*id)));
                let (vhost, name, settings) = queue(&mut fields)?;
                Ok((Definition::Queue { vhost, name, settings }, id))
            }
            Table::Exchanges => {
                let (vhost, rest) = split_vhost(key)?;
                let (name, _) = split_short(rest)?;
                let (kind, settings) = exchange(&mut fields)?;
                Ok((Definition::Exchange { vhost, name: Name::new(name), kind, settings }, Lsn::NONE))
            }
            Table::Bindings => Ok((Definition::Binding(binding(key)?), Lsn::NONE)),
        }
    }
}

/// The key of an exchange: `vhost u32 big endian, name short`. The keys of its bindings contain it too.
fn exchange_key(vhost: VhostId, name: &Name) -> Vec<u8> {
    let mut key = vhost.0.to_be_bytes().to_vec();
    push_short(&mut key, name.as_bytes());
    key
}

const TO_QUEUE: u8 = 0;
const TO_EXCHANGE: u8 = 1;

/// `kind u8`, then the id of a queue, `u64` big endian, or the key of an exchange.
fn push_target(out: &mut Vec<u8>, target: &BindingTarget, vhost: VhostId) {
    match target {
        BindingTarget::Queue(queue) => {
            out.push(TO_QUEUE);
            out.extend_from_slice(&queue.0.to_be_bytes());
        }
        BindingTarget::Exchange(name) => {
            out.push(TO_EXCHANGE);
            out.extend_from_slice(&exchange_key(vhost, name));
        }
    }
}

/// Writes a binding, as in a record and as in the key of a row: its target, the key of its exchange, `syntax
/// u8, key short`, and the arguments as `count u32` and that many bytes.
fn push_binding(out: &mut Vec<u8>, binding: &BindingDefinition) {
    let BindingDefinition { vhost, exchange, key, arguments, target } = binding;
    push_target(out, target, *vhost);
    out.extend_from_slice(&exchange_key(*vhost, exchange));
    out.push(syntax_number(key.syntax));
    push_short(out, key.text.as_bytes());
    let arguments = arguments.as_bytes();
    let len = u32::try_from(arguments.len()).expect("a binding has few arguments");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(arguments);
}

fn split_vhost(bytes: &[u8]) -> Result<(VhostId, &[u8]), RecordError> {
    let (vhost, rest) = bytes.split_first_chunk().ok_or(RecordError::Truncated)?;
    Ok((VhostId(u32::from_be_bytes(*vhost)), rest))
}

fn split_short(bytes: &[u8]) -> Result<(&[u8], &[u8]), RecordError> {
    let (len, rest) = bytes.split_first_chunk().ok_or(RecordError::Truncated)?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*len))).ok_or(RecordError::Truncated)
}

/// Splits the key of a binding into its target and the rest.
fn split_binding(bytes: &[u8]) -> Result<(BindingTarget, &[u8]), RecordError> {
    let (kind, rest) = bytes.split_first().ok_or(RecordError::Truncated)?;
    match *kind {
        TO_QUEUE => {
            let (queue, rest) = rest.split_first_chunk().ok_or(RecordError::Truncated)?;
            Ok((BindingTarget::Queue(DurableQueueId(u64::from_be_bytes(*queue))), rest))
        }
        TO_EXCHANGE => {
            let (_, rest) = split_vhost(rest)?;
            let (name, rest) = split_short(rest)?;
            Ok((BindingTarget::Exchange(Name::new(name)), rest))
        }
        _ => Err(RecordError::Unknown("target of a binding")),
    }
}

fn binding(bytes: &[u8]) -> Result<BindingDefinition, RecordError> {
    let (target, rest) = split_binding(bytes)?;
    let (vhost, rest) = split_vhost(rest)?;
    let (exchange, rest) = split_short(rest)?;
    let (number, rest) = rest.split_first().ok_or(RecordError::Truncated)?;
    let (text, rest) = split_short(rest)?;
    let (len, rest) = rest.split_first_chunk().ok_or(RecordError::Truncated)?;
    let len = usize::try_from(u32::from_le_bytes(*len)).map_err(|_| RecordError::Truncated)?;
    let arguments = rest.get(..len).ok_or(RecordError::Truncated)?;
    Ok(BindingDefinition {
        vhost,
        exchange: Name::new(exchange),
        key: BindingKey { syntax: syntax(*number)?, text: Name::new(text) },
        arguments: Arguments::from_bytes(arguments).ok_or(RecordError::Unknown("arguments of a binding"))?,
        target,
    })
}

const KINDS: [ExchangeKind; 4] =
    [ExchangeKind::Direct, ExchangeKind::Fanout, ExchangeKind::Topic, ExchangeKind::Headers];
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

/// `vhost u32, name short, arguments short, is_stream u8`, the settings of a stream if there are any, and the other
/// arguments. A queue that is exclusive or goes by itself is not
/// durable, so that neither is recorded.
fn push_queue(out: &mut Vec<u8>, vhost: VhostId, name: &Name, settings: &QueueSettings) {
    out.extend_from_slice(&vhost.0.to_le_bytes());
    push_short(out, name.as_bytes());
    let arguments = recorded(settings);
    push_short(out, arguments.as_bytes());
    out.push(u8::from(settings.stream.is_some()));
    settings.stream.iter().for_each(|stream| push_stream_settings(out, stream));
    out.extend_from_slice(settings.others.as_bytes());
}

fn queue(fields: &mut Fields<'_>) -> Result<(VhostId, Name, QueueSettings), RecordError> {
    const UNKNOWN: RecordError = RecordError::Unknown("arguments of a queue");
    let (vhost, name) = (VhostId(fields.u32()?), Name::new(fields.short()?));
    let arguments = Arguments::from_bytes(fields.short()?).ok_or(UNKNOWN)?;
    let stream = match fields.u8()? {
        0 => None,
        1 => Some(Box::new(stream_settings(fields)?)),
        _ => return Err(UNKNOWN),
    };
    let others = Arguments::from_bytes(fields.rest()).ok_or(UNKNOWN)?;
    let declared = QueueSettings { is_durable: true, stream, others, ..QueueSettings::default() };
    Ok((vhost, name, read_recorded(declared, &arguments).ok_or(UNKNOWN)?))
}

const IS_INTERNAL: u8 = 1;
const HAS_ALTERNATE: u8 = 2;
const IS_AUTO_DELETE: u8 = 4;
const IS_DELAYED: u8 = 8;

fn push_exchange(out: &mut Vec<u8>, kind: ExchangeKind, settings: &Settings) {
    out.push(number_of(&KINDS, &kind));
    let flag = |is_so, flag| if is_so { flag } else { 0 };
    let flags = [
        flag(settings.is_internal, IS_INTERNAL),
        flag(settings.alternate.is_some(), HAS_ALTERNATE),
        flag(settings.is_auto_delete, IS_AUTO_DELETE),
        flag(settings.is_delayed, IS_DELAYED),
    ];
    out.push(flags.into_iter().fold(0, |all, flag| all | flag));
    settings.alternate.iter().for_each(|name| push_short(out, name.as_bytes()));
}

fn exchange(fields: &mut Fields<'_>) -> Result<(ExchangeKind, Settings), RecordError> {
    let kind = of_number(&KINDS, fields.u8()?, "kind of exchange")?;
    let flags = fields.u8()?;
    let alternate = if flags & HAS_ALTERNATE != 0 { Some(Name::new(fields.short()?)) } else { None };
    let has = |flag| flags & flag != 0;
    let (is_internal, is_auto_delete, is_delayed) = (has(IS_INTERNAL), has(IS_AUTO_DELETE), has(IS_DELAYED));
    Ok((kind, Settings { is_durable: true, is_auto_delete, is_internal, alternate, is_delayed }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::confirm::Level;
    use crate::message::Value;
    use crate::policy::QueueKind;
    use crate::queue::{DeadLetterTarget, Overflow};

    fn samples() -> Vec<Definition> {
        let (vhost, name) = (VhostId(3), Name::from("orders"));
        let plain = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let full = QueueSettings {
            expires: Some(Duration::from_millis(5)),
            message_ttl: Some(Duration::ZERO),
            length_max: Some(7),
            length_bytes_max: Some(i64::MAX.unsigned_abs()),
            overflow: Overflow::RejectPublishDeadLetter,
            priority_max: Some(9),
            delivery_limit: Some(0),
            dedup_window: Some(Duration::from_mins(2)),
            level: Some(Level::Os),
            is_single_active: true,
            dead_letter: Some(DeadLetterTarget {
                exchange: Name::from("x"),
                routing_key: Some(Name::from("")),
            }),
            is_durable: true,
            ..QueueSettings::default()
        };
        let keyless = DeadLetterTarget { exchange: Name::from(""), routing_key: None };
        let dead = QueueSettings { is_durable: true, dead_letter: Some(keyless), ..QueueSettings::default() };
        let settings = Settings { is_durable: true, alternate: Some(name.clone()), ..Settings::default() };
        let lazy = Arguments::new([(Name::from("x-queue-mode"), Value::text(b"lazy"))]);
        let noted = QueueSettings { others: lazy, ..plain.clone() };
        let kind = QueueKind::Quorum;
        let quorum = QueueSettings { kind, delivery_limit: kind.delivery_limit(), ..plain.clone() };
        let unlimited = QueueSettings { kind, ..plain.clone() };
        let queues = [plain, full, dead, noted, quorum, unlimited].map(|settings| {
            let name = name.clone();
            Definition::Queue { vhost, name, settings }
        });
        let mut samples = queues.to_vec();
        samples.push(Definition::QueueGone { queue: DurableQueueId(9) });
        samples.push(Definition::ExchangeGone { vhost, name: name.clone() });
        let fleeting = Settings { is_auto_delete: true, is_internal: true, alternate: None, ..settings };
        let delayed = Settings { is_delayed: true, ..fleeting.clone() };
        for settings in [settings, fleeting, delayed] {
            samples.push(Definition::Exchange {
                vhost,
                name: name.clone(),
                kind: ExchangeKind::Headers,
                settings,
            });
        }
        let pdf =
            Arguments::new([(Name::from("format"), Value::text(b"pdf")), (Name::from("n"), Value::Int(-1))]);
        let targets =
            [BindingTarget::Queue(DurableQueueId(1 << 60)), BindingTarget::Exchange(Name::from("to"))];
        for (syntax, arguments, target) in SYNTAXES.into_iter().flat_map(|syntax| {
            let row = |target: &BindingTarget| {
                [Arguments::NONE, pdf.clone()].map(|all| (syntax, all, target.clone()))
            };
            targets.iter().flat_map(row).collect::<Vec<_>>()
        }) {
            let key = BindingKey { syntax, text: Name::from("a.b") };
            let binding =
                BindingDefinition { vhost, exchange: Name::from("amq.topic"), key, arguments, target };
            samples.push(Definition::Binding(binding.clone()));
            samples.push(Definition::BindingGone(binding));
        }
        samples
    }

    #[test]
    fn decode_after_encode_is_identity() {
        for definition in samples() {
            let bytes = definition.encode();
            assert_eq!(Definition::decode(&bytes).as_ref(), Ok(&definition));
            for len in 0..bytes.len() {
                match Definition::decode(&bytes[..len]) {
                    // Arguments without effect are at the end.
                    Ok(Definition::Queue { settings, .. }) => {
                        assert!(settings.others.is_empty(), "{definition:?} {len}");
                        assert!(
                            matches!(&definition, Definition::Queue { settings, .. } if !settings.others.is_empty())
                        );
                    }
                    decoded => assert!(decoded.is_err(), "{definition:?} {len}"),
                }
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
                    Row::Gone(_) => assert!(matches!(
                        definition,
                        Definition::QueueGone { .. }
                            | Definition::ExchangeGone { .. }
                            | Definition::BindingGone(_)
                    )),
                }
            }
        }
    }

    /// The neighbours with rows that `definition` removes.
    fn taken_by(definition: &Definition) -> Vec<Definition> {
        let mut keys = BTreeSet::new();
        let mut of_key = std::collections::BTreeMap::new();
        for (lsn, sample) in (7..).zip(neighbours()) {
            for row in sample.rows(Lsn(lsn)) {
                if let Row::Put { table, key, .. } = row {
                    keys.insert((table, key.clone()));
                    of_key.insert((table, key), sample.clone());
                }
            }
        }
        let all = keys.clone();
        for row in definition.rows(Lsn(99)) {
            if let Row::Gone(gone) = row {
                let among = gone.among(&keys);
                let taken: Vec<_> =
                    keys.iter().filter(|(table, key)| gone.takes(*table, key)).cloned().collect();
                assert_eq!(among, taken);
                keys.retain(|place| !taken.contains(place));
            }
        }
        all.difference(&keys).map(|place| of_key[place].clone()).collect()
    }

    fn bound(vhost: u32, exchange: &str, key: &str, target: BindingTarget) -> Definition {
        let key = BindingKey::new(Syntax::Amqp, key.as_bytes());
        let (vhost, exchange) = (VhostId(vhost), Name::from(exchange));
        Definition::Binding(BindingDefinition { vhost, exchange, key, arguments: Arguments::NONE, target })
    }

    fn exchange_of(vhost: u32, name: &str) -> Definition {
        let settings = Settings { is_durable: true, ..Settings::default() };
        Definition::Exchange {
            vhost: VhostId(vhost),
            name: Name::from(name),
            kind: ExchangeKind::Topic,
            settings,
        }
    }

    /// Two queues, numbered 7 and 8, and exchanges and bindings with similar names.
    fn neighbours() -> Vec<Definition> {
        let queue = |name: &str| Definition::Queue {
            vhost: VhostId(1),
            name: Name::from(name),
            settings: QueueSettings { is_durable: true, ..QueueSettings::default() },
        };
        let to_queue = |number| BindingTarget::Queue(DurableQueueId(number));
        let to = |name: &str| BindingTarget::Exchange(Name::from(name));
        vec![
            queue("q"),
            queue("q2"),
            exchange_of(1, "x"),
            exchange_of(1, "x2"),
            exchange_of(2, "x"),
            bound(1, "x", "k", to_queue(7)),
            bound(1, "x", "k2", to_queue(7)),
            bound(1, "x2", "k", to_queue(7)),
            bound(1, "x", "k", to_queue(8)),
            bound(1, "x", "k", to("x2")),
            bound(1, "x2", "k", to("x")),
            bound(1, "x2", "k", to("x2")),
            bound(2, "x", "k", to("x")),
        ]
    }

    #[test]
    fn what_is_gone_takes_its_own_and_nothing_else_with_it() {
        let to_queue = |number| BindingTarget::Queue(DurableQueueId(number));
        let to = |name: &str| BindingTarget::Exchange(Name::from(name));
        let unbound = |binding: Definition| match binding {
            Definition::Binding(binding) => Definition::BindingGone(binding),
            other => panic!("{other:?} is no binding"),
        };
        let exchange_gone =
            |vhost, name: &str| Definition::ExchangeGone { vhost: VhostId(vhost), name: name.into() };
        for (gone, expected) in [
            (Definition::QueueGone { queue: DurableQueueId(7) }, vec![0, 5, 6, 7]),
            (Definition::QueueGone { queue: DurableQueueId(9) }, vec![]),
            (unbound(bound(1, "x", "k", to_queue(7))), vec![5]),
            (unbound(bound(1, "x", "k", to("x2"))), vec![9]),
            (unbound(bound(1, "x", "", to_queue(7))), vec![]),
            (exchange_gone(1, "x"), vec![2, 5, 6, 8, 9, 10]),
            (exchange_gone(2, "x"), vec![4, 12]),
            (exchange_gone(1, "x2"), vec![3, 7, 9, 10, 11]),
            (exchange_gone(1, ""), vec![]),
        ] {
            let all = neighbours();
            let mut found: Vec<usize> = taken_by(&gone)
                .iter()
                .map(|taken| all.iter().position(|one| one == taken).expect("it is one of them"))
                .collect();
            found.sort_unstable();
            assert_eq!(found, expected, "{gone:?}");
        }
    }

    #[test]
    fn what_an_earlier_format_wrote_is_refused() {
        for definition in samples() {
            let mut bytes = definition.encode();
            bytes[0] = 1;
            assert_eq!(Definition::decode(&bytes), Err(RecordError::Version(1)));
        }
        assert_eq!(Definition::of_row(Table::Queues, &[0; 8], &[1]), Err(RecordError::Version(1)));
    }
}
