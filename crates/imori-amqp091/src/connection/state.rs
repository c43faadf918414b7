//! The state machine: decides how a kind of frame is treated in a state.

use crate::codec::frame::{Frame, FrameType};
use crate::codec::methods::Method;

/// State of a connection.
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
pub enum State {
    /// Waits for the protocol header.
    Header,
    /// Waits for `connection.start-ok`.
    Starting,
    /// Waits for `connection.tune-ok`.
    Tuning,
    /// Waits for `connection.open`.
    Opening,
    /// The connection is open.
    Running,
    /// The client has sent `connection.close`, and parked frames are left.
    Leaving,
    /// Every frame is ignored.
    Closed,
}

/// The kinds of frames that the state machine distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `connection.start-ok`.
    StartOk,
    /// `connection.tune-ok`.
    TuneOk,
    /// `connection.open`.
    Open,
    /// `connection.close`.
    Close,
    /// `connection.update-secret`.
    UpdateSecret,
    /// Another method of the connection, or a channel's method on channel 0.
    OtherMethod,
    /// A heartbeat.
    Heartbeat,
    /// A content frame on channel 0.
    Content,
    /// Any frame of another channel.
    Channel,
}

/// The treatment of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Authenticate the client.
    LogIn,
    /// Take the negotiated sizes.
    Tune,
    /// Enter a vhost.
    Enter,
    /// Close the connection.
    Leave,
    /// Take a new token.
    UpdateSecret,
    /// Pass the frame to its channel.
    Channel,
    /// Drop the frame.
    Ignore,
    /// Refuse the frame: its method is not allowed in this state.
    RefuseMethod,
    /// Refuse the frame: its type is not allowed in this state.
    RefuseFrame,
}

/// The whole state machine: an action for every state and kind of frame (SECURITY LIM-11).
#[inline]
pub fn action(state: State, kind: Kind) -> Action {
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
    pub(super) fn of(frame: &Frame<'_>, method: Option<&Method<'_>>) -> Kind {
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
