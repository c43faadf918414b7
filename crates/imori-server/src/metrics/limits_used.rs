//! Usage of the limits that operators set on users and vhosts.

use std::collections::BTreeMap;

use imori_core::id::VhostId;
use imori_core::name::Name;

use super::exposition::Exposition;
use crate::access::{BYTE_RATE, BYTES, CHANNELS, CONNECTIONS, QUEUES, RATE};
use crate::limits::LIMITED_SERIES_MAX;
use crate::quotas::Rate;
use crate::shared::Shared;

/// Usage by the name of the limit. Rates are present only if limited, because they are not measured otherwise.
pub(crate) type Used = BTreeMap<&'static str, u64>;

/// Usage of a vhost.
pub(crate) fn used_by_vhost(shared: &Shared, vhost: VhostId) -> Used {
    let queues = shared.table.load().queues(vhost).count() as u64;
    let connections = shared.seats.in_vhost(vhost) as u64;
    let bytes = shared.stored_bytes.of(vhost);
    let mut used = Used::from([(CONNECTIONS, connections), (QUEUES, queues), (BYTES, bytes)]);
    add_rates(&mut used, shared, shared.access.vhost_quota(vhost).rate.as_deref());
    used
}

/// Usage of a user.
pub(crate) fn used_by_user(shared: &Shared, user: &Name) -> Used {
    let (connections, channels) = shared.seats.with_user(user, |connections| {
        let sessions = |id| shared.with_link(id, |link| link.outbound.open_sessions().count());
        connections.fold((0, 0), |(count, opened), id| (count + 1, opened + sessions(id).unwrap_or(0)))
    });
    let mut used = Used::from([(CONNECTIONS, connections), (CHANNELS, channels as u64)]);
    add_rates(&mut used, shared, shared.access.user_quota(user).rate.as_deref());
    used
}

fn add_rates(used: &mut Used, shared: &Shared, rate: Option<&Rate>) {
    let now = shared.clock.now();
    let amounts = rate.map_or([None; 2], |rate| rate.used(now));
    used.extend([RATE, BYTE_RATE].into_iter().zip(amounts).filter_map(|(name, used)| Some((name, used?))));
}

/// Writes limit and usage gauges, up to a maximum number of users and vhosts.
pub(super) fn push_limits(page: &mut Exposition, shared: &Shared) {
    let objects = shared.access.objects();
    let vhosts = objects.vhosts.iter().filter(|(_, facts)| !facts.limits.is_empty());
    let vhosts =
        vhosts.map(|(name, facts)| ("vhost", name, &facts.limits, used_by_vhost(shared, VhostId(facts.id))));
    let users = objects.users.iter().filter(|(_, user)| !user.limits.is_empty());
    let users = users
        .map(|(name, user)| ("user", name, &user.limits, used_by_user(shared, &Name::from(name.as_str()))));
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
