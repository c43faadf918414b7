//! A span: one publish and its duration.

use imori_core::time::Time;
use imori_core::world::Sent;

use super::trace_context::TraceContext;
use crate::limits::TRACE_NAME_BYTES_MAX;

/// A publish, in terms of OpenTelemetry's conventions for messaging.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) context: TraceContext,
    pub(super) id: [u8; 8],
    pub(super) from: Time,
    pub(super) until: Time,
    /// The exchange and the subject, truncated if too long.
    pub(super) exchange: String,
    pub(super) subject: String,
    pub(super) vhost: String,
    pub(super) messages: usize,
    pub(super) body_bytes: usize,
    pub(super) receivers: usize,
}

impl Span {
    /// The span of a publish that took from `from` until `until`.
    pub(super) fn of(
        context: TraceContext,
        id: [u8; 8],
        (from, until): (Time, Time),
        vhost: String,
        sent: &Sent<'_>,
        receivers: usize,
    ) -> Span {
        Span {
            context,
            id,
            from,
            until,
            exchange: shortened(sent.exchange),
            subject: shortened(sent.subject),
            vhost,
            messages: sent.messages,
            body_bytes: sent.first.body.len(),
            receivers,
        }
    }
}

/// A name as text, truncated to [`TRACE_NAME_BYTES_MAX`].
pub(super) fn shortened(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..TRACE_NAME_BYTES_MAX).unwrap_or(name)).into_owned()
}
