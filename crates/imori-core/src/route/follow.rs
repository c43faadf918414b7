//! Follows an address through the exchanges of a vhost to queues and readers.

use std::collections::BTreeSet;

use super::exchange::{Exchange, ExchangeKind};
use super::hamt::Seed;
use super::header::Headers;
use super::pattern::{self, PatternError};
use super::target::{FoundTargets, Target};
use super::vhost::Vhost;
use crate::name::Name;

/// Adds the targets of `subject` to `found`, from `exchange` and the exchanges bound to it.
pub(super) fn follow(
    vhost: &Vhost,
    seed: Seed,
    exchange: &Exchange,
    subject: &[u8],
    headers: &dyn Headers,
    found: &mut FoundTargets,
) -> Result<(), PatternError> {
    pattern::check_bytes(subject)?;
    if exchange.name().as_bytes().is_empty() {
        // The default exchange: every queue is bound to it by its name.
        found.queues.extend(vhost.queue(seed, subject));
        found.asks_last = true;
        return Ok(());
    }
    // Stays empty unless an exchange leads to another.
    let mut next: Vec<Name> = Vec::new();
    let mut visited: BTreeSet<Name> = BTreeSet::new();
    visit(seed, exchange, subject, headers, found, &mut next)?;
    if !next.is_empty() {
        visited.insert(exchange.name().clone());
    }
    while let Some(name) = next.pop() {
        // An alternate exchange need not exist.
        let Some(exchange) = vhost.exchange(seed, name.as_bytes()) else {
            continue;
        };
        if visited.insert(name) {
            visit(seed, exchange, subject, headers, found, &mut next)?;
        }
    }
    Ok(())
}

fn visit(
    seed: Seed,
    exchange: &Exchange,
    subject: &[u8],
    headers: &dyn Headers,
    found: &mut FoundTargets,
    next: &mut Vec<Name>,
) -> Result<(), PatternError> {
    let mut is_routed = false;
    let asks_last = exchange.matches(seed, subject, headers, &mut |target| {
        is_routed = true;
        match target {
            Target::Queue(id) => found.queues.push(*id),
            Target::Exchange(name) => next.push(name.clone()),
            Target::Subscription(reader) => found.subscriptions.push(*reader),
            Target::Member { group, reader } => found.members.push((group.clone(), *reader)),
        }
    })?;
    found.asks_last |= asks_last;
    if exchange.kind() == ExchangeKind::Headers && !exchange.is_empty() {
        found.is_cacheable = false;
    }
    if !is_routed {
        next.extend(exchange.alternate());
    }
    Ok(())
}
