//! The thread of a cell: its runtime, its tasks, and its end.

use std::sync::Arc;
use std::time::Duration;

use imori_core::id::ConnectionId;
use imori_core::world::World;
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tracing::error;

use crate::cell::Cell;
use crate::limits::PULSE;
use crate::net::connection::serve;
use crate::net::stalled::cut_stalled_for_ever;
use crate::shared::{Arrival, Phase, Shared};
use crate::turn::Signal;

/// Runs a cell on the calling thread until the broker ends.
pub(crate) fn run(
    id: u16,
    shared: Arc<Shared>,
    arrivals: mpsc::UnboundedReceiver<Arrival>,
    start: impl FnOnce() + 'static,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(|| {
            Cell::current(Cell::park);
        })
        .on_thread_unpark(|| {
            Cell::current(Cell::unpark);
        })
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(failure) => {
            error!(cell = id, error = %failure, "cell cannot start");
            shared.fail("a cell could not start");
            return;
        }
    };
    Cell::start(id, Arc::clone(&shared));
    runtime.block_on(async {
        start();
        live(id, shared, arrivals).await;
    });
}

/// Takes over connections until the broker stops, then waits until they have ended.
async fn live(id: u16, shared: Arc<Shared>, mut arrivals: mpsc::UnboundedReceiver<Arrival>) {
    let mut phase = shared.phase.subscribe();
    tokio::spawn(fire_timers_for_ever());
    tokio::spawn(release_confirms_for_ever(Arc::clone(&shared), id));
    tokio::spawn(hear_pages_for_ever(Arc::clone(&shared), id));
    tokio::spawn(cut_stalled_for_ever());
    tokio::spawn(keep_pulse_for_ever(Arc::clone(&shared), id));
    tokio::spawn(spin_for_ever());
    loop {
        tokio::select! {
            _ = phase.wait_for(|phase| *phase > Phase::Serving) => break,
            arrival = arrivals.recv() => match arrival {
                Some(Arrival::Accepted(accepted)) => serve(accepted),
                Some(Arrival::Job(job)) => job(),
                None => break,
            },
        }
    }
    let Some(handle) = shared.cell(id) else {
        return;
    };
    for key in handle.connections.keys() {
        let connection = ConnectionId { cell: id, slot: key.slot, generation: key.generation };
        shared.signal(connection, Signal::Stopping);
    }
    while handle.connections.len() > 0 && *shared.phase.borrow() < Phase::Ended {
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Ended) => {}
            () = handle.emptied.notified() => {}
        }
    }
}

async fn fire_timers_for_ever() {
    while let Some((clock, (next, timer_set))) = Cell::current(|cell| (cell.shared.clock, cell.next_timer()))
    {
        match next {
            Some(at) => {
                // Timers round to their own tick, so this sleeps until just after the deadline.
                let sleep = tokio::time::sleep_until((clock.instant(at) + Duration::from_micros(1)).into());
                tokio::select! {
                    () = sleep => {}
                    () = timer_set.notified() => {}
                }
            }
            None => timer_set.notified().await,
        }
        Cell::current(|cell| {
            cell.fire_timers();
            cell.end_turn();
        });
    }
}

/// Releases answers whenever the journal progresses.
async fn release_confirms_for_ever(shared: Arc<Shared>, cell: u16) {
    while let Some(woken) = shared.journal.waiters().woken(cell) {
        woken.notified().await;
        Cell::current(|cell| {
            cell.release_confirms();
            cell.end_turn();
        });
    }
}

/// Passes results of page jobs to queues.
async fn hear_pages_for_ever(shared: Arc<Shared>, cell: u16) {
    let Some(mut mail) = shared.pager.mail(cell) else {
        return;
    };
    while let Some(news) = mail.recv().await {
        Cell::current(|cell| {
            cell.begin_turn();
            news.tell(cell);
            cell.end_turn();
        });
    }
}

/// Measures once a second how late the cell's timer fires.
async fn keep_pulse_for_ever(shared: Arc<Shared>, id: u16) {
    let Some(cell) = shared.cell(id) else { return };
    loop {
        let due = shared.clock.now().after(PULSE);
        cell.pulse.expect(due);
        tokio::time::sleep_until(shared.clock.instant(due).into()).await;
        cell.pulse.woken(shared.clock.now());
    }
}

/// Keeps the cell awake for a moment after each turn.
async fn spin_for_ever() {
    let Some(begins) = Cell::current(|cell| cell.spin.begins()) else {
        return;
    };
    loop {
        begins.notified().await;
        // Each yield lets the runtime poll for I/O without waiting.
        while Cell::current(|cell| {
            cell.rest();
            cell.spin.goes_on(cell.now())
        }) == Some(true)
        {
            yield_now().await;
        }
    }
}
