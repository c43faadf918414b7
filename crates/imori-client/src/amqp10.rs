//! AMQP 1.0: the frames of one session.
//!
//! Commands may be pipelined: a broker executes them before it has opened, begun or attached its end.

use std::borrow::Cow;

use imori_amqp10::codec::composite::Composite;
use imori_amqp10::codec::composites::{
    Accepted, AnyTarget, Attach, Begin, DeliveryState, Disposition, Error, Flow, Open, Performative,
    SaslFrame, SaslInit, Source, Target, Transfer,
};
use imori_amqp10::codec::frame::{FrameKind, ProtocolHeader, Step, decode, push_frame};
use imori_amqp10::codec::map::MapBuf;
use imori_amqp10::codec::push::{push_descriptor, push_value};
use imori_amqp10::codec::restricted::{
    Role, SaslCode, SenderSettleMode, TerminusDurability, TerminusExpiryPolicy,
};
use imori_amqp10::codec::symbols::Symbols;
use imori_amqp10::codec::value::{Descriptor, Symbol, Value};

use crate::Malformed;

/// A session window in transfers, so large that only the credit of links limits deliveries.
pub const WINDOW: u32 = i32::MAX as u32;

/// The filter of a selector, from the registry of filters.
const SELECTOR: (&str, u64) = ("jms-selector", 0x0000_468C_0000_0004);

/// The delivery-id and the bytes of a whole message.
type Whole<'a> = (u32, Cow<'a, [u8]>);

/// The data with which a client logs in.
#[derive(Debug, Clone, Copy)]
pub struct Login<'a> {
    /// Name of the container, unique among the connections.
    pub container: &'a str,
    /// User and password; without them, those of RabbitMQ's first user.
    pub user: Option<(&'a str, &'a str)>,
    /// Name of the machine, if the login is of interest to more than one.
    pub host: Option<&'a str>,
    /// The vhost to open.
    pub vhost: &'a str,
    /// Bytes of the largest frame.
    pub frame_max: u32,
    /// The highest channel number.
    pub channel_max: u16,
    /// Milliseconds of silence that the client accepts.
    pub silence_ms: Option<u32>,
}

/// Appends everything from the first header to the opening of the connection.
pub fn push_login(out: &mut Vec<u8>, login: &Login<'_>) {
    let (user, password) = login.user.unwrap_or(("guest", "guest"));
    let response = format!("\0{user}\0{password}");
    let init = SaslInit {
        mechanism: Symbol("PLAIN"),
        initial_response: Some(response.as_bytes()),
        hostname: login.host,
    };
    out.extend_from_slice(ProtocolHeader::Sasl.bytes());
    push_frame(out, FrameKind::Sasl, 0, |out| init.encode(out));
    out.extend_from_slice(ProtocolHeader::Amqp.bytes());
    let hostname = (login.vhost != "/").then(|| format!("vhost:{}", login.vhost));
    let open = Open {
        container_id: login.container,
        hostname: hostname.as_deref(),
        max_frame_size: login.frame_max,
        channel_max: login.channel_max,
        idle_time_out: login.silence_ms,
        ..Open::default()
    };
    push(out, 0, &open);
}

/// Appends a frame without a payload.
pub fn push<'a>(out: &mut Vec<u8>, channel: u16, performative: &impl Composite<'a>) {
    push_frame(out, FrameKind::Amqp, channel, |out| performative.encode(out));
}

/// Appends the beginning of a session that limits no deliveries.
pub fn push_begin(out: &mut Vec<u8>, channel: u16) {
    push(out, channel, &Begin { incoming_window: WINDOW, outgoing_window: WINDOW, ..Begin::default() });
}

/// Appends a sending link.
pub fn push_sender<'a>(
    out: &mut Vec<u8>,
    channel: u16,
    name: &'a str,
    handle: u32,
    target: impl Into<AnyTarget<'a>>,
) {
    let attach = Attach {
        name,
        handle,
        role: Role::Sender,
        source: Some(Source::default()),
        target: Some(target.into()),
        initial_delivery_count: Some(0),
        ..Attach::default()
    };
    push(out, channel, &attach);
}

/// A receiving link.
#[derive(Debug, Default, Clone, Copy)]
pub struct Receiver<'a> {
    /// Name of the link between both containers.
    pub name: &'a str,
    /// Our handle.
    pub handle: u32,
    /// The node; without one, the broker makes a temporary queue.
    pub address: Option<&'a str>,
    /// Whether the node is a `queue` or a `topic`, if the address does not tell.
    pub capability: Option<&'a str>,
    /// A condition on the messages.
    pub selector: Option<&'a str>,
    /// Whether deliveries come settled.
    pub is_settled: bool,
    /// Whether it is a subscription that outlives the connection and that others may share.
    pub is_durable: bool,
}

/// Appends a receiving link.
pub fn push_receiver(out: &mut Vec<u8>, channel: u16, receiver: &Receiver<'_>) {
    let mut filter = MapBuf::new();
    if let Some(selector) = receiver.selector {
        filter.push_with(Value::Symbol(Symbol(SELECTOR.0)), |out| {
            push_descriptor(out, Descriptor::Code(SELECTOR.1));
            push_value(out, Value::String(selector));
        });
    }
    let of_node = match receiver.address {
        Some(_) => receiver.capability,
        None => Some("temporary-queue"),
    };
    let of_subscription = if receiver.is_durable { &["shared", "global"][..] } else { &[] };
    let capabilities: Vec<Symbol<'_>> =
        of_node.into_iter().chain(of_subscription.iter().copied()).map(Symbol).collect();
    let mut source = Source {
        address: receiver.address,
        dynamic: receiver.address.is_none(),
        filter: (!filter.is_empty()).then(|| filter.map()),
        capabilities: (!capabilities.is_empty()).then_some(Symbols::Slice(&capabilities)),
        ..Source::default()
    };
    if receiver.is_durable {
        source.durable = TerminusDurability::UnsettledState;
        source.expiry_policy = TerminusExpiryPolicy::Never;
    }
    let attach = Attach {
        name: receiver.name,
        handle: receiver.handle,
        role: Role::Receiver,
        snd_settle_mode: match receiver.is_settled {
            true => SenderSettleMode::Settled,
            false => SenderSettleMode::Unsettled,
        },
        source: Some(source),
        target: Some(Target::default().into()),
        ..Attach::default()
    };
    push(out, channel, &attach);
}

/// The credit of a receiving link.
#[derive(Debug, Default, Clone, Copy)]
pub struct Credit {
    /// Deliveries so far.
    pub delivered: u32,
    /// The delivery count up to which credit is granted.
    pub granted_until: u32,
}

impl Credit {
    /// Grants credit up to this delivery count. Before the broker has attached its end, it is the
    /// number of deliveries.
    pub fn grant(
        &mut self,
        out: &mut Vec<u8>,
        channel: u16,
        (handle, is_attached): (u32, bool),
        next_incoming_id: u32,
        until: u32,
    ) {
        self.granted_until = until;
        let flow = Flow {
            next_incoming_id: Some(next_incoming_id),
            incoming_window: WINDOW,
            outgoing_window: WINDOW,
            handle: Some(handle),
            delivery_count: is_attached.then_some(self.delivered),
            link_credit: Some(until.wrapping_sub(self.delivered).min(WINDOW)),
            ..Flow::default()
        };
        push(out, channel, &flow);
    }

    /// Counts a delivery; returns whether half of a credit of `size` is used.
    pub fn is_half_used(&mut self, size: u32) -> bool {
        self.delivered = self.delivered.wrapping_add(1);
        self.granted_until.wrapping_sub(self.delivered) <= size / 2
    }
}

/// Appends a message, split into transfers with at most `part_bytes` of it; returns the offset of its
/// first byte, counted from the first frame.
pub fn push_message(
    out: &mut Vec<u8>,
    channel: u16,
    first: &Transfer<'_>,
    message: &[u8],
    part_bytes: usize,
) -> usize {
    let begin = out.len();
    let mut message_at = None;
    let mut parts = message.chunks(part_bytes).peekable();
    while let Some(part) = parts.next() {
        let transfer = match message_at {
            None => *first,
            Some(_) => Transfer { handle: first.handle, ..Transfer::default() },
        };
        push_frame(out, FrameKind::Amqp, channel, |out| {
            Transfer { more: parts.peek().is_some(), ..transfer }.encode(out);
            message_at.get_or_insert(out.len() - begin);
            out.extend_from_slice(part);
        });
    }
    message_at.unwrap_or_default()
}

/// Appends the acceptance of deliveries.
pub fn push_accept(out: &mut Vec<u8>, channel: u16, first: u32, last: u32) {
    let disposition = Disposition {
        role: Role::Receiver,
        first,
        last: (first != last).then_some(last),
        settled: true,
        state: Some(DeliveryState::Accepted(Accepted {})),
        ..Disposition::default()
    };
    push(out, channel, &disposition);
}

/// One item that a broker sends.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it lives for one step; a box would cost an allocation for each confirm"
)]
pub enum Item<'a> {
    /// A header, or a step of the login.
    Nothing,
    /// An empty frame, which keeps the connection alive.
    Heartbeat,
    /// User and password are wrong.
    LoginRefused,
    /// A part of a message, but not the last one.
    Part(Transfer<'a>),
    /// The last transfer of a message, its delivery-id and the whole message.
    Delivery(Transfer<'a>, u32, Cow<'a, [u8]>),
    /// Anything else.
    Performative(Performative<'a>),
}

/// Decodes what a broker sends in one session.
#[derive(Debug)]
pub struct Reader {
    frame_max: usize,
    /// Number of the next transfer.
    next_incoming_id: u32,
    /// Handle, delivery-id and first transfers of a message whose last one has not arrived.
    unfinished: Option<(u32, u32, Vec<u8>)>,
}

impl Reader {
    /// A reader that refuses longer frames.
    pub fn new(frame_max: usize) -> Reader {
        Reader { frame_max, next_incoming_id: 0, unfinished: None }
    }

    /// Number of the next transfer.
    pub fn next_incoming_id(&self) -> u32 {
        self.next_incoming_id
    }

    /// Whether the last transfer of a message has not arrived.
    pub fn has_part(&self) -> bool {
        self.unfinished.is_some()
    }

    /// Decodes the first item and returns it with its length; `None` if it is incomplete.
    ///
    /// # Errors
    /// The bytes are not of AMQP 1.0, or a message comes within another one.
    pub fn take<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Item<'a>, usize)>, Malformed> {
        let frame = match decode(input, self.frame_max)? {
            Step::Incomplete { .. } => return Ok(None),
            Step::Header(header) => return Ok(Some((Item::Nothing, header.bytes().len()))),
            Step::Frame(frame) => frame,
        };
        let item = match frame.kind {
            FrameKind::Sasl if is_login_refused(frame.body)? => Item::LoginRefused,
            FrameKind::Sasl => Item::Nothing,
            FrameKind::Amqp if frame.body.is_empty() => Item::Heartbeat,
            FrameKind::Amqp => match Performative::decode(frame.body)? {
                (Performative::Transfer(transfer), payload) => match self.transfer(&transfer, payload)? {
                    Some((id, message)) => Item::Delivery(transfer, id, message),
                    None => Item::Part(transfer),
                },
                (performative, _) => {
                    if let Performative::Begin(begin) = &performative {
                        self.begun(begin);
                    }
                    Item::Performative(performative)
                }
            },
        };
        Ok(Some((item, frame.len)))
    }

    /// Notes the beginning of the session.
    fn begun(&mut self, begin: &Begin<'_>) {
        self.next_incoming_id = begin.next_outgoing_id;
    }

    /// Notes a transfer; returns the delivery-id and the whole message if it is the last one.
    fn transfer<'a>(
        &mut self,
        transfer: &Transfer<'_>,
        payload: &'a [u8],
    ) -> Result<Option<Whole<'a>>, Malformed> {
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        let (id, mut message) = match (self.unfinished.take(), transfer.delivery_id) {
            (None, Some(id)) => (id, Cow::Borrowed(payload)),
            // Transfers after the first one may repeat the delivery-id.
            (Some((handle, id, mut message)), repeated)
                if handle == transfer.handle && repeated.is_none_or(|repeated| repeated == id) =>
            {
                message.extend_from_slice(payload);
                (id, Cow::Owned(message))
            }
            (unfinished, id) => {
                return Err(format!("delivery {id:?} comes, and {unfinished:?} is not whole").into());
            }
        };
        if transfer.more && !transfer.aborted {
            self.unfinished = Some((transfer.handle, id, std::mem::take(message.to_mut())));
        }
        Ok((!transfer.more && !transfer.aborted).then_some((id, message)))
    }
}

/// Whether a frame of the login says that user and password are wrong.
fn is_login_refused(body: &[u8]) -> Result<bool, Malformed> {
    Ok(matches!(SaslFrame::decode(body)?, SaslFrame::Outcome(outcome) if outcome.code != SaslCode::Ok))
}

/// The broker's reason for ending the connection, the session or a link, or for not taking a
/// message; `None` for any other performative.
pub fn refusal(performative: &Performative<'_>) -> Option<String> {
    let (error, otherwise) = match performative {
        Performative::Detach(detach) => (detach.error, "it detaches a link"),
        Performative::End(end) => (end.error, "it ends the session"),
        Performative::Close(close) => (close.error, "it closes the connection"),
        Performative::Disposition(Disposition { role: Role::Receiver, state: Some(state), .. }) => {
            match state {
                DeliveryState::Rejected(rejected) => (rejected.error, "the message is rejected"),
                DeliveryState::Released(_) | DeliveryState::Modified(_) => {
                    (None, "no queue gets the message")
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    Some(String::from(error.map_or(otherwise, |error| reason(&error))))
}

/// The words of an error for people.
pub fn reason<'a>(error: &Error<'a>) -> &'a str {
    error.description.unwrap_or(error.condition.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(handle: u32, delivery_id: Option<u32>, more: bool) -> Vec<u8> {
        let mut out = Vec::new();
        push_frame(&mut out, FrameKind::Amqp, 0, |out| {
            Transfer { handle, delivery_id, more, ..Transfer::default() }.encode(out);
            out.extend_from_slice(b"ab");
        });
        out
    }

    #[test]
    fn a_message_is_split_and_put_together_again() {
        for (size, parts) in [(1, 1), (5, 1), (6, 2), (10, 2), (11, 3)] {
            let message: Vec<u8> = (0..size).collect();
            let first = Transfer { handle: 4, delivery_id: Some(9), ..Transfer::default() };
            let mut out = b"before".to_vec();
            let message_at = push_message(&mut out, 0, &first, &message, 5);
            assert_eq!(out[6 + message_at..][..message.len().min(5)], message[..message.len().min(5)]);
            let mut reader = Reader::new(1000);
            let mut rest = &out[6..];
            for part in 1..=parts {
                let (item, used) = reader.take(rest).unwrap().unwrap();
                rest = &rest[used..];
                match item {
                    Item::Part(transfer) => assert!(part < parts && transfer.more && reader.has_part()),
                    Item::Delivery(_, id, whole) => assert_eq!((id, &*whole, part), (9, &*message, parts)),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((rest, reader.next_incoming_id()), (&b""[..], parts));
        }
    }

    #[test]
    fn a_message_within_another_is_refused() {
        for (second, is_right) in [
            (transfer(0, None, false), true),
            (transfer(0, Some(7), false), true),
            (transfer(0, Some(8), false), false),
            (transfer(1, None, false), false),
        ] {
            let mut reader = Reader::new(1000);
            reader.take(&transfer(0, Some(7), true)).unwrap();
            assert_eq!(reader.take(&second).is_ok(), is_right);
        }
        assert!(Reader::new(1000).take(&transfer(0, None, false)).is_err(), "its first part is missing");
    }

    #[test]
    fn credit_is_due_once_half_of_it_is_used() {
        let mut credit = Credit::default();
        let mut out = Vec::new();
        credit.grant(&mut out, 0, (1, false), 0, 4);
        let is_due: Vec<bool> = (0..4).map(|_| credit.is_half_used(4)).collect();
        assert_eq!(is_due, [false, true, true, true]);
        let (item, _) = Reader::new(1000).take(&out).unwrap().unwrap();
        let Item::Performative(Performative::Flow(flow)) = item else { panic!("{item:?}") };
        assert_eq!((flow.delivery_count, flow.link_credit), (None, Some(4)));
    }
}
