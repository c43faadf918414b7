//! The journal came further: the answers that waited for that leave.

use imori_core::confirm::Progress;

use super::host::Host;
use super::lend::with_outbound;

/// Lets go what waited for the journal to come so far, on all connections of the cell.
pub fn release_confirms<H: Host>(host: &H, journal: Progress) {
    for id in host.desk().take_awaiting() {
        let waits = with_outbound(host, id, |outbound| {
            outbound.confirmed(journal);
            outbound.has_held_answers()
        });
        match waits {
            Some(true) => host.desk().note_awaiting(id),
            // What it answers from now on puts it on the list again.
            _ => {
                host.with_link(id, |link| link.awaits_journal = false);
            }
        }
    }
}
