//! The datastore: named texts of the system or of a user, with an end and encryption where asked.

mod answers;
mod keys;

pub(crate) use answers::Keys;
pub(crate) use keys::{Key, KeyError};
