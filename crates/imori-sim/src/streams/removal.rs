//! When a message may have left its stream, and when it must have.

use imori_core::time::Time;

use super::ledger::Ledger;
use super::records::{Purge, Sent, Stage};
use crate::workload::Retention;

impl Ledger {
    /// Whether a message may have left its stream by now, by a limit, an acknowledgement or a client's request.
    pub(crate) fn may_be_gone(&self, stream: usize, sequence: u64, now: Time) -> bool {
        let state = self.stream(stream);
        let Some(sent) = state.at.get(&sequence).map(|message| self.message(*message)) else { return true };
        let spec = &state.spec;
        let bound = state.at.range(sequence + 1..).map(|(_, message)| self.message(*message));
        let later: Vec<&Sent> = bound.chain(self.loose(stream)).collect();
        let count = |is_of: &dyn Fn(&Sent) -> bool| later.iter().filter(|other| is_of(other)).count() as u64;
        let bytes_after = || later.iter().map(|other| other.bytes).sum::<u64>() + sent.bytes;
        let of_key = |other: &Sent| other.key == sent.key;
        let any = |_: &Sent| true;
        let is_purged = |purge: &Purge| {
            let is_of = |other: &Sent| purge.key.is_none_or(|key| other.key == key);
            is_of(sent) && purge.end.is_none_or(|end| sequence < end) && count(&is_of) >= purge.keep
        };
        let is_acked = || match spec.retention {
            Retention::Limits => false,
            Retention::WorkQueue => state.acked.contains(&sequence),
            Retention::Interest => !state.consumers.iter().any(|consumer| {
                consumer.stage == Stage::There
                    && consumer.made_at < sent.at
                    && consumer.spec.wants(sent.key)
                    && !consumer.acks.contains_key(&sequence)
            }),
        };
        state.deletions.contains_key(&sequence)
            || spec.messages_max.is_some_and(|max| !spec.refuses && count(&any) >= max)
            || spec.per_subject_max.is_some_and(|max| count(&of_key) >= max)
            || spec.bytes_max.is_some_and(|max| !spec.refuses && bytes_after() > max)
            || spec.age_max_ms.is_some_and(|age| sent.time.0 + age * 1000 <= now.0)
            || is_acked()
            || state.purges.iter().any(is_purged)
    }

    /// Why a message must have left its stream, if the answer to a request says so and came before this step.
    pub(crate) fn must_be_gone(&self, stream: usize, sequence: u64, before: u64) -> Option<&'static str> {
        let state = self.stream(stream);
        let sent = self.message(*state.at.get(&sequence)?);
        let is_past = |answered_at: Option<u64>| answered_at.is_some_and(|at| at < before);
        if state.deletions.get(&sequence).is_some_and(|answered_at| is_past(*answered_at)) {
            return Some("was deleted");
        }
        let is_purged = |purge: &&Purge| {
            is_past(purge.answered_at)
                && sent.answer.is_stored_before(purge.at)
                && purge.keep == 0
                && purge.key.is_none_or(|key| sent.key == key)
                && purge.end.is_none_or(|end| sequence < end)
        };
        if state.purges.iter().any(|purge| is_purged(&purge)) {
            return Some("was purged");
        }
        let is_done = state.done.get(&sequence).is_some_and(|at| *at < before);
        (state.spec.retention == Retention::WorkQueue && is_done).then_some("was acknowledged")
    }

    /// Whether every consumer is certainly done with a message of a stream that keeps what consumers want.
    pub(crate) fn is_unwanted(&self, stream: usize, sequence: u64) -> bool {
        let state = self.stream(stream);
        let Some(sent) = state.at.get(&sequence).map(|message| self.message(*message)) else { return false };
        state.spec.retention == Retention::Interest
            && state.consumers.iter().all(|consumer| match consumer.stage {
                Stage::Absent => true,
                Stage::There => {
                    let is_acked = consumer.acks.get(&sequence).is_some_and(Option::is_some);
                    !consumer.spec.wants(sent.key) || is_acked
                }
                Stage::Making | Stage::Going => false,
            })
    }
}
