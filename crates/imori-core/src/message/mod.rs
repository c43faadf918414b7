//! What a message is made of.

pub mod value;
