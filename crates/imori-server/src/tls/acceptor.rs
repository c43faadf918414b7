//! The certificates in force, which can be replaced while sessions live.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;
use imori_core::certificate::Certificate;
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};
use tracing::{info, warn};

use super::files::{Stamp, TlsError, TlsFiles};
use super::identity::certificate;
use crate::config::UserFrom;
use crate::limits::TLS_FILES_LOOK;
use crate::slots::unpoisoned;

/// Starts TLS sessions with the certificates in force; existing sessions keep theirs.
#[derive(Debug)]
pub struct TlsAcceptor {
    current: ArcSwap<InForce>,
    watched: Mutex<Watched>,
}

#[derive(Debug)]
struct InForce {
    config: Arc<ServerConfig>,
    /// The same certificates and sessions, with the protocols of HTTP.
    http: Arc<ServerConfig>,
    user_from: UserFrom,
}

impl InForce {
    fn new(config: Arc<ServerConfig>, user_from: UserFrom) -> InForce {
        let mut http = ServerConfig::clone(&config);
        http.alpn_protocols = HTTP_PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        InForce { config, http: Arc::new(http), user_from }
    }
}

/// The protocols that a client of HTTP chooses from (RFC 7301), the preferred one first.
const HTTP_PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What the handshake of one connection of HTTP needs.
#[derive(Debug, Clone)]
pub struct TlsOffer {
    /// The certificates in force, with the protocols of HTTP to choose from (ALPN).
    pub config: Arc<ServerConfig>,
    user_from: UserFrom,
}

impl TlsOffer {
    /// The names in the certificate that the client has proved to own.
    pub fn certificate(&self, verified: &CertificateDer<'_>) -> Certificate {
        certificate(verified, self.user_from)
    }
}

/// Files that were read and verified but are not in force yet.
pub(crate) struct Renewal {
    config: Arc<ServerConfig>,
    files: TlsFiles,
    stamp: Stamp,
}

/// The files as last inspected.
#[derive(Debug)]
struct Watched {
    files: TlsFiles,
    /// Stamp of the files last read, valid or not.
    read: Stamp,
    /// Stamp of the last inspection.
    seen: Stamp,
    looked_at: Instant,
    is_renewal_refused: bool,
}

impl TlsAcceptor {
    /// Reads the files.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn start(files: TlsFiles) -> Result<TlsAcceptor, TlsError> {
        let stamp = files.stamp();
        let config = Arc::new(files.load(SystemTime::now())?);
        let current = InForce::new(config, files.user_from);
        let watched = Watched {
            files,
            read: stamp.clone(),
            seen: stamp,
            looked_at: Instant::now(),
            is_renewal_refused: false,
        };
        Ok(TlsAcceptor { current: ArcSwap::from_pointee(current), watched: Mutex::new(watched) })
    }

    /// Starts a session with a client that has sent nothing yet. Also returns the certificate field that names users.
    pub(super) fn accept(&self) -> Result<(ServerConnection, UserFrom), rustls::Error> {
        let current = self.current.load();
        Ok((ServerConnection::new(Arc::clone(&current.config))?, current.user_from))
    }

    /// The configuration for listeners that use a TLS library's own stream.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.load().config)
    }

    /// What a connection of HTTP needs that makes its handshake itself.
    pub(crate) fn offer(&self) -> TlsOffer {
        let current = self.current.load();
        TlsOffer { config: Arc::clone(&current.http), user_from: current.user_from }
    }

    /// Reads other files, or those in force again, without putting them in force.
    ///
    /// # Errors
    /// One of them cannot be used.
    pub(crate) fn read(&self, files: TlsFiles) -> Result<Renewal, TlsError> {
        let stamp = files.stamp();
        let config = Arc::new(files.load(SystemTime::now())?);
        Ok(Renewal { config, files, stamp })
    }

    /// Puts certificates in force. Existing sessions keep theirs.
    pub(crate) fn install(&self, renewal: Renewal) {
        let mut watched = unpoisoned(self.watched.lock());
        self.put(&mut watched, renewal);
    }

    fn put(&self, watched: &mut Watched, Renewal { config, files, stamp }: Renewal) {
        self.current.store(Arc::new(InForce::new(config, files.user_from)));
        (watched.files, watched.read) = (files, stamp.clone());
        watched.seen = stamp;
        watched.is_renewal_refused = false;
        info!("certificates were read again; new connections have them");
    }

    /// Starts sessions with another configuration from now on.
    #[cfg(test)]
    pub(crate) fn begin_with(&self, config: ServerConfig) {
        self.current.store(Arc::new(InForce::new(Arc::new(config), UserFrom::Nothing)));
    }

    /// Notes that the files of a reload cannot be used.
    pub(crate) fn refuse(&self, error: &TlsError) {
        unpoisoned(self.watched.lock()).refuse(error);
    }

    /// Checks the files for changes at intervals, and reads them all once they have stopped changing.
    pub(crate) fn look(&self) {
        let mut watched = unpoisoned(self.watched.lock());
        if watched.looked_at.elapsed() < TLS_FILES_LOOK {
            return;
        }
        watched.looked_at = Instant::now();
        let now = watched.files.stamp();
        let is_still = now == watched.seen;
        watched.seen = now;
        // A certificate and its key are two files, and both have to be in place.
        if !is_still || watched.seen == watched.read {
            return;
        }
        watched.read = watched.seen.clone();
        match self.read(watched.files.clone()) {
            Ok(renewal) => self.put(&mut watched, renewal),
            Err(error) => watched.refuse(&error),
        }
    }

    /// Whether the last renewal was refused because of unusable files.
    pub fn is_renewal_refused(&self) -> bool {
        unpoisoned(self.watched.lock()).is_renewal_refused
    }
}

impl Watched {
    fn refuse(&mut self, error: &TlsError) {
        self.is_renewal_refused = true;
        warn!(%error, "new certificates are not taken over; those in force stay");
    }
}
