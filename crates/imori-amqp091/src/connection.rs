//! The inbound half of a connection: turns bytes into broker commands and queues the answers on the
//! outbound half.
//!
//! Reads no socket and no clock. Each channel is a session of the core, so one that waits, ends or
//! fails does not hold up the others.

mod channels;
mod acks;
mod perform;
pub(crate) mod state;

use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, Revoked};
use imori_core::confirm::Confirm;
use imori_core::id::ConnectionId;
use imori_core::inbound::{
    Accept, Inbound, Intake, Keepalive, Performed, Phase, Repeat, Taken, Unread, renew_token,
};
use imori_core::outbound::{Encoder, Outbound, SessionId};
use imori_core::room::Room;
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Notice, Peer};
use imori_core::world::World;

use crate::channel::{Channel, Closing, Refusal};
use crate::client::Client;
use crate::codec::frame::{
    FRAME_BYTES, Frame, FrameType, PROTOCOL_HEADER, Step, decode, protocol_header, push_heartbeat,
    push_method,
};
use crate::codec::method::{MethodFields, MethodId};
use crate::codec::methods::{Method, basic, connection};
use crate::codec::table::Table;
use crate::commands::login::{LOCALES, log_in, mechanisms, open, server_properties, tune};
use crate::commands::publish::publish;
use crate::content::{Behind, Unfinished, behind, frames_of_method};
use crate::delivery::DeliveryEncoder;
use crate::limits::{FRAME_BYTES_FORGIVEN, FRAME_BYTES_MIN, LOGIN_FRAME_BYTES_MAX};
use crate::protocol_error::{Code, ProtocolError};
use crate::settings::Settings;
use state::{Action, Kind, State, action};

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    intake: Intake,
    client: Client,
    keepalive: Keepalive,
    /// Recognizes publishes that repeat each other.
    repeat: Repeat,
    /// The client was sent `connection.blocked`, but not `connection.unblocked` yet.
    is_blocked: bool,
}

impl Accept for Connection {
    type Settings = Settings;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Connection {
        Connection {
            state: State::Header,
            intake: Intake::new(peer, settings.login_timeout, settings.parked_bytes_max, now),
            client: Client::new(settings, id),
            keepalive: Keepalive::new(now),
            repeat: Repeat::default(),
            is_blocked: false,
        }
    }

    /// Starts with the smallest frame size, as nothing is negotiated yet.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(DeliveryEncoder::new(FRAME_BYTES_MIN, false, settings))
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

    fn set_identity(&mut self, identity: Identity) {
        self.client.set_identity(identity);
        self.repeat.clear();
    }

    /// Cancels the consumers. If the client does not understand that, their channels are closed.
    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        for Revoked { session: SessionId(number), reader, refusal, .. } in revoked {
            let Some(channel) = self.client.channels.get_mut(&number) else { continue };
            let tag =
                channel.consumers.iter().find(|(_, other)| **other == reader).map(|(tag, _)| tag.clone());
            let Some(tag) = tag else { continue };
            channel.consumers.remove(&tag);
            if self.client.capabilities.is_told_of_cancels {
                let cancel = basic::Cancel { consumer_tag: &tag, no_wait: true };
                self.client.answer(world, number, Confirm::NOW, &cancel);
                continue;
            }
            let error = self.client.error(&refusal.into());
            let mut ended = self.refuse(world, number, basic::Consume::ID, error);
            while ended == Performed::Partly {
                ended = self.end_refused(world, number);
            }
        }
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
        if self.is_blocked && !self.must_wait(world) {
            self.unblock(world);
        }
        if let Some(bytes) = self.publish_again(world, input, budget) {
            return Taken::Bytes(bytes);
        }
        let frame = match decode(input, self.payload_bytes_max()) {
            Ok(Step::Frame(frame)) => frame,
            Ok(Step::Incomplete { frame_bytes }) => return Taken::Incomplete { frame_bytes },
            Err(error) => return self.refuse_frame(world, 0, MethodId::default(), error.into(), 0),
        };
        let method = match frame.kind {
            FrameType::Method => match Method::decode(frame.payload) {
                Ok(method) => Some(method),
                Err(error) => {
                    return self.refuse_frame(world, 0, MethodId::default(), error.into(), frame.len());
                }
            },
            FrameType::Header | FrameType::Body | FrameType::Heartbeat => None,
        };
        let id = method.as_ref().map_or_else(|| self.content_id(frame.channel), Method::id);
        let taken = match action(self.state, Kind::of(&frame, method.as_ref())) {
            Action::Channel => self.take_of_channel(world, &frame, method, unread, budget),
            other => self.take_of_connection(world, other, &frame, method, budget),
        };
        taken.unwrap_or_else(|error| self.refuse_frame(world, frame.channel, id, error, frame.len()))
    }

    /// The parked bytes are the frames of a method and of its content.
    fn replay<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        parked: &[u8],
        budget: &mut Budget,
    ) -> Performed {
        let Ok(Step::Frame(frame)) = decode(parked, usize::MAX) else { return Performed::Done };
        let Ok(method) = Method::decode(frame.payload) else { return Performed::Done };
        let rest = parked.get(frame.len()..).unwrap_or_default();
        let channel = self.client.channels.get(&frame.channel);
        let performed = match (method, behind(rest, frame.channel, usize::MAX)) {
            // Other channels are replayed by now, unless they wait for a queue.
            (Method::ConnectionClose(_), _) if self.intake.parking.has_parked() => Ok(Performed::Held),
            (Method::ConnectionClose(_), _) => Ok(self.leave(world)),
            (method, _) if channel.is_none() => {
                self.open_channel(world, frame.channel, Some(method)).map(|()| Performed::Done)
            }
            (method, _) if channel.is_some_and(|channel| channel.closing.is_some()) => {
                Ok(self.take_of_closing(world, frame.channel, Some(method)))
            }
            (Method::BasicPublish(op), Behind::Whole { content, .. }) => {
                publish(&mut self.client, world, frame.channel, &op, &content, None, budget)
            }
            (method, _) => self.perform(world, frame.channel, &method, budget),
        };
        performed.unwrap_or_else(|error| self.refuse(world, frame.channel, method.id(), error))
    }

    /// A client with several channels may use another one for more than publishing.
    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        let reads = |outbound: &mut Outbound| outbound.readers_len() > 0 || outbound.unsettled_len() > 0;
        self.client.channels.len() > 1 || world.with_outbound(self.client.connection, reads) == Some(true)
    }

    #[inline]
    fn gathered_bytes(&self, free_bytes: usize) -> usize {
        if !self.client.has_unfinished {
            return 0;
        }
        let came: usize = self.client.unfinished().map(Unfinished::came_bytes).sum();
        if came < free_bytes { 0 } else { self.client.unfinished().map(Unfinished::whole_bytes).sum() }
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        self.keepalive.next_deadline(&self.intake.reading)
    }

    /// Sends a heartbeat if the connection is idle; ends the connection if the client has been
    /// silent too long.
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
                    mechanisms: mechanisms(&self.intake.peer),
                    locales: LOCALES,
                };
                self.client.answer(world, 0, Confirm::NOW, &start);
                self.state = State::Starting;
                Taken::Bytes(PROTOCOL_HEADER.len())
            }
            // AMQP 0-9-1, 4.2.2: answer with the protocol header that the broker supports.
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

    /// Returns the largest payload accepted in the current state, in bytes.
    #[inline]
    fn payload_bytes_max(&self) -> usize {
        match self.state {
            State::Opening | State::Running => {
                (self.client.frame_bytes_max + FRAME_BYTES_FORGIVEN) as usize - FRAME_BYTES
            }
            _ => LOGIN_FRAME_BYTES_MAX,
        }
    }

    /// Performs a frame of channel 0.
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
                open(&mut self.client, world, &op)?;
                self.client.answer(world, 0, Confirm::NOW, &connection::OpenOk);
                self.intake.reading.logged_in();
                self.state = State::Running;
            }
            (Action::Leave, _) if self.intake.parking.has_parked() => {
                let bytes = frames_of_method(0, frame.payload);
                self.intake.parking.push(SessionId::FIRST, bytes, world.gauge());
                self.state = State::Leaving;
            }
            (Action::Leave, _) if self.leave(world) == Performed::Partly => {
                return Ok(Taken::Left(Next::Again));
            }
            (Action::Leave, _) => {}
            (Action::UpdateSecret, Some(Method::ConnectionUpdateSecret(update))) => {
                match renew_token(self, world, update.new_secret) {
                    None => return Ok(Taken::Left(Next::Verify)),
                    Some(true) => {}
                    Some(false) => {
                        let text = "the new secret was refused; log in again with a token of the same user";
                        return Err(ProtocolError::new(Code::NotAllowed, text));
                    }
                }
                // Checking the token may have closed the connection, which needs no answer then.
                if self.phase() == Phase::Closed {
                    return Ok(Taken::Left(Next::Close));
                }
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

    /// Ends the connection at the client's request; `Partly` if another turn is needed.
    fn leave<W: World>(&mut self, world: &W) -> Performed {
        // AMQP 0-9-1, queue.declare: exclusive queues are deleted with the connection. Users expect
        // that before `close-ok`.
        if !broker::delete_exclusive(world, &self.client.actor()) {
            return Performed::Partly;
        }
        world.with_outbound(self.client.connection, |outbound| {
            Outbound::finish(outbound);
            outbound.answer(SessionId::FIRST, Confirm::NOW, |out| push_method(out, 0, &connection::CloseOk));
        });
        self.close();
        Performed::Done
    }

    /// Refuses a frame of `len` bytes. It stays in the input until everything of its channel is
    /// given back.
    #[cold]
    fn refuse_frame<W: World>(
        &mut self,
        world: &W,
        number: u16,
        id: MethodId,
        error: ProtocolError,
        len: usize,
    ) -> Taken {
        match self.refuse(world, number, id, error) {
            Performed::Partly => Taken::Left(Next::Again),
            _ => Taken::Bytes(len),
        }
    }

    /// Closes a channel or the connection with an exception.
    #[cold]
    fn refuse<W: World>(&mut self, world: &W, number: u16, id: MethodId, error: ProtocolError) -> Performed {
        self.note_refusal(&error);
        let channel = self.client.channels.get_mut(&number).filter(|channel| channel.closing.is_none());
        if let Some(channel) = channel
            && !error.code().ends_connection()
        {
            let closing = Some(Closing::Ending(Refusal { error, id }));
            *channel = Channel { closing, ..Channel::default() };
            return self.end_refused(world, number);
        }
        let (code, text) = (error.code(), error.text());
        let (reply_code, reply_text) = (code.number(), text.as_str());
        let (class_id, method_id) = (id.class, id.method);
        let close = connection::Close { reply_code, reply_text, class_id, method_id };
        // RabbitMQ: a refused login is reported only to clients that declare to understand it.
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
        Performed::Done
    }

    #[cold]
    fn note_refusal(&mut self, error: &ProtocolError) {
        self.intake.notice = Some(Notice::refused(error.code().name(), error.text()));
    }

    /// Tells the client that its publishes wait, if it declared to understand that.
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

    /// Sends a method on channel 0 that is not an answer.
    fn beat<'a, W: World>(&self, world: &W, method: &impl MethodFields<'a>) {
        let mut frame = Vec::new();
        push_method(&mut frame, 0, method);
        world.with_outbound(self.client.connection, |outbound| outbound.beat(&frame));
    }
}
