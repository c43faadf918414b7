//! Changes are jobs for a cell, as only a cell runs the broker's verbs.

use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::id::VhostId;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::cell::Cell;
use crate::http::OPERATOR;
use crate::limits::ADMIN_LOOK_EVERY;
use crate::shared::{Arrival, Phase, Shared};

/// Runs a job in a turn of its own on a cell; `None` where the broker has come to its end.
pub(crate) async fn on_cell<R: Send + 'static>(
    shared: &Shared,
    cell: u16,
    job: impl FnOnce(&Cell) -> R + Send + 'static,
) -> Option<R> {
    let (answer, answered) = oneshot::channel();
    let turn = move || {
        let done = Cell::current(|cell| {
            cell.begin_turn();
            let done = job(cell);
            cell.end_turn();
            done
        });
        // Who asked may be gone.
        let _ = done.map(|done| answer.send(done));
    };
    shared.cell(cell)?.arrivals.send(Arrival::Job(Box::new(turn))).ok()?;
    answered.await.ok()
}

/// An operator with the rights of this user.
pub(crate) fn operator(identity: &Identity, vhost: VhostId) -> Actor<'_> {
    Actor { identity, connection: OPERATOR, vhost }
}

/// Waits on another thread until no power cut takes a change back; false where the broker has come to its end. A level
/// below the disk's promises less, and waits for nothing.
pub(crate) async fn is_kept(shared: &Arc<Shared>, confirm: Confirm) -> bool {
    if confirm.synced <= shared.journal.waiters().progress().synced {
        return true;
    }
    let shared = Arc::clone(shared);
    let wait = move || {
        let is_hopeless = || shared.journal.has_failed() || *shared.phase.borrow() == Phase::Ended;
        shared.journal.waiters().await_synced(confirm.synced, ADMIN_LOOK_EVERY, is_hopeless)
    };
    spawn_blocking(wait).await.unwrap_or(false)
}
