//! The inbound half of a connection: bytes in, commands to the broker, answers into the outbound half.
//!
//! Nothing here reads a socket or a clock. A channel is a session of the core: what waits, ends or fails on one of them
//! holds up no other.

use std::sync::Arc;

use bytes::Bytes;
use imori_core::broker::{self, Actor};
use imori_core::confirm::Confirm;
use imori_core::delivery::Outcome;
use imori_core::id::ConnectionId;
use imori_core::inbound::{Inbound, Intake, Keepalive, Performed, Phase, Taken, Unread};
use imori_core::message::BODY_SHARED_MIN;
use imori_core::outbound::{Encoder, HeldAnswers, Outbound, SessionId};
use imori_core::room::Room;
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Notice, Peer};
use imori_core::world::World;

use crate::channel::Channel;
use crate::client::Client;
use crate::codec::frame::{
    FRAME_BYTES, Frame, FrameType, PROTOCOL_HEADER, Step, decode, protocol_header, push_frame,
    push_heartbeat, push_method,
};
use crate::codec::method::{MethodFields, MethodId};
use crate::codec::methods::{Method, basic, channel, confirm, connection};
use crate::codec::table::Table;
use crate::commands::consume::{cancel, consume, get, qos};
use crate::commands::login::{LOCALES, MECHANISMS, log_in, open, server_properties, tune};
use crate::commands::publish::{check_len, publish};
use crate::commands::settle::{recover, refused, settle};
use crate::commands::transaction::{add_settle, commit, rollback, select};
use crate::commands::{exchange, queue};
use crate::content::{Behind, Content, ContentError, Unfinished, behind, frames};
use crate::delivery::DeliveryEncoder;
use crate::limits::{FRAME_BYTES_FORGIVEN, FRAME_BYTES_MIN, LOGIN_FRAME_BYTES_MAX};
use crate::protocol_error::{Code, ProtocolError};
use crate::settings::Settings;

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    intake: Intake<Box<[u8]>>,
    client: Client,
    keepalive: Keepalive,
    /// The client was told that it is blocked, and not yet that it is not.
    is_blocked: bool,
}

/// Where a connection stands.
///
/// ```text
///         AMQP 0 0 9 1          start-ok          tune-ok          open
///  Header ────────────► Starting ───────► Tuning ───────► Opening ──────► Running
///    │                     │                │                │              │ close, and
///    ▼                     ▼                ▼                ▼              ▼ frames are parked
///  Closed ◄────────────────┴────────────────┴────────────────┴──────────────┴──► Leaving
///    ▲          close, or an exception that ends the connection                     │
///    └──────────────────────────────────────────────────────────────────────────────┘
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The protocol header is awaited.
    Header,
    /// The client is to say who it is.
    Starting,
    /// Sizes are to be agreed on.
    Tuning,
    /// A vhost is to be named.
    Opening,
    /// Channels do their work.
    Running,
    /// The client has said goodbye, and parked frames are left.
    Leaving,
    /// Nothing counts any more.
    Closed,
}

/// The kinds of frames that states tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    StartOk,
    TuneOk,
    Open,
    Close,
    UpdateSecret,
    /// Another method of the connection, or one of a channel that came on channel 0.
    OtherMethod,
    Heartbeat,
    /// A content on channel 0.
    Content,
    /// Any frame of a channel.
    Channel,
}

/// The treatment of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Look who it is.
    LogIn,
    /// Agree on sizes.
    Tune,
    /// Enter a vhost.
    Enter,
    /// Say goodbye.
    Leave,
    /// Take a new password.
    UpdateSecret,
    /// Let the channel decide.
    Channel,
    /// Nothing.
    Ignore,
    /// Refuse it: the method is not allowed now.
    RefuseMethod,
    /// Refuse it: the frame is not allowed now.
    RefuseFrame,
}

/// The whole state machine: every state and every kind of frame (SECURITY LIM-11).
#[inline]
fn action(state: State, kind: Kind) -> Action {
    match (state, kind) {
        (State::Running, Kind::Channel) => Action::Channel,
        (State::Leaving | State::Closed, _) => Action::Ignore,
        (State::Header, _) => Action::RefuseFrame,
        (_, Kind::Heartbeat) => Action::Ignore,
        (_, Kind::Close) => Action::Leave,
        (State::Starting, Kind::StartOk) => Action::LogIn,
        (State::Tuning, Kind::TuneOk) => Action::Tune,
        (State::Opening, Kind::Open) => Action::Enter,
        (State::Running, Kind::UpdateSecret) => Action::UpdateSecret,
        (_, Kind::Channel | Kind::Content) => Action::RefuseFrame,
        (_, Kind::StartOk | Kind::TuneOk | Kind::Open | Kind::UpdateSecret | Kind::OtherMethod) => {
            Action::RefuseMethod
        }
    }
}

impl Kind {
    #[inline]
    fn of(frame: &Frame<'_>, method: Option<&Method<'_>>) -> Kind {
        match (frame.channel, frame.kind, method) {
            (1.., ..) => Kind::Channel,
            (0, FrameType::Heartbeat, _) => Kind::Heartbeat,
            (0, FrameType::Header | FrameType::Body, _) => Kind::Content,
            (0, FrameType::Method, Some(Method::ConnectionStartOk(_))) => Kind::StartOk,
            (0, FrameType::Method, Some(Method::ConnectionTuneOk(_))) => Kind::TuneOk,
            (0, FrameType::Method, Some(Method::ConnectionOpen(_))) => Kind::Open,
            (0, FrameType::Method, Some(Method::ConnectionClose(_))) => Kind::Close,
            (0, FrameType::Method, Some(Method::ConnectionUpdateSecret(_))) => Kind::UpdateSecret,
            (0, FrameType::Method, _) => Kind::OtherMethod,
        }
    }
}

impl Inbound for Connection {
    type Settings = Settings;
    type Scratch = ();
    /// The frames of a method and of its content.
    type Parked = Box<[u8]>;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Connection {
        Connection {
            state: State::Header,
            intake: Intake::new(peer, settings.login_timeout, settings.parked_bytes_max, now),
            client: Client::new(settings, id),
            keepalive: Keepalive::new(now),
            is_blocked: false,
        }
    }

    /// Nothing is agreed on yet.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(DeliveryEncoder::new(FRAME_BYTES_MIN, false, settings))
    }

    fn intake(&self) -> &Intake<Box<[u8]>> {
        &self.intake
    }

    fn intake_mut(&mut self) -> &mut Intake<Box<[u8]>> {
        &mut self.intake
    }

    fn actor(&self) -> Actor<'_> {
        self.client.actor()
    }

    #[inline]
    fn phase(&self) -> Phase {
        match self.state {
            State::Leaving => Phase::Leaving,
            State::Closed => Phase::Closed,
            _ => Phase::Open,
        }
    }

    fn close(&mut self) {
        self.state = State::Closed;
        self.intake.parking.clear();
        self.client.channels.clear();
    }

    fn is_logged_in(&self) -> bool {
        self.intake.reading.login_until().is_none()
    }

    fn client(&self) -> ClientFacts {
        self.client.facts.clone()
    }

    #[inline]
    fn take<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Taken {
        let input = unread.bytes();
        if self.state == State::Header {
            return self.take_protocol_header(world, input);
        }
        if self.is_blocked && !Self::must_wait(world) {
            self.unblock(world);
        }
        let frame = match decode(input, self.payload_bytes_max()) {
            Ok(Step::Frame(frame)) => frame,
            Ok(Step::Incomplete { frame_bytes }) => return Taken::Incomplete { frame_bytes },
            Err(error) => return self.refuse(world, 0, MethodId::default(), &error.into(), 0),
        };
        let method = match frame.kind {
            FrameType::Method => match Method::decode(frame.payload) {
                Ok(method) => Some(method),
                Err(error) => return self.refuse(world, 0, MethodId::default(), &error.into(), frame.len()),
            },
            FrameType::Header | FrameType::Body | FrameType::Heartbeat => None,
        };
        let id = method.as_ref().map_or_else(|| self.content_id(frame.channel), Method::id);
        let taken = match action(self.state, Kind::of(&frame, method.as_ref())) {
            Action::Channel => self.take_of_channel(world, &frame, method, unread, budget),
            other => self.take_of_connection(world, other, &frame, method, budget),
        };
        taken.unwrap_or_else(|error| self.refuse(world, frame.channel, id, &error, frame.len()))
    }

    fn replay<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        parked: &Box<[u8]>,
        budget: &mut Budget,
    ) -> Performed {
        let Ok(Step::Frame(frame)) = decode(parked, usize::MAX) else { return Performed::Done };
        let Ok(method) = Method::decode(frame.payload) else { return Performed::Done };
        let performed = match (
            method,
            behind(parked.get(frame.len()..).unwrap_or_default(), frame.channel, usize::MAX),
        ) {
            // The last of all lines: the others are through unless they wait for a queue.
            (Method::ConnectionClose(_), _) if self.intake.parking.has_parked() => Ok(Performed::Held),
            (Method::ConnectionClose(_), _) => {
                self.leave(world);
                Ok(Performed::Done)
            }
            (Method::BasicPublish(op), Behind::Whole { content, .. }) => {
                publish(&mut self.client, world, frame.channel, &op, &content, None, budget)
            }
            (method, _) => self.perform(world, frame.channel, &method, budget),
        };
        performed.unwrap_or_else(|error| {
            self.refuse(world, frame.channel, method.id(), &error, 0);
            Performed::Done
        })
    }

    fn replayed(&mut self, _: SessionId) {}

    /// Other channels have more to do than publish.
    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        let reads = |outbound: &mut Outbound| outbound.readers_len() > 0 || outbound.unsettled_len() > 0;
        self.client.channels.len() > 1 || world.with_outbound(self.client.connection, reads) == Some(true)
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        self.keepalive.next_deadline(&self.intake.reading)
    }

    /// Sends a heartbeat where nothing else was sent, and ends a connection that has fallen silent.
    fn keep_alive<W: World>(&mut self, world: &W) {
        let due = self.keepalive.due(world.now(), &self.intake.reading);
        if let Some(max) = due.silence {
            let text = format!("nothing was received for {} s, twice the agreed heartbeat", max.as_secs());
            self.intake.notice = Some(Notice::refused("missed heartbeats", text));
            world.with_outbound(self.client.connection, Outbound::finish);
            self.close();
        } else if due.beat {
            let keepalive = &mut self.keepalive;
            world.with_outbound(self.client.connection, |outbound| {
                if keepalive.is_idle(outbound.appended()) {
                    let mut frame = Vec::new();
                    push_heartbeat(&mut frame);
                    outbound.beat(&frame);
                    keepalive.is_idle(outbound.appended());
                }
            });
        }
    }
}

impl Connection {
    fn take_protocol_header<W: World>(&mut self, world: &W, input: &[u8]) -> Taken {
        match protocol_header(input) {
            Ok(false) => Taken::Incomplete { frame_bytes: Some(PROTOCOL_HEADER.len()) },
            Ok(true) => {
                let properties = server_properties(&self.client.settings);
                let start = connection::Start {
                    version_major: 0,
                    version_minor: 9,
                    server_properties: Table::new(&properties).unwrap_or_default(),
                    mechanisms: MECHANISMS,
                    locales: LOCALES,
                };
                self.client.answer(world, 0, Confirm::NOW, &start);
                self.state = State::Starting;
                Taken::Bytes(PROTOCOL_HEADER.len())
            }
            // AMQP 0-9-1, 4.2.2: the answer is the header that is understood.
            Err(error) => {
                world.with_outbound(self.client.connection, |outbound| {
                    Outbound::finish(outbound);
                    outbound.beat(PROTOCOL_HEADER);
                });
                self.note_refusal(&error.into());
                self.close();
                Taken::Bytes(0)
            }
        }
    }

    /// Bytes of a payload that is taken now.
    #[inline]
    fn payload_bytes_max(&self) -> usize {
        match self.state {
            State::Opening | State::Running => {
                (self.client.frame_bytes_max + FRAME_BYTES_FORGIVEN) as usize - FRAME_BYTES
            }
            _ => LOGIN_FRAME_BYTES_MAX,
        }
    }

    /// Takes a frame of channel 0.
    #[cold]
    fn take_of_connection<W: World>(
        &mut self,
        world: &W,
        action: Action,
        frame: &Frame<'_>,
        method: Option<Method<'_>>,
        budget: &mut Budget,
    ) -> Result<Taken, ProtocolError> {
        budget.spend(1, 0, None);
        match (action, method) {
            (Action::LogIn, Some(Method::ConnectionStartOk(start_ok))) => {
                let (intake, connection) = (&mut self.intake, self.client.connection);
                let verify = |credentials| intake.verify(world, connection, credentials);
                if !log_in(&mut self.client, &start_ok, verify)? {
                    return Ok(Taken::Left(Next::Verify));
                }
                let settings = &self.client.settings;
                let tune = connection::Tune {
                    channel_max: settings.channel_max,
                    frame_max: settings.frame_bytes_max,
                    heartbeat: u16::try_from(settings.heartbeat.as_secs()).unwrap_or(u16::MAX),
                };
                self.client.answer(world, 0, Confirm::NOW, &tune);
                self.state = State::Tuning;
            }
            (Action::Tune, Some(Method::ConnectionTuneOk(tune_ok))) => {
                tune(&mut self.client, world, &tune_ok)?;
                let every = std::time::Duration::from_secs(tune_ok.heartbeat.into());
                let every = (!every.is_zero()).then_some(every);
                self.keepalive.agreed(every, every, world.now());
                self.state = State::Opening;
            }
            (Action::Enter, Some(Method::ConnectionOpen(op))) => {
                open(&mut self.client, &op)?;
                self.client.answer(world, 0, Confirm::NOW, &connection::OpenOk);
                self.intake.reading.logged_in();
                self.state = State::Running;
            }
            (Action::Leave, _) if self.intake.parking.has_parked() => {
                let bytes = frames_of_method(0, frame.payload);
                self.intake.parking.push(SessionId::FIRST, bytes, world.gauge());
                self.state = State::Leaving;
            }
            (Action::Leave, _) => self.leave(world),
            (Action::UpdateSecret, _) => {
                self.client.answer(world, 0, Confirm::NOW, &connection::UpdateSecretOk);
            }
            (Action::RefuseMethod, _) => {
                let state = format!("{:?}", self.state).to_lowercase();
                let text = format_args!("unexpected method in connection state {state}");
                return Err(ProtocolError::new(Code::ChannelError, text));
            }
            (Action::RefuseFrame, _) => {
                let text = format_args!("type {}, {} octets", frame.kind as u8, frame.payload.len());
                return Err(ProtocolError::new(Code::UnexpectedFrame, text));
            }
            _ => {}
        }
        Ok(Taken::Bytes(frame.len()))
    }

    /// Takes a frame of a channel.
    #[inline]
    fn take_of_channel<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        method: Option<Method<'_>>,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Result<Taken, ProtocolError> {
        let (number, payload_bytes_max) = (frame.channel, self.payload_bytes_max());
        let Some(channel) = self.client.channels.get_mut(&number) else {
            budget.spend(1, 0, None);
            return self.open_channel(world, number, method).map(|()| Taken::Bytes(frame.len()));
        };
        if channel.is_closing {
            self.take_of_closing(world, number, method);
            return Ok(Taken::Bytes(frame.len()));
        }
        match (method, &channel.unfinished) {
            (Some(Method::BasicPublish(op)), None) => {
                let rest = unread.bytes().get(frame.len()..).unwrap_or_default();
                match behind(rest, number, payload_bytes_max) {
                    Behind::Whole { content, bytes, end } => {
                        let len = frame.len() + bytes;
                        let shared = unread.kept_body(len - end, content.body.len());
                        let left = self.take_message(world, frame, &op, &content, shared.as_ref(), budget)?;
                        Ok(left.map_or(Taken::Bytes(len), Taken::Left))
                    }
                    Behind::Incomplete { bytes } => {
                        Ok(Taken::Incomplete { frame_bytes: bytes.map(|bytes| frame.len() + bytes) })
                    }
                    Behind::Apart => {
                        channel.unfinished = Some(Unfinished::new(frame.payload, world.gauge()));
                        Ok(Taken::Bytes(frame.len()))
                    }
                }
            }
            (Some(method), None) => {
                let left = self.take_method(world, frame, &method, budget)?;
                Ok(left.map_or(Taken::Bytes(frame.len()), Taken::Left))
            }
            (None, None) => {
                let text = "expected method frame, got non method frame instead";
                Err(ProtocolError::new(Code::UnexpectedFrame, text))
            }
            (_, Some(_)) => {
                self.take_of_content(world, frame, budget)?;
                Ok(Taken::Bytes(frame.len()))
            }
        }
    }

    /// The method whose content a frame without a method belongs to.
    #[inline]
    fn content_id(&self, number: u16) -> MethodId {
        let channel = self.client.channels.get(&number);
        let is_content = channel.is_some_and(|channel| channel.unfinished.is_some());
        if is_content { basic::Publish::ID } else { MethodId::default() }
    }

    fn open_channel<W: World>(
        &mut self,
        world: &W,
        number: u16,
        method: Option<Method<'_>>,
    ) -> Result<(), ProtocolError> {
        let Some(Method::ChannelOpen(_)) = method else {
            return Err(ProtocolError::new(Code::ChannelError, "expected 'channel.open'"));
        };
        let (count, max) = (self.client.channels.len(), self.client.channel_max);
        if count >= usize::from(max) {
            let text = format_args!(
                "number of channels opened ({count}) has reached the negotiated channel_max ({max})"
            );
            return Err(ProtocolError::new(Code::NotAllowed, text));
        }
        broker::open_session(world, &self.client.actor(), SessionId(number))
            .map_err(|error| self.client.error(&error))?;
        self.client.channels.insert(number, Channel::default());
        self.client.answer(world, number, Confirm::NOW, &channel::OpenOk);
        Ok(())
    }

    /// Takes a frame of a channel that the broker has closed.
    #[cold]
    fn take_of_closing<W: World>(&mut self, world: &W, number: u16, method: Option<Method<'_>>) {
        match method {
            Some(Method::ChannelCloseOk(_)) => {
                self.client.channels.remove(&number);
            }
            // Both ends close it at once.
            Some(Method::ChannelClose(_)) => {
                self.client.answer(world, number, Confirm::NOW, &channel::CloseOk);
            }
            // Frames that were under way.
            _ => {}
        }
    }

    /// Publishes a message that is whole in the input, or lets it wait; gives what follows where it stays there.
    #[inline]
    fn take_message<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        op: &basic::Publish<'_>,
        content: &Content<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Result<Option<Next>, ProtocolError> {
        let session = SessionId(frame.channel);
        let waiting = || frames(frame.channel, frame.payload, content);
        if self.intake.parking.has_parked_of(session) {
            self.intake.parking.push(session, waiting(), world.gauge());
            return Ok(None);
        }
        if Self::must_wait(world) {
            self.block(world);
        } else {
            let performed = publish(&mut self.client, world, frame.channel, op, content, shared, budget)?;
            if performed == Performed::Done {
                return Ok(None);
            }
            self.intake.parking.wait_for_queue(session, world.gauge());
        }
        Ok(self.park(world, session, waiting))
    }

    /// Takes a frame of a message whose frames come apart.
    #[cold]
    fn take_of_content<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        budget: &mut Budget,
    ) -> Result<(), ProtocolError> {
        let (number, body_bytes_max) = (frame.channel, self.client.settings.body_bytes_max);
        let unfinished_bytes: usize = self
            .client
            .channels
            .values()
            .filter_map(|channel| channel.unfinished.as_ref())
            .map(Unfinished::body_len)
            .sum();
        let unfinished_bytes_max = self.client.settings.unfinished_bytes_max;
        if unfinished_bytes + frame.payload.len() > unfinished_bytes_max {
            let text = format_args!(
                "unfinished messages on all channels have more than {unfinished_bytes_max} bytes; send one after the other"
            );
            return Err(ProtocolError::new(Code::ResourceError, text));
        }
        let channel = self.client.channels.entry(number).or_default();
        let Some(unfinished) = channel.unfinished.as_mut() else { return Ok(()) };
        let is_whole = unfinished.add(frame.kind, frame.payload, body_bytes_max);
        if !is_whole.map_err(|error| content_error(&error, body_bytes_max))? {
            return Ok(());
        }
        let Some(finished) = channel.unfinished.take().and_then(Unfinished::finish) else { return Ok(()) };
        let Ok(Method::BasicPublish(op)) = Method::decode(&finished.method) else { return Ok(()) };
        let (session, body) = (SessionId(number), Bytes::from(finished.body));
        let content = Content { properties: &finished.properties, body: &body };
        if !self.intake.parking.has_parked_of(session) {
            if Self::must_wait(world) {
                self.block(world);
            } else {
                let shared = (body.len() >= BODY_SHARED_MIN).then_some(&body);
                let performed = publish(&mut self.client, world, number, &op, &content, shared, budget)?;
                if performed == Performed::Done {
                    return Ok(());
                }
                self.intake.parking.wait_for_queue(session, world.gauge());
            }
        }
        let waiting = frames(number, &finished.method, &content);
        self.intake.parking.push(session, waiting, world.gauge());
        Ok(())
    }

    /// Does what a method asks for, unless earlier ones of its channel wait; gives what follows where it stays in the
    /// input.
    fn take_method<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        method: &Method<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Next>, ProtocolError> {
        let session = SessionId(frame.channel);
        let is_transactional =
            self.client.channels.get(&frame.channel).is_some_and(|channel| channel.transaction.is_some());
        // What settles deliveries frees memory, and nothing before it can change what it means but a commit.
        let settles = matches!(method, Method::BasicAck(_) | Method::BasicNack(_) | Method::BasicReject(_));
        let is_behind = self.intake.parking.has_parked_of(session) && (is_transactional || !settles);
        if matches!(method, Method::TxCommit(_)) && Self::must_wait(world) {
            self.block(world);
        } else if !is_behind {
            match self.perform(world, frame.channel, method, budget)? {
                Performed::Done => return Ok(None),
                Performed::Partly => return Ok(Some(Next::Again)),
                Performed::Held => self.intake.parking.wait_for_queue(session, world.gauge()),
            }
        }
        let waiting = frames_of_method(frame.channel, frame.payload);
        self.intake.parking.push(session, waiting, world.gauge());
        Ok(None)
    }

    /// Does what a method of an open channel asks for.
    fn perform<W: World>(
        &mut self,
        world: &W,
        number: u16,
        method: &Method<'_>,
        budget: &mut Budget,
    ) -> Result<Performed, ProtocolError> {
        match method {
            Method::QueueBind(_)
            | Method::QueueUnbind(_)
            | Method::ExchangeBind(_)
            | Method::ExchangeUnbind(_) => {
                budget.spend_change();
            }
            _ => budget.spend(1, 0, None),
        }
        let client = &mut self.client;
        match method {
            Method::BasicAck(op) => {
                let meant = (op.delivery_tag, op.multiple);
                return settle_or_gather(client, world, number, meant, Outcome::Accept, budget);
            }
            Method::BasicNack(op) => {
                let meant = (op.delivery_tag, op.multiple);
                return settle_or_gather(client, world, number, meant, refused(op.requeue), budget);
            }
            Method::BasicReject(op) => {
                let meant = (op.delivery_tag, false);
                return settle_or_gather(client, world, number, meant, refused(op.requeue), budget);
            }
            Method::BasicGet(op) => {
                let queue = named(client, number, op.queue)?;
                return get(client, world, number, op, &queue);
            }
            Method::BasicQos(op) => qos(client, world, number, op)?,
            Method::BasicConsume(op) => {
                let queue = named(client, number, op.queue)?;
                consume(client, world, number, op, &queue)?;
            }
            Method::BasicCancel(op) => cancel(client, world, number, op),
            // The answer to a cancel of the broker, which asks for none.
            Method::BasicCancelOk(_) => {}
            Method::BasicRecover(op) => {
                let performed = recover(client, world, number, op.requeue, budget)?;
                if performed == Performed::Done {
                    client.answer(world, number, Confirm::NOW, &basic::RecoverOk);
                }
                return Ok(performed);
            }
            Method::BasicRecoverAsync(op) => return recover(client, world, number, op.requeue, budget),
            Method::QueueDeclare(op) => queue::declare(client, world, number, op)?,
            Method::QueueBind(op) => {
                queue::bind(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::QueueUnbind(op) => {
                queue::unbind(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::QueuePurge(op) => {
                queue::purge(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::QueueDelete(op) => {
                queue::delete(client, world, number, op, &named(client, number, op.queue)?)?;
            }
            Method::ExchangeDeclare(op) => exchange::declare(client, world, number, op)?,
            Method::ExchangeDelete(op) => exchange::delete(client, world, number, op)?,
            Method::ExchangeBind(op) => exchange::bind(client, world, number, op)?,
            Method::ExchangeUnbind(op) => exchange::unbind(client, world, number, op)?,
            Method::ConfirmSelect(op) => {
                if let Some(channel) = client.channels.get_mut(&number) {
                    if channel.transaction.is_some() {
                        let text = "cannot switch from tx to confirm mode";
                        return Err(ProtocolError::new(Code::PreconditionFailed, text));
                    }
                    channel.confirms.get_or_insert(0);
                }
                if !op.no_wait {
                    client.answer(world, number, Confirm::NOW, &confirm::SelectOk);
                }
            }
            Method::TxSelect(_) => select(client, world, number)?,
            Method::TxCommit(_) => return commit(client, world, number, budget),
            Method::TxRollback(_) => rollback(client, world, number)?,
            Method::ChannelFlow(op) if op.active => {
                client.answer(world, number, Confirm::NOW, &channel::FlowOk { active: true });
            }
            Method::ChannelFlow(_) => return Err(ProtocolError::new(Code::NotImplemented, "active=false")),
            Method::ChannelClose(_) => {
                self.client.channels.remove(&number);
                self.end_channel(world, number, &channel::CloseOk);
            }
            Method::ChannelOpen(_) => {
                return Err(ProtocolError::new(Code::ChannelError, "second 'channel.open' seen"));
            }
            _ => return Err(ProtocolError::new(Code::CommandInvalid, "unimplemented method")),
        }
        Ok(Performed::Done)
    }

    /// Ends the session of a channel, and says so behind all that the channel was answered.
    fn end_channel<'a, W: World>(&mut self, world: &W, number: u16, last: &impl MethodFields<'a>) {
        self.intake.parking.clear_of(SessionId(number));
        let actor = self.client.actor();
        while !broker::end_session(world, &actor, SessionId(number), HeldAnswers::Keep) {}
        self.client.answer(world, number, Confirm::NOW, last);
    }

    /// Ends the connection as the client asked for.
    fn leave<W: World>(&mut self, world: &W) {
        // AMQP 0-9-1, queue.declare: they go when the connection closes, which people take for before its answer.
        broker::delete_exclusive(world, &self.client.actor());
        world.with_outbound(self.client.connection, |outbound| {
            Outbound::finish(outbound);
            outbound.answer(SessionId::FIRST, Confirm::NOW, |out| push_method(out, 0, &connection::CloseOk));
        });
        self.close();
    }

    /// Says why a channel ends, or the connection; `len` are the bytes of the frame.
    #[cold]
    fn refuse<W: World>(
        &mut self,
        world: &W,
        number: u16,
        id: MethodId,
        error: &ProtocolError,
        len: usize,
    ) -> Taken {
        self.note_refusal(error);
        let (code, text) = (error.code(), error.text());
        let (reply_code, reply_text) = (code.number(), text.as_str());
        let (class_id, method_id) = (id.class, id.method);
        let is_open = self.client.channels.get(&number).is_some_and(|channel| !channel.is_closing);
        if is_open && !code.ends_connection() {
            self.client.channels.insert(number, Channel { is_closing: true, ..Channel::default() });
            self.end_channel(world, number, &channel::Close { reply_code, reply_text, class_id, method_id });
            return Taken::Bytes(len);
        }
        let close = connection::Close { reply_code, reply_text, class_id, method_id };
        // RabbitMQ: a client that does not know of it is not told of a refused login.
        let is_told = self.state != State::Starting
            || code != Code::AccessRefused
            || self.client.capabilities.is_told_of_refused_login;
        world.with_outbound(self.client.connection, |outbound| {
            Outbound::finish(outbound);
            if is_told {
                outbound.answer(SessionId::FIRST, Confirm::NOW, |out| push_method(out, 0, &close));
            }
        });
        self.close();
        Taken::Bytes(len)
    }

    #[cold]
    fn note_refusal(&mut self, error: &ProtocolError) {
        self.intake.notice = Some(Notice::refused(error.code().name(), error.text()));
    }

    /// Tells the client that its publishes wait, if it wants to know that.
    #[cold]
    fn block<W: World>(&mut self, world: &W) {
        if self.is_blocked || !self.client.capabilities.is_told_of_blocks {
            return;
        }
        self.is_blocked = true;
        let reason = match (world.is_alarmed(), world.room().is_alarmed()) {
            (true, true) => "low on memory & disk",
            (false, true) => "low on disk",
            _ => "low on memory",
        };
        self.beat(world, &connection::Blocked { reason });
    }

    #[cold]
    fn unblock<W: World>(&mut self, world: &W) {
        self.is_blocked = false;
        self.beat(world, &connection::Unblocked);
    }

    /// Sends a method on channel 0 that answers nothing.
    fn beat<'a, W: World>(&self, world: &W, method: &impl MethodFields<'a>) {
        let mut frame = Vec::new();
        push_method(&mut frame, 0, method);
        world.with_outbound(self.client.connection, |outbound| outbound.beat(&frame));
    }
}

/// The name of a queue, for which an empty one stands as the queue that the channel declared last.
fn named(client: &Client, number: u16, name: &str) -> Result<Box<str>, ProtocolError> {
    if !name.is_empty() {
        return Ok(name.into());
    }
    let last = client.channels.get(&number).map(|channel| channel.last_queue.clone());
    let last = last.filter(|name| !name.is_empty());
    last.ok_or_else(|| ProtocolError::new(Code::NotFound, "no previously declared queue"))
}

/// Settles deliveries, or adds that to the transaction of their channel.
fn settle_or_gather<W: World>(
    client: &mut Client,
    world: &W,
    number: u16,
    meant: (u64, bool),
    outcome: Outcome,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    if add_settle(client, world, number, meant, outcome)? {
        return Ok(Performed::Done);
    }
    settle(client, world, number, meant, outcome, budget)
}

/// The frame of a method without content, as it waits.
fn frames_of_method(channel: u16, payload: &[u8]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(payload.len() + FRAME_BYTES);
    push_frame(&mut out, FrameType::Method, channel, |out| out.extend_from_slice(payload));
    out.into_boxed_slice()
}

#[cold]
fn content_error(error: &ContentError, body_bytes_max: usize) -> ProtocolError {
    let unexpected = |text: &str| ProtocolError::new(Code::UnexpectedFrame, text);
    match error {
        ContentError::NoHeader => {
            unexpected("expected content header for class 60, got non content header frame instead")
        }
        ContentError::NoBody => unexpected("expected content body, got non content body frame instead"),
        ContentError::BodyTooLong { bytes, announced } => {
            let text = format_args!("content body has {bytes} bytes and its header says {announced}");
            ProtocolError::new(Code::FrameError, text)
        }
        ContentError::BodyOverLimit { bytes } => check_len(*bytes, body_bytes_max)
            .err()
            .unwrap_or_else(|| unexpected("a content body is over its limit")),
        ContentError::Decode(error) => (*error).into(),
    }
}

#[cfg(test)]
mod tests;
