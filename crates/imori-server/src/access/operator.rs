//! The operator on the broker's own machine, identified by reading a file of the data folder. A user who can read that
//! folder can already read every message and every hash.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use imori_core::authorize;

use super::refusal::AccessError;
use crate::credentials::random_password;

/// The name by which the operator logs in.
pub(super) const OPERATOR: &str = "operator";

/// Tells whether a name is reserved for the broker, so that no new user may have it.
pub(super) fn is_reserved(name: &str) -> bool {
    name == OPERATOR || authorize::is_reserved(name.as_bytes())
}

/// The file in the data folder with the operator's password, which is valid until the process ends.
const FILE: &str = "operator.secret";

/// Generates a password for the operator and writes it into the data folder, where only its owner can read it.
pub(crate) fn make_operator(folder: &Path) -> Result<String, AccessError> {
    let password = random_password().ok_or(AccessError::NoRandomness)?;
    let path = folder.join(FILE);
    write(&path, &password).map_err(|error| AccessError::Secret(path, error.to_string()))?;
    Ok(password)
}

fn write(path: &Path, password: &str) -> io::Result<()> {
    // An existing file may be readable by others, or be a link to another place.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(password.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_broker_are_reserved_and_others_are_not() {
        for (name, expected) in [
            ("operator", true),
            ("amq.", true),
            ("amq.gen-1", true),
            ("imori.cell", true),
            ("operators", false),
            ("Operator", false),
            ("amq", false),
            ("imori", false),
            ("my.amq.user", false),
        ] {
            assert_eq!(is_reserved(name), expected, "{name:?}");
        }
    }
}
