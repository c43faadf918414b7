//! Decodes the frames of an AMQP 1.0 broker, tracks its credit, and grants ours.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail, ensure};
use imori_amqp10::codec::composites::{
    Attach, DeliveryState, Disposition, Error, Flow, Open, Performative, SaslFrame, Transfer,
};
use imori_amqp10::codec::frame::{Frame, FrameKind, Step, decode, push_heartbeat};
use imori_amqp10::codec::restricted::{MessageId, Role, SaslCode};
use imori_amqp10::codec::sections::{Section, Sections};
use imori_amqp10::codec::value::Value;
use imori_client::amqp10::{self, reason};

use crate::protocol::amqp10_set_up::{CHANNEL, FRAME_BYTES, Purpose, frames_of};
use crate::protocol::credit::Credit;
use crate::protocol::driver::{Confirmed, Delivery, Heard, Reader, text};
use crate::protocol::template::{Correlation, MessageTemplate, RequestTemplate};

/// The error for bytes that no AMQP 1.0 broker would send.
const NOT_AMQP: &str = "what the broker sends is not AMQP 1.0; correct scheme or port of `--url`";

/// Decodes the bytes of one connection.
#[derive(Debug)]
pub(super) struct Amqp10Reader {
    server: String,
    /// Transfer number of the next incoming transfer.
    next_incoming_id: u32,
    /// The receiving link and its credit.
    incoming: Option<Incoming>,
    /// The sending links.
    publish: Option<Outgoing>,
    reply: Option<Outgoing>,
    /// Messages that may be published.
    credit: Arc<Credit>,
    /// Number of the first transfer beyond the session window.
    window_until: u32,
    /// Confirmed messages, from first to last, that are not reported yet.
    confirmed: Option<(u32, u32)>,
    /// The next frames to write.
    answer: Vec<u8>,
    is_answer_due: bool,
    /// The address of the dynamic node.
    reply_address: Option<String>,
    /// A delivery that spans several transfers.
    gathered: Vec<u8>,
    is_gathering: bool,
    delivery_id: [u8; 4],
}

#[derive(Debug)]
struct Incoming {
    purpose: Purpose,
    /// Delivery count of the link, and the count up to which credit is granted.
    delivered: u32,
    granted_until: u32,
}

#[derive(Debug, Clone, Copy)]
struct Outgoing {
    handle: u32,
    credit_until: u32,
}

impl Default for Amqp10Reader {
    fn default() -> Amqp10Reader {
        Amqp10Reader {
            server: String::new(),
            next_incoming_id: 0,
            incoming: None,
            publish: None,
            reply: None,
            credit: Arc::new(Credit::new(0, 0, i64::MAX)),
            window_until: 0,
            confirmed: None,
            answer: Vec::new(),
            is_answer_due: false,
            reply_address: None,
            gathered: Vec::new(),
            is_gathering: false,
            delivery_id: [0; 4],
        }
    }
}

impl Reader for Amqp10Reader {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Option<(Heard<'a>, usize)>> {
        if self.is_answer_due {
            self.is_answer_due = false;
            return Ok(Some((Heard::Ping(&self.answer), 0)));
        }
        if let Some(number) = self.next_confirmed() {
            return Ok(Some((Heard::Confirmed(Some(Confirmed { number, level: None })), 0)));
        }
        let frame = match decode(bytes, FRAME_BYTES as usize) {
            Ok(Step::Frame(frame)) => frame,
            Ok(Step::Header(header)) => return Ok(Some((Heard::Nothing, header.bytes().len()))),
            Ok(Step::Incomplete { .. }) => return Ok(None),
            Err(_) => bail!("{NOT_AMQP}"),
        };
        let heard = match frame.kind {
            FrameKind::Sasl => of_login(&frame)?,
            FrameKind::Amqp if frame.body.is_empty() => {
                self.answer.clear();
                push_heartbeat(&mut self.answer);
                Heard::Ping(&self.answer)
            }
            FrameKind::Amqp => self.performative(&frame)?,
        };
        Ok(Some((heard, frame.len)))
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn serve(&mut self, _: Correlation, request: &mut RequestTemplate) {
        self.credit.set_request_bytes(frames_of(request.body_bytes()));
        request.set_credit(Arc::clone(&self.credit));
    }

    fn feed(&mut self, message: &mut MessageTemplate) {
        self.credit.set_request_bytes(frames_of(message.body_bytes()));
        message.set_credit(Arc::clone(&self.credit));
    }

    fn reply_address(&self) -> Option<&str> {
        self.reply_address.as_deref()
    }
}

impl Amqp10Reader {
    /// The next confirmed message that is not reported yet.
    fn next_confirmed(&mut self) -> Option<u32> {
        let (next, last) = self.confirmed?;
        self.confirmed = (next != last).then_some((next.wrapping_add(1), last));
        Some(next)
    }

    fn performative<'a>(&'a mut self, frame: &Frame<'a>) -> Result<Heard<'a>> {
        let (performative, payload) = Performative::decode(frame.body).map_err(|_| anyhow!("{NOT_AMQP}"))?;
        Ok(match performative {
            Performative::Transfer(transfer) => return self.transfer(&transfer, payload),
            Performative::Disposition(disposition) => self.disposition(&disposition),
            Performative::Flow(flow) => self.flow(&flow),
            Performative::Attach(attach) => self.attach(&attach)?,
            Performative::Open(open) => {
                self.server = server(&open);
                ensure!(
                    open.max_frame_size >= FRAME_BYTES,
                    "the broker takes frames of `{}` bytes; let it take `{FRAME_BYTES}`",
                    open.max_frame_size
                );
                Heard::Nothing
            }
            Performative::Begin(begin) => {
                self.next_incoming_id = begin.next_outgoing_id;
                self.window_until = begin.incoming_window;
                self.credit.add_bytes(i64::from(begin.incoming_window));
                Heard::Confirmed(None)
            }
            Performative::Detach(detach) => ended(detach.error.as_ref(), "it detaches a link"),
            Performative::End(end) => ended(end.error.as_ref(), "it ends the session"),
            Performative::Close(close) => ended(close.error.as_ref(), "it closes the connection"),
        })
    }

    /// Handles an attach. A refused link is followed by a detach.
    fn attach(&mut self, attach: &Attach<'_>) -> Result<Heard<'static>> {
        let Ok(purpose) = attach.name.parse::<Purpose>() else { bail!("{NOT_AMQP}") };
        let outgoing = Outgoing { handle: attach.handle, credit_until: 0 };
        match purpose {
            Purpose::Publish => self.publish = Some(outgoing),
            Purpose::Reply => self.reply = Some(outgoing),
            Purpose::Consume { .. } | Purpose::Serve => {
                let Some(source) = &attach.source else { return Ok(Heard::Nothing) };
                let delivered = attach.initial_delivery_count.unwrap_or(0);
                let granted_until = match purpose {
                    Purpose::Consume { credit, .. } => delivered.wrapping_add(credit),
                    _ => delivered,
                };
                self.incoming = Some(Incoming { purpose, delivered, granted_until });
                if source.dynamic {
                    self.reply_address = source.address.map(str::to_owned);
                }
                if let Purpose::Consume { is_awaited: true, .. } = purpose {
                    return Ok(Heard::Confirmed(None));
                }
            }
        }
        Ok(Heard::Nothing)
    }

    /// Handles more credit on a link, or a larger session window.
    fn flow(&mut self, flow: &Flow<'_>) -> Heard<'static> {
        let window_until = flow.next_incoming_id.unwrap_or(0).wrapping_add(flow.incoming_window);
        self.credit.add_bytes(i64::from(window_until.wrapping_sub(self.window_until) as i32));
        self.window_until = window_until;
        let credit_until = flow.delivery_count.unwrap_or(0).wrapping_add(flow.link_credit.unwrap_or(0));
        if let Some(publish) = self.publish.as_mut().filter(|link| flow.handle == Some(link.handle)) {
            let more = credit_until.wrapping_sub(publish.credit_until) as i32;
            let is_first = publish.credit_until == 0 && more > 0;
            publish.credit_until = credit_until;
            self.credit.add_calls(i64::from(more));
            return if is_first { Heard::Confirmed(None) } else { Heard::Nothing };
        }
        if let Some(reply) = self.reply.as_mut().filter(|link| flow.handle == Some(link.handle)) {
            let is_first = reply.credit_until == 0 && credit_until > 0;
            reply.credit_until = credit_until;
            self.grant_requests();
            return if is_first { Heard::Confirmed(None) } else { Heard::Nothing };
        }
        if flow.echo {
            self.grant();
        }
        Heard::Nothing
    }

    /// Handles a transfer: a whole delivery or a part of one.
    fn transfer<'a>(&'a mut self, transfer: &Transfer<'a>, payload: &'a [u8]) -> Result<Heard<'a>> {
        self.next_incoming_id = self.next_incoming_id.wrapping_add(1);
        // Transfers after the first one may repeat the delivery-id.
        if let Some(id) = transfer.delivery_id {
            self.delivery_id = id.to_be_bytes();
        }
        if !self.is_gathering {
            self.gathered.clear();
        }
        let is_whole = !self.is_gathering && !transfer.more;
        self.is_gathering = transfer.more && !transfer.aborted;
        if !is_whole {
            self.gathered.extend_from_slice(payload);
        }
        if transfer.more || transfer.aborted {
            return Ok(Heard::Nothing);
        }
        if let Some(incoming) = &mut self.incoming {
            incoming.delivered = incoming.delivered.wrapping_add(1);
            self.grant_behind_delivery();
        }
        let delivery = delivery(if is_whole { payload } else { &self.gathered })?;
        Ok(Heard::Delivery(Delivery { ack: &self.delivery_id, ..delivery }))
    }

    /// Replenishes a consumer's credit once half of it is used.
    fn grant_behind_delivery(&mut self) {
        let Some(Incoming { purpose: Purpose::Consume { credit, .. }, delivered, granted_until, .. }) =
            self.incoming
        else {
            return;
        };
        if granted_until.wrapping_sub(delivered) <= credit / 2 {
            self.grant();
        }
    }

    /// Grants the receiving link its full credit.
    fn grant(&mut self) {
        if let Some(Incoming { purpose: Purpose::Consume { credit, .. }, delivered, .. }) = self.incoming {
            self.grant_until(delivered.wrapping_add(credit));
        }
    }

    /// Grants credit for as many requests as there is credit for replies: each request has one
    /// reply, and both links count from 0.
    fn grant_requests(&mut self) {
        if let (Some(reply), Some(Incoming { purpose: Purpose::Serve, .. })) = (self.reply, &self.incoming) {
            self.grant_until(reply.credit_until);
        }
    }

    fn grant_until(&mut self, until: u32) {
        let Some(incoming) = &mut self.incoming else { return };
        incoming.granted_until = until;
        let mut credit = amqp10::Credit { delivered: incoming.delivered, granted_until: until };
        let link = (incoming.purpose.handle(), true);
        self.answer.clear();
        credit.grant(&mut self.answer, CHANNEL, link, self.next_incoming_id, until);
        self.is_answer_due = true;
    }

    fn disposition(&mut self, disposition: &Disposition<'_>) -> Heard<'static> {
        if disposition.role != Role::Receiver || !disposition.settled {
            return Heard::Nothing;
        }
        let last = disposition.last.unwrap_or(disposition.first);
        match &disposition.state {
            Some(DeliveryState::Accepted(_)) | None => {
                self.confirmed = Some((disposition.first, last));
                let number = self.next_confirmed();
                Heard::Confirmed(number.map(|number| Confirmed { number, level: None }))
            }
            Some(DeliveryState::Rejected(rejected)) => ended(rejected.error.as_ref(), "it rejects a message"),
            Some(_) => Heard::Error("it does not take a message".to_owned()),
        }
    }
}

fn of_login(frame: &Frame<'_>) -> Result<Heard<'static>> {
    match SaslFrame::decode(frame.body).map_err(|_| anyhow!("{NOT_AMQP}"))? {
        SaslFrame::Outcome(outcome) if outcome.code != SaslCode::Ok => {
            Ok(Heard::Error("it refuses the login; correct user and password of `--url`".to_owned()))
        }
        _ => Ok(Heard::Nothing),
    }
}

/// The broker's reason for ending a link, the session or the connection.
fn ended(error: Option<&Error<'_>>, otherwise: &str) -> Heard<'static> {
    Heard::Error(text(error.map_or(otherwise, reason).as_bytes()))
}

/// Decodes the sections of a message.
fn delivery(payload: &[u8]) -> Result<Delivery<'_>> {
    let mut delivery = Delivery::default();
    let mut sections = Sections::new(payload);
    while let Some(section) = sections.next_section().map_err(|_| anyhow!("{NOT_AMQP}"))? {
        match section {
            Section::Header(header) => delivery.is_redelivered = header.delivery_count > 0,
            Section::Properties(properties) => {
                delivery.reply_to = properties.reply_to.unwrap_or_default().as_bytes();
                delivery.correlation = match properties.correlation_id {
                    Some(MessageId::String(text)) => text.as_bytes(),
                    Some(MessageId::Binary(bytes)) => bytes,
                    _ => &[],
                };
            }
            Section::Data(bytes) => delivery.body = bytes,
            Section::AmqpValue(value) => delivery.body = bytes_of(value),
            _ => {}
        }
    }
    Ok(delivery)
}

fn bytes_of(value: Value<'_>) -> &[u8] {
    match value {
        Value::Binary(bytes) => bytes,
        Value::String(text) => text.as_bytes(),
        _ => &[],
    }
}

/// Product and version of the broker.
fn server(open: &Open<'_>) -> String {
    let value = |name: &str| match open.properties.and_then(|properties| properties.find(name)) {
        Some(value) => text(bytes_of(value)),
        None => String::new(),
    };
    format!("{} {}", value("product"), value("version")).trim().to_owned()
}
