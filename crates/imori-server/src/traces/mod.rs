//! Observation of single messages: spans for a collector, the trace of an operator, and measured calls.
//!
//! Spans are of publishes that belong to a trace (W3C Trace Context), and are sent by OTLP over HTTP. Cells put them
//! into a bounded queue, and a thread sends them. Only messages with a sampled `traceparent` get a span, and no client
//! waits for the collector. While nothing is observed, a message costs one look at a flag.

mod observation;
mod calls;
mod message_trace;
mod traces;
mod exporter;
mod otlp;
mod span;
mod trace_context;

pub use calls::ServiceFigures;
pub use message_trace::{MessageTrace, TraceFilter, TraceStep, TracedClient, TracedMessage};
pub use observation::CallFigures;
pub(crate) use observation::{CurrentMessage, Observation};
pub(crate) use traces::Traces;
