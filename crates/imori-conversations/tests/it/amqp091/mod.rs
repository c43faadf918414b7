//! Logins and turns of AMQP 0-9-1, and its input in pieces.

mod login;
mod split;
mod turn;
