//! Logins, turns and throttled publishers of NATS, and its input in pieces.

mod login;
mod throttle;
mod split;
mod turn;
