//! The destinations of messages: the target of one binding, and the route of one address.

use std::sync::{Arc, OnceLock};

use super::durability::DurabilityPlan;
use crate::id::{QueueId, Reader};
use crate::message::Address;
use crate::name::Name;

/// The target of a binding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// A queue, which keeps the message until it is settled.
    Queue(QueueId),
    /// Another exchange of the same vhost, which routes the message on.
    Exchange(Name),
    /// A live subscription: nothing stored, nothing settled.
    Subscription(Reader),
    /// A live subscription in a group, of which only one member receives each message.
    Member {
        /// The name the members share.
        group: Name,
        /// This member.
        reader: Reader,
    },
}

/// The members of one group that match an address; one of them receives the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The name the members share.
    pub name: Name,
    /// The readers that may receive; never empty.
    pub members: Vec<Reader>,
}

/// All targets of one address, each once and in the order of their ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The address that this route belongs to.
    pub address: Arc<Address>,
    /// The queues, each of which takes the message.
    pub queues: Vec<QueueId>,
    /// The live subscriptions, each of which receives it.
    pub subscriptions: Vec<Reader>,
    /// The groups, one member of each of which receives it.
    pub groups: Vec<Group>,
    /// Whether every message to the address takes this route; false if headers decided.
    pub is_cacheable: bool,
    /// Whether the last token of the subject affected the route. If not, the route is the same for
    /// all subjects that differ only in that token.
    pub asks_last: bool,
    /// The durability plan, filled once the queues have been asked. A queue's part in it never
    /// changes.
    pub durability: OnceLock<Box<DurabilityPlan>>,
}

impl Route {
    /// Whether there are no targets.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.subscriptions.is_empty() && self.groups.is_empty()
    }

    /// The route of a message with several addresses: the union of their targets.
    pub fn together(address: Arc<Address>, routes: &[Arc<Route>]) -> Route {
        let mut found = FoundTargets { is_cacheable: false, asks_last: true, ..FoundTargets::new() };
        for route in routes {
            found.queues.extend(&route.queues);
            found.subscriptions.extend(&route.subscriptions);
            let members = |group: &Group| {
                let name = group.name.clone();
                group.members.iter().map(move |reader| (name.clone(), *reader)).collect::<Vec<_>>()
            };
            found.members.extend(route.groups.iter().flat_map(members));
        }
        found.into_route(address)
    }

    /// A copy of the route that keeps only the live readers for which `wanted` is true.
    pub(crate) fn only_to(&self, wanted: impl Fn(&Reader) -> bool) -> Route {
        let mut route = Route { durability: OnceLock::new(), ..self.clone() };
        route.subscriptions.retain(&wanted);
        route.groups.iter_mut().for_each(|group| group.members.retain(&wanted));
        route.groups.retain(|group| !group.members.is_empty());
        route
    }

    /// Splits the route: one with the first half of the queues, one with all the rest. `None` if
    /// there are fewer than two queues.
    pub fn halves(&self) -> Option<(Route, Route)> {
        let half = self.queues.len() / 2;
        if half == 0 {
            return None;
        }
        let (first, last) = self.queues.split_at(half);
        let queues_only = Route {
            address: Arc::clone(&self.address),
            queues: first.to_vec(),
            subscriptions: Vec::new(),
            groups: Vec::new(),
            durability: OnceLock::new(),
            ..*self
        };
        Some((queues_only, Route { queues: last.to_vec(), durability: OnceLock::new(), ..self.clone() }))
    }

    /// The number of queues and readers.
    pub fn target_count(&self) -> usize {
        let members: usize = self.groups.iter().map(|group| group.members.len()).sum();
        self.queues.len() + self.subscriptions.len() + members
    }
}

/// Targets as they are found, with duplicates.
#[derive(Debug)]
pub(crate) struct FoundTargets {
    pub(crate) queues: Vec<QueueId>,
    pub(crate) subscriptions: Vec<Reader>,
    pub(crate) members: Vec<(Name, Reader)>,
    pub(crate) is_cacheable: bool,
    pub(crate) asks_last: bool,
}

impl FoundTargets {
    pub(crate) fn new() -> FoundTargets {
        FoundTargets {
            queues: Vec::new(),
            subscriptions: Vec::new(),
            members: Vec::new(),
            is_cacheable: true,
            asks_last: false,
        }
    }

    /// Builds a route from the found targets. Sorting removes duplicates, makes the order depend on
    /// the targets only, and puts the readers of one connection next to each other.
    pub(crate) fn into_route(self, address: Arc<Address>) -> Route {
        let FoundTargets { mut queues, mut subscriptions, mut members, is_cacheable, asks_last } = self;
        queues.sort_unstable();
        queues.dedup();
        subscriptions.sort_unstable();
        subscriptions.dedup();
        members.sort_unstable();
        members.dedup();
        let mut groups: Vec<Group> = Vec::new();
        for (name, reader) in members {
            match groups.last_mut() {
                Some(group) if group.name == name => group.members.push(reader),
                _ => groups.push(Group { name, members: vec![reader] }),
            }
        }
        let durability = OnceLock::new();
        Route { address, queues, subscriptions, groups, is_cacheable, asks_last, durability }
    }
}
