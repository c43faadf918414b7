//! The names that clients may give to queues and exchanges.

use std::fmt;

/// A name under which a client cannot declare anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameError {
    /// The name is empty.
    Empty,
    /// The name has a line end.
    LineEnd,
    /// The name begins with `amq.`, as those that the broker makes do.
    Reserved,
}

/// Checks a name that a client chose for a new queue or exchange.
///
/// # Errors
/// [`NameError`].
pub fn check_name(name: &str) -> Result<(), NameError> {
    match () {
        () if name.is_empty() => Err(NameError::Empty),
        () if name.contains(['\r', '\n']) => Err(NameError::LineEnd),
        () if name.starts_with("amq.") => Err(NameError::Reserved),
        () => Ok(()),
    }
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Empty => "a queue or exchange without a name cannot be declared; name it",
            NameError::LineEnd => "a name has no line end; leave it out",
            NameError::Reserved => {
                "the name contains reserved prefix 'amq.*', as those that the broker makes do; use another"
            }
        })
    }
}

impl std::error::Error for NameError {}
