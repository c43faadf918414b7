//! Evaluates a selector for one message.

use std::borrow::Cow;
use std::mem::take;

use super::compare::{Comparison, both, either};
use super::operand::{Fields, Operand};
use super::program::{Constant, Program, Step};
use crate::limits::SELECTOR_SLOTS_MAX;

/// A stack size that is enough for nearly all selectors.
const SLOTS: usize = 4;

/// Whether a message matches the program; `None` means unknown.
#[inline]
pub(super) fn evaluate(program: &Program, fields: &dyn Fields) -> Option<bool> {
    if program.depth <= SLOTS {
        run(program, fields, Stack { slots: [const { Operand::Null }; SLOTS], len: 0 })
    } else {
        run(program, fields, Stack { slots: [const { Operand::Null }; SELECTOR_SLOTS_MAX], len: 0 })
    }
}

/// A value stack of fixed size, large enough for the program's measured depth.
struct Stack<'a, const SLOTS: usize> {
    slots: [Operand<'a>; SLOTS],
    len: usize,
}

impl<'a, const SLOTS: usize> Stack<'a, SLOTS> {
    #[inline]
    fn push(&mut self, operand: Operand<'a>) {
        if let Some(slot) = self.slots.get_mut(self.len) {
            *slot = operand;
            self.len += 1;
        }
    }

    #[inline]
    fn pop(&mut self) -> Operand<'a> {
        self.len = self.len.saturating_sub(1);
        self.slots.get_mut(self.len).map(take).unwrap_or_default()
    }

    #[inline]
    fn last(&mut self) -> Option<&mut Operand<'a>> {
        self.slots.get_mut(self.len.checked_sub(1)?)
    }

    /// Replaces the top value by a truth value.
    #[inline]
    fn change(&mut self, truth: impl FnOnce(&Operand<'a>) -> Option<bool>) {
        if let Some(last) = self.last() {
            *last = truth(last).into();
        }
    }

    /// Replaces the top two values by a truth value.
    #[inline]
    fn join(&mut self, truth: impl FnOnce(&Operand<'a>, &Operand<'a>) -> Option<bool>) {
        let right = self.pop();
        self.change(|left| truth(left, &right));
    }
}

fn run<'a, const SLOTS: usize>(
    program: &'a Program,
    fields: &'a dyn Fields,
    mut stack: Stack<'a, SLOTS>,
) -> Option<bool> {
    let field = |number: u16| {
        program.fields.get(usize::from(number)).map_or(Operand::Null, |name| fields.field(name))
    };
    let constant = |number: u16| match program.constants.get(usize::from(number)) {
        Some(Constant::Bool(value)) => Operand::Bool(*value),
        Some(Constant::Number(number)) => Operand::Number(*number),
        Some(Constant::Text(text)) => Operand::Text(Cow::Borrowed(text)),
        None => Operand::Null,
    };
    let mut at = 0;
    while let Some(step) = program.steps.get(at) {
        at += 1;
        match *step {
            Step::Field(number) => stack.push(field(number)),
            Step::Constant(number) => stack.push(constant(number)),
            Step::CompareField { field: left, comparison, constant: right } => {
                stack.push(comparison.compare(&field(left), &constant(right)).into());
            }
            Step::Compare(comparison) => stack.join(|left, right| comparison.compare(left, right)),
            Step::Calculate(operation) => {
                let right = stack.pop().number();
                let left = stack.pop().number();
                let result = left.zip(right).and_then(|(left, right)| left.calculate(operation, right));
                stack.push(result.map_or(Operand::Null, Operand::Number));
            }
            Step::Negate => {
                let number = stack.pop().number();
                stack.push(number.map_or(Operand::Null, |number| Operand::Number(number.negated())));
            }
            Step::Plus => {
                let number = stack.pop().number();
                stack.push(number.map_or(Operand::Null, Operand::Number));
            }
            Step::Between { is_not } => {
                let (high, low) = (stack.pop(), stack.pop());
                stack.change(|value| {
                    let from = Comparison::GreaterOrEqual.compare(value, &low);
                    let to = Comparison::LessOrEqual.compare(value, &high);
                    both(from, to).map(|is_between| is_between != is_not)
                });
            }
            Step::Like { pattern, is_not } => {
                let pattern = program.patterns.get(usize::from(pattern));
                stack.change(|value| {
                    let is_match = |text| pattern.is_some_and(|pattern| pattern.is_match(text));
                    is_there(value).then(|| value.text().is_some_and(is_match) != is_not)
                });
            }
            Step::In { list, is_not } => {
                let list = program.lists.get(usize::from(list));
                stack.change(|value| {
                    let is_in = |text: &[u8]| {
                        list.is_some_and(|list| list.binary_search_by(|one| (**one).cmp(text)).is_ok())
                    };
                    is_there(value).then(|| value.text().is_some_and(is_in) != is_not)
                });
            }
            Step::IsNull { is_not } => stack.change(|value| Some(is_there(value) == is_not)),
            Step::Not => stack.change(|value| value.truth().map(|truth| !truth)),
            Step::JumpIf { truth, to } => {
                stack.change(Operand::truth);
                if stack.last().is_some_and(|value| *value == Operand::Bool(truth)) {
                    at = to as usize;
                }
            }
            Step::And => stack.join(|left, right| both(left.truth(), right.truth())),
            Step::Or => stack.join(|left, right| either(left.truth(), right.truth())),
        }
    }
    stack.pop().truth()
}

#[inline]
fn is_there(value: &Operand<'_>) -> bool {
    !matches!(value, Operand::Null)
}
