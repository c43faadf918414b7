//! Which connections each user and each vhost has, as limits count them.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;

use crate::slots::unpoisoned;

/// A limit that keeps a connection out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The vhost has so many, as many as it may have.
    Vhost(usize),
    /// The user has so many, as many as it may have.
    User(usize),
}

/// Every connection that has logged in, by user and by vhost.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<Seated>);

#[derive(Debug, Default)]
struct Seated {
    seats: HashMap<ConnectionId, (Name, VhostId)>,
    by_user: HashMap<Name, HashSet<ConnectionId>>,
    by_vhost: HashMap<VhostId, usize>,
}

impl Seats {
    /// Takes a connection in, in place of the seat that it had before.
    ///
    /// # Errors
    /// The vhost, or else the user, has as many as it may have; then nothing is changed.
    pub(crate) fn take(
        &self,
        id: ConnectionId,
        (user, user_max): (&Name, Option<usize>),
        (vhost, vhost_max): (VhostId, Option<usize>),
    ) -> Result<(), Full> {
        let mut seated = unpoisoned(self.0.lock());
        let before = seated.seats.get(&id);
        let is_new_in_vhost = before.is_none_or(|before| before.1 != vhost);
        let is_new_of_user = before.is_none_or(|before| before.0 != *user);
        let in_vhost = seated.by_vhost.get(&vhost).copied().unwrap_or_default();
        let of_user = seated.by_user.get(user).map_or(0, HashSet::len);
        if let Some(max) = vhost_max.filter(|max| is_new_in_vhost && in_vhost >= *max) {
            return Err(Full::Vhost(max));
        }
        if let Some(max) = user_max.filter(|max| is_new_of_user && of_user >= *max) {
            return Err(Full::User(max));
        }
        seated.leave(id);
        seated.by_user.entry(user.clone()).or_default().insert(id);
        *seated.by_vhost.entry(vhost).or_default() += 1;
        seated.seats.insert(id, (user.clone(), vhost));
        Ok(())
    }

    /// Gives the seat of a connection back, if it has one.
    pub(crate) fn leave(&self, id: ConnectionId) {
        unpoisoned(self.0.lock()).leave(id);
    }

    /// How many connections a vhost has.
    pub(crate) fn in_vhost(&self, vhost: VhostId) -> usize {
        unpoisoned(self.0.lock()).by_vhost.get(&vhost).copied().unwrap_or_default()
    }

    /// Lends the connections of a user; none comes or goes meanwhile.
    pub(crate) fn with_user<R>(
        &self,
        user: &Name,
        f: impl FnOnce(&mut dyn Iterator<Item = ConnectionId>) -> R,
    ) -> R {
        let seated = unpoisoned(self.0.lock());
        f(&mut seated.by_user.get(user).into_iter().flatten().copied())
    }
}

impl Seated {
    fn leave(&mut self, id: ConnectionId) {
        let Some((user, vhost)) = self.seats.remove(&id) else { return };
        if let Some(connections) = self.by_user.get_mut(&user) {
            connections.remove(&id);
            if connections.is_empty() {
                self.by_user.remove(&user);
            }
        }
        if let Some(count) = self.by_vhost.get_mut(&vhost) {
            *count -= 1;
            if *count == 0 {
                self.by_vhost.remove(&vhost);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(slot: u32) -> ConnectionId {
        ConnectionId { cell: 0, slot, generation: 0 }
    }

    /// SECURITY LIM-10: whoever leaves makes room, and whoever changes the user or the vhost is counted once.
    #[test]
    fn a_connection_has_one_seat() {
        let (ann, bob) = (Name::from("ann"), Name::from("bob"));
        let seats = Seats::default();
        let take =
            |slot, user, vhost| seats.take(connection(slot), (user, Some(2)), (VhostId(vhost), Some(3)));
        assert_eq!(take(1, &ann, 0), Ok(()));
        assert_eq!(take(2, &ann, 0), Ok(()));
        assert_eq!(take(3, &ann, 0), Err(Full::User(2)));
        assert_eq!(take(3, &bob, 0), Ok(()));
        assert_eq!(take(4, &bob, 0), Err(Full::Vhost(3)));
        assert_eq!(take(2, &ann, 0), Ok(()), "as it is already");
        assert_eq!(take(2, &bob, 0), Ok(()), "somebody else now");
        assert_eq!(take(1, &bob, 0), Err(Full::User(2)));
        assert_eq!(take(1, &ann, 1), Ok(()), "somewhere else now");
        assert_eq!(take(4, &ann, 0), Ok(()));
        assert_eq!(seats.with_user(&bob, |all| all.count()), 2);
        (0..9).for_each(|slot| seats.leave(connection(slot)));
        assert_eq!(seats.with_user(&bob, |all| all.count()), 0);
        let empty = seats.take(connection(1), (&ann, None), (VhostId(0), Some(0)));
        assert_eq!(empty, Err(Full::Vhost(0)));
    }
}
