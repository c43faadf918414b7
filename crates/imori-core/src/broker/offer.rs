//! The step from a queue to a consumer.

use crate::delivery::{Delivery, Taken};
use crate::id::{QueueId, Reader};
use crate::world::World;

/// Offers a delivery of `queue` to a consumer.
pub(super) fn offer<W: World>(world: &W, queue: QueueId, reader: Reader, delivery: &Delivery<'_>) -> Taken {
    world
        .with_outbound(reader.connection, |outbound| outbound.offer(reader.id, queue, delivery))
        .unwrap_or(Taken::Gone)
}
