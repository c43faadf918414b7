//! The policy and the operator policy in effect for one object.

use std::sync::Arc;

use super::policy::Policy;
use super::settings::PolicySettings;

/// The policy and the operator policy in effect for an object, if any.
#[derive(Debug, Default, Clone)]
pub struct Matched {
    /// The policy of users that matches with the highest priority.
    pub policy: Option<Arc<Policy>>,
    /// The operator policy that matches with the highest priority; it only lowers limits.
    pub operator: Option<Arc<Policy>>,
}

/// The source of a setting in effect.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Not set anywhere.
    #[default]
    Default,
    /// An argument of the declaration.
    Argument,
    /// The policy of users that matches.
    Policy,
    /// The operator policy that matches.
    OperatorPolicy,
}

impl Matched {
    /// Whether no policy applies.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.policy.is_none() && self.operator.is_none()
    }

    /// Whether exactly the same policies apply.
    #[must_use]
    pub fn is_same(&self, other: &Matched) -> bool {
        let is_same = |one: &Option<Arc<Policy>>, other: &Option<Arc<Policy>>| match (one, other) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        is_same(&self.policy, &other.policy) && is_same(&self.operator, &other.operator)
    }

    /// The lowest value of the declaration, the policy and the operator policy; the first of equal
    /// ones.
    pub(crate) fn lowest<T: Ord>(
        &self,
        argument: Option<T>,
        of: impl Fn(&PolicySettings) -> Option<T>,
    ) -> (Option<T>, Source) {
        let policy = self.policy.as_ref().and_then(|policy| of(&policy.settings));
        let operator = self.operator.as_ref().and_then(|policy| of(&policy.settings));
        let said = [
            argument.map(|value| (value, Source::Argument)),
            policy.map(|value| (value, Source::Policy)),
            operator.map(|value| (value, Source::OperatorPolicy)),
        ];
        let lowest =
            said.into_iter().flatten().reduce(|lowest, next| if next.0 < lowest.0 { next } else { lowest });
        lowest.map_or((None, Source::Default), |(value, source)| (Some(value), source))
    }

    /// The value of the operator policy, or else of the policy.
    pub(crate) fn last_word<T>(&self, of: impl Fn(&PolicySettings) -> Option<T>) -> Option<(T, Source)> {
        let said = |policy: &Option<Arc<Policy>>| policy.as_ref().and_then(|policy| of(&policy.settings));
        let operator = said(&self.operator).map(|value| (value, Source::OperatorPolicy));
        operator.or_else(|| said(&self.policy).map(|value| (value, Source::Policy)))
    }

    /// The value of the declaration, or else of a policy.
    pub(crate) fn unless_said<T>(
        &self,
        argument: Option<T>,
        of: impl Fn(&PolicySettings) -> Option<T>,
    ) -> (Option<T>, Source) {
        let said = argument.map(|value| (value, Source::Argument)).or_else(|| self.last_word(of));
        said.map_or((None, Source::Default), |(value, source)| (Some(value), source))
    }
}
