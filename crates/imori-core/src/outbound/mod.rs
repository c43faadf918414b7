//! The outbound half of a connection: bytes, unsettled deliveries, readers and inboxes.
//!
//! Any cell may use this half, under one lock. Deliveries are numbered and encoded only here; the protocol
//! supplies the [`Encoder`].

mod deliver;
mod write;
mod settle;
mod promise;
mod open_session;
mod end;
mod outbound;
mod backlog;
mod inbox;
mod sessions;
mod session;
mod readers;
mod answers;
mod credit;
mod encoder;
mod buffer;
#[cfg(test)]
mod test_stage;

pub use crate::id::SessionId;
pub use credit::{Credit, Grant};
pub use deliver::{Live, Reply};
pub use encoder::{
    AfterCancel, Confirmed, CutReason, Drained, Encoder, EncoderKind, EncoderKinds, FrameNumbers, FramePart,
    Mute, Recipient, SharedHeaders,
};
pub use end::Remains;
pub use inbox::{INBOX_PREFIX, InboxAddress};
pub use open_session::{HeldAnswers, SessionRefusal};
pub use outbound::{Outbound, OutboundLimits, Wake};
pub use readers::{ReaderSpec, Source, Subscription};
pub use session::{Numbers, SessionInspection, Unsettled};
pub use settle::Settled;
pub(crate) use settle::SettledOnly;
