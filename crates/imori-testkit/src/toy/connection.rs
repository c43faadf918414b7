//! The inbound half: turns frames into verbs in one `match` on state and kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, ConsumeOptions, Revoked, SubscribeOptions};
use imori_core::confirm::Confirm;
use imori_core::delivery::Outcome;
use imori_core::id::{ConnectionId, ReaderId, VhostId};
use imori_core::inbound::{Accept, Inbound, Intake, Performed, Phase, Taken, Unread};
use imori_core::login::{Credentials, Verdict};
use imori_core::message::{Origins, Properties, Publication, TOPIC_EXCHANGE};
use imori_core::outbound::{Credit, Encoder, EncoderKinds, HeldAnswers, Numbers, Outbound, SessionId};
use imori_core::queue::QueueSettings;
use imori_core::route::{BindingKey, Syntax};
use imori_core::stream::CursorOptions;
use imori_core::time::Time;
use imori_core::turn::{Budget, Next, Notice, Peer};
use imori_core::world::World;

use super::encoder::ToyEncoder;
use super::frame::{Fields, Frame, Kind, decode, push};

/// Settings of a listener. The broker assigns origins and encoder kinds, so that no two protocols
/// share one.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The vhost of all clients.
    pub vhost: VhostId,
    /// The origin of messages; they have no headers.
    pub origins: Origins,
    /// The kinds of encoders.
    pub encoder_kinds: EncoderKinds,
    /// The most bytes of parked messages.
    pub parked_bytes_max: usize,
}

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    intake: Intake,
    settings: Arc<Settings>,
    id: ConnectionId,
    identity: Identity,
    channels: BTreeMap<SessionId, Channel>,
}

/// The protocol's own state of a session.
#[derive(Debug, Default)]
struct Channel {
    /// Readers by tag.
    readers: BTreeMap<u8, ReaderId>,
    /// The number of publishes so far.
    published: u64,
    /// A message with an incomplete body, in its parked form, and the number of bytes missing.
    unfinished: Option<(Vec<u8>, usize)>,
}

/// The state of a connection.
///
/// ```text
///           Login
/// Greeting ───────► Open
///     ▼              ▼
///   Closed ◄─────────┴── a refusal on channel 0
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Open,
    Closed,
}

/// An error message for the client.
struct Complaint(String);

impl<E: ToString> From<E> for Complaint {
    fn from(error: E) -> Complaint {
        Complaint(error.to_string())
    }
}

/// The largest body in bytes.
const BODY_BYTES_MAX: usize = 1 << 20;

const SHORT: &str = "the payload ends too early; see the table of kinds";

impl Accept for Connection {
    type Settings = Settings;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Connection {
        let intake = Intake::new(peer, Duration::from_secs(10), settings.parked_bytes_max, now);
        let identity = Identity::nobody();
        Connection { state: State::Greeting, intake, settings, id, identity, channels: BTreeMap::new() }
    }

    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(ToyEncoder(settings.encoder_kinds.kind(0)))
    }
}

impl Inbound for Connection {
    type Scratch = ();

    fn intake(&self) -> &Intake {
        &self.intake
    }

    fn intake_mut(&mut self) -> &mut Intake {
        &mut self.intake
    }

    fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.id, vhost: self.settings.vhost }
    }

    fn phase(&self) -> Phase {
        if self.state == State::Closed { Phase::Closed } else { Phase::Open }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.intake.parking.clear();
    }

    fn set_identity(&mut self, identity: Identity) {
        self.identity = identity;
    }

    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        for Revoked { session, refusal, .. } in revoked {
            self.refuse(world, session, &refusal.to_string());
        }
    }

    fn is_logged_in(&self) -> bool {
        self.state == State::Open
    }

    fn take<W: World>(&mut self, world: &W, _: &mut (), unread: Unread<'_>, budget: &mut Budget) -> Taken {
        let (frame, len) = match decode(unread.bytes()) {
            Ok(Some(frame)) => frame,
            Ok(None) => return Taken::Incomplete { frame_bytes: None },
            Err(sentence) => {
                self.refuse(world, SessionId::FIRST, sentence);
                return Taken::Bytes(0);
            }
        };
        budget.spend(1, 0, None);
        match self.obey(world, &frame, budget) {
            Ok(Some(next)) => return Taken::Left(next),
            Ok(None) => {}
            Err(Complaint(sentence)) => self.refuse(world, frame.channel, &sentence),
        }
        Taken::Bytes(len)
    }

    /// The parked bytes are a channel number, followed by a `Publish` and its body; a channel number
    /// alone is a `Close`.
    fn replay<W: World>(&mut self, world: &W, _: &mut (), parked: &[u8], budget: &mut Budget) -> Performed {
        let mut fields = Fields(parked);
        let channel = SessionId(fields.number(2).unwrap_or_default() as u16);
        if fields.0.is_empty() {
            self.close_channel(world, channel, HeldAnswers::Keep, Kind::Close, "");
        }
        if !self.channels.contains_key(&channel) {
            return Performed::Done;
        }
        self.publish(world, channel, fields, budget).unwrap_or_else(|Complaint(sentence)| {
            self.refuse(world, channel, &sentence);
            Performed::Done
        })
    }
}

impl Connection {
    /// Executes a frame. Returns `Some` if the frame must stay in the input.
    fn obey<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Next>, Complaint> {
        let (session, mut fields) = (frame.channel, Fields(frame.payload));
        let actor = Actor { identity: &self.identity, connection: self.id, vhost: self.settings.vhost };
        let mut confirm = Confirm::NOW;
        match (self.state, frame.kind, self.channels.get_mut(&session)) {
            (State::Greeting, Kind::Login, _) => {
                let credentials = Credentials::password(fields.name(), fields.name());
                match self.intake.verify(world, self.id, credentials) {
                    Some(Verdict::Granted(identity)) => self.identity = identity,
                    Some(_) => return Err("user or password are not right, or the broker is busy".into()),
                    // Other connections continue meanwhile; this frame is decoded again after the
                    // verdict.
                    None => return Ok(Some(Next::Verify)),
                }
                self.intake.reading.logged_in();
                self.state = State::Open;
            }
            (State::Open, Kind::Open, None) if session != SessionId::FIRST => {
                let window = fields.number(4).ok_or(SHORT)? as u32;
                broker::open_session(world, &actor, session)?;
                broker::set_window(world, &actor, session, Some(window).filter(|window| *window > 0));
                self.channels.insert(session, Channel::default());
            }
            (State::Open, Kind::Close, Some(_)) => {
                let is_at_once = fields.number(1).ok_or(SHORT)? == 1;
                if is_at_once {
                    self.close_channel(world, session, HeldAnswers::Drop, Kind::Close, "");
                } else if self.intake.parking.has_parked_of(session) {
                    self.intake.parking.push(session, session.0.to_be_bytes().into(), world.gauge());
                } else {
                    self.close_channel(world, session, HeldAnswers::Keep, Kind::Close, "");
                }
                return Ok(None);
            }
            (State::Open, Kind::Declare, Some(_)) => {
                let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
                let name = fields.name().ok_or(SHORT)?;
                confirm = broker::declare_queue(world, &actor, name, &settings, true)?.confirm;
            }
            (State::Open, Kind::Consume, Some(channel)) => {
                let tag = channel.new_tag(&mut fields)?;
                let credit = Credit::window(fields.number(4).ok_or(SHORT)? as u32);
                let name = fields.name().ok_or(SHORT)?;
                let queue = broker::find_queue(world, &actor, name)?;
                let (label, settles, priority, is_exclusive) = ([tag].into(), true, 0, false);
                let options = ConsumeOptions {
                    session,
                    label,
                    settles,
                    credit,
                    priority,
                    is_exclusive,
                    selector: None,
                    drops_unwanted: false,
                    is_browser: false,
                    name: None,
                    cursor: CursorOptions::default(),
                };
                // The answer precedes the first delivery.
                let write = words(session, frame.kind, "");
                let answer = |outbound: &mut Outbound, _| outbound.answer(session, confirm, write);
                channel.readers.insert(tag, broker::consume(world, &actor, queue, name, options, answer)?);
                return Ok(None);
            }
            (State::Open, Kind::Subscribe, Some(channel)) => {
                let tag = channel.new_tag(&mut fields)?;
                let options = SubscribeOptions { session, label: [tag].into(), group: None, selector: None };
                let key = BindingKey::new(Syntax::Amqp, fields.name().ok_or(SHORT)?);
                let reader = broker::subscribe(world, &actor, TOPIC_EXCHANGE, &key, options)?;
                channel.readers.insert(tag, reader);
                budget.spend_change();
            }
            (State::Open, Kind::Cancel, Some(channel)) => {
                let reader = fields.number(1).and_then(|tag| channel.readers.remove(&(tag as u8)));
                broker::cancel(world, &actor, reader.ok_or("no reader of the channel has this tag")?);
                budget.spend_change();
            }
            (State::Open, Kind::Settle, Some(_)) => {
                let (number, and_before) = fields.number(8).zip(fields.number(1)).ok_or(SHORT)?;
                let numbers = if and_before == 1 { Numbers::UpTo(number) } else { Numbers::One(number) };
                let outcome = match fields.number(1) {
                    Some(0) => Outcome::Accept,
                    Some(1) => Outcome::Release { failed: true },
                    Some(2) => Outcome::Reject,
                    _ => return Err("the outcome is none; see the table of kinds".into()),
                };
                let report = broker::settle(world, &actor, session, numbers, outcome)?;
                if report.has_more {
                    // The same frame settles the rest in a later turn.
                    return Ok(Some(Next::Again));
                }
                confirm = report.confirm;
            }
            (State::Open, Kind::Publish | Kind::Body, Some(_)) => {
                return self.add(world, frame, budget).map(|()| None);
            }
            // The client sent these frames before it learned that the broker closed the channel.
            (State::Open, _, None) if session != SessionId::FIRST => return Ok(None),
            _ => return Err("this frame is not allowed here; log in, then open a channel".into()),
        }
        let write = words(session, frame.kind, "");
        world.with_outbound(self.id, |outbound| outbound.answer(session, confirm, write));
        Ok(None)
    }

    /// Appends a frame to its channel's message; publishes or parks the message once it is
    /// complete.
    fn add<W: World>(&mut self, world: &W, frame: &Frame<'_>, budget: &mut Budget) -> Result<(), Complaint> {
        let session = frame.channel;
        let channel = self.channels.entry(session).or_default();
        let (mut message, missing) = match (frame.kind, channel.unfinished.take()) {
            (Kind::Publish, None) => {
                let len = Fields(frame.payload.get(1..).unwrap_or_default()).number(4).ok_or(SHORT)?;
                (session.0.to_be_bytes().to_vec(), Some(len as usize))
            }
            (Kind::Body, Some((message, missing))) => (message, missing.checked_sub(frame.payload.len())),
            _ => return Err("a body follows its Publish, and nothing else does".into()),
        };
        let missing = missing.filter(|missing| *missing <= BODY_BYTES_MAX);
        let missing = missing.ok_or("the body is longer than announced, or than a body may be")?;
        message.extend_from_slice(frame.payload);
        if missing > 0 {
            channel.unfinished = Some((message, missing));
            return Ok(());
        }
        if !self.intake.parking.has_parked_of(session) && !self.must_wait(world) {
            let fields = Fields(message.get(2..).unwrap_or_default());
            if self.publish(world, session, fields, budget)? == Performed::Done {
                return Ok(());
            }
            self.intake.parking.wait_for_queue(session, world.gauge());
        }
        // The client is read until its parked messages reach their limit.
        self.intake.parking.push(session, message.into(), world.gauge());
        Ok(())
    }

    /// Publishes a `Publish` with its body and confirms it.
    fn publish<W: World>(
        &mut self,
        world: &W,
        session: SessionId,
        mut fields: Fields<'_>,
        budget: &mut Budget,
    ) -> Result<Performed, Complaint> {
        let mut properties = Properties::new(self.settings.origins.origin(0));
        properties.is_persistent = fields.bytes(5).and_then(<[u8]>::first) == Some(&1);
        let (exchange, subject) = fields.name().zip(fields.name()).ok_or(SHORT)?;
        let (publication, actor) = (Publication::new(&properties, b"", fields.0), self.actor());
        if broker::must_wait_to_publish(world, &actor, exchange, subject, &publication.view()) {
            return Ok(Performed::Held);
        }
        let report = broker::publish(world, &actor, exchange, subject, &publication)?;
        budget.spend(1, report.receivers, report.slow_reader);
        let number = &mut self.channels.entry(session).or_default().published;
        *number += 1;
        world.with_outbound(self.id, |outbound| match report.refused_by {
            Some(_) => outbound.refuse(session, *number),
            None => outbound.confirm(session, *number..=*number, report.confirm, report.confirm.level()),
        });
        Ok(Performed::Done)
    }

    /// Ends a channel, after its held answers or without them; other channels are unaffected.
    fn close_channel<W: World>(
        &mut self,
        world: &W,
        session: SessionId,
        held: HeldAnswers,
        kind: Kind,
        sentence: &str,
    ) {
        self.channels.remove(&session);
        self.intake.parking.clear_of(session);
        // At most 256 tags, so a few steps suffice.
        while !broker::end_session(world, &self.actor(), session, held) {}
        let write = words(session, kind, sentence);
        world.with_outbound(self.id, |outbound| outbound.answer(session, Confirm::NOW, write));
    }

    /// Closes the channel with an error message; on channel 0, the connection.
    fn refuse<W: World>(&mut self, world: &W, session: SessionId, sentence: &str) {
        if session != SessionId::FIRST && self.state == State::Open {
            return self.close_channel(world, session, HeldAnswers::Keep, Kind::Refuse, sentence);
        }
        world.with_outbound(self.id, |outbound| {
            outbound.finish();
            outbound.answer(SessionId::FIRST, Confirm::NOW, words(SessionId::FIRST, Kind::Refuse, sentence));
        });
        self.intake.notice = Some(Notice::refused("refused", sentence.to_string()));
        self.close();
    }
}

impl Channel {
    /// Reads the tag of a new reader, which becomes its label; it must be unused on the channel.
    fn new_tag(&self, fields: &mut Fields<'_>) -> Result<u8, Complaint> {
        let tag = fields.number(1).ok_or(SHORT)? as u8;
        match self.readers.contains_key(&tag) {
            true => Err("the tag is in use on this channel; choose another".into()),
            false => Ok(tag),
        }
    }
}

/// A writer of a frame whose payload is a sentence or empty.
fn words(session: SessionId, kind: Kind, sentence: &str) -> impl FnOnce(&mut Vec<u8>) {
    move |out| push(out, session, kind, |out| out.extend_from_slice(sentence.as_bytes()))
}
