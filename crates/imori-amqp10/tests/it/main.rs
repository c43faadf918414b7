//! The codec against the table it is made of, against bytes of the specification, and against another codec.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod composites;
mod oracle;
mod specification;
mod table;
