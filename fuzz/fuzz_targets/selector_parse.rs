//! Any text as a selector, evaluated over messages whose fields are of each kind.
//!
//! Held: nothing panics; an error stands within the text; a selector is not true together with its negation; it
//! compiles to as much the second time.

use std::borrow::Cow;

use imori_core::selector::{FieldName, Fields, Number, Operand, Selector};

use crate::planted::fail_if_planted;

/// Gives each name a value of one kind, by its first byte.
struct ByName(u8);

impl Fields for ByName {
    fn field(&self, name: &FieldName) -> Operand<'_> {
        let FieldName::Property(name) = name else { return Operand::Text(Cow::Borrowed(b"header")) };
        match name.first().copied().unwrap_or_default().wrapping_add(self.0) % 9 {
            0 => Operand::Null,
            1 => Operand::Bool(true),
            2 => Operand::Number(Number::Int(i64::MIN)),
            3 => Operand::Number(Number::Float(0.5)),
            4 => Operand::Number(Number::from(u64::MAX)),
            5 => Operand::Text(Cow::Borrowed(b"a\xffb\x80")),
            6 => Operand::Untyped(Cow::Borrowed(b"-17")),
            7 => Operand::Untyped(Cow::Borrowed(b"true")),
            _ => Operand::Other,
        }
    }
}

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let selector = match Selector::read(data) {
        Ok(Some(selector)) => selector,
        Ok(None) => return assert!(data.trim_ascii().is_empty()),
        Err(error) => {
            assert!(error.position().is_none_or(|at| at <= data.len()), "{error}");
            assert!(!error.to_string().contains('\n'), "it is one line");
            return;
        }
    };
    planted(&selector);
    assert_eq!(Selector::parse(selector.as_str()), Ok(selector.clone()));
    // One level or word more can be too many.
    let negated = Selector::parse(&format!("NOT ({selector})")).ok();
    for kind in 0..9 {
        let fields = ByName(kind);
        let is_negated = negated.as_ref().is_some_and(|negated| negated.matches(&fields));
        assert!(!(selector.matches(&fields) && is_negated), "it is true and false");
    }
}

/// Does nothing unless a fault is planted: then a BETWEEN in parentheses is one too many.
fn planted(selector: &Selector) {
    let text = selector.as_str();
    let is_found = text.contains('(') && text.contains("BETWEEN");
    fail_if_planted(is_found);
}
