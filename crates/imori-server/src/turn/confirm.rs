//! The journal came further: the answers that waited for that leave.

use imori_core::confirm::Progress;

use super::host::Host;
use super::lend::with_outbound;

/// Sees to it that the cell is told when the journal comes further, if answers wait for that: `wait` asks for
/// it, of what is written too or only of what is synced, and `progress` is how far the journal is after that.
pub fn await_journal<H: Host>(host: &H, wait: impl FnOnce(bool), progress: impl FnOnce() -> Progress) {
    if !host.desk().awaits_journal() {
        return;
    }
    wait(host.desk().take_write_awaited());
    let progress = progress();
    if host.desk().is_behind(progress) {
        release_confirms(host, progress);
    }
}

/// Lets go what waited for the journal to come so far, on all connections of the cell.
pub fn release_confirms<H: Host>(host: &H, journal: Progress) {
    for id in host.desk().take_awaiting(journal) {
        let waits = with_outbound(host, id, |outbound| {
            outbound.confirmed(journal);
            outbound.has_held_answers()
        });
        match waits {
            Some(true) => host.desk().note_awaiting_on(id),
            // What it answers from now on puts it on the list again.
            _ => {
                host.with_link(id, |link| link.awaits_journal = false);
            }
        }
    }
}
