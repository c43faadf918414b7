//! The address of a store on a server.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::{Client, Config, Connection, NoTls};

use super::fault::reason;
use super::tls::Tls;
use crate::limits::{STORE_CONNECT_TIME, STORE_SILENCE_MAX};
use crate::sql::StoreError;

/// The address of a store on a PostgreSQL server, with user and password.
#[derive(Clone)]
pub struct ServerAddress {
    config: Config,
    tls: Option<Tls>,
}

impl ServerAddress {
    /// Reads an address such as `postgres://user:password@host/database`, with the options that libpq knows after a `?`.
    /// A server on another host is asked for TLS unless the address says `sslmode=disable`; its certificate is verified
    /// by the CAs in the file `ca`, or else by the system's.
    ///
    /// # Errors
    /// The address or the file is wrong, as a sentence without the password.
    pub fn parse(text: &str, ca: Option<&Path>) -> Result<ServerAddress, String> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(String::from("an address begins with `postgres://`"));
        }
        let mut config: Config = text.parse().map_err(|error: tokio_postgres::Error| reason(&error))?;
        if config.get_hosts().is_empty() {
            return Err(String::from(
                "the address names no host; write `postgres://user:password@host/database`",
            ));
        }
        if config.get_user().is_none() {
            return Err(String::from(
                "the address names no user; write `postgres://user:password@host/database`",
            ));
        }
        let is_here = config.get_hosts().iter().all(is_this_machine);
        let tls = match config.get_ssl_mode() {
            SslMode::Disable => None,
            SslMode::Prefer if is_here => None,
            _ => Some(Tls::trusting(ca)?),
        };
        config.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
        if config.get_application_name().is_none() {
            config.application_name("imori");
        }
        // A standby would refuse what the automation writes.
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.connect_timeout(STORE_CONNECT_TIME);
        config.keepalives_idle(STORE_SILENCE_MAX / 2);
        config.keepalives_interval(STORE_SILENCE_MAX / 6);
        config.keepalives_retries(3);
        config.tcp_user_timeout(STORE_SILENCE_MAX);
        Ok(ServerAddress { config, tls })
    }

    /// Connects; the connection is driven by the current runtime.
    pub(super) async fn connect(&self) -> Result<Client, StoreError> {
        let unreachable = |error: tokio_postgres::Error| StoreError::Unreachable(reason(&error));
        match &self.tls {
            None => Ok(driven(self.config.connect(NoTls).await.map_err(unreachable)?)),
            Some(tls) => Ok(driven(self.config.connect(tls.clone()).await.map_err(unreachable)?)),
        }
    }
}

fn driven<S, T>((client, connection): (Client, Connection<S, T>)) -> Client
where
    Connection<S, T>: Future<Output = Result<(), tokio_postgres::Error>> + Send + 'static,
{
    // How it ends is told to its requests.
    tokio::spawn(async move { drop(connection.await) });
    client
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAddress")
            .field("hosts", &self.config.get_hosts())
            .field("has_tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}
