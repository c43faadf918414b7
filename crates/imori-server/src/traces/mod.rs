//! Spans of publishes that belong to a trace (W3C Trace Context), sent to a collector by OTLP over HTTP.
//!
//! Cells put spans into a bounded queue, and a thread sends them. Only messages with a sampled `traceparent` get a
//! span, and no client waits for the collector.

mod traces;
mod exporter;
mod otlp;
mod span;
mod trace_context;

pub(crate) use traces::Traces;
