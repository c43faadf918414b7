//! Users and vhosts that belong to the definitions file: only the file changes them.

use std::collections::BTreeSet;

use super::objects::Objects;
use super::refusal::AccessError;

/// The users and vhosts of a definitions file.
#[derive(Debug, Default, Clone)]
pub struct FileObjects {
    /// The name of the file in error messages.
    pub file: String,
    /// The names of the users.
    pub users: BTreeSet<String>,
    /// The names of the vhosts.
    pub vhosts: BTreeSet<String>,
}

impl FileObjects {
    /// Refuses an operator's change of objects that belong to the file.
    pub(super) fn refuse(
        &self,
        before: &Objects,
        after: &Objects,
        touched: &BTreeSet<String>,
    ) -> Result<(), AccessError> {
        let user = self.users.intersection(touched).find(|user| !is_same_user(before, after, user));
        let vhost = self.vhosts.iter().find(|vhost| before.vhosts.get(*vhost) != after.vhosts.get(*vhost));
        let Some((kind, name)) = user.map(|user| ("user", user)).or(vhost.map(|vhost| ("vhost", vhost)))
        else {
            return Ok(());
        };
        Err(AccessError::Bad(format!(
            "{kind} `{}` belongs to the definitions file `{}`; change it there and reload the configuration",
            name.escape_debug(),
            self.file
        )))
    }
}

fn is_same_user(before: &Objects, after: &Objects, user: &str) -> bool {
    let topics = |objects: &Objects| {
        let all = objects.topic_permissions.iter().filter(|((of, ..), _)| of == user);
        all.map(|(key, value)| (key.clone(), (**value).clone())).collect::<Vec<_>>()
    };
    before.users.get(user) == after.users.get(user)
        && before.permissions_of(user).eq(after.permissions_of(user))
        && topics(before) == topics(after)
}
