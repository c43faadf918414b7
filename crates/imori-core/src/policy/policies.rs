//! The policies of a vhost, as one snapshot.

use std::cmp::Reverse;
use std::sync::Arc;

use super::matched::Matched;
use super::policy::{Policy, QueueKind};

/// The policies and operator policies of a vhost. Clones share them.
#[derive(Debug, Default, Clone)]
pub struct Policies {
    /// Each list is sorted by descending priority.
    policies: Arc<[Arc<Policy>]>,
    operators: Arc<[Arc<Policy>]>,
}

impl Policies {
    /// Builds the snapshot from policies and operator policies in any order. Policies of equal
    /// priority are sorted by name.
    #[must_use]
    pub fn new(policies: Vec<Arc<Policy>>, operators: Vec<Arc<Policy>>) -> Policies {
        let sorted = |mut list: Vec<Arc<Policy>>| {
            list.sort_by(|one, other| {
                (Reverse(one.priority), &one.name).cmp(&(Reverse(other.priority), &other.name))
            });
            Arc::from(list)
        };
        Policies { policies: sorted(policies), operators: sorted(operators) }
    }

    /// The policies that apply to a queue of this name and kind.
    #[must_use]
    pub fn of_queue(&self, name: &[u8], kind: QueueKind) -> Matched {
        self.matched(|policy| policy.has_queue(name, kind))
    }

    /// The policies that apply to an exchange of this name.
    #[must_use]
    pub fn of_exchange(&self, name: &[u8]) -> Matched {
        self.matched(|policy| policy.has_exchange(name))
    }

    fn matched(&self, is_match: impl Fn(&Policy) -> bool) -> Matched {
        let first = |list: &[Arc<Policy>]| list.iter().find(|policy| is_match(policy)).cloned();
        Matched { policy: first(&self.policies), operator: first(&self.operators) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy::AppliesTo;
    use super::super::settings::PolicySettings;
    use super::*;
    use crate::name::Name;

    fn policy(name: &str, pattern: &str, applies_to: AppliesTo, priority: i64) -> Arc<Policy> {
        let policy =
            Policy::new(Name::from(name), (pattern, applies_to), priority, PolicySettings::default());
        Arc::new(policy.expect("it is an expression"))
    }

    fn name(policy: Option<Arc<Policy>>) -> String {
        policy.map(|policy| policy.name.to_string()).unwrap_or_default()
    }

    #[test]
    fn of_those_that_match_the_highest_priority_acts_and_then_the_first_name() {
        use AppliesTo::{All, Exchanges, Queues, QueuesOf};
        let policies = Policies::new(
            vec![
                policy("all", ".*", All, -5),
                policy("b", "^o", Queues, 1),
                policy("a", "^o", Queues, 1),
                policy("quorum", "^order", QueuesOf(QueueKind::Quorum), 9),
                policy("classic", "^orders$", QueuesOf(QueueKind::Classic), 8),
                policy("exchanges", "s$", Exchanges, 7),
                policy("streams", ".*", QueuesOf(QueueKind::Stream), 99),
            ],
            vec![policy("empty", "", Queues, 0)],
        );
        for (object, kind, expected, operator) in [
            ("orders", Some(QueueKind::Classic), "classic", "empty"),
            ("orders", Some(QueueKind::Quorum), "quorum", "empty"),
            ("orders2", Some(QueueKind::Classic), "a", "empty"),
            ("Orders", Some(QueueKind::Classic), "all", "empty"),
            ("", Some(QueueKind::Classic), "all", "empty"),
            ("orders", None, "exchanges", ""),
            ("order", None, "all", ""),
        ] {
            let matched = match kind {
                Some(kind) => policies.of_queue(object.as_bytes(), kind),
                None => policies.of_exchange(object.as_bytes()),
            };
            let found = (name(matched.policy), name(matched.operator));
            assert_eq!(found, (expected.to_owned(), operator.to_owned()), "{object} {kind:?}");
        }
    }
}
