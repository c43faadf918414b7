//! The toy protocol through the seam, in one world with STOMP.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that meets the unexpected has failed")]

mod toy;
