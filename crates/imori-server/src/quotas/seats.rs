//! The connections of each user and each vhost, over all protocols, as limits count them.
//!
//! Each protocol's login ends with `Access::enter`, which checks the limit and takes the seat in one step, so two
//! clients that come at once cannot both get the last one. The seat is freed when the connection leaves its cell,
//! moments after the client's goodbye. Messages never use this table. A lowered limit ends no connection, as in
//! RabbitMQ.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;

use crate::slots::unpoisoned;

/// The limit that a connection would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// The vhost has reached this maximum.
    Vhost(usize),
    /// The user has reached this maximum.
    User(usize),
}

/// All connections that have logged in, by user and by vhost.
#[derive(Debug, Default)]
pub(crate) struct Seats(Mutex<Seated>);

#[derive(Debug, Default)]
struct Seated {
    seats: HashMap<ConnectionId, (Name, VhostId)>,
    by_user: HashMap<Name, HashSet<ConnectionId>>,
    by_vhost: HashMap<VhostId, usize>,
    /// Claimed client ids, with their connections.
    client_ids: HashMap<ClientId, ConnectionId>,
    claims: HashMap<ConnectionId, ClientId>,
}

/// A client id, unique within its user and vhost (SECURITY AUTH-07).
type ClientId = (Name, VhostId, Box<[u8]>);

impl Seats {
    /// Adds a connection, or moves it from its previous user and vhost.
    ///
    /// # Errors
    /// The vhost or the user has reached its maximum; nothing is changed.
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
        seated.unseat(id);
        seated.by_user.entry(user.clone()).or_default().insert(id);
        *seated.by_vhost.entry(vhost).or_default() += 1;
        seated.seats.insert(id, (user.clone(), vhost));
        Ok(())
    }

    /// Claims a client id for a connection with a seat; false if another connection has claimed it.
    pub(crate) fn claim(&self, connection: ConnectionId, id: &[u8]) -> bool {
        let mut seated = unpoisoned(self.0.lock());
        let Some((user, vhost)) = seated.seats.get(&connection).cloned() else { return false };
        let id: ClientId = (user, vhost, id.into());
        if seated.client_ids.get(&id).is_some_and(|owner| *owner != connection) {
            return false;
        }
        seated.release(connection);
        seated.client_ids.insert(id.clone(), connection);
        seated.claims.insert(connection, id);
        true
    }

    /// Releases the client id that a connection has claimed, if any.
    pub(crate) fn release(&self, connection: ConnectionId) {
        unpoisoned(self.0.lock()).release(connection);
    }

    /// Removes a connection.
    pub(crate) fn leave(&self, id: ConnectionId) {
        let mut seated = unpoisoned(self.0.lock());
        seated.release(id);
        seated.unseat(id);
    }

    /// Number of connections in a vhost.
    pub(crate) fn in_vhost(&self, vhost: VhostId) -> usize {
        unpoisoned(self.0.lock()).by_vhost.get(&vhost).copied().unwrap_or_default()
    }

    /// Passes a user's connections to `f` under the lock, so that the set does not change meanwhile.
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
    fn release(&mut self, connection: ConnectionId) {
        if let Some(id) = self.claims.remove(&connection) {
            self.client_ids.remove(&id);
        }
    }

    fn unseat(&mut self, id: ConnectionId) {
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

    /// SECURITY LIM-10: closing a connection frees its seat, and changing user or vhost moves it.
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
    /// SECURITY AUTH-07: users do not block each other's client ids, and closed connections hold none.
    #[test]
    fn a_client_id_is_one_connections_of_its_user_and_vhost() {
        let (ann, bob) = (Name::from("ann"), Name::from("bob"));
        let seats = Seats::default();
        for (slot, user, vhost) in [(1, &ann, 0), (2, &ann, 0), (3, &bob, 0), (4, &ann, 1)] {
            assert_eq!(seats.take(connection(slot), (user, None), (VhostId(vhost), None)), Ok(()));
        }
        let claim = |slot, id: &str| seats.claim(connection(slot), id.as_bytes());
        assert!(claim(1, "a") && !claim(2, "a") && claim(1, "a"));
        assert!(claim(3, "a") && claim(4, "a"), "others of that name");
        assert!(!claim(9, "a"), "nobody");
        assert!(claim(1, "b") && claim(2, "a"), "one id each");
        seats.release(connection(2));
        assert!(claim(1, "a"));
        seats.leave(connection(1));
        assert!(claim(2, "a"));
    }
}
