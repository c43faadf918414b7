//! An operator-precedence parser: pending operators, and the steps they reduce to.
//!
//! Each operand has a kind, so that conditions that can never be true, such as `'a' + 1`, are
//! refused with their position.

use super::compare::Comparison;
use super::error::SelectorError;
use super::number::Arithmetic;
use super::program::{Constant, Program, Step};
use crate::limits::{SELECTOR_NESTING_MAX, SELECTOR_SLOTS_MAX};

/// An operator that still lacks operands. From the loosest to the tightest:
///
/// ```text
/// ( < OR < AND < NOT < = <> IS < < <= > >= LIKE IN BETWEEN < + - < * / < signs
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    Open,
    /// `jump` is the step that skips the right operand.
    Or {
        jump: usize,
    },
    And {
        jump: usize,
    },
    Not,
    Compare(Comparison),
    /// BETWEEN before its AND.
    BetweenLow {
        is_not: bool,
    },
    /// BETWEEN after its AND.
    BetweenHigh {
        is_not: bool,
    },
    Calculate(Arithmetic),
    Negate,
    Plus,
}

/// The precedence of an operator, loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Open,
    Or,
    And,
    Not,
    Equality,
    Relation,
    Sum,
    Product,
    Sign,
}

impl Pending {
    pub(super) fn precedence(self) -> Precedence {
        match self {
            Pending::Open => Precedence::Open,
            Pending::Or { .. } => Precedence::Or,
            Pending::And { .. } => Precedence::And,
            Pending::Not => Precedence::Not,
            Pending::Compare(comparison) if !comparison.is_order() => Precedence::Equality,
            Pending::Compare(_) | Pending::BetweenLow { .. } | Pending::BetweenHigh { .. } => {
                Precedence::Relation
            }
            Pending::Calculate(Arithmetic::Add | Arithmetic::Subtract) => Precedence::Sum,
            Pending::Calculate(Arithmetic::Multiply | Arithmetic::Divide) => Precedence::Product,
            Pending::Negate | Pending::Plus => Precedence::Sign,
        }
    }
}

/// The kind of value an operand has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The value of a field, which may be of any kind.
    Any,
    Condition,
    Number,
    Text,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Kind::Any => "a value",
            Kind::Condition => "a condition",
            Kind::Number => "a number",
            Kind::Text => "a text",
        }
    }
}

/// A program under construction.
#[derive(Debug)]
pub(super) struct Reducer<'t> {
    text: &'t str,
    pub(super) program: Program,
    /// The operands on the stack after the steps so far, each with its byte position.
    operands: Vec<(Kind, usize)>,
    /// Pending operators, each with its byte position.
    pending: Vec<(Pending, usize)>,
}

impl<'t> Reducer<'t> {
    pub(super) fn new(text: &'t str) -> Reducer<'t> {
        Reducer { text, program: Program::default(), operands: Vec::new(), pending: Vec::new() }
    }

    pub(super) fn error(&self, at: usize, problem: impl Into<String>) -> SelectorError {
        SelectorError::at(self.text, at, problem)
    }

    /// The most recent pending operator.
    pub(super) fn top(&self) -> Option<Pending> {
        self.pending.last().map(|(pending, _)| *pending)
    }

    /// Pushes an operator that waits for its right operand.
    ///
    /// # Errors
    /// Operators are nested too deeply.
    pub(super) fn push(&mut self, pending: Pending, at: usize) -> Result<(), SelectorError> {
        // SECURITY LIM-09: nesting is counted, and parsed without recursion.
        if self.pending.len() >= SELECTOR_NESTING_MAX {
            return Err(
                self.error(at, format!("is nested too deeply; use at most {SELECTOR_NESTING_MAX} levels"))
            );
        }
        self.pending.push((pending, at));
        Ok(())
    }

    /// Pops the most recent pending operator.
    pub(super) fn pop(&mut self) -> Option<(Pending, usize)> {
        self.pending.pop()
    }

    /// Emits a step that leaves an operand on the stack.
    pub(super) fn operand(&mut self, step: Step, kind: Kind, at: usize) -> Result<(), SelectorError> {
        self.program.steps.push(step);
        self.operands.push((kind, at));
        self.program.depth = self.program.depth.max(self.operands.len());
        if self.program.depth > SELECTOR_SLOTS_MAX {
            return Err(self.error(at, "is nested too deeply; use fewer levels"));
        }
        Ok(())
    }

    /// Emits a literal.
    pub(super) fn constant(&mut self, constant: Constant, at: usize) -> Result<(), SelectorError> {
        let kind = match constant {
            Constant::Bool(_) => Kind::Condition,
            Constant::Number(_) => Kind::Number,
            Constant::Text(_) => Kind::Text,
        };
        let number = place(self.program.constants.len());
        self.program.constants.push(constant);
        self.operand(Step::Constant(number), kind, at)
    }

    /// Emits a step that turns the top operand, which must be of the wanted kind, into a condition.
    pub(super) fn condition(&mut self, step: Step, wanted: Kind) -> Result<(), SelectorError> {
        let (kind, at) = self.take(wanted)?;
        debug_assert!(wanted == Kind::Any || kind == Kind::Any || kind == wanted);
        self.operand(step, Kind::Condition, at)
    }

    /// Pushes AND or OR, with a jump over its right operand for when the left one decides.
    pub(super) fn join(&mut self, is_and: bool, at: usize) -> Result<(), SelectorError> {
        self.reduce(if is_and { Precedence::And } else { Precedence::Or })?;
        let operand = self.take(Kind::Condition)?;
        self.operands.push(operand);
        let jump = self.program.steps.len();
        self.program.steps.push(Step::JumpIf { truth: !is_and, to: 0 });
        self.push(if is_and { Pending::And { jump } } else { Pending::Or { jump } }, at)
    }

    /// Completes all pending operators that bind at least this tightly.
    pub(super) fn reduce(&mut self, precedence: Precedence) -> Result<(), SelectorError> {
        while let Some((pending, at)) = self.pending.pop_if(|(pending, _)| pending.precedence() >= precedence)
        {
            self.complete(pending, at)?;
        }
        Ok(())
    }

    fn complete(&mut self, pending: Pending, at: usize) -> Result<(), SelectorError> {
        match pending {
            Pending::Open => Err(self.error(at, "the parenthesis is not closed; add `)`")),
            Pending::BetweenLow { .. } => Err(self.error(at, "BETWEEN has no AND; write `BETWEEN 1 AND 2`")),
            Pending::Or { jump } => self.joined(jump, Step::Or),
            Pending::And { jump } => self.joined(jump, Step::And),
            Pending::Not => self.unary(Step::Not, Kind::Condition),
            Pending::Negate => self.unary(Step::Negate, Kind::Number),
            Pending::Plus => self.unary(Step::Plus, Kind::Number),
            Pending::Calculate(operation) => {
                self.take(Kind::Number)?;
                self.unary(Step::Calculate(operation), Kind::Number)
            }
            Pending::Compare(comparison) => self.compare(comparison),
            Pending::BetweenHigh { is_not } => {
                self.take(Kind::Number)?;
                self.take(Kind::Number)?;
                let (_, at) = self.take(Kind::Number)?;
                self.operand(Step::Between { is_not }, Kind::Condition, at)
            }
        }
    }

    fn unary(&mut self, step: Step, kind: Kind) -> Result<(), SelectorError> {
        let (_, at) = self.take(kind)?;
        self.operand(step, kind, at)
    }

    fn joined(&mut self, jump: usize, step: Step) -> Result<(), SelectorError> {
        self.take(Kind::Condition)?;
        self.unary(step, Kind::Condition)?;
        let end = u32::try_from(self.program.steps.len()).unwrap_or(u32::MAX);
        if let Some(Step::JumpIf { to, .. }) = self.program.steps.get_mut(jump) {
            *to = end;
        }
        Ok(())
    }

    fn compare(&mut self, comparison: Comparison) -> Result<(), SelectorError> {
        // JMS, Conditional Expressions: texts and booleans are only equal or not.
        let wanted = if comparison.is_order() { Kind::Number } else { Kind::Any };
        self.take(wanted)?;
        let (_, at) = self.take(wanted)?;
        let step = match self.program.steps.as_slice() {
            [.., Step::Field(field), Step::Constant(constant)] => {
                let step = Step::CompareField { field: *field, comparison, constant: *constant };
                self.program.steps.truncate(self.program.steps.len() - 2);
                step
            }
            _ => Step::Compare(comparison),
        };
        self.operand(step, Kind::Condition, at)
    }

    /// Pops the top operand, which must be of this kind.
    pub(super) fn take(&mut self, wanted: Kind) -> Result<(Kind, usize), SelectorError> {
        let Some((kind, at)) = self.operands.pop() else {
            return Err(SelectorError::whole("has an operator without its values"));
        };
        if wanted != Kind::Any && kind != Kind::Any && kind != wanted {
            return Err(self.error(at, format!("is {}, where {} is needed", kind.as_str(), wanted.as_str())));
        }
        Ok((kind, at))
    }
}

/// A list index as `u16`; no list is longer than the maximum number of words.
pub(super) fn place(len: usize) -> u16 {
    u16::try_from(len).expect("a selector has fewer words than that")
}
