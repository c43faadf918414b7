//! Access to other connections: their outbound halves and their signals.

use std::panic::{AssertUnwindSafe, catch_unwind};

use imori_core::id::ConnectionId;
use imori_core::outbound::Outbound;
use imori_core::world::Counter;
use tracing::error;

use super::host::Host;
use super::link::Link;
use super::signal::Signal;

/// Calls `f` with a connection's outbound half, and lists the connection for writing if it then has unsent bytes.
/// `None` if the connection does not exist or `f` panicked.
pub fn with_outbound<H: Host, R>(
    host: &H,
    id: ConnectionId,
    f: impl FnOnce(&mut Outbound) -> R,
) -> Option<R> {
    let (result, is_newly_touched) = host.with_link(id, |link| lend(host, link, f))?;
    if is_newly_touched {
        host.cell_scratch().note_touched(id, host.now());
    }
    result
}

/// Gives a connection's task a signal and wakes it.
pub fn give_signal<H: Host>(host: &H, id: ConnectionId, signal: Signal) {
    host.with_link(id, |link| link.signal(signal));
}

/// Raises or ends the memory alarm. Signals the connections that waited for its end, and the next one that waits for
/// memory for a long frame.
pub fn check_memory<H: Host>(host: &H) {
    for connection in host.memory().check() {
        give_signal(host, connection, Signal::AlarmEnded);
    }
    // Its turn ends with another check, which finds the next connection.
    if let Some(connection) = host.memory().next_long_frame() {
        give_signal(host, connection, Signal::Room);
    }
}

/// Returns the result, `None` if `f` panicked, and whether the connection is newly touched.
fn lend<H: Host, R>(
    host: &H,
    link: &mut Link<H::Wire>,
    f: impl FnOnce(&mut Outbound) -> R,
) -> (Option<R>, bool) {
    let outbound = &mut link.outbound;
    let is_lent = outbound.lend(|| host.cell_scratch().spare());
    // A panic caused by one receiver must not reach the publisher, or the queue that is locked meanwhile.
    let Ok(result) = catch_unwind(AssertUnwindSafe(|| f(outbound))) else {
        let id = outbound.id();
        link.signal(Signal::Broken);
        host.count(Counter::Fault);
        error!(connection = ?id, "a fault ended a connection; see the panic before");
        return (None, false);
    };
    if let Some(confirm) = outbound.take_newly_held() {
        host.cell_scratch().begin_confirm_sample(confirm, host.now());
    }
    let is_ended = outbound.is_ended();
    // Only the connection's own cell releases its waiting answers.
    if outbound.has_held_answers() && !link.awaits_journal && outbound.id().cell == host.id() {
        link.awaits_journal = true;
        host.cell_scratch().note_awaiting(outbound.id());
    }
    if link.awaits_journal && outbound.waits_for_write() {
        host.cell_scratch().note_write_awaited();
    }
    let is_newly_touched = match outbound.has_unsent() {
        true => outbound.touch(),
        false => {
            if is_lent {
                host.cell_scratch().give_back(outbound.reclaim());
            }
            false
        }
    };
    if is_ended && !link.is_ending {
        link.is_ending = true;
        link.signal(Signal::Ending);
    }
    (Some(result), is_newly_touched)
}
