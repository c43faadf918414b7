//! Room on the disk for dead letters, which one command has at a time where it is scarce.

use crate::queue::Effects;
use crate::world::World;

/// What of the disk a change of a queue may fill with dead letters; given back once their records are appended.
pub(crate) struct MoveRoom<'w, W: World> {
    world: &'w W,
    bytes: usize,
    is_scarce: bool,
    is_taken: bool,
}

impl<'w, W: World> MoveRoom<'w, W> {
    /// Takes what there is, unless somebody has it.
    #[inline]
    pub(crate) fn of(world: &'w W) -> MoveRoom<'w, W> {
        if !world.is_room_scarce() {
            return MoveRoom { world, bytes: world.moves_bytes_max(), is_scarce: false, is_taken: false };
        }
        let taken = world.take_room();
        MoveRoom { world, bytes: taken.unwrap_or(0), is_scarce: true, is_taken: taken.is_some() }
    }

    /// What follows from a change with this room.
    pub(crate) fn effects(&self) -> Effects {
        if self.is_scarce { Effects::within(self.bytes) } else { Effects::at_once(self.bytes) }
    }
}

impl<W: World> Drop for MoveRoom<'_, W> {
    fn drop(&mut self) {
        if self.is_taken {
            self.world.give_room_back();
        }
    }
}

/// What follows from an arrival: where room is scarce nothing moves by it, but as soon as the queue is woken.
#[inline]
pub(crate) fn effects_of_arrival<W: World>(world: &W) -> Effects {
    if world.is_room_scarce() { Effects::within(0) } else { Effects::at_once(world.moves_bytes_max()) }
}
