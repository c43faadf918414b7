//! A change of objects in progress: the objects after it, and the rows to write.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use imori_store::definitions::{Change, Table};
use serde::Serialize;

use super::file_objects::FileObjects;
use super::objects::{
    Object, Objects, Permission, SCRAM_KIND, STORE_MARKS_KIND, TopicPermission, User, VhostFacts, row_key,
};
use super::operator::is_reserved;
use super::policy::{PolicyKind, PolicyRow, SetPolicy};
use super::refusal::AccessError;
use super::store_marks::StoreMarks;
use crate::credentials::{self, PasswordHash, ScramKeys, ScramSecret, random_id};
use crate::limits::{OBJECT_NAME_BYTES_MAX, PASSWORD_BYTES_MAX, POLICIES_PER_VHOST_MAX, VHOSTS_MAX};

/// The objects after a change, and the rows to write.
#[derive(Debug)]
pub struct Draft {
    /// The objects after the change.
    pub objects: Objects,
    pub(super) changes: Vec<Change>,
    /// Users whose rights may have changed.
    pub(super) touched: BTreeSet<String>,
    pub(super) author: Author,
    /// Hashing a password also makes SCRAM keys.
    pub(super) makes_scram_keys: bool,
}

/// The author of a change.
#[derive(Debug)]
pub(super) enum Author {
    /// An operator, who may not change objects that belong to the definitions file.
    Operator,
    /// The definitions file, with all objects that belong to it from now on.
    File(FileObjects),
    /// The broker itself, which only changes the form in which something is stored.
    Broker,
}

impl Draft {
    pub(super) fn of(objects: &Objects, makes_scram_keys: bool) -> Draft {
        Draft {
            objects: objects.clone(),
            changes: Vec::new(),
            touched: BTreeSet::new(),
            author: Author::Operator,
            makes_scram_keys,
        }
    }

    /// Hashes a password for a user; a user that has this password already keeps its hash, so that nothing changes.
    ///
    /// # Errors
    /// The password is too long, or the system has no random bytes.
    pub fn hash(&self, user: &str, password: &str) -> Result<PasswordHash, AccessError> {
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(AccessError::Bad(format!(
                "the password has more than {PASSWORD_BYTES_MAX} bytes; use a shorter one"
            )));
        }
        let known = self.objects.users.get(user).and_then(|user| user.password.as_ref());
        let same = known.filter(|known| credentials::verify_promptly(known, password.as_bytes()));
        if let Some(same) = same.filter(|same| !lacks_form(same, self.makes_scram_keys)) {
            return Ok(same.clone());
        }
        let hash = hash(password.as_bytes(), self.makes_scram_keys);
        let hash = hash.map(|hash| match same {
            Some(same) => hash.rehashing(same),
            None => hash,
        });
        hash.ok_or(AccessError::NoRandomness)
    }

    /// Sets the secret from which SCRAM answers for unknown users.
    pub(super) fn put_scram_secret(&mut self, secret: ScramSecret) {
        self.put_row(SCRAM_KIND, &[], &secret);
        self.objects.scram_secret = Some(secret);
    }

    /// Sets what is known of the automation's store.
    pub(super) fn put_store_marks(&mut self, marks: StoreMarks) {
        self.put_row(STORE_MARKS_KIND, &[], &marks);
        self.objects.store_marks = marks;
    }

    /// Makes the definitions file the author of the change; these objects belong to it from now on.
    pub fn belong_to(&mut self, file: FileObjects) {
        self.author = Author::File(file);
    }

    /// Makes the broker the author of the change: it may touch objects of the definitions file. The caller has had the
    /// change checked with its author before.
    pub fn belong_to_broker(&mut self) {
        self.author = Author::Broker;
    }

    /// Sets a user; returns whether the user is new. A user keeps its id and its revocations, and a new one gets another id
    /// than any user before it. A hash from which the stored one was made leaves the stored one. A user that an earlier version
    /// stored under a reserved name can still be changed, so that its secrets can be revoked.
    ///
    /// # Errors
    /// The name is invalid or reserved, or the system has no random bytes.
    pub fn put_user(&mut self, name: &str, mut user: User) -> Result<bool, AccessError> {
        check_name("user", name)?;
        if is_reserved(name) && !self.objects.users.contains_key(name) {
            return Err(AccessError::Bad(format!(
                "user `{}` is not made: `operator` and names that begin with `amq.` or `imori.` are the broker's own; \
                 use another name",
                name.escape_debug()
            )));
        }
        match self.objects.users.get(name) {
            Some(known) => {
                user.id.clone_from(&known.id);
                user.revocations = known.revocations;
                user.password = user.password.map(|hash| hash.or_rehashed(known.password.as_ref()));
            }
            None => user.id = random_id().ok_or(AccessError::NoRandomness)?,
        }
        self.put(&[name], &user);
        self.touched.insert(name.to_owned());
        Ok(self.objects.users.insert(name.to_owned(), Arc::new(user)).is_none())
    }

    /// Ends what was made for a user: its tokens, sessions, and tokens and API keys of the automation. The password and the
    /// rights stay.
    ///
    /// # Errors
    /// There is no such user.
    pub fn revoke_tokens(&mut self, name: &str) -> Result<(), AccessError> {
        let known = self.user(name)?;
        let user = User { tokens: Vec::new(), revocations: known.revocations + 1, ..known };
        self.put(&[name], &user);
        self.touched.insert(name.to_owned());
        self.objects.users.insert(name.to_owned(), Arc::new(user));
        Ok(())
    }

    /// Returns an existing user.
    ///
    /// # Errors
    /// There is no such user.
    pub fn user(&self, name: &str) -> Result<User, AccessError> {
        let known = self.objects.users.get(name).map(|user| (**user).clone());
        known.ok_or_else(|| AccessError::Missing("user", name.to_owned()))
    }

    /// Deletes a user with all its permissions.
    ///
    /// # Errors
    /// There is no such user.
    pub fn delete_user(&mut self, name: &str) -> Result<(), AccessError> {
        self.objects.users.remove(name).ok_or_else(|| AccessError::Missing("user", name.to_owned()))?;
        self.remove::<User>(&[name]);
        self.touched.insert(name.to_owned());
        self.forget_permissions(|user, _| user == name);
        Ok(())
    }

    /// Sets the rights of a user in a vhost; returns whether there were none before.
    ///
    /// # Errors
    /// There is no such user or vhost.
    pub fn put_permission(
        &mut self,
        user: &str,
        vhost: &str,
        permission: Permission,
    ) -> Result<bool, AccessError> {
        self.check_both(user, vhost)?;
        self.put(&[user, vhost], &permission);
        self.touched.insert(user.to_owned());
        let key = (user.to_owned(), vhost.to_owned());
        Ok(self.objects.permissions.insert(key, Arc::new(permission)).is_none())
    }

    /// Gives the user who has made a vhost all rights in it, as RabbitMQ does, unless it has some. An operator who is no
    /// stored user has them anyway.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn give_to_maker(&mut self, vhost: &str, maker: &str) -> Result<(), AccessError> {
        let has_some = self.objects.permissions.contains_key(&(maker.to_owned(), vhost.to_owned()));
        if has_some || !self.objects.users.contains_key(maker) {
            return Ok(());
        }
        self.put_permission(maker, vhost, Permission::all()).map(drop)
    }

    /// Deletes the rights of a user in a vhost.
    ///
    /// # Errors
    /// The user has no rights in the vhost.
    pub fn delete_permission(&mut self, user: &str, vhost: &str) -> Result<(), AccessError> {
        let removed = self.objects.permissions.remove(&(user.to_owned(), vhost.to_owned()));
        removed.ok_or_else(|| AccessError::Missing("permission of", format!("{user} in {vhost}")))?;
        self.remove::<Permission>(&[user, vhost]);
        self.touched.insert(user.to_owned());
        Ok(())
    }

    /// Sets the rights of a user by routing key of an exchange; returns whether there were none before.
    ///
    /// # Errors
    /// There is no such user or vhost, or the name of the exchange is invalid.
    pub fn put_topic_permission(
        &mut self,
        (user, vhost, exchange): (&str, &str, &str),
        permission: TopicPermission,
    ) -> Result<bool, AccessError> {
        self.check_both(user, vhost)?;
        check_name("exchange", exchange)?;
        self.put(&[user, vhost, exchange], &permission);
        self.touched.insert(user.to_owned());
        let key = (user.to_owned(), vhost.to_owned(), exchange.to_owned());
        Ok(self.objects.topic_permissions.insert(key, Arc::new(permission)).is_none())
    }

    /// Deletes the rights of a user by routing key, of one exchange or of all.
    ///
    /// # Errors
    /// The user has no such rights.
    pub fn delete_topic_permissions(
        &mut self,
        user: &str,
        vhost: &str,
        exchange: Option<&str>,
    ) -> Result<(), AccessError> {
        let of_user = self.objects.topic_permissions_of(user, vhost).map(|(exchange, _)| exchange.clone());
        let gone: Vec<String> = of_user.filter(|known| exchange.is_none_or(|name| name == known)).collect();
        if gone.is_empty() {
            return Err(AccessError::Missing("topic permission of", format!("{user} in {vhost}")));
        }
        for exchange in gone {
            self.remove::<TopicPermission>(&[user, vhost, &exchange]);
            self.objects.topic_permissions.remove(&(user.to_owned(), vhost.to_owned(), exchange));
        }
        self.touched.insert(user.to_owned());
        Ok(())
    }

    /// Sets the description, tags and limits of a vhost; returns whether the vhost is new. A new vhost gets a number.
    ///
    /// # Errors
    /// The name is invalid, or there are too many vhosts.
    pub fn put_vhost(&mut self, name: &str, facts: VhostFacts) -> Result<bool, AccessError> {
        check_name("vhost", name)?;
        let known = self.objects.vhosts.get(name).map(|facts| facts.id);
        let last = self.objects.vhosts.values().map(|facts| facts.id).max();
        let id = known.unwrap_or_else(|| last.map_or(0, |last| last.saturating_add(1)));
        if known.is_none() {
            if self.objects.vhosts.len() >= VHOSTS_MAX {
                let text =
                    format!("there are `{VHOSTS_MAX}` vhosts, as many as there may be; delete one first");
                return Err(AccessError::Bad(text));
            }
            let value = Some(Bytes::copy_from_slice(&id.to_le_bytes()));
            let key = Bytes::copy_from_slice(name.as_bytes());
            self.changes.push(Change { table: Table::Vhosts, key, value });
        }
        self.put(&[name], &facts);
        self.objects.vhosts.insert(name.to_owned(), Arc::new(VhostFacts { id, ..facts }));
        Ok(known.is_none())
    }

    /// Deletes a vhost with its policies and all permissions in it.
    ///
    /// # Errors
    /// There is no such vhost.
    pub fn delete_vhost(&mut self, name: &str) -> Result<(), AccessError> {
        self.objects.vhosts.remove(name).ok_or_else(|| AccessError::Missing("vhost", name.to_owned()))?;
        let key = Bytes::copy_from_slice(name.as_bytes());
        self.changes.push(Change { table: Table::Vhosts, key, value: None });
        self.remove::<VhostFacts>(&[name]);
        self.forget_permissions(|_, vhost| vhost == name);
        // A later vhost may reuse the number, so the rights of these users are compiled again.
        let at_home = self.objects.users.iter().filter(|(_, user)| user.vhost.as_deref() == Some(name));
        self.touched.extend(at_home.map(|(user, _)| user.clone()));
        let policies = self.objects.policies.keys().filter(|(_, vhost, _)| vhost == name);
        for (kind, vhost, policy) in policies.cloned().collect::<Vec<_>>() {
            self.delete_policy(kind, &vhost, &policy)?;
        }
        Ok(())
    }

    /// Sets a policy of a vhost; returns whether the policy is new.
    ///
    /// # Errors
    /// There is no such vhost, the policy is invalid, or the vhost has too many policies of this kind.
    pub fn put_policy(
        &mut self,
        (kind, vhost, name): (PolicyKind, &str, &str),
        row: PolicyRow,
    ) -> Result<bool, AccessError> {
        check_name(kind.word(), name)?;
        if !self.objects.vhosts.contains_key(vhost) {
            return Err(AccessError::Missing("vhost", vhost.to_owned()));
        }
        let compiled = row.compile(kind, name)?;
        let key = (kind, vhost.to_owned(), name.to_owned());
        let count = self.objects.policies_of_kind(kind, vhost).count();
        if count >= POLICIES_PER_VHOST_MAX && !self.objects.policies.contains_key(&key) {
            let (word, vhost) = (kind.word(), vhost.escape_debug());
            return Err(AccessError::Bad(format!(
                "vhost `{vhost}` has `{POLICIES_PER_VHOST_MAX}` of this kind, as many as there may be; delete a {word} first"
            )));
        }
        self.put_row(kind.row_kind(), &[vhost, name], &row);
        Ok(self.objects.policies.insert(key, Arc::new(SetPolicy { row, compiled })).is_none())
    }

    /// Deletes a policy.
    ///
    /// # Errors
    /// There is no policy of this kind and name.
    pub fn delete_policy(&mut self, kind: PolicyKind, vhost: &str, name: &str) -> Result<(), AccessError> {
        let removed = self.objects.policies.remove(&(kind, vhost.to_owned(), name.to_owned()));
        removed.ok_or_else(|| AccessError::Missing(kind.word(), name.to_owned()))?;
        self.remove_row(kind.row_kind(), &[vhost, name]);
        Ok(())
    }

    fn forget_permissions(&mut self, is_gone: impl Fn(&str, &str) -> bool) {
        let permissions = self.objects.permissions.keys().filter(|(user, vhost)| is_gone(user, vhost));
        for (user, vhost) in permissions.cloned().collect::<Vec<_>>() {
            self.remove::<Permission>(&[&user, &vhost]);
            self.touched.insert(user.clone());
            self.objects.permissions.remove(&(user, vhost));
        }
        let topics = self.objects.topic_permissions.keys().filter(|(user, vhost, _)| is_gone(user, vhost));
        for (user, vhost, exchange) in topics.cloned().collect::<Vec<_>>() {
            self.remove::<TopicPermission>(&[&user, &vhost, &exchange]);
            self.touched.insert(user.clone());
            self.objects.topic_permissions.remove(&(user, vhost, exchange));
        }
    }

    fn check_both(&self, user: &str, vhost: &str) -> Result<(), AccessError> {
        if !self.objects.users.contains_key(user) {
            return Err(AccessError::Missing("user", user.to_owned()));
        }
        if !self.objects.vhosts.contains_key(vhost) {
            return Err(AccessError::Missing("vhost", vhost.to_owned()));
        }
        Ok(())
    }

    fn put<T: Object>(&mut self, parts: &[&str], value: &T) {
        self.put_row(T::KIND, parts, value);
    }

    fn put_row(&mut self, kind: &str, parts: &[&str], value: &impl Serialize) {
        // Plain data with text keys always serializes to JSON.
        let value = serde_json::to_vec(value).unwrap_or_default();
        let key = row_key(kind, parts).into();
        self.changes.push(Change { table: Table::Objects, key, value: Some(value.into()) });
    }

    fn remove<T: Object>(&mut self, parts: &[&str]) {
        self.remove_row(T::KIND, parts);
    }

    fn remove_row(&mut self, kind: &str, parts: &[&str]) {
        let key = row_key(kind, parts).into();
        self.changes.push(Change { table: Table::Objects, key, value: None });
    }
}

/// Hashes a password, with SCRAM keys if `makes_scram_keys`. `None` if the system has no random bytes.
pub(super) fn hash(password: &[u8], makes_scram_keys: bool) -> Option<PasswordHash> {
    let hash = credentials::hash(password)?;
    match makes_scram_keys {
        true => Some(hash.with_scram(Some(ScramKeys::of(password)?))),
        false => Some(hash),
    }
}

/// Whether a hash has not the form of one that is made now.
pub(super) fn lacks_form(hash: &PasswordHash, makes_scram_keys: bool) -> bool {
    hash.is_foreign() || makes_scram_keys && hash.scram().is_none()
}

/// Refuses names that are empty, too long, or have control characters: a zero byte ends each part of a row's key.
fn check_name(kind: &str, name: &str) -> Result<(), AccessError> {
    if name.is_empty() || name.len() > OBJECT_NAME_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(AccessError::Bad(format!(
            "`{}` cannot be the name of a {kind}; use 1 to {OBJECT_NAME_BYTES_MAX} bytes without control characters",
            name.escape_debug()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_user_of_a_reserved_name_is_changed_and_no_new_one_is_made() {
        let mut objects = Objects::default();
        objects.users.insert(String::from("amq.old"), Arc::default());
        let mut draft = Draft::of(&objects, false);
        let tagged = User { tags: vec![String::from("monitoring")], ..User::default() };
        assert_eq!(draft.put_user("amq.old", tagged), Ok(false));
        draft.delete_user("amq.old").unwrap();
        for name in ["amq.old", "operator", "imori.new"] {
            let Err(AccessError::Bad(why)) = draft.put_user(name, User::default()) else {
                panic!("`{name}` is made");
            };
            assert!(why.contains(&format!("user `{name}`")), "{why}");
        }
    }

    #[test]
    fn a_password_has_a_longest_length() {
        let draft = Draft::of(&Objects::default(), false);
        assert!(draft.hash("u", &"x".repeat(PASSWORD_BYTES_MAX)).is_ok());
        assert!(matches!(draft.hash("u", &"x".repeat(PASSWORD_BYTES_MAX + 1)), Err(AccessError::Bad(_))));
    }
}
