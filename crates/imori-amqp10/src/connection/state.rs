//! The state machine: which frame counts in which state.

use crate::codec::composites::{Performative, SaslFrame};
use crate::codec::frame::ProtocolHeader;

/// Where a connection stands.
///
/// ```text
///                            init, challenge
///                       ┌────────────────► Challenged
///         AMQP 3 1 0 0  │        outcome    │ response      AMQP 0 1 0 0          open
///  Header ────────────► LoggingIn ────────► LoggedIn ───────────► Opening ──────► Running
///    │ AMQP 0 1 0 0, where nobody logs in     │                      ▲ │             │ close, and
///    ├───────────────────────────────────────────────────────────────┘ │             ▼ frames are parked
///    ▼                                        ▼                        ▼          Leaving
///  Closed ◄───────────────────────────────────┴────────────────────────┴─────────────┘
///                 close, or an error that ends the connection
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// A protocol header is awaited.
    Header,
    /// The client is to say who it is.
    LoggingIn,
    /// The client is to answer a challenge.
    Challenged,
    /// The protocol header of frames is awaited.
    LoggedIn,
    /// The client is to open the connection.
    Opening,
    /// Sessions do their work.
    Running,
    /// The client has said goodbye, and parked frames are left.
    Leaving,
    /// Nothing counts any more.
    Closed,
}

/// The kinds of frames that states tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    SaslHeader,
    AmqpHeader,
    SaslInit,
    SaslResponse,
    /// A frame of SASL that only a broker sends, or an empty one.
    OtherSasl,
    Open,
    Close,
    Begin,
    /// Any frame of a session that has begun, or should have.
    Session,
    /// An empty frame: a sign of life.
    Empty,
}

/// The treatment of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Offer mechanisms.
    OfferLogin,
    /// Look who it is.
    LogIn,
    /// Go on with a login.
    GoOn,
    /// Begin the frames.
    Greet,
    /// Open the connection.
    Open,
    /// Begin a session.
    Begin,
    /// Let the session decide.
    Session,
    /// Say goodbye.
    Leave,
    /// Nothing.
    Ignore,
    /// Refuse it: the frame is not allowed now.
    Refuse,
}

/// The whole state machine: every state and every kind of frame (SECURITY LIM-11).
#[inline]
pub(super) fn action(state: State, kind: Kind) -> Action {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// SECURITY LIM-11: the whole table, so that no change of it goes unseen.
    #[test]
    fn every_state_knows_every_frame() {
        let states = [
            State::Header,
            State::LoggingIn,
            State::Challenged,
            State::LoggedIn,
            State::Opening,
            State::Running,
            State::Leaving,
            State::Closed,
        ];
        let kinds = [
            Kind::SaslHeader,
            Kind::AmqpHeader,
            Kind::SaslInit,
            Kind::SaslResponse,
            Kind::OtherSasl,
            Kind::Open,
            Kind::Close,
            Kind::Begin,
            Kind::Session,
            Kind::Empty,
        ];
        let mut table = row("", &states.map(|state| format!("{state:?}")));
        for kind in kinds {
            table += &row(&format!("{kind:?}"), &states.map(|state| format!("{:?}", action(state, kind))));
        }
        assert_eq!(table, include_str!("table.txt"), "the state machine has changed:\n{table}");
    }

    fn row(name: &str, cells: &[String; 8]) -> String {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:12}")).collect();
        format!("{}\n", format!("{name:13}{}", cells.concat()).trim_end())
    }
}
