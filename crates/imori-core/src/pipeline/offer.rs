//! Offers messages of queues to their consumers.

use crate::delivery::{Delivery, QueuePosition, Taken};
use crate::id::{QueueId, Reader};
use crate::outbound::SharedHeaders;
use crate::world::World;

/// Offers a delivery from `queue` to a consumer. Inlined, so that one call remains: into the outbound half.
#[inline(always)]
pub(crate) fn offer<W: World>(
    world: &W,
    queue: QueueId,
    reader: Reader,
    delivery: &Delivery<'_>,
    shared: &mut SharedHeaders,
) -> Taken {
    let taken = world
        .with_outbound(reader.connection, |outbound| outbound.offer(reader.id, queue, delivery, shared))
        .unwrap_or(Taken::Gone);
    if let Some(observer) = world.observer()
        && matches!(taken, Taken::Settled | Taken::Unsettled)
    {
        observer.delivered(Some(QueuePosition { queue, sequence: delivery.sequence }), reader.connection);
    }
    taken
}
