//! The state machine: decides how a kind of frame is treated in a state.

use crate::codec::composites::{Performative, SaslFrame};
use crate::codec::frame::ProtocolHeader;

/// State of a connection.
///
/// ```text
///                            init, challenge
///                       ┌────────────────► Challenged
///         AMQP 3 1 0 0  │        outcome    │ response      AMQP 0 1 0 0          open
///  Header ────────────► LoggingIn ────────► LoggedIn ───────────► Opening ──────► Running
///    │ AMQP 0 1 0 0, without a login          │                      ▲ │             │ close, and
///    ├───────────────────────────────────────────────────────────────┘ │             ▼ frames are parked
///    ▼                                        ▼                        ▼          Leaving
///  Closed ◄───────────────────────────────────┴────────────────────────┴─────────────┘
///                 close, or an error that ends the connection
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for a protocol header.
    Header,
    /// Waits for `sasl-init`.
    LoggingIn,
    /// Waits for the response to a challenge.
    Challenged,
    /// Login succeeded; waits for the AMQP protocol header.
    LoggedIn,
    /// Waits for `open`.
    Opening,
    /// The connection is open.
    Running,
    /// The client has sent `close`, and parked frames are left.
    Leaving,
    /// Every frame is ignored.
    Closed,
}

/// The kinds of frames that the state machine distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The protocol header of SASL.
    SaslHeader,
    /// The protocol header of AMQP.
    AmqpHeader,
    /// `sasl-init`.
    SaslInit,
    /// `sasl-response`.
    SaslResponse,
    /// A SASL frame that only a broker sends.
    OtherSasl,
    /// `open`.
    Open,
    /// `close`.
    Close,
    /// `begin`.
    Begin,
    /// A frame that needs a session.
    Session,
    /// An empty frame, which keeps the connection alive.
    Empty,
}

/// The treatment of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Offer login mechanisms.
    OfferLogin,
    /// Start the login.
    LogIn,
    /// Continue the login with the response to a challenge.
    GoOn,
    /// Answer the AMQP protocol header.
    Greet,
    /// Open the connection.
    Open,
    /// Begin a session.
    Begin,
    /// Pass the frame to its session.
    Session,
    /// Close the connection.
    Leave,
    /// Drop the frame.
    Ignore,
    /// Refuse the frame: it is not allowed in this state.
    Refuse,
}

/// The whole state machine: an action for every state and kind of frame (SECURITY LIM-11).
#[inline]
pub fn action(state: State, kind: Kind) -> Action {
    match (state, kind) {
        (State::Running, Kind::Session) => Action::Session,
        (State::Leaving | State::Closed, _) => Action::Ignore,
        (State::Header, Kind::SaslHeader) => Action::OfferLogin,
        (State::Header | State::LoggedIn, Kind::AmqpHeader) => Action::Greet,
        (State::LoggingIn, Kind::SaslInit) => Action::LogIn,
        (State::Challenged, Kind::SaslResponse) => Action::GoOn,
        (State::Opening | State::Running, Kind::Empty) => Action::Ignore,
        (State::Opening, Kind::Open) => Action::Open,
        (State::Opening | State::Running, Kind::Close) => Action::Leave,
        (State::Running, Kind::Begin) => Action::Begin,
        (
            State::Header
            | State::LoggingIn
            | State::Challenged
            | State::LoggedIn
            | State::Opening
            | State::Running,
            _,
        ) => Action::Refuse,
    }
}

impl Kind {
    pub(super) fn of_header(header: ProtocolHeader) -> Kind {
        match header {
            ProtocolHeader::Sasl => Kind::SaslHeader,
            ProtocolHeader::Amqp => Kind::AmqpHeader,
        }
    }

    pub(super) fn of_sasl(frame: &SaslFrame<'_>) -> Kind {
        match frame {
            SaslFrame::Init(_) => Kind::SaslInit,
            SaslFrame::Response(_) => Kind::SaslResponse,
            SaslFrame::Mechanisms(_) | SaslFrame::Challenge(_) | SaslFrame::Outcome(_) => Kind::OtherSasl,
        }
    }

    #[inline]
    pub(super) fn of(performative: &Performative<'_>) -> Kind {
        match performative {
            Performative::Open(_) => Kind::Open,
            Performative::Close(_) => Kind::Close,
            Performative::Begin(_) => Kind::Begin,
            Performative::Attach(_)
            | Performative::Flow(_)
            | Performative::Transfer(_)
            | Performative::Disposition(_)
            | Performative::Detach(_)
            | Performative::End(_) => Kind::Session,
        }
    }
}
