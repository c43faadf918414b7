//! Comparison in three-valued logic.

use std::cmp::Ordering;

use super::operand::Operand;

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// Whether the operator compares order, not just equality.
    pub(super) fn is_order(self) -> bool {
        !matches!(self, Comparison::Equal | Comparison::NotEqual)
    }

    /// Whether the operator is true for this ordering. Without an ordering only `<>` is true.
    #[inline]
    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Comparison::Equal => order == Some(Ordering::Equal),
            Comparison::NotEqual => order != Some(Ordering::Equal),
            Comparison::Less => order == Some(Ordering::Less),
            Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Comparison::Greater => order == Some(Ordering::Greater),
            Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }

    /// Compares two values; `None` means unknown. JMS, Conditional Expressions: a comparison of
    /// values of different types is false, and texts and booleans have no order.
    #[inline]
    pub(super) fn compare(self, left: &Operand<'_>, right: &Operand<'_>) -> Option<bool> {
        use Operand::{Bool, Null, Number, Text, Untyped};
        Some(match (left, right) {
            (Null, _) | (_, Null) => return None,
            (Number(a), Number(b)) => self.holds(a.compare(*b)),
            (Text(_) | Untyped(_), Text(_)) | (Text(_), Untyped(_)) => {
                self.equality(left.text() == right.text())
            }
            (Untyped(a), Untyped(b)) if !self.is_order() => self.equality(a == b),
            (Untyped(_), Untyped(_) | Number(_)) | (Number(_), Untyped(_)) => {
                match (left.number(), right.number()) {
                    (Some(a), Some(b)) => self.holds(a.compare(b)),
                    _ => false,
                }
            }
            (Bool(_), Bool(_) | Untyped(_)) | (Untyped(_), Bool(_)) => match (left.truth(), right.truth()) {
                (Some(a), Some(b)) => self.equality(a == b),
                _ => false,
            },
            _ => false,
        })
    }

    #[inline]
    fn equality(self, is_equal: bool) -> bool {
        match self {
            Comparison::Equal => is_equal,
            Comparison::NotEqual => !is_equal,
            _ => false,
        }
    }
}

/// Three-valued AND.
#[inline]
pub(super) fn both(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Three-valued OR.
#[inline]
pub(super) fn either(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    }
}
