//! A virtual client: what it has sent, what it waits for, and what it makes of what it gets.

mod hearing;
mod receipt;
mod delivery;
mod refusal;
mod goodbye;
mod client;

pub(crate) use client::{Awaited, Client, OwnSubscription, Transaction, Unconfirmed, Unsettled};
