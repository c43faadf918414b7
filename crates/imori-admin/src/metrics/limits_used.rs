//! Usage of the limits that operators set on users and vhosts.

use imori_core::id::VhostId;
use imori_core::name::Name;
use imori_server::broker::Broker;

use super::exposition::Exposition;
use crate::limits::LIMITED_SERIES_MAX;

/// Writes limit and usage gauges, up to a maximum number of users and vhosts.
pub(super) fn push_limits(page: &mut Exposition, broker: &Broker) {
    let objects = broker.access().objects();
    let vhosts = objects.vhosts.iter().filter(|(_, facts)| !facts.limits.is_empty());
    let vhosts =
        vhosts.map(|(name, facts)| ("vhost", name, &facts.limits, broker.usage_of_vhost(VhostId(facts.id))));
    let users = objects.users.iter().filter(|(_, user)| !user.limits.is_empty());
    let users = users
        .map(|(name, user)| ("user", name, &user.limits, broker.usage_of_user(&Name::from(name.as_str()))));
    let limited: Vec<_> = vhosts.chain(users).take(LIMITED_SERIES_MAX).collect();
    page.head("imori_limit", "How much a user or a vhost may have, by the name of the limit.", "gauge");
    for (kind, name, limits, _) in &limited {
        for (limit, max) in limits.iter().filter(|(_, max)| **max >= 0) {
            page.sample("imori_limit", &[("kind", kind), ("name", name), ("limit", limit)], *max as f64);
        }
    }
    page.head("imori_limit_used", "How much of it they have.", "gauge");
    for (kind, name, limits, used) in &limited {
        for (limit, used) in used.iter().filter(|(limit, _)| limits.get(**limit).is_some_and(|max| *max >= 0))
        {
            page.sample(
                "imori_limit_used",
                &[("kind", kind), ("name", name), ("limit", limit)],
                *used as f64,
            );
        }
    }
}
