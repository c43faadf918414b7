//! Room on the disk for dead letters, which one command has at a time where it is scarce.

use crate::queue::Effects;
use crate::world::World;

/// What of the disk a change of a queue may fill with dead letters; given back once their records are appended.
pub(super) struct MoveRoom<'w, W: World> {
    world: &'w W,
    /// None where there is enough for all.
    bytes: Option<usize>,
    is_taken: bool,
}

impl<'w, W: World> MoveRoom<'w, W> {
    /// Takes what there is, unless somebody has it.
    #[inline]
    pub(super) fn of(world: &'w W) -> MoveRoom<'w, W> {
        if !world.is_room_scarce() {
            return MoveRoom { world, bytes: None, is_taken: false };
        }
        let taken = world.take_room();
        MoveRoom { world, bytes: Some(taken.unwrap_or(0)), is_taken: taken.is_some() }
    }

    /// Tells whether it has an end.
    pub(super) fn is_scarce(&self) -> bool {
        self.bytes.is_some()
    }

    /// What follows from a change with this room.
    pub(super) fn effects(&self) -> Effects {
        Effects::within(self.bytes)
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
pub(super) fn effects_of_arrival<W: World>(world: &W) -> Effects {
    Effects::within(world.is_room_scarce().then_some(0))
}
