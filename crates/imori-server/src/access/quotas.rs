//! The limits of users and vhosts, parsed for look-ups while the broker works.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use imori_core::id::VhostId;
use imori_core::name::Name;

use super::objects::Objects;
use crate::quotas::Rate;

/// The names of vhost limits. RabbitMQ has only the first two.
pub const VHOST_LIMITS: [&str; 5] = [CONNECTIONS, QUEUES, BYTES, RATE, BYTE_RATE];

/// The names of user limits. RabbitMQ has only the first two.
pub const USER_LIMITS: [&str; 4] = [CONNECTIONS, CHANNELS, RATE, BYTE_RATE];

/// Simultaneous connections.
pub const CONNECTIONS: &str = "max-connections";

/// Queues of a vhost.
pub const QUEUES: &str = "max-queues";

/// Channels of a user, on all connections together.
pub const CHANNELS: &str = "max-channels";

/// Bytes of the bodies in the queues of a vhost.
pub const BYTES: &str = "max-bytes";

/// Messages published per second.
pub const RATE: &str = "max-publish-rate";

/// Bytes published per second, headers and bodies together.
pub const BYTE_RATE: &str = "max-publish-byte-rate";

/// The limits of a vhost or a user; `None` is no limit.
#[derive(Debug, Default, Clone)]
pub(crate) struct Quota {
    pub(crate) connections_max: Option<usize>,
    /// Queues of a vhost, or channels of a user.
    pub(crate) parts_max: Option<usize>,
    /// Bytes of the bodies in a vhost's queues.
    pub(crate) bytes_max: Option<u64>,
    pub(crate) rate: Option<Arc<Rate>>,
}

impl Quota {
    /// Reads limits; a negative one is no limit, as in RabbitMQ. `parts` is the name of the limit for `parts_max`. A
    /// rate that has not changed keeps its usage. `None` if nothing is limited.
    fn read(limits: &BTreeMap<String, i64>, parts: &str, before: Option<&Quota>) -> Option<Quota> {
        let limit = |name| limits.get(name).and_then(|max| u64::try_from(*max).ok());
        let count = |name| limit(name).map(|max| usize::try_from(max).unwrap_or(usize::MAX));
        let known = before.and_then(|before| before.rate.as_ref());
        let rate = Rate::new(limit(RATE), limit(BYTE_RATE)).map(|rate| match known {
            Some(known) if known.is_as(&rate) => Arc::clone(known),
            _ => Arc::new(rate),
        });
        let bytes_max = limit(BYTES);
        let quota = Quota { connections_max: count(CONNECTIONS), parts_max: count(parts), bytes_max, rate };
        quota.limits_anything().then_some(quota)
    }

    fn limits_anything(&self) -> bool {
        let Quota { connections_max, parts_max, bytes_max, rate } = self;
        connections_max.or(*parts_max).is_some() || bytes_max.is_some() || rate.is_some()
    }
}

/// All limits; users and vhosts without any are absent.
#[derive(Debug, Default, Clone)]
pub(super) struct Quotas {
    users: HashMap<Name, Quota>,
    vhosts: HashMap<VhostId, Quota>,
}

impl Quotas {
    /// The limits of these objects; rates that have not changed keep their usage in `before`.
    pub(super) fn of(objects: &Objects, before: &Quotas) -> Quotas {
        let users = objects.users.iter().filter_map(|(name, user)| {
            let name = Name::from(name.as_str());
            let quota = Quota::read(&user.limits, CHANNELS, before.users.get(&name))?;
            Some((name, quota))
        });
        let vhosts = objects.vhosts.values().filter_map(|facts| {
            let id = VhostId(facts.id);
            Some((id, Quota::read(&facts.limits, QUEUES, before.vhosts.get(&id))?))
        });
        Quotas { users: users.collect(), vhosts: vhosts.collect() }
    }

    pub(super) fn of_user(&self, user: &Name) -> Quota {
        self.users.get(user).cloned().unwrap_or_default()
    }

    pub(super) fn of_vhost(&self, vhost: VhostId) -> Quota {
        self.vhosts.get(&vhost).cloned().unwrap_or_default()
    }

    /// Number of users and vhosts with a limit on the publish rate.
    pub(super) fn rates(&self) -> usize {
        self.users.values().chain(self.vhosts.values()).filter(|quota| quota.rate.is_some()).count()
    }

    /// The limit on message bytes, for each vhost that has one.
    pub(super) fn bytes(&self) -> HashMap<VhostId, u64> {
        self.vhosts.iter().filter_map(|(vhost, quota)| Some((*vhost, quota.bytes_max?))).collect()
    }
}
