//! Spans of publishes that belong to a trace (W3C Trace Context), sent to a collector by OTLP over HTTP.
//!
//! A cell puts a span into a queue with a limit; a thread sends what is there. A message without a sampled
//! `traceparent` has no span, and no client waits for a collector.

mod traces;
mod exporter;
mod otlp;
mod span;
mod trace_context;

pub(crate) use traces::Traces;
