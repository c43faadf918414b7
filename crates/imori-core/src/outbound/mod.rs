//! What is on its way to one connection: bytes, deliveries that it has not settled, its readers and inboxes.
//!
//! It is the half of a connection that any cell may touch, under one lock. It alone numbers and
//! encodes deliveries; the protocol lends it an [`Encoder`].

mod outbound;
mod answers;
mod backlog;
mod inbox;
mod readers;
mod session;
mod credit;
mod buffer;
mod encoder;

pub use credit::Credit;
pub use encoder::{AfterCancel, CutReason, Encoder, SharedHeaders};
pub use inbox::{INBOX_PREFIX, InboxAddress};
pub use outbound::{Live, Outbound, OutboundLimits, Remains, Reply, Wake};
pub use readers::{ReaderSpec, Source, Subscription};
pub use session::{Numbers, SessionId, Unsettled};
