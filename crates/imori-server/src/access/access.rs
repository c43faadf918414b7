//! The current objects, the only way to change them, and the login decisions based on them.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};
use std::time::Instant;

use arc_swap::ArcSwap;
use imori_core::authorize::{Actor, Identity, Rights, Tag, Tags};
use imori_core::id::VhostId;
use imori_core::login::{BUILT_IN_USER, Credentials, Login, SCRAM_BYTES, ScramParameters, Verdict};
use imori_core::name::Name;
use imori_store::definitions::Change;
use tracing::{debug, info, warn};

use super::attempts::Attempts;
use super::draft::{Author, Draft, hash, lacks_form};
use super::file_objects::FileObjects;
use super::login_index::{LoginIndex, lacks_scram_keys};
use super::objects::{Objects, User};
use super::operator::{OPERATOR, is_reserved};
use super::policy::{PolicyKind, SetPolicy};
use super::quotas::{Quota, Quotas};
use super::refusal::AccessError;
use super::store_marks::StoreMarks;
use super::verified::Verified;
use crate::clock::Clock;
use crate::config::GuestLogin;
use crate::credentials::{self, PasswordHash, Scram, ScramKeys, ScramSecret, digest, is_signed};
use crate::jwt::{Issuer, looks_like_token};
use crate::limits::USERS_NAMED_MAX;
use crate::login::{Authenticator, BuiltInUser, is_equal};
use crate::peers::log_limit::PeerLogLimit;
use crate::quotas::{Rate, Rates};
use crate::slots::unpoisoned;
use crate::store::DefinitionRows;

/// The user that the first start creates.
pub(super) const FIRST_USER: &str = "admin";

/// Gives the live connections of a user its new identity; `None` if it has none any more.
pub(crate) type Renew = Box<dyn Fn(&Name, Option<&Identity>) + Send + Sync>;

/// Applies limits that may have changed.
pub(crate) type Limit = Box<dyn Fn(&Access) + Send + Sync>;

/// Users, vhosts and permissions.
pub struct Access {
    state: ArcSwap<State>,
    rows: DefinitionRows,
    /// Held during a change, so that changes run one after the other.
    changing: Mutex<()>,
    verified: Option<Verified>,
    attempts: Attempts,
    issuer: Option<Issuer>,
    /// Limits the log lines about refused tokens.
    token_log: PeerLogLimit,
    clock: Clock,
    renew: OnceLock<Renew>,
    limit: OnceLock<Limit>,
    /// Number of changes so far.
    changes: AtomicU64,
    operator_password: OnceLock<String>,
    /// Users were lost: only the operator may log in.
    awaits_recovery: AtomicBool,
}

/// A snapshot of the objects, and what is derived from them.
#[derive(Debug, Clone)]
struct State {
    guest: GuestLogin,
    /// Absent if SCRAM is not offered.
    scram: Option<Scram>,
    /// The part of the objects that belongs to the definitions file.
    file: FileObjects,
    objects: Objects,
    identities: HashMap<String, Identity>,
    index: LoginIndex,
    quotas: Quotas,
    is_guest_there: bool,
}

impl State {
    /// Grants the identity of `user`; refuses if there is no such user.
    fn granted(&self, user: Option<&str>) -> Verdict {
        let identity = user.and_then(|user| self.identities.get(user));
        identity.cloned().map_or(Verdict::Refused, Verdict::Granted)
    }

    /// The SCRAM keys of a user; `None` without keys, or if SCRAM is not offered.
    fn scram_keys(&self, user: &[u8]) -> Option<&ScramKeys> {
        let scram = self.scram.as_ref()?;
        if user == BUILT_IN_USER && self.is_guest_there {
            return Some(scram.built_in());
        }
        self.objects.users.get(str::from_utf8(user).ok()?)?.password.as_ref()?.scram()
    }
}

/// A change that passed all checks, before it is stored.
struct Checked<R> {
    result: R,
    /// The objects after the change.
    objects: Objects,
    identities: HashMap<String, Identity>,
    /// The rows to write.
    changes: Vec<Change>,
    touched: BTreeSet<String>,
    file: FileObjects,
}

impl<R> Checked<R> {
    /// Edits the objects and checks the change as a whole.
    fn of(
        before: &State,
        edit: impl FnOnce(&mut Draft) -> Result<R, AccessError>,
    ) -> Result<Checked<R>, AccessError> {
        let mut draft = Draft::of(&before.objects, before.scram.is_some());
        let result = edit(&mut draft)?;
        let Draft { objects, changes, touched, author, .. } = draft;
        let file = match author {
            Author::File(file) => file,
            Author::Broker => before.file.clone(),
            Author::Operator => {
                before.file.refuse(&before.objects, &objects, &touched)?;
                before.file.clone()
            }
        };
        // Without an administrator, the broker could not be administered any more.
        if has_administrator(&before.objects) && !has_administrator(&objects) {
            let text =
                "the last user with the tag `administrator` has to stay; give the tag to another user first";
            return Err(AccessError::bad(text));
        }
        let mut identities = before.identities.clone();
        for user in &touched {
            identities.remove(user);
            if objects.users.contains_key(user) {
                identities.insert(user.clone(), identity(&objects, user)?);
            }
        }
        Ok(Checked { result, objects, identities, changes, touched, file })
    }
}

impl Rates for Access {
    fn version(&self) -> u64 {
        self.changes()
    }

    fn find(&self, actor: &Actor<'_>) -> [Option<Arc<Rate>>; 2] {
        [self.user_quota(&actor.identity.user).rate, self.vhost_quota(actor.vhost).rate]
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// Hash checked for unknown users, so that their logins take as long as those of others (SECURITY AUTH-09).
static NOBODYS_HASH: LazyLock<Option<PasswordHash>> =
    LazyLock::new(|| credentials::hash(b"nobody's password"));

impl Access {
    /// The identity of a user, without a login; `None` without such a user.
    pub fn identity_of(&self, user: &str) -> Option<Identity> {
        let state = self.state.load();
        let built_in = || (user.as_bytes() == BUILT_IN_USER && state.is_guest_there).then(Identity::guest);
        state.identities.get(user).cloned().or_else(built_in)
    }

    /// The name and the id of a user, by which what acts in its name refers to it; `None` without such a user.
    pub fn maker_of(&self, user: &str) -> Option<String> {
        self.identity_of(user)?;
        let id = self.user(user).map(|stored| stored.id.clone()).unwrap_or_default();
        Some(format!("{id} {user}"))
    }

    /// The present identity of the user that [`Access::maker_of`] named; `None` once that user is deleted, even if another
    /// user has the same name now.
    pub fn identity_of_maker(&self, maker: &str) -> Option<Identity> {
        let (id, user) = maker.split_once(' ')?;
        let is_same = self.user(user).map_or(id.is_empty(), |stored| stored.id == id);
        self.identity_of(user).filter(|_| is_same)
    }

    /// Starts with the objects read from the store. A user whose permissions cannot be compiled has no rights.
    pub(crate) fn of(
        objects: Objects,
        rows: DefinitionRows,
        guest: GuestLogin,
        issuer: Option<Issuer>,
        clock: Clock,
    ) -> Access {
        let compile = |name: &String| {
            let identity = identity(&objects, name).unwrap_or_else(|error| {
                warn!(user = %name.escape_debug(), %error, "the rights of a user cannot be read; it has none");
                without_rights(name)
            });
            (name.clone(), identity)
        };
        let identities = objects.users.keys().map(compile).collect();
        for name in objects.users.keys().filter(|name| is_reserved(name)) {
            warn!(
                user = %name.escape_debug(),
                "a user has a name of the broker's own and stays as an earlier version stored it; make a user of another \
                 name and delete this one with `imori user delete`"
            );
        }
        let is_guest_there = is_guest_there(guest, &objects);
        let (index, quotas) = (LoginIndex::of(&objects), Quotas::of(&objects, &Quotas::default()));
        let verified = Verified::new();
        if verified.is_none() {
            warn!("the system has no random bytes; each login is checked by a slow hash");
        }
        Access {
            state: ArcSwap::from_pointee(State {
                guest,
                scram: None,
                file: FileObjects::default(),
                objects,
                identities,
                index,
                quotas,
                is_guest_there,
            }),
            rows,
            changing: Mutex::new(()),
            verified,
            attempts: Attempts::new(),
            issuer,
            token_log: PeerLogLimit::default(),
            clock,
            renew: OnceLock::new(),
            limit: OnceLock::new(),
            changes: AtomicU64::new(0),
            operator_password: OnceLock::new(),
            awaits_recovery: AtomicBool::new(false),
        }
    }

    /// Sets the callback that tells live connections about changes. Later calls have no effect.
    pub(crate) fn renew_with(&self, renew: Renew) {
        let _ = self.renew.set(renew);
    }

    /// Sets the callback that applies changed limits, and calls it. A later call only calls the first callback.
    pub(crate) fn limit_with(&self, limit: Limit) {
        self.limit.get_or_init(|| limit)(self);
    }

    /// Sets the password of the operator on this machine. Later calls have no effect.
    pub(crate) fn admit_operator(&self, password: String) {
        let _ = self.operator_password.set(password);
    }

    /// Refuses every login but the operator's until [`Access::recover`], because users were lost with the definitions.
    pub(crate) fn await_recovery(&self) {
        self.awaits_recovery.store(true, Ordering::Release);
    }

    /// Tells whether users were lost and only the operator may log in.
    pub fn awaits_recovery(&self) -> bool {
        self.awaits_recovery.load(Ordering::Acquire)
    }

    /// Lets users log in again, now and after each start. Blocks on the disk, so no cell may call it.
    ///
    /// # Errors
    /// [`AccessError::NotKept`]. Then nothing has changed.
    pub(crate) fn recover(&self) -> Result<(), AccessError> {
        if !self.rows.change(vec![Change::objects_recovered()]) {
            return Err(AccessError::NotKept);
        }
        self.awaits_recovery.store(false, Ordering::Release);
        Ok(())
    }

    /// What is known of the automation's store.
    pub fn store_marks(&self) -> StoreMarks {
        self.state.load().objects.store_marks.clone()
    }

    /// Keeps what is known of the automation's store. Blocks on the disk, so no cell may call it.
    ///
    /// # Errors
    /// [`AccessError::NotKept`]. Then nothing has changed.
    pub fn set_store_marks(&self, marks: StoreMarks) -> Result<(), AccessError> {
        self.change(|draft| {
            draft.author = Author::Broker;
            draft.put_store_marks(marks);
            Ok(())
        })
    }

    /// The current objects.
    pub fn objects(&self) -> Objects {
        self.state.load().objects.clone()
    }

    /// A stored user, by name.
    pub fn user(&self, name: &str) -> Option<Arc<User>> {
        self.state.load().objects.users.get(name).cloned()
    }

    /// A policy, by its kind, vhost and name.
    pub fn policy(&self, (kind, vhost, name): (PolicyKind, &str, &str)) -> Option<Arc<SetPolicy>> {
        let key = (kind, vhost.to_owned(), name.to_owned());
        self.state.load().objects.policies.get(&key).cloned()
    }

    /// Number of changes of users, vhosts and permissions so far.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The limits of a user.
    pub(crate) fn user_quota(&self, user: &Name) -> Quota {
        self.state.load().quotas.of_user(user)
    }

    /// The limits of a vhost.
    pub(crate) fn vhost_quota(&self, vhost: VhostId) -> Quota {
        self.state.load().quotas.of_vhost(vhost)
    }

    /// Number of users and vhosts with a limit on the publish rate.
    pub(crate) fn rates(&self) -> usize {
        self.state.load().quotas.rates()
    }

    /// The limit on message bytes, for each vhost that has one.
    pub(crate) fn bytes_max(&self) -> HashMap<VhostId, u64> {
        self.state.load().quotas.bytes()
    }

    /// Whether the built-in user `guest` may log in from this machine, because no other users were made yet or the
    /// settings say so.
    pub fn admits_guest(&self) -> bool {
        self.state.load().is_guest_there
    }

    /// Whether making this user would end the login of the built-in user, which is admitted now.
    pub fn ends_guest(&self, user: &str) -> bool {
        let state = self.state.load();
        let mut objects = state.objects.clone();
        objects.users.entry(user.to_owned()).or_default();
        state.is_guest_there && !is_guest_there(state.guest, &objects)
    }

    /// Sets when the built-in user exists. If it no longer does, its connections end.
    pub(crate) fn set_guest(&self, guest: GuestLogin) {
        let _changing = unpoisoned(self.changing.lock());
        let before = self.state.load_full();
        let is_there = is_guest_there(guest, &before.objects);
        self.replace(|state| (state.guest, state.is_guest_there) = (guest, is_there));
        if before.is_guest_there && !is_there {
            self.tell(&String::from_utf8_lossy(BUILT_IN_USER), before.identities.get("guest"));
        }
    }

    /// Sets whether clients may log in by SCRAM.
    ///
    /// # Errors
    /// The secret for SCRAM cannot be created or stored. Then nothing has changed.
    pub(crate) fn offer_scram(&self, is_offered: bool) -> Result<(), AccessError> {
        if is_offered && self.state.load().objects.scram_secret.is_none() {
            let secret = ScramSecret::make().ok_or(AccessError::NoRandomness)?;
            self.change(|draft| {
                draft.author = Author::Broker;
                draft.put_scram_secret(secret);
                Ok(())
            })?;
        }
        let _changing = unpoisoned(self.changing.lock());
        self.replace(|state| {
            let secret = state.objects.scram_secret.clone().filter(|_| is_offered);
            state.scram = secret.map(Scram::of);
        });
        Ok(())
    }

    /// Logs the users without SCRAM keys, because of which SCRAM is not offered.
    pub(crate) fn warn_of_missing_scram_keys(&self) {
        let state = self.state.load();
        if state.scram.is_none() {
            return;
        }
        let lacking = state.objects.users.iter().filter(|(_, user)| lacks_scram_keys(user));
        let names: Vec<_> = lacking.map(|(name, _)| name.escape_debug().to_string()).collect();
        if let Some(first) = names.get(..names.len().min(USERS_NAMED_MAX)).filter(|names| !names.is_empty()) {
            warn!(
                users = names.len(),
                first = first.join(", "),
                "SCRAM is not offered, as users cannot log in by SCRAM: set their passwords again, or let each log \
                 in once by PLAIN; a user with a token alone needs a password"
            );
        }
    }

    /// Lets operators change the objects that belonged to the definitions file.
    pub(crate) fn release_file(&self) {
        let _changing = unpoisoned(self.changing.lock());
        self.replace(|state| state.file = FileObjects::default());
    }

    /// The users that do not belong to the definitions file.
    pub(crate) fn users_beside_file(&self) -> Vec<String> {
        let state = self.state.load();
        state.objects.users.keys().filter(|user| !state.file.users.contains(*user)).cloned().collect()
    }

    fn replace(&self, edit: impl Fn(&mut State)) {
        self.state.rcu(|state| {
            let mut state = State::clone(state);
            edit(&mut state);
            state
        });
    }

    /// Changes objects: checks the change as a whole, makes it durable, and applies it to live connections. Blocks on
    /// the disk, so no cell may call it.
    ///
    /// # Errors
    /// The error of `edit`, a permission that is not a valid regular expression, or [`AccessError::NotKept`].
    pub fn change<R>(
        &self,
        edit: impl FnOnce(&mut Draft) -> Result<R, AccessError>,
    ) -> Result<R, AccessError> {
        let _changing = unpoisoned(self.changing.lock());
        let before = self.state.load_full();
        let Checked { result, objects, identities, changes, touched, file } = Checked::of(&before, edit)?;
        if !changes.is_empty() && !self.rows.change(changes) {
            return Err(AccessError::NotKept);
        }
        let is_guest_there = is_guest_there(before.guest, &objects);
        let (index, quotas) = (LoginIndex::of(&objects), Quotas::of(&objects, &before.quotas));
        let (guest, scram) = (before.guest, before.scram.clone());
        let after =
            Arc::new(State { guest, scram, file, objects, identities, index, quotas, is_guest_there });
        self.state.store(Arc::clone(&after));
        self.changes.fetch_add(1, Ordering::Release);
        if let Some(limit) = self.limit.get() {
            limit(self);
        }
        for user in &touched {
            self.verified.iter().for_each(|verified| verified.forget(user));
            self.tell(user, after.identities.get(user));
        }
        if before.is_guest_there && !after.is_guest_there {
            self.tell(&String::from_utf8_lossy(BUILT_IN_USER), after.identities.get("guest"));
        }
        Ok(result)
    }

    /// Checks a change without making it; also returns the identity that `user` would have after it, if such a user is
    /// stored then.
    ///
    /// # Errors
    /// As [`Access::change`].
    pub fn check_change<R>(
        &self,
        user: &str,
        edit: impl FnOnce(&mut Draft) -> Result<R, AccessError>,
    ) -> Result<(R, Option<Identity>), AccessError> {
        let mut checked = Checked::of(&self.state.load_full(), edit)?;
        Ok((checked.result, checked.identities.remove(user)))
    }

    fn tell(&self, user: &str, identity: Option<&Identity>) {
        if let Some(renew) = self.renew.get() {
            renew(&Name::from(user), identity);
        }
    }

    /// Replaces a hash made by another broker, or one without the SCRAM keys that are wanted, unless the hash was
    /// changed meanwhile.
    fn replace_hash(&self, user: &str, old: &PasswordHash, password: &[u8], makes_scram_keys: bool) {
        let Some(hash) = hash(password, makes_scram_keys).map(|hash| hash.rehashing(old)) else { return };
        let replaced = self.change(|draft| {
            let known = draft.objects.users.get(user).filter(|known| known.password.as_ref() == Some(old));
            let Some(mut changed) = known.map(|known| (**known).clone()) else { return Ok(()) };
            changed.password = Some(hash);
            draft.author = Author::Broker;
            draft.put_user(user, changed).map(drop)
        });
        if let Err(error) = replaced {
            warn!(user = %user.escape_debug(), %error, "the hash of a password stays as it was");
        }
    }

    /// Finds the user of a verified certificate: the user with this certificate name, else the user of this name if it
    /// has no certificate name. A client that asks for a user has to be that user (SECURITY AUTH-11).
    fn check_certificate(&self, login: &Login, wanted: Option<&[u8]>) -> Verdict {
        let named = login.certificate.as_ref().and_then(|certificate| certificate.user.as_deref());
        let Some(named) = named else { return Verdict::Refused };
        let state = self.state.load();
        let own = || {
            let (name, user) = state.objects.users.get_key_value(named)?;
            user.certificate.is_none().then_some(name.as_str())
        };
        let found = state.index.by_certificate(named).or_else(own);
        let is_wanted =
            |name: &&str| wanted.is_none_or(|wanted| wanted.is_empty() || wanted == name.as_bytes());
        state.granted(found.filter(is_wanted))
    }

    /// Finds the user of a token. A client that names a user has to be that user.
    fn check_token(&self, token: &[u8], named: Option<&str>) -> Verdict {
        let Some(digest) = digest(token) else { return Verdict::Refused };
        let state = self.state.load();
        let is_named = |name: &&str| named.is_none_or(|named| named == *name);
        state.granted(state.index.by_token(&digest).filter(is_named))
    }

    /// The issuer of access tokens, if one is trusted.
    pub(crate) fn issuer(&self) -> Option<&Issuer> {
        self.issuer.as_ref()
    }

    /// Tells whether this may be an access token, which is checked on a separate thread.
    fn may_be_jwt(&self, password: &[u8]) -> bool {
        self.issuer.is_some() && looks_like_token(password)
    }

    /// Verifies an access token, which states the identity of its bearer.
    fn check_jwt(&self, login: &Login, token: &[u8]) -> Verdict {
        let Some(issuer) = &self.issuer else { return Verdict::Refused };
        let state = self.state.load();
        let vhosts = state.objects.vhosts.iter().map(|(name, vhost)| (VhostId(vhost.id), name.as_str()));
        match issuer.check(token, vhosts) {
            Ok(identity) => Verdict::Granted(identity),
            Err(error) => {
                let from = login.source.unwrap_or(IpAddr::from(Ipv4Addr::UNSPECIFIED));
                if let Some(folded) = self.token_log.admit(from, self.clock.now()) {
                    info!(source = %from, %error, folded, "an access token is refused");
                }
                Verdict::Refused
            }
        }
    }

    /// Finds the user of a NATS public key, if the client signed the nonce with its private key.
    fn check_key(&self, key: &[u8], nonce: &[u8], signature: &[u8]) -> Verdict {
        if !is_signed(key, nonce, signature) {
            return Verdict::Refused;
        }
        let state = self.state.load();
        state.granted(state.index.by_nkey(key))
    }

    /// Checks a SCRAM proof. A user without keys takes as long as others (SECURITY AUTH-09).
    fn check_scram(&self, login: &Login, user: &[u8], messages: &[u8], proof: &[u8; SCRAM_BYTES]) -> Verdict {
        let state = self.state.load();
        let (Some(scram), Ok(name)) = (&state.scram, str::from_utf8(user)) else { return Verdict::Refused };
        let keys = state.scram_keys(user);
        if !keys.unwrap_or(scram.nobodys()).is_proved(messages, proof) {
            return Verdict::Refused;
        }
        match user == BUILT_IN_USER && state.is_guest_there {
            true if login.is_local => Verdict::Granted(Identity::guest()),
            true => Verdict::Refused,
            false => state.granted(Some(name)),
        }
    }

    /// Checks the operator's password; the operator may only log in from this machine.
    fn check_operator(&self, login: &Login) -> Verdict {
        let Credentials::Password { user: Some(user), password: Some(password) } = &login.credentials else {
            return Verdict::Refused;
        };
        let expected = self.operator_password.get().map(String::as_bytes).unwrap_or_default();
        let is_right = is_equal(password, expected) && !expected.is_empty();
        match is_right && **user == *OPERATOR.as_bytes() && login.is_local {
            true => Verdict::Granted(Identity::operator()),
            false => Verdict::Refused,
        }
    }

    /// Checks a password with a slow hash, even if the user does not exist.
    fn check(&self, user: &str, password: &[u8]) -> Verdict {
        let state = self.state.load_full();
        // The first check creates this hash, whether or not its user exists, so that timing reveals nothing.
        let nobodys = NOBODYS_HASH.as_ref();
        let hash = state.objects.users.get(user).and_then(|user| user.password.as_ref());
        // An empty password is never right.
        let is_right =
            hash.or(nobodys).is_some_and(|hash| credentials::verify(hash, password)) && !password.is_empty();
        let Some((hash, identity)) = hash.zip(state.identities.get(user)).filter(|_| is_right) else {
            return Verdict::Refused;
        };
        let makes_scram_keys = state.scram.is_some();
        if lacks_form(hash, makes_scram_keys) {
            self.replace_hash(user, hash, password, makes_scram_keys);
        }
        if let Some(verified) = &self.verified {
            verified.note(user, password, Instant::now());
            // A change of the user meanwhile called `forget` before this `note`, so forget again.
            if !Arc::ptr_eq(&state, &self.state.load()) {
                verified.forget(user);
            }
        }
        Verdict::Granted(identity.clone())
    }

    /// Decides a login; `None` if that takes a slow hash or the check of a token's signature.
    fn decide_now(&self, login: &Login, now: Instant) -> Option<Verdict> {
        if self.awaits_recovery() {
            return Some(self.check_operator(login));
        }
        let (user, password) = match &login.credentials {
            Credentials::Password { user, password } => (user, password),
            Credentials::Certificate { user } => return Some(self.check_certificate(login, user.as_deref())),
            Credentials::Token(token) => {
                let verdict = self.check_token(token, None);
                let is_slow = verdict == Verdict::Refused && self.may_be_jwt(token);
                return (!is_slow).then_some(verdict);
            }
            Credentials::Nkey { key, signature, nonce } => {
                return Some(self.check_key(key, nonce, signature));
            }
            Credentials::Scram { user, messages, proof } => {
                return Some(self.check_scram(login, user, messages, proof));
            }
            Credentials::Unsupported => return Some(Verdict::Refused),
        };
        let user = user.as_deref().unwrap_or(BUILT_IN_USER);
        let password = password.as_deref().unwrap_or(BUILT_IN_USER);
        let state = self.state.load();
        let Ok(name) = str::from_utf8(user) else { return Some(Verdict::Refused) };
        if user == BUILT_IN_USER && state.is_guest_there {
            return BuiltInUser.verify_now(login);
        }
        if name == OPERATOR {
            // A user that an earlier version stored under this name can log in too, but never locks the operator out.
            let verdict = self.check_operator(login);
            if verdict != Verdict::Refused || !state.objects.users.contains_key(OPERATOR) {
                return Some(verdict);
            }
        }
        // A token is accepted in place of its user's password.
        if let granted @ Verdict::Granted(_) = self.check_token(password, Some(name)) {
            return Some(granted);
        }
        if self.verified.as_ref().is_some_and(|verified| verified.has(name, password, now)) {
            return state.identities.get(name).cloned().map(Verdict::Granted);
        }
        None
    }

    /// Decides a login with a slow hash or the check of a signature.
    fn decide_slowly(&self, login: &Login) -> Verdict {
        let (user, password) = match &login.credentials {
            Credentials::Token(token) => return self.check_jwt(login, token),
            Credentials::Password { user, password } => (user, password),
            _ => return Verdict::Refused,
        };
        let password = password.as_deref().unwrap_or(BUILT_IN_USER);
        if self.may_be_jwt(password) {
            return self.check_jwt(login, password);
        }
        let Some(user) = user else { return Verdict::Refused };
        str::from_utf8(user).map_or(Verdict::Refused, |user| self.check(user, password))
    }

    /// The user whose password this login may be guessing. `None` for the operator: its password is 128 random bits,
    /// and a limit would let other processes on this machine lock the operator out.
    fn claimed<'a>(&self, login: &'a Login) -> Option<Cow<'a, str>> {
        claimed(login)
            .filter(|user| user != OPERATOR || self.state.load().objects.users.contains_key(OPERATOR))
    }

    /// Notes the outcome of a login, which limits the next ones.
    fn note(&self, login: &Login, claimed: Option<&str>, verdict: &Verdict) {
        let now = Instant::now();
        match (verdict, claimed) {
            (Verdict::Refused, Some(user)) => self.attempts.note(login.source, user, now),
            (Verdict::Refused, None) => self.attempts.note_source(login.source, now),
            (Verdict::Granted(_), Some(user)) => self.attempts.note_owner(login.source, user, now),
            (Verdict::Granted(_), None) | (Verdict::Busy, _) => {}
        }
    }
}

impl Authenticator for Access {
    /// Decides a login if that is quick. After too many wrong logins it refuses before comparing anything (SECURITY
    /// AUTH-09).
    fn verify_now(&self, login: &Login) -> Option<Verdict> {
        let (now, claimed) = (Instant::now(), self.claimed(login));
        let is_over = match &claimed {
            Some(user) => self.attempts.is_over(login.source, user, now),
            // An access token names its bearer only once it is verified, so the source is limited.
            None => {
                matches!(login.credentials, Credentials::Token(_))
                    && self.attempts.is_source_over(login.source, now)
            }
        };
        if is_over {
            let user = claimed.unwrap_or_default();
            debug!(user = %user.escape_debug(), "a login is refused unchecked: too many wrong ones came before");
            return Some(Verdict::Refused);
        }
        let verdict = self.decide_now(login, now)?;
        self.note(login, claimed.as_deref(), &verdict);
        Some(verdict)
    }

    fn verify(&self, login: &Login) -> Verdict {
        if let Some(verdict) = self.verify_now(login) {
            return verdict;
        }
        let verdict = self.decide_slowly(login);
        self.note(login, self.claimed(login).as_deref(), &verdict);
        verdict
    }

    fn scram_parameters(&self, user: &[u8]) -> Option<ScramParameters> {
        let state = self.state.load();
        // Computed for every name, so that timing reveals nothing.
        let nobodys = state.scram.as_ref()?.parameters(user);
        Some(state.scram_keys(user).map_or(nobodys, ScramKeys::parameters))
    }

    fn all_have_scram_keys(&self) -> bool {
        self.state.load().index.all_have_scram_keys()
    }

    fn scram_signature(&self, user: &[u8], messages: &[u8]) -> Option<[u8; SCRAM_BYTES]> {
        self.state.load().scram_keys(user).map(|keys| keys.signature(messages))
    }
}

/// The user that a login claims to be; for a token without a user its digest, because the token could be guessed.
/// `None` if nothing can be guessed, because the client proves a key.
fn claimed(login: &Login) -> Option<Cow<'_, str>> {
    match &login.credentials {
        Credentials::Password { user, .. } => {
            Some(String::from_utf8_lossy(user.as_deref().unwrap_or(BUILT_IN_USER)))
        }
        Credentials::Scram { user, .. } => Some(String::from_utf8_lossy(user)),
        Credentials::Token(token) => digest(token).map(Cow::Owned),
        Credentials::Certificate { .. } | Credentials::Nkey { .. } | Credentials::Unsupported => None,
    }
}

/// Compiles the rights of an existing user.
fn identity(objects: &Objects, user: &str) -> Result<Identity, AccessError> {
    let tags = objects.users.get(user).map(|user| user.tags()).unwrap_or_default();
    let in_vhost = objects.permissions_of(user).filter_map(|(vhost, permission)| {
        let id = VhostId(objects.vhosts.get(vhost)?.id);
        Some((id, Name::from(vhost.as_str()), permission.grants(objects.topic_permissions_of(user, vhost))))
    });
    let grants: Vec<_> = in_vhost.collect();
    let home = objects.users.get(user).and_then(|user| objects.vhosts.get(user.vhost.as_ref()?));
    let user = Name::from(user);
    let rights = Rights::new(&user, tags, grants.iter().map(|(id, name, grants)| (*id, name, grants)));
    let rights = rights.map_err(AccessError::bad)?;
    let rights = home.into_iter().fold(rights, |rights, home| rights.at_home(VhostId(home.id)));
    Ok(Identity { user, rights: Arc::new(rights) })
}

fn has_administrator(objects: &Objects) -> bool {
    objects.users.values().any(|user| user.tags().has(Tag::Administrator))
}

fn without_rights(user: &str) -> Identity {
    let user = Name::from(user);
    let rights = Rights::new(&user, Tags::NONE, []);
    rights.map_or_else(|_| Identity::nobody(), |rights| Identity { user, rights: Arc::new(rights) })
}

/// Whether the built-in user exists: as configured, unless a stored user has its name.
fn is_guest_there(guest: GuestLogin, objects: &Objects) -> bool {
    let mut others = objects.users.keys().filter(|name| *name != FIRST_USER);
    let is_replaced = objects.users.keys().any(|name| name.as_bytes() == BUILT_IN_USER);
    !is_replaced
        && match guest {
            GuestLogin::UntilUsers => others.next().is_none(),
            GuestLogin::Always => true,
            GuestLogin::Never => false,
        }
}
