//! A running broker whose users a test creates and changes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use imori_core::authorize::{Grants, Identity, Rights, Tags};
use imori_core::id::VhostId;
use imori_core::login::{Credentials, Login, Verdict};
use imori_core::name::Name;
use imori_server::config::{Config, ProtocolName, Service};
use imori_server::login::Authenticator;
use imori_server::{LiveUsers, Server};
use tempfile::TempDir;

/// A broker with one vhost, `/`, that stops on drop.
pub(crate) struct Broker {
    server: Option<Server>,
    users: Arc<Users>,
    _data: TempDir,
}

/// Users whose passwords equal their names.
#[derive(Default)]
struct Users {
    identities: Mutex<BTreeMap<Name, Identity>>,
    /// Held by a test to delay logins.
    gate: Mutex<()>,
}

impl Authenticator for Users {
    fn verify_now(&self, login: &Login) -> Option<Verdict> {
        // Users with this prefix are checked off the cell.
        let Credentials::Password { user: Some(user), .. } = &login.credentials else {
            return Some(Verdict::Refused);
        };
        (!user.starts_with(b"slow")).then(|| self.verdict(user))
    }

    fn verify(&self, login: &Login) -> Verdict {
        let Credentials::Password { user: Some(user), .. } = &login.credentials else {
            return Verdict::Refused;
        };
        let verdict = self.verdict(user);
        drop(self.gate.lock().unwrap());
        verdict
    }
}

impl Users {
    fn verdict(&self, user: &[u8]) -> Verdict {
        let identities = self.identities.lock().unwrap();
        identities.get(&Name::new(user)).cloned().map_or(Verdict::Refused, Verdict::Granted)
    }
}

/// Grants for all names.
pub(crate) fn all() -> Grants {
    let all = || String::from(".*");
    Grants { configure: all(), write: all(), read: all(), ..Grants::default() }
}

impl Broker {
    pub(crate) fn start() -> Broker {
        let data = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.broker.data_dir = data.path().to_owned();
        let any = || vec!["127.0.0.1:0".parse().expect("an address")];
        config.listeners.stomp = any();
        config.listeners.nats = any();
        config.listeners.amqp = any();
        config.listeners.ws = Vec::new();
        config.listeners.nats_monitor = Vec::new();
        config.listeners.automation = Vec::new();
        config.listeners.admin = Vec::new();
        config.cells.count = 2;
        // Spreads the connections over all cells.
        config.cells.busy_percent = 1;
        let users = Arc::new(Users::default());
        let server =
            Server::start_with_authenticator(&config, Arc::clone(&users) as Arc<dyn Authenticator>).unwrap();
        Broker { server: Some(server), users, _data: data }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs until it is dropped")
    }

    pub(crate) fn address(&self, protocol: ProtocolName) -> SocketAddr {
        let listeners = self.server().listeners();
        let found = listeners.iter().find(|listener| listener.name.service == Service::Messages(protocol));
        found.expect("each protocol has a listener").address
    }

    pub(crate) fn live_users(&self) -> LiveUsers {
        self.server().live_users()
    }

    /// Creates or changes a user, and tells its connections.
    pub(crate) fn set(&self, user: &str, grants: &Grants) {
        let user = Name::from(user);
        let vhost = (VhostId(0), &Name::from("/"), grants);
        let rights = Rights::new(&user, Tags::NONE, [vhost]).unwrap();
        self.renew(&user, Some(Identity { user: user.clone(), rights: rights.into() }));
    }

    /// Revokes a user's access to all vhosts.
    pub(crate) fn set_outside(&self, user: &str) {
        let user = Name::from(user);
        let rights = Rights::new(&user, Tags::NONE, []).unwrap();
        self.renew(&user, Some(Identity { user: user.clone(), rights: rights.into() }));
    }

    pub(crate) fn remove(&self, user: &str) {
        self.renew(&Name::from(user), None);
    }

    fn renew(&self, user: &Name, identity: Option<Identity>) {
        let mut identities = self.users.identities.lock().unwrap();
        match &identity {
            Some(identity) => identities.insert(user.clone(), identity.clone()),
            None => identities.remove(user),
        };
        drop(identities);
        self.live_users().renew_identity(user, identity);
    }

    /// Delays slow logins while `f` runs.
    pub(crate) fn while_logins_wait(&self, f: impl FnOnce()) {
        let gate = self.users.gate.lock().unwrap();
        f();
        drop(gate);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let stop = server.stop_handle();
            stop.stop();
            stop.stop();
            server.join().unwrap();
        }
    }
}
