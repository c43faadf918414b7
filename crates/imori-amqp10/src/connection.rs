//! The inbound half of a connection: turns bytes into broker commands and queues the answers on the
//! outbound half.
//!
//! Reads no socket and no clock. Each session is a session of the core, so one that waits, ends or
//! fails does not hold up the others.

mod frames;
mod tokens;
mod details;
pub(crate) mod state;

use std::any::Any;
use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::{self, Actor, Revoked};
use imori_core::id::ConnectionId;
use imori_core::inbound::{Accept, Inbound, Intake, Keepalive, Performed, Phase, Taken, Unread};
use imori_core::outbound::{Encoder, HeldAnswers, Outbound, SessionId};
use imori_core::time::Time;
use imori_core::turn::{Budget, ClientFacts, Next, Notice, Peer};
use imori_core::world::{Quotas as _, World};

use crate::client::Client;
use crate::codec::composite::Composite;
use crate::codec::composites::{
    Close, Performative, SaslChallenge, SaslFrame, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse,
};
use crate::codec::condition;
use crate::codec::frame::{
    Frame, FrameKind, HEADER_BYTES, ProtocolHeader, Step, decode, protocol_header, push_frame, push_heartbeat,
};
use crate::codec::restricted::SaslCode;
use crate::codec::symbols::Symbols;
use crate::commands::detach::{detach_refused, end_link, end_temporary_nodes};
use crate::commands::login::{Claim, Progress, ScramLogin, anonymous, begin, mechanisms};
use crate::commands::open::{answer_refused, open};
use crate::commands::session;
use crate::commands::transaction::roll_back_late;
use crate::delivery::DeliveryEncoder;
use crate::limits::{FRAME_BYTES_MIN, LOGIN_FRAME_BYTES_MAX};
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::{channel_of, session_of};
use crate::settings::Settings;
use details::details;
pub use details::{LinkDetails, LinkDirection, SessionDetails};
use state::{Action, Kind, State, action};

/// The inbound half of a connection.
#[derive(Debug)]
pub struct Connection {
    state: State,
    intake: Intake,
    client: Client,
    keepalive: Keepalive,
    /// The SCRAM login of a client that was sent a challenge.
    scram: Option<Box<ScramLogin>>,
}

impl Accept for Connection {
    type Settings = Settings;

    fn new(settings: Arc<Settings>, id: ConnectionId, peer: Peer, now: Time) -> Connection {
        Connection {
            state: State::Header,
            intake: Intake::new(peer, settings.login_timeout, settings.parked_bytes_max, now),
            client: Client::new(settings, id),
            keepalive: Keepalive::new(now),
            scram: None,
        }
    }

    /// Starts with the smallest frame size, as nothing is negotiated yet.
    fn encoder(settings: &Settings) -> Box<dyn Encoder> {
        Box::new(DeliveryEncoder::new(FRAME_BYTES_MIN, settings))
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
        self.client.sessions.clear();
        self.client.transactions.clear();
        self.client.temporary.clear();
        self.client.new_tokens.clear();
    }

    fn set_identity(&mut self, identity: Identity) {
        self.client.set_identity(identity);
    }

    fn readers_revoked<W: World>(&mut self, world: &W, revoked: Vec<Revoked>) {
        for Revoked { session, reader, refusal, .. } in revoked {
            detach_refused(&mut self.client, world, channel_of(session), reader, &refusal.into());
        }
    }

    fn is_logged_in(&self) -> bool {
        self.intake.reading.login_until().is_none()
    }

    fn client(&self) -> ClientFacts {
        self.client.facts.clone()
    }

    /// The value is a `Vec<SessionDetails>`.
    fn details<W: World>(&self, world: &W) -> Option<Box<dyn Any + Send>> {
        Some(Box::new(details(&self.client, world)))
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
        if !self.client.new_tokens.is_empty()
            && let Some(taken) = self.take_tokens(world, input)
        {
            return taken;
        }
        let step = match self.state {
            State::Header | State::LoggedIn => protocol_header(input),
            _ => decode(input, self.frame_bytes_max()),
        };
        let taken = match step {
            Ok(Step::Incomplete { frame_bytes }) => return Taken::Incomplete { frame_bytes },
            Ok(Step::Header(header)) => self.take_header(world, header),
            Ok(Step::Frame(frame)) if frame.kind == FrameKind::Sasl => self.take_login(world, &frame, budget),
            Ok(Step::Frame(frame)) => self.take_frame(world, &frame, unread, budget),
            Err(error) => Err((0, error.into())),
        };
        let taken =
            taken.unwrap_or_else(|(channel, failure)| self.refuse_frame(world, channel, failure, input));
        // The frame may have settled the last message of a temporary node.
        if self.client.temporary.has_orphans() {
            end_temporary_nodes(&mut self.client, world);
        }
        taken
    }

    /// The parked bytes are a frame. A message of several transfers is parked as one frame.
    fn replay<W: World>(
        &mut self,
        world: &W,
        _scratch: &mut (),
        parked: &[u8],
        budget: &mut Budget,
    ) -> Performed {
        let Ok(Step::Frame(frame)) = decode(parked, usize::MAX) else { return Performed::Done };
        let Ok((performative, payload)) = Performative::decode(frame.body) else { return Performed::Done };
        if let Performative::Close(_) = performative {
            // Other sessions are replayed by now, unless they wait for a queue.
            return match self.intake.parking.has_parked() {
                true => Performed::Held,
                false => self.leave(world),
            };
        }
        let performed = self.perform(world, frame.channel, &performative, (payload, None), budget);
        performed.unwrap_or_else(|failure| self.refuse(world, frame.channel, failure))
    }

    /// A token under verification counts as parked, since later frames wait for it.
    fn has_parked(&self) -> bool {
        self.intake.parking.has_parked() || !self.client.new_tokens.is_empty()
    }

    /// A client with several sessions may use another one for more than publishing.
    fn does_more_than_publish<W: World>(&self, world: &W) -> bool {
        let reads = |outbound: &mut Outbound| outbound.readers_len() > 0 || outbound.unsettled_len() > 0;
        self.client.sessions.len() > 1 || world.with_outbound(self.client.connection, reads) == Some(true)
    }

    #[inline]
    fn gathered_bytes(&self, free_bytes: usize) -> usize {
        if self.client.unfinished_bytes < free_bytes { 0 } else { self.client.unfinished_bytes }
    }

    fn keepalive_deadline(&self) -> Option<Time> {
        let keepalive = self.keepalive.next_deadline(&self.intake.reading);
        [keepalive, self.client.transactions.next_end()].into_iter().flatten().min()
    }

    /// Sends an empty frame if the connection is idle, ends the connection if the client has been
    /// silent too long, and rolls back transactions that took too long.
    fn keep_alive<W: World>(&mut self, world: &W) {
        roll_back_late(&mut self.client, world);
        let due = self.keepalive.due(world.now(), &self.intake.reading);
        if let Some(max) = due.silence {
            let text = format_args!(
                "nothing was received for {} s, twice the idle time-out that the broker told",
                max.as_secs()
            );
            let error = ProtocolError::new(condition::RESOURCE_LIMIT_EXCEEDED, text);
            self.refuse(world, 0, Failure::Connection(error));
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

/// An error, and the channel of the offending frame.
type Refused = (u16, Failure);

impl Connection {
    /// Returns the largest frame accepted in the current state, in bytes.
    #[inline]
    fn frame_bytes_max(&self) -> usize {
        match self.state {
            State::Running => self.client.settings.frame_bytes_max as usize,
            _ => LOGIN_FRAME_BYTES_MAX,
        }
    }

    #[cold]
    fn take_header<W: World>(&mut self, world: &W, header: ProtocolHeader) -> Result<Taken, Refused> {
        match action(self.state, Kind::of_header(header)) {
            Action::OfferLogin => {
                let names = mechanisms(world, &self.intake.peer, &self.client.settings);
                let mechanisms = SaslMechanisms { sasl_server_mechanisms: Symbols::Slice(&names) };
                self.send_login(world, |out| {
                    out.extend_from_slice(ProtocolHeader::Sasl.bytes());
                    push_frame(out, FrameKind::Sasl, 0, |out| mechanisms.encode(out));
                });
                self.state = State::LoggingIn;
            }
            Action::Greet => {
                if self.state == State::Header {
                    // AMQP 1.0, 5.3: a client that skips SASL is anonymous.
                    match self.log_in(world, Ok(anonymous())) {
                        Some(true) => {}
                        Some(false) => return Ok(Taken::Bytes(HEADER_BYTES)),
                        None => return Ok(Taken::Left(Next::Verify)),
                    }
                }
                self.send_login(world, |out| out.extend_from_slice(ProtocolHeader::Amqp.bytes()));
                self.state = State::Opening;
            }
            _ => return Err((0, self.not_now("protocol header"))),
        }
        Ok(Taken::Bytes(HEADER_BYTES))
    }

    #[cold]
    fn take_login<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        budget: &mut Budget,
    ) -> Result<Taken, Refused> {
        budget.spend(1, 0, None);
        if !matches!(self.state, State::LoggingIn | State::Challenged) {
            return Err((0, self.not_now("frame of SASL")));
        }
        let sasl = SaslFrame::decode(frame.body).map_err(|error| (0, error.into()))?;
        let (claim, response) = match (action(self.state, Kind::of_sasl(&sasl)), sasl, &self.scram) {
            (Action::LogIn, SaslFrame::Init(SaslInit { mechanism, initial_response, .. }), _) => {
                self.client.facts.mechanism = mechanism.0.to_owned();
                match begin(world, &self.client.settings, mechanism.0, initial_response) {
                    Progress::Claim(claim) => (claim, None),
                    Progress::Challenge(login) => {
                        self.challenge(world, login);
                        return Ok(Taken::Bytes(frame.len));
                    }
                }
            }
            (Action::GoOn, SaslFrame::Response(SaslResponse { response }), Some(login)) => {
                (login.finish(response), Some(response))
            }
            _ => return Err((0, self.not_now("frame of SASL"))),
        };
        match self.log_in(world, claim) {
            Some(true) => {
                let login = self.scram.take().zip(response);
                let proof = login.and_then(|(login, response)| login.proof(world, response));
                self.send_outcome(world, SaslCode::Ok, proof.as_deref());
                self.state = State::LoggedIn;
                Ok(Taken::Bytes(frame.len))
            }
            Some(false) => Ok(Taken::Bytes(frame.len)),
            None => Ok(Taken::Left(Next::Verify)),
        }
    }

    fn challenge<W: World>(&mut self, world: &W, login: Box<ScramLogin>) {
        let challenge = SaslChallenge { challenge: login.challenge() };
        self.send_login(world, |out| push_frame(out, FrameKind::Sasl, 0, |out| challenge.encode(out)));
        self.scram = Some(login);
        self.state = State::Challenged;
    }

    /// Authenticates the client. Returns false if it was refused and told so, `None` if the check
    /// takes longer.
    fn log_in<W: World>(&mut self, world: &W, claim: Claim) -> Option<bool> {
        let refused = match claim {
            Ok(credentials) => match self.intake.verify(world, self.client.connection, credentials)? {
                imori_core::login::Verdict::Granted(identity) => {
                    self.client.set_identity(identity);
                    return Some(true);
                }
                imori_core::login::Verdict::Refused => (SaslCode::Auth, "user or password are not right"),
                imori_core::login::Verdict::Busy => {
                    (SaslCode::SysTemp, "too many clients log in at once; connect again in a moment")
                }
            },
            Err(text) => (SaslCode::Auth, text),
        };
        self.intake.notice = Some(Notice::refused("login refused", refused.1.to_string()));
        world.with_outbound(self.client.connection, Outbound::finish);
        match self.state {
            State::LoggingIn | State::Challenged => self.send_outcome(world, refused.0, None),
            // AMQP 1.0, 2.2: answer with the header that the broker expects.
            _ => self.send_login(world, |out| out.extend_from_slice(ProtocolHeader::Sasl.bytes())),
        }
        self.close();
        Some(false)
    }

    fn send_outcome<W: World>(&self, world: &W, code: SaslCode, additional_data: Option<&[u8]>) {
        let outcome = SaslOutcome { code, additional_data };
        self.send_login(world, |out| push_frame(out, FrameKind::Sasl, 0, |out| outcome.encode(out)));
    }

    fn send_login<W: World>(&self, world: &W, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write(&mut bytes);
        world.with_outbound(self.client.connection, |outbound| outbound.beat(&bytes));
    }

    #[inline]
    fn take_frame<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Result<Taken, Refused> {
        let channel = frame.channel;
        if frame.body.is_empty() {
            return match action(self.state, Kind::Empty) {
                Action::Ignore => Ok(Taken::Bytes(frame.len)),
                _ => Err((channel, self.not_now("empty frame"))),
            };
        }
        let (performative, payload) =
            Performative::decode(frame.body).map_err(|error| (channel, error.into()))?;
        match (action(self.state, Kind::of(&performative)), &performative) {
            (Action::Session, _) => {
                // A large body is kept in the buffer that it arrived in.
                let shared = unread.kept_body(frame.len, payload.len());
                return self.take_of_session(world, frame, &performative, (payload, shared), budget);
            }
            // AMQP 1.0, 2.4.1: `open` can only be sent on channel 0.
            (Action::Open, Performative::Open(_)) if channel != 0 => {
                let text = format_args!("`open` came on channel {channel}; send it on channel 0");
                return Err((0, Failure::Connection(ProtocolError::new(condition::NOT_ALLOWED, text))));
            }
            (Action::Open, Performative::Open(op)) => {
                budget.spend(1, 0, None);
                let idle = open(&mut self.client, world, op).map_err(|failure| (channel, failure))?;
                let own = Some(self.client.settings.idle_time_out);
                self.keepalive.agreed(idle, own, world.now());
                self.intake.reading.logged_in();
                self.state = State::Running;
            }
            (Action::Begin, Performative::Begin(op)) => {
                budget.spend(1, 0, None);
                session::begin(&mut self.client, world, channel, op).map_err(|failure| (channel, failure))?;
            }
            (Action::Leave, _) if self.intake.parking.has_parked() => {
                let mut bytes = Vec::new();
                push_frame(&mut bytes, FrameKind::Amqp, 0, |out| out.extend_from_slice(frame.body));
                self.intake.parking.push(SessionId::FIRST, bytes.into(), world.gauge());
                self.state = State::Leaving;
            }
            (Action::Leave, _) if self.leave(world) == Performed::Partly => {
                return Ok(Taken::Left(Next::Again));
            }
            (Action::Leave, _) => {}
            _ => return Err((channel, self.not_now("performative"))),
        }
        Ok(Taken::Bytes(frame.len))
    }

    #[cold]
    fn not_now(&self, what: &str) -> Failure {
        let state = match self.state {
            State::Header => "a protocol header",
            State::LoggingIn => "a `sasl-init`",
            State::Challenged => "a `sasl-response`",
            State::LoggedIn => "the protocol header `AMQP 0 1 0 0`",
            State::Opening => "an `open`",
            State::Running | State::Leaving | State::Closed => "the frames of sessions",
        };
        let text = format_args!("this {what} is not allowed now; send {state}");
        Failure::Connection(ProtocolError::new(condition::CONNECTION_FRAMING_ERROR, text))
    }

    /// Ends the connection at the client's request; `Partly` if another turn is needed.
    fn leave<W: World>(&mut self, world: &W) -> Performed {
        // A leaving client is not told about its temporary nodes.
        for channel in self.client.sessions.keys() {
            if !broker::end_session(world, &self.client.actor(), session_of(*channel), HeldAnswers::Keep) {
                return Performed::Partly;
            }
        }
        if !broker::delete_exclusive(world, &self.client.actor()) {
            return Performed::Partly;
        }
        world.with_outbound(self.client.connection, Outbound::finish);
        // Released before the answer, so that a client that has read it can reconnect at once.
        world.quotas().release_client_id(&self.client.actor());
        self.client.answer_first(world, &Close::default());
        self.close();
        Performed::Done
    }

    /// Refuses a frame. It stays in the input until everything that ends with it is given back.
    #[cold]
    fn refuse_frame<W: World>(&mut self, world: &W, channel: u16, failure: Failure, input: &[u8]) -> Taken {
        match self.refuse(world, channel, failure) {
            Performed::Partly => Taken::Left(Next::Again),
            _ if self.state == State::Closed => Taken::Bytes(input.len()),
            _ => match decode(input, usize::MAX) {
                Ok(Step::Frame(frame)) => Taken::Bytes(frame.len),
                _ => Taken::Bytes(input.len()),
            },
        }
    }

    /// Detaches a link, ends a session or closes the connection, with the error.
    #[cold]
    fn refuse<W: World>(&mut self, world: &W, channel: u16, failure: Failure) -> Performed {
        let (Failure::Link(_, error) | Failure::Session(error) | Failure::Connection(error)) = &failure;
        self.intake.notice = Some(Notice::refused(error.condition().0, error.text().to_string()));
        match failure {
            Failure::Link(handle, error) => {
                return end_link(&mut self.client, world, channel, handle, &error);
            }
            Failure::Session(error) if self.client.sessions.contains_key(&channel) => {
                return self.refuse_session(world, channel, error);
            }
            Failure::Session(error) | Failure::Connection(error) => {
                world.with_outbound(self.client.connection, Outbound::finish);
                match self.state {
                    // AMQP 1.0, 2.2: answer with the header that the broker expects.
                    State::Header | State::LoggedIn => {
                        let wanted = match self.state {
                            State::Header => ProtocolHeader::Sasl,
                            _ => ProtocolHeader::Amqp,
                        };
                        self.send_login(world, |out| out.extend_from_slice(wanted.bytes()));
                    }
                    State::LoggingIn | State::Challenged => self.send_outcome(world, SaslCode::Sys, None),
                    State::Opening => {
                        // AMQP 1.0, 2.4.2: `close` may only follow an `open`.
                        answer_refused(&self.client, world);
                        self.client.answer_first(world, &Close { error: Some(error.error()) });
                    }
                    _ => self.client.answer_first(world, &Close { error: Some(error.error()) }),
                }
                self.close();
            }
        }
        Performed::Done
    }
}
