//! Logins, turns and throttled publishers of STOMP, and its input in pieces.

mod login;
mod throttle;
mod split;
mod turn;
