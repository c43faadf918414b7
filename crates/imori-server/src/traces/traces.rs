//! Queues spans of publishes for the exporter.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Builder;

use imori_core::message::{MessageView, Value};
use imori_core::time::Time;
use imori_core::world::Sent;

use super::exporter;
use super::span::Span;
use super::trace_context::TraceContext;
use crate::config;
use crate::fetch;
use crate::limits::{TRACE_PATIENCE, TRACE_SPANS_MAX};
use crate::protocols::header_reader;

/// The header that names a message's trace.
const TRACEPARENT: &[u8] = b"traceparent";

/// The queue of spans.
pub(crate) struct Traces {
    spans: Option<SyncSender<Span>>,
    lost: AtomicU64,
}

impl fmt::Debug for Traces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Traces {
    /// Starts the exporter if the configuration names a collector. The thread is never joined, because the collector
    /// may block it.
    ///
    /// # Errors
    /// The collector's CA cannot be used, or no thread can be started.
    pub(crate) fn start(config: &config::Traces, node: String) -> io::Result<Traces> {
        let Some(url) = config.otlp_url.as_ref().map(|url| url.as_str().to_owned()) else {
            return Ok(Traces { spans: None, lost: AtomicU64::new(0) });
        };
        let ca = config.otlp_ca.path().map(Path::to_owned);
        let agent = fetch::agent(ca.as_deref(), TRACE_PATIENCE).map_err(io::Error::other)?;
        let (spans, received) = sync_channel(TRACE_SPANS_MAX);
        let run = move || exporter::run(&agent, &url, &node, &received);
        Builder::new().name(String::from("traces")).spawn(run)?;
        Ok(Traces { spans: Some(spans), lost: AtomicU64::new(0) })
    }

    /// Whether publishes are traced.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.spans.is_some()
    }

    /// Spans dropped because the collector was too slow.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Queues the span of a publish if its message belongs to a sampled trace. `random` provides the span's id.
    pub(crate) fn note(
        &self,
        times: (Time, Time),
        vhost: impl FnOnce() -> String,
        random: impl FnOnce() -> [u8; 16],
        sent: &Sent<'_>,
        receivers: usize,
    ) {
        let Some((spans, context)) = self.spans.as_ref().zip(context(&sent.first)) else { return };
        let random = random();
        let Some((id, _)) = random.split_first_chunk::<8>() else { return };
        if spans.try_send(Span::of(context, *id, times, vhost(), sent, receivers)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The trace named by a message's headers.
fn context(message: &MessageView<'_>) -> Option<TraceContext> {
    let mut found = None;
    header_reader(message.properties.origin).visit_headers(message.text, &mut |name, value| {
        if found.is_none() && name.eq_ignore_ascii_case(TRACEPARENT) {
            found = match value {
                Value::Text(Cow::Borrowed(text)) => TraceContext::sampled(text),
                Value::Text(Cow::Owned(text)) => TraceContext::sampled(&text),
                _ => None,
            };
        }
    });
    found
}
