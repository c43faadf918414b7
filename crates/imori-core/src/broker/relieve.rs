//! A queue that had its publishers wait does so no longer.

use crate::id::ConnectionId;
use crate::world::World;

/// Lets those go on who waited; nothing is locked.
pub(super) fn relieve<W: World>(world: &W, publishers: Vec<ConnectionId>) {
    for publisher in publishers {
        world.relieve(publisher);
    }
}
