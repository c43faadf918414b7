//! A compiled selector: a list of steps for a small stack machine.

use super::compare::Comparison;
use super::field_name::FieldName;
use super::like::Like;
use super::number::{Arithmetic, Number};

/// A step. The numbers in it are indices into the lists of the [`Program`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Pushes the value of a field.
    Field(u16),
    /// Pushes a literal.
    Constant(u16),
    /// Compares a field with a literal, the most frequent condition.
    CompareField {
        field: u16,
        comparison: Comparison,
        constant: u16,
    },
    /// Compares the top two values.
    Compare(Comparison),
    /// Calculates with the top two values.
    Calculate(Arithmetic),
    /// Negates the top value.
    Negate,
    /// Checks that the top value is a number.
    Plus,
    /// Tests whether the third value from the top lies between the top two.
    Between {
        is_not: bool,
    },
    /// Matches the top value against a pattern.
    Like {
        pattern: u16,
        is_not: bool,
    },
    /// Searches a list for the top value.
    In {
        list: u16,
        is_not: bool,
    },
    /// Tests whether the top value is missing.
    IsNull {
        is_not: bool,
    },
    /// Negates the top truth value.
    Not,
    /// Jumps if the top value is this truth, which then decides the result.
    JumpIf {
        truth: bool,
        to: u32,
    },
    /// Joins the top two truth values.
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

/// The steps of a selector and the data they refer to.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) fields: Vec<FieldName>,
    pub(super) constants: Vec<Constant>,
    pub(super) patterns: Vec<Like>,
    /// The sorted texts of each IN.
    pub(super) lists: Vec<Vec<Box<[u8]>>>,
    /// The maximum number of values on the stack.
    pub(super) depth: usize,
}
