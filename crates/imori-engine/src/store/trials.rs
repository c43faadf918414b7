//! The stores on which the units are tested: a file, and a schema on the server of `IMORI_TEST_POSTGRES`, if it is set.

use std::env;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use tempfile::TempDir;

use super::check::{Finding, check};
use super::location::Location;
use crate::postgres::{Postgres, Role, ServerAddress};
use crate::sql::StoreConnection;
use crate::sqlite::Sqlite;

/// The variable with the address of a server, such as `postgres://user:password@host/database`.
const VARIABLE: &str = "IMORI_TEST_POSTGRES";

/// An empty store for one test.
pub(super) struct Trial {
    _folder: TempDir,
    pub(super) location: Location,
    schema: Option<(ServerAddress, String)>,
}

/// A connection that writes, and runs any statement.
pub(super) enum Writing {
    File(Sqlite),
    Server(Box<Postgres>),
}

impl Trial {
    /// One of each kind.
    pub(super) fn all() -> Vec<Trial> {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::File(folder.path().join("automation/state.db"));
        let mut trials = vec![Trial { _folder: folder, location, schema: None }];
        if let Ok(url) = env::var(VARIABLE) {
            trials.push(Trial::on_server(&url));
        }
        trials
    }

    fn on_server(url: &str) -> Trial {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let schema = format!("trial_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let address = ServerAddress::parse(url, None).unwrap();
        outside(&address, &format!("CREATE SCHEMA {schema}"));
        let mark = if url.contains('?') { '&' } else { '?' };
        let inside = format!("{url}{mark}application_name={schema}&options=-csearch_path%3D{schema}");
        let location = Location::Server(Box::new(ServerAddress::parse(&inside, None).unwrap()));
        Trial { _folder: tempfile::tempdir().unwrap(), location, schema: Some((address, schema)) }
    }

    /// One on the server, if there is one.
    pub(super) fn server() -> Option<Trial> {
        env::var(VARIABLE).ok().map(|url| Trial::on_server(&url))
    }

    /// Another connection to the server's store that has to be made yet.
    pub(super) fn unconnected(&self) -> Postgres {
        let Location::Server(address) = &self.location else { panic!("the store is a file") };
        Postgres::new(address, Role::Writer).unwrap()
    }

    /// Ends all connections to the server's store.
    pub(super) fn cut(&self) {
        if let Some((address, schema)) = &self.schema {
            let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name";
            outside(address, &format!("{sql} = '{schema}'"));
        }
    }

    /// What is wrong in the store.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let look = || check(&self.location, |_| false).unwrap();
        thread::scope(|scope| scope.spawn(look).join()).unwrap()
    }

    /// Whether the store is a file.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.location, Location::File(_))
    }

    /// The connection that writes, without the threads of a database.
    pub(super) fn writing(&self) -> Writing {
        match &self.location {
            Location::File(path) => {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                Writing::File(Sqlite::writing(path).unwrap())
            }
            Location::Server(address) => {
                let store = Postgres::new(address, Role::Writer).unwrap();
                store.reconnect().unwrap();
                Writing::Server(Box::new(store))
            }
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some((address, schema)) = &self.schema {
            outside(address, &format!("DROP SCHEMA {schema} CASCADE"));
        }
    }
}

/// Runs a statement in no store. A thread of its own may wait, also for a test that is a task.
fn outside(address: &ServerAddress, sql: &str) {
    let run = || {
        let connection = Postgres::new(address, Role::Reader).unwrap();
        connection.has_store().unwrap();
        connection.execute(sql);
    };
    thread::scope(|scope| scope.spawn(run).join()).unwrap();
}

impl Writing {
    /// The connection.
    pub(super) fn store(&self) -> &dyn StoreConnection {
        match self {
            Writing::File(store) => store,
            Writing::Server(store) => &**store,
        }
    }

    /// Runs statements without values.
    pub(super) fn execute(&self, sql: &str) {
        match self {
            Writing::File(store) => store.execute(sql),
            Writing::Server(store) => store.execute(sql),
        }
    }
}
