//! Two clients say anything to the broker, in any pieces: it never panics, never stands still, and
//! all that it answers is made of frames.
//!
//! Input: a byte of settings, then turns: a byte that says whose turn it is and how long, then the
//! bytes that are said.

use std::sync::Arc;
use std::time::Duration;

use imori_core::turn::Next;
use imori_core::world::World;
use imori_testkit::{Client, TestWorld};

use crate::talk::{Dialogue, Settings};

/// The client's side of a protocol that is fuzzed.
pub(crate) trait Fuzzed {
    /// The protocol.
    type Protocol: Dialogue;

    /// A turn gives its length in units of this many bytes.
    const UNIT_BYTES: usize;

    /// What passes when it is the clock's turn.
    const PASSING: Duration;

    /// The settings that the first byte chooses; their limits are small, so that a fuzzer reaches
    /// them.
    fn settings(choice: Option<u8>) -> Settings<Self::Protocol>;

    /// What the two clients say first.
    fn logins(settings: &Settings<Self::Protocol>) -> [Vec<u8>; 2];

    /// Acts beside the clients in a turn that would be the first client's; returns `false` to leave it to that client.
    fn intervene(_world: &TestWorld, _first: &Speaker<Self>, _said: &[u8]) -> bool {
        false
    }

    /// Reads what the broker wrote to the client with this index.
    ///
    /// # Panics
    /// Panics if these are not whole frames.
    fn read(&mut self, index: usize, bytes: &[u8]);
}

/// One of the two clients.
pub(crate) type Speaker<F> = Client<<<F as Fuzzed>::Protocol as Dialogue>::Connection>;

/// Runs the conversation that `data` stands for, and returns its world.
///
/// # Panics
/// Panics if a connection stays open at its end, or the broker answers with anything but frames.
pub(crate) fn converse<F: Fuzzed>(data: &[u8], fuzzed: &mut F) -> TestWorld {
    let world = TestWorld::reading(F::Protocol::header_reader);
    let settings = Arc::new(F::settings(data.first().copied()));
    let mut clients = [(); 2].map(|()| Speaker::<F>::new(&world, &settings, true));
    for (client, login) in clients.iter_mut().zip(F::logins(&settings)) {
        client.send(&world, &login);
    }
    let mut rest = data.get(1..).unwrap_or_default();
    while let Some((turn, after)) = rest.split_first() {
        let (said, after) = after.split_at(after.len().min(usize::from(turn / 8) * F::UNIT_BYTES));
        rest = after;
        match turn % 8 {
            4 if F::intervene(&world, &clients[0], said) => {}
            0..5 => clients[usize::from(turn % 2)].send(&world, said),
            5 => world.set_alarmed(true),
            6 => {
                world.set_alarmed(false);
                clients.iter_mut().for_each(|client| client.alarm_ended(&world));
            }
            _ => {
                let now = world.now().after(F::PASSING);
                clients.iter_mut().for_each(|client| client.pass(&world, now));
                world.set_time(now);
            }
        }
        for (index, client) in clients.iter_mut().enumerate() {
            fuzzed.read(index, &client.output(&world));
        }
    }
    for client in &mut clients {
        client.leave(&world);
        assert_eq!(client.next, Next::Close);
    }
    world
}
