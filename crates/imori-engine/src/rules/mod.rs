//! What rules remember of their matches, and what holds them back.

pub(crate) mod memory;
pub(crate) mod breaker;

pub(crate) use memory::{RuleMemory, Undo, Verdict};
