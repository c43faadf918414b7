//! The stores on which tests run: a file, and a schema on the server of `IMORI_TEST_POSTGRES`, if it is set.

use std::env;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use imori_engine::for_tests::{Location, Postgres, Role, Sqlite, StoreConnection};
use imori_engine::{Finding, ServerAddress, check_store};
use tempfile::TempDir;

/// The variable with the address of a server, such as `postgres://user:password@host/database`.
const VARIABLE: &str = "IMORI_TEST_POSTGRES";

/// An empty store for one test.
pub(crate) struct Trial {
    folder: TempDir,
    pub(crate) location: Location,
    schema: Option<Schema>,
}

/// A schema of its own on the server.
struct Schema {
    server: ServerAddress,
    name: String,
    /// The address of the server with this schema.
    url: String,
}

impl Trial {
    /// One of each kind.
    pub(crate) fn all() -> Vec<Trial> {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::File(folder.path().join("state.db"));
        let mut trials = vec![Trial { folder, location, schema: None }];
        trials.extend(Trial::server());
        trials
    }

    /// One on the server, if there is one.
    pub(crate) fn server() -> Option<Trial> {
        env::var(VARIABLE).ok().map(|url| Trial::on_server(&url))
    }

    fn on_server(url: &str) -> Trial {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("trial_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let server = ServerAddress::parse(url, None).unwrap();
        outside(&server, &format!("CREATE SCHEMA {name}"));
        let mark = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{mark}application_name={name}&options=-csearch_path%3D{name}");
        let location = Location::Server(Box::new(ServerAddress::parse(&url, None).unwrap()));
        Trial { folder: tempfile::tempdir().unwrap(), location, schema: Some(Schema { server, name, url }) }
    }

    fn schema(&self) -> &Schema {
        self.schema.as_ref().expect("the store is on a server")
    }

    /// Another connection to the server's store that has to be made yet.
    pub(crate) fn unconnected(&self) -> Postgres {
        unconnected(&self.schema().url)
    }

    /// The same by way of another host and port.
    pub(crate) fn unconnected_by(&self, host: &str) -> Postgres {
        let url = &self.schema().url;
        unconnected(&url.replacen(self.host(), host, 1))
    }

    /// The server's host and port, as its address has them.
    pub(crate) fn host(&self) -> &str {
        let after_user = self.schema().url.split_once('@').expect("the address names a user").1;
        after_user.split('/').next().unwrap()
    }

    /// Ends all connections to the server's store.
    pub(crate) fn cut(&self) {
        let Schema { server, name, .. } = self.schema();
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name";
        outside(server, &format!("{sql} = '{name}'"));
    }

    /// What is wrong in the store.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let server = match &self.location {
            Location::File(_) => None,
            Location::Server(address) => Some(&**address),
        };
        let look = || check_store(self.folder.path(), server).unwrap();
        thread::scope(|scope| scope.spawn(look).join()).unwrap()
    }

    /// Whether the store is a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.location, Location::File(_))
    }

    /// The connection that writes, without the threads of a database.
    pub(crate) fn writing(&self) -> Box<dyn StoreConnection> {
        match &self.location {
            Location::File(path) => Box::new(Sqlite::writing(path).unwrap()),
            Location::Server(address) => {
                let store = Postgres::new(address, Role::Writer).unwrap();
                store.reconnect().unwrap();
                Box::new(store)
            }
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(Schema { server, name, .. }) = &self.schema {
            outside(server, &format!("DROP SCHEMA {name} CASCADE"));
        }
    }
}

/// Runs a statement without values.
pub(crate) fn execute(store: &dyn StoreConnection, sql: &str) {
    store.query(sql, &[], &mut |_| Ok(ControlFlow::Continue(()))).unwrap();
}

fn unconnected(url: &str) -> Postgres {
    Postgres::new(&ServerAddress::parse(url, None).unwrap(), Role::Writer).unwrap()
}

/// Runs a statement in no store. A thread of its own may wait, also for a test that is a task.
fn outside(server: &ServerAddress, sql: &str) {
    let run = || {
        let connection = Postgres::new(server, Role::Reader).unwrap();
        connection.has_store().unwrap();
        execute(&connection, sql);
    };
    thread::scope(|scope| scope.spawn(run).join()).unwrap();
}
