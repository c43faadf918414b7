//! Conversations, and tests of the codec against its table, the specification and another
//! implementation.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod talk;
mod frames;
mod text;
mod composites;
mod oracle;
mod specification;
mod table;
