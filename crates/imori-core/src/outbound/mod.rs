//! What is on its way to one connection: bytes, deliveries that it has not settled, its readers and inboxes.
//!
//! It is the half of a connection that any cell may touch, under one lock. It alone numbers and
//! encodes deliveries; the protocol lends it an [`Encoder`].

mod deliver;
mod write;
mod settle;
mod promise;
mod open_session;
mod end;
mod outbound;
mod backlog;
mod inbox;
mod encoder;
mod sessions;
mod session;
mod readers;
mod answers;
mod credit;
mod buffer;
#[cfg(test)]
mod test_stage;

pub use crate::id::SessionId;
pub use credit::Credit;
pub use deliver::{Live, Reply};
pub use encoder::{
    AfterCancel, Confirmed, CutReason, Encoder, EncoderKind, EncoderKinds, Mute, Recipient, SharedHeaders,
};
pub use end::Remains;
pub use inbox::{INBOX_PREFIX, InboxAddress};
pub use open_session::{HeldAnswers, SessionRefusal};
pub use outbound::{Outbound, OutboundLimits, Wake};
pub use readers::{ReaderSpec, Source, Subscription};
pub use session::{Numbers, Unsettled};
