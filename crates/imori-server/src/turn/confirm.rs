//! Releases the answers and the messages of streams that waited for the journal, once it has progressed.

use imori_core::broker::{send_late_answer, stream_progressed, wake_consumers};
use imori_core::confirm::Progress;
use imori_core::world::Latency;

use super::host::Host;
use super::outbound_access::with_outbound;

/// Subscribes the cell to progress of the journal if answers wait for it, and releases the answers that may already
/// leave. `wait` subscribes, to writes too if its argument is true, otherwise only to syncs; `progress` returns the
/// progress after that.
pub fn await_journal<H: Host>(host: &H, wait: impl FnOnce(bool), progress: impl FnOnce() -> Progress) {
    if !host.cell_scratch().awaits_journal() {
        return;
    }
    wait(host.cell_scratch().take_write_awaited());
    let progress = progress();
    if host.cell_scratch().is_behind(progress) {
        release_confirms(host, progress);
    }
}

/// Releases the answers that waited for this progress of the journal, on all connections of the cell.
pub fn release_confirms<H: Host>(host: &H, journal: Progress) {
    if let Some(since) = host.cell_scratch().end_confirm_sample(journal) {
        host.observe(Latency::Confirm, host.now().since(since));
    }
    for id in host.cell_scratch().take_awaiting(journal) {
        let told = with_outbound(host, id, |outbound| {
            let wakes = outbound.confirmed(journal);
            (outbound.has_held_answers(), wakes)
        });
        let (waits, wakes) = told.unwrap_or_default();
        match waits {
            true => host.cell_scratch().note_awaiting_on(id),
            // Its next answer that has to wait puts it on the list again.
            false => {
                host.with_link(id, |link| link.awaits_journal = false);
            }
        }
        wake_consumers(host, id, &wakes);
    }
    for id in host.cell_scratch().take_streams(journal) {
        stream_progressed(host, id, journal);
    }
    for answer in host.cell_scratch().take_late_answers(journal) {
        send_late_answer(host, &answer);
    }
}
