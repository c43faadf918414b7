//! A policy: a pattern of names, the kinds of objects it applies to, and settings.

use super::settings::PolicySettings;
use crate::expression::{Expression, ExpressionError};
use crate::name::Name;

/// The kinds of queues that policies tell apart, as their declarations name them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum QueueKind {
    /// A queue that is declared without a type, or as classic.
    #[default]
    Classic,
    /// A queue declared as a quorum queue.
    Quorum,
    /// A queue declared as a stream, or made as one by a client of JetStream.
    Stream,
}

impl QueueKind {
    /// The word for the kind in declarations.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            QueueKind::Classic => "classic",
            QueueKind::Quorum => "quorum",
            QueueKind::Stream => "stream",
        }
    }

    /// A queue of this kind, as errors call it.
    #[must_use]
    pub fn in_words(self) -> &'static str {
        match self {
            QueueKind::Classic => "a classic queue",
            QueueKind::Quorum => "a quorum queue",
            QueueKind::Stream => "a stream",
        }
    }

    /// The default delivery limit of a queue of this kind, as in RabbitMQ 4.
    #[must_use]
    pub fn delivery_limit(self) -> Option<u32> {
        match self {
            QueueKind::Classic | QueueKind::Stream => None,
            QueueKind::Quorum => Some(20),
        }
    }
}

/// The objects that a policy applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppliesTo {
    /// Queues and exchanges.
    All,
    /// Queues of every kind.
    Queues,
    /// Queues of one kind.
    QueuesOf(QueueKind),
    /// Exchanges of every kind.
    Exchanges,
}

/// A compiled policy.
#[derive(Debug)]
pub struct Policy {
    /// The name, unique within the vhost's list.
    pub name: Name,
    /// The priority: of several matching policies, the highest applies.
    pub priority: i64,
    /// The settings that the policy gives.
    pub settings: PolicySettings,
    applies_to: AppliesTo,
    pattern: Expression,
}

impl Policy {
    /// Compiles a policy for objects with names in which `pattern` is found.
    ///
    /// # Errors
    /// The pattern is not a valid regular expression, or is too large.
    pub fn new(
        name: Name,
        (pattern, applies_to): (&str, AppliesTo),
        priority: i64,
        settings: PolicySettings,
    ) -> Result<Policy, ExpressionError> {
        // RabbitMQ searches for the pattern anywhere in a name; an empty one matches every name.
        let pattern = Expression::new(if pattern.is_empty() { ".*" } else { pattern })?;
        Ok(Policy { name, priority, settings, applies_to, pattern })
    }

    /// Whether the policy applies to a queue of this name and kind.
    pub(super) fn has_queue(&self, name: &[u8], kind: QueueKind) -> bool {
        let is_meant = match self.applies_to {
            AppliesTo::All | AppliesTo::Queues => true,
            AppliesTo::QueuesOf(meant) => meant == kind,
            AppliesTo::Exchanges => false,
        };
        is_meant && self.pattern.is_match(name)
    }

    /// Whether the policy applies to an exchange of this name.
    pub(super) fn has_exchange(&self, name: &[u8]) -> bool {
        matches!(self.applies_to, AppliesTo::All | AppliesTo::Exchanges) && self.pattern.is_match(name)
    }
}
