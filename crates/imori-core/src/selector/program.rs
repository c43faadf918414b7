//! A selector as a list of steps on a small stack.

use super::compare::Comparison;
use super::field_name::FieldName;
use super::like::Like;
use super::number::{Arithmetic, Number};

/// One step. Numbers in it are places in the lists of the [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Looks up a field.
    Field(u16),
    /// Takes a literal.
    Constant(u16),
    /// Compares a field with a literal, the most frequent of all conditions.
    CompareField {
        field: u16,
        comparison: Comparison,
        constant: u16,
    },
    /// Compares the last two values.
    Compare(Comparison),
    /// Calculates with the last two values.
    Calculate(Arithmetic),
    /// Turns the sign of the last value.
    Negate,
    /// Sees that the last value is a number.
    Plus,
    /// Compares the last value but two with both others.
    Between {
        is_not: bool,
    },
    /// Matches the last value with a pattern.
    Like {
        pattern: u16,
        is_not: bool,
    },
    /// Looks for the last value in a list.
    In {
        list: u16,
        is_not: bool,
    },
    /// Tells whether the last value is not there.
    IsNull {
        is_not: bool,
    },
    /// Turns a truth round.
    Not,
    /// Goes on elsewhere, where the last value is this truth: nothing can change it.
    JumpIf {
        truth: bool,
        to: u32,
    },
    /// Joins the last two truths.
    And,
    Or,
}

/// A literal.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant {
    Bool(bool),
    Number(Number),
    Text(Box<[u8]>),
}

/// Steps, and what they speak of.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) fields: Vec<FieldName>,
    pub(super) constants: Vec<Constant>,
    pub(super) patterns: Vec<Like>,
    /// The texts of each IN, in order.
    pub(super) lists: Vec<Vec<Box<[u8]>>>,
    /// How many values are on the stack at most.
    pub(super) depth: usize,
}
