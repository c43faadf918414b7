//! A whole broker with users of its own, and clients of each protocol that say every byte themselves.

mod broker;
mod wire;
mod renewal;
mod rights;
