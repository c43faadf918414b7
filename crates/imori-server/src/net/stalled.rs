//! Closes connections that do not read while memory is short.
//!
//! Publishers wait for the memory that such a connection holds, and nothing else would free it.

use std::collections::HashMap;

use imori_core::id::ConnectionId;
use imori_core::outbound::{CutReason, Outbound};
use imori_core::time::Time;
use imori_core::world::{Counter, World};
use tokio::time::sleep;

use crate::cell::Cell;
use crate::limits::{STALL_BYTES_MIN, STALL_LOOK, STALL_MAX};

/// Checks this cell's connections during every memory alarm.
pub(crate) async fn cut_stalled_for_ever() {
    let Some(mut alarm) = Cell::current(|cell| cell.shared.alarm.subscribe()) else {
        return;
    };
    while alarm.wait_for(|is_alarmed| *is_alarmed).await.is_ok() {
        let mut stalled = Stalled::default();
        while *alarm.borrow() {
            Cell::current(|cell| {
                cell.begin_turn();
                stalled.cut_those_of(cell);
                cell.end_turn();
            });
            sleep(STALL_LOOK).await;
        }
    }
}

/// Connections without progress: the bytes each had taken, and since when.
#[derive(Debug, Default)]
struct Stalled(HashMap<ConnectionId, (u64, Time)>);

impl Stalled {
    fn cut_those_of(&mut self, cell: &Cell) {
        let Some(handle) = cell.shared.cell(cell.id) else {
            return;
        };
        let before = std::mem::take(&mut self.0);
        for key in handle.connections.keys() {
            let id = ConnectionId { cell: cell.id, slot: key.slot, generation: key.generation };
            let Some(Some(written)) = cell.shared.with_link(id, |link| stuck_at(&link.outbound)) else {
                continue;
            };
            let since = match before.get(&id) {
                Some((was, since)) if *was == written => *since,
                _ => cell.now(),
            };
            if cell.now().since(since) >= STALL_MAX {
                cell.count(Counter::CutTooSlow);
                cell.with_outbound(id, |outbound| {
                    outbound
                        .cut(CutReason::Stalled { unsent: outbound.unsent(), seconds: STALL_MAX.as_secs() });
                });
            } else {
                self.0.insert(id, (written, since));
            }
        }
    }
}

/// Bytes a connection has taken, if many more wait for it.
fn stuck_at(outbound: &Outbound) -> Option<u64> {
    (!outbound.is_ended() && outbound.unsent() >= STALL_BYTES_MIN).then(|| outbound.written_bytes())
}
