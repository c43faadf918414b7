//! Conversations, and the codec against the table it is made of, bytes of the specification, and another codec.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod talk;
mod frames;
mod text;
mod composites;
mod oracle;
mod specification;
mod table;
