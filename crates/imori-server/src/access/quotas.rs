//! The limits of users and vhosts, as they are asked for while the broker works.

use std::collections::{BTreeMap, HashMap};

use imori_core::id::VhostId;
use imori_core::name::Name;

use super::objects::Objects;

/// The names of limits of vhosts, as in RabbitMQ.
pub(crate) const VHOST_LIMITS: [&str; 2] = [CONNECTIONS, "max-queues"];

/// The names of limits of users, as in RabbitMQ.
pub(crate) const USER_LIMITS: [&str; 2] = [CONNECTIONS, "max-channels"];

const CONNECTIONS: &str = "max-connections";

/// The limits of a vhost or a user; `None` is no limit.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) connections_max: Option<usize>,
    /// Queues of a vhost, or channels of a user.
    pub(crate) parts_max: Option<usize>,
}

impl Quota {
    /// Reads limits by these names; one below zero is none, as in RabbitMQ.
    fn read(limits: &BTreeMap<String, i64>, [connections, parts]: [&str; 2]) -> Option<Quota> {
        let limit = |name| limits.get(name).and_then(|max| usize::try_from(*max).ok());
        let quota = Quota { connections_max: limit(connections), parts_max: limit(parts) };
        (quota != Quota::default()).then_some(quota)
    }
}

/// All limits. Who has none is absent.
#[derive(Debug, Default, Clone)]
pub(super) struct Quotas {
    users: HashMap<Name, Quota>,
    vhosts: HashMap<VhostId, Quota>,
}

impl Quotas {
    /// The limits that objects have.
    pub(super) fn of(objects: &Objects) -> Quotas {
        let users = objects.users.iter().filter_map(|(name, user)| {
            Some((Name::from(name.as_str()), Quota::read(&user.limits, USER_LIMITS)?))
        });
        let vhosts = objects
            .vhosts
            .values()
            .filter_map(|facts| Some((VhostId(facts.id), Quota::read(&facts.limits, VHOST_LIMITS)?)));
        Quotas { users: users.collect(), vhosts: vhosts.collect() }
    }

    pub(super) fn of_user(&self, user: &Name) -> Quota {
        self.users.get(user).copied().unwrap_or_default()
    }

    pub(super) fn of_vhost(&self, vhost: VhostId) -> Quota {
        self.vhosts.get(&vhost).copied().unwrap_or_default()
    }
}
