//! What rules remember of their matches, and what holds them back.

mod memory;
mod breaker;

pub(crate) use memory::{RuleMemory, Undo, Verdict};
