//! All that clients know of streams, and what follows from it.

use super::records::{Answer, Sent, Stage, StreamState};
use crate::machine::Shared;
use crate::property::Property;
use crate::workload::StreamSpec;

/// The clients' knowledge of streams.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) streams: Vec<StreamState>,
    pub(crate) messages: Vec<Sent>,
    /// Nothing that was sent before this step is on its way any more.
    pub(crate) quiet_at: u64,
    /// Number of sessions so far.
    pub(crate) sessions: usize,
}

impl Ledger {
    pub(crate) fn new(specs: &[StreamSpec]) -> Ledger {
        Ledger { streams: specs.iter().cloned().map(StreamState::new).collect(), ..Ledger::default() }
    }

    pub(crate) fn stream(&self, stream: usize) -> &StreamState {
        self.streams.get(stream).expect("streams are numbered from 0")
    }

    pub(crate) fn stream_mut(&mut self, stream: usize) -> &mut StreamState {
        self.streams.get_mut(stream).expect("streams are numbered from 0")
    }

    pub(crate) fn message(&self, message: usize) -> &Sent {
        self.messages.get(message).expect("messages are numbered from 0")
    }

    pub(crate) fn message_mut(&mut self, message: usize) -> &mut Sent {
        self.messages.get_mut(message).expect("messages are numbered from 0")
    }

    /// Notes that a client deletes a stream. Messages on their way may come into its next life.
    pub(crate) fn stream_goes(&mut self, stream: usize) {
        let life = self.stream(stream).life;
        self.stream_mut(stream).stage = Stage::Going;
        let is_of = |sent: &&mut Sent| sent.stream == stream && sent.life == Some(life);
        for sent in self.messages.iter_mut().filter(is_of) {
            if sent.answer == Answer::Missing {
                sent.life = None;
            }
        }
    }

    /// Notes the end of a broker. A stream in memory has to be made anew, as nothing is known of it.
    pub(crate) fn broker_ended(&mut self, step: u64) {
        self.quiet_at = step;
        for stream in &mut self.streams {
            stream.driver = None;
            for consumer in &mut stream.consumers {
                consumer.driver = None;
                consumer.numbers.clear();
            }
        }
        for stream in 0..self.streams.len() {
            if self.stream(stream).spec.is_memory && self.stream(stream).stage != Stage::Absent {
                self.stream_goes(stream);
                self.stream_mut(stream).begin_life();
            }
        }
    }

    /// Notes that a message has this number; both must be each other's only ones.
    pub(crate) fn bind(&mut self, shared: &Shared, message: usize, sequence: u64, by: &str) {
        let sent = self.message(message);
        let (stream, of) = (sent.stream, sent.sequence);
        if sent.life != Some(self.stream(stream).life) {
            return;
        }
        let other = self.stream(stream).at.get(&sequence).copied().filter(|other| *other != message);
        if other.is_some() || of.is_some_and(|of| of != sequence) {
            let name = &self.stream(stream).spec.name;
            shared.violate(Property::Sequence, || {
                format!(
                    "{by} has message {message} as number {sequence} of `{name}`; \
                     the number is that of {other:?}, the message has {of:?}"
                )
            });
        }
        self.message_mut(message).sequence = Some(sequence);
        self.stream_mut(stream).at.insert(sequence, message);
    }

    /// Messages that may be in the present life of a stream and whose number is not known.
    pub(crate) fn loose(&self, stream: usize) -> impl Iterator<Item = &Sent> {
        let life = self.stream(stream).life;
        let is_loose = move |sent: &&Sent| {
            let is_open = sent.answer == Answer::Missing && sent.sequence.is_none();
            sent.stream == stream && (sent.life.is_none() || sent.life == Some(life) && is_open)
        };
        self.messages.iter().filter(is_loose)
    }
}
