//! Usage of the limits that operators set on users and vhosts.

use std::collections::BTreeMap;

use imori_core::id::VhostId;
use imori_core::name::Name;

use super::broker::Broker;
use crate::access::{BYTE_RATE, BYTES, CHANNELS, CONNECTIONS, QUEUES, RATE};
use crate::quotas::Rate;

/// Usage by the name of the limit. Rates are present only if limited, because they are not measured otherwise.
pub type Usage = BTreeMap<&'static str, u64>;

impl Broker {
    /// The usage of a vhost's limits.
    pub fn usage_of_vhost(&self, vhost: VhostId) -> Usage {
        let shared = self.shared();
        let queues = shared.table.load().queues(vhost).count() as u64;
        let connections = shared.seats.in_vhost(vhost) as u64;
        let bytes = shared.stored_bytes.of(vhost);
        let mut usage = Usage::from([(CONNECTIONS, connections), (QUEUES, queues), (BYTES, bytes)]);
        self.add_rates(&mut usage, shared.access.vhost_quota(vhost).rate.as_deref());
        usage
    }

    /// The usage of a user's limits.
    pub fn usage_of_user(&self, user: &Name) -> Usage {
        let shared = self.shared();
        let (connections, channels) = shared.seats.with_user(user, |connections| {
            let sessions = |id| shared.with_link(id, |link| link.outbound.open_sessions().count());
            connections.fold((0, 0), |(count, opened), id| (count + 1, opened + sessions(id).unwrap_or(0)))
        });
        let mut usage = Usage::from([(CONNECTIONS, connections), (CHANNELS, channels as u64)]);
        self.add_rates(&mut usage, shared.access.user_quota(user).rate.as_deref());
        usage
    }

    fn add_rates(&self, usage: &mut Usage, rate: Option<&Rate>) {
        let amounts = rate.map_or([None; 2], |rate| rate.used(self.now()));
        let amounts = [RATE, BYTE_RATE].into_iter().zip(amounts);
        usage.extend(amounts.filter_map(|(name, amount)| Some((name, amount?))));
    }
}
