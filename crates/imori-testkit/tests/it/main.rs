//! The toy protocol, in one world with STOMP.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod toy;
