//! The thread that sends spans to the collector in batches.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tracing::{info, warn};
use ureq::Agent;

use super::otlp::request;
use super::span::Span;
use crate::limits::{TRACE_BATCH_SPANS_MAX, TRACE_EXPORT_EVERY};

/// Sends spans until all senders are gone.
pub(super) fn run(agent: &Agent, url: &str, node: &str, spans: &Receiver<Span>) {
    let mut is_failing = false;
    loop {
        let (batch, is_over) = next_batch(spans);
        if !batch.is_empty() {
            match send(agent, url, &request(node, &batch)) {
                Ok(()) if is_failing => {
                    info!(url, "spans are taken again");
                    is_failing = false;
                }
                Ok(()) => {}
                // Logged once, until the collector accepts spans again.
                Err(error) if !is_failing => {
                    warn!(url, error, lost = batch.len(), "the collector takes no spans");
                    is_failing = true;
                }
                Err(_) => {}
            }
        }
        if is_over {
            return;
        }
    }
}

/// Collects spans until the batch is full or some time after the first; also returns whether there will be no more.
fn next_batch(spans: &Receiver<Span>) -> (Vec<Span>, bool) {
    let Ok(first) = spans.recv() else { return (Vec::new(), true) };
    let mut batch = vec![first];
    let until = Instant::now() + TRACE_EXPORT_EVERY;
    while batch.len() < TRACE_BATCH_SPANS_MAX {
        match spans
            .recv_timeout(until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)))
        {
            Ok(span) => batch.push(span),
            Err(RecvTimeoutError::Timeout) => break,
            Err(RecvTimeoutError::Disconnected) => return (batch, true),
        }
    }
    (batch, false)
}

/// OTLP over HTTP: any 2xx status means that the spans were accepted.
fn send(agent: &Agent, url: &str, body: &[u8]) -> Result<(), String> {
    let answer =
        agent.post(url).content_type("application/json").send(body).map_err(|error| error.to_string())?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(format!("the answer is {}", answer.status())),
    }
}
