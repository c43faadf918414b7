//! Starts internal clients on a cell, from any thread.

use std::sync::Arc;

use imori_core::internal::SubscriptionEnd;
use tokio::sync::oneshot;

use super::connection::{Origin, start};
use super::error::InternalError;
use super::handle::Handle;
use crate::cell::Cell;
use crate::shared::{Arrival, Phase, Shared};

/// The cell to create a connection on.
pub(super) struct StartCell {
    pub(super) shared: Arc<Shared>,
    pub(super) cell: u16,
}

/// Creates a client on a cell.
pub(super) async fn start_on(place: StartCell, origin: Origin) -> Result<Arc<Handle>, InternalError> {
    let StartCell { shared, cell } = place;
    let is_own = Cell::current(|current| current.id == cell);
    if is_own == Some(true) {
        let made = Cell::current(|current| start_here(current, origin));
        return made.unwrap_or(Err(InternalError::Ended(SubscriptionEnd::Ended)));
    }
    let ended = || InternalError::Ended(SubscriptionEnd::Ended);
    let (answer, answered) = oneshot::channel();
    let job = Box::new(move || {
        let made = Cell::current(|current| start_here(current, origin));
        // The requester may be gone; dropping the handle then ends the client.
        let _ = answer.send(made);
    });
    let handle = shared.cell(cell).ok_or(InternalError::NoCell(cell))?;
    handle.arrivals.send(Arrival::Job(job)).map_err(|_| ended())?;
    answered.await.ok().flatten().ok_or_else(ended)?
}

/// Creates a client on this thread's cell.
pub(super) fn start_here(cell: &Cell, origin: Origin) -> Result<Arc<Handle>, InternalError> {
    if *cell.shared.phase.borrow() > Phase::Serving {
        return Err(InternalError::Ended(SubscriptionEnd::Ended));
    }
    let Origin { vhost, name, owner, .. } = &origin;
    let (vhost, name, owner) = (*vhost, name.clone(), *owner);
    let pipe = start(cell, origin)?;
    let shared = Arc::clone(&cell.shared);
    Ok(Arc::new(Handle { pipe, shared, subscriptions: Arc::new(()), vhost, name, owner, cell: cell.id }))
}
