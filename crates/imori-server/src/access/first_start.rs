//! The user `admin`, which the first start creates.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::access::{Access, FIRST_USER};
use super::objects::{Permission, User};
use super::refusal::AccessError;
use crate::credentials::random_password;

/// A generated password for `admin`, to be shown once.
pub struct FirstPassword(String);

impl FirstPassword {
    /// The text, for the operator who starts the broker, and for no log.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for FirstPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FirstPassword")
    }
}

/// Mode bits that give other users access to the password file, or let its group write it. The group may read, as in
/// `tls::files`: Kubernetes hands a secret to a container that does not run as root by its group alone.
const OPEN_TO_OTHERS: u32 = 0o027;

/// Creates `admin` if there are no users, with the password in this file or a generated one, which is returned. If a
/// file is given, `admin` has its password after every start.
pub(crate) fn make_admin(
    access: &Access,
    password_file: Option<&Path>,
) -> Result<Option<FirstPassword>, AccessError> {
    let given = password_file.map(read_secret).transpose()?;
    let is_first = access.objects().users.is_empty();
    let (password, made) = match given {
        Some(password) => (password, None),
        None if is_first => {
            let made = random_password().ok_or(AccessError::NoRandomness)?;
            (made.clone(), Some(FirstPassword(made)))
        }
        None => return Ok(None),
    };
    let changed = access.change(|draft| {
        let known = draft.objects.users.get(FIRST_USER).map(|user| (**user).clone());
        let is_known = known.is_some();
        let hash = draft.hash(FIRST_USER, &password)?;
        if known.as_ref().and_then(|user| user.password.as_ref()) == Some(&hash) {
            return Ok(());
        }
        let user =
            known.unwrap_or_else(|| User { tags: vec![String::from("administrator")], ..User::default() });
        draft.put_user(FIRST_USER, User { password: Some(hash), ..user })?;
        if !is_known {
            for vhost in draft.objects.vhosts.keys().cloned().collect::<Vec<_>>() {
                draft.put_permission(FIRST_USER, &vhost, Permission::all())?;
            }
        }
        Ok(())
    });
    changed.map(|()| made)
}

/// Reads the first line of a file that only its owner and group may read (SECURITY OPS-03).
fn read_secret(path: &Path) -> Result<String, AccessError> {
    let refuse = |error: io::Error| AccessError::Secret(path.to_owned(), error.to_string());
    let mode = fs::metadata(path).map_err(refuse)?.permissions().mode();
    if mode & OPEN_TO_OTHERS != 0 {
        let text = "others can read it; take their rights away with `chmod 600`";
        return Err(AccessError::Secret(path.to_owned(), String::from(text)));
    }
    let text = fs::read_to_string(path).map_err(refuse)?;
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(AccessError::Secret(
            path.to_owned(),
            String::from("its first line is empty; write the password there"),
        )),
    }
}
