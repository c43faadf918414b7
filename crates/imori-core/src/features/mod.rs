//! The states of a connection that few have and that a message has to mind, as one word.
//!
//! The rule: a feature that a connection does not use costs a message one test of this word, together with all other
//! features that are unused. The work for it stands out of line.

mod connection;

pub(crate) use connection::ConnectionFeatures;
