//! Runs jobs on a cell: changes that clients have no command for, such as those of vhosts, policies and connections.

use tokio::sync::oneshot;

use crate::cell::Cell;
use crate::shared::{Arrival, Shared};

/// Runs a job on a cell, in a turn of its own; `None` if the broker has stopped.
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
        // The requester may be gone.
        let _ = done.map(|done| answer.send(done));
    };
    shared.cell(cell)?.arrivals.send(Arrival::Job(Box::new(turn))).ok()?;
    answered.await.ok()
}
