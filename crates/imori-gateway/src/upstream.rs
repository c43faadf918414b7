//! Requests to other servers, over pooled connections of a worker.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::limits::CONNECT_MAX;
use crate::lock::lock;
use crate::outgoing::{Versions, client, system_roots, trusting};
use crate::respond::BodyError;

/// The body of a request to another server.
pub(crate) type UpstreamBody = UnsyncBoxBody<Bytes, BodyError>;

type Pool = Client<HttpsConnector<HttpConnector>, UpstreamBody>;

/// The connections of a worker to other servers, by the CA that is trusted and the versions of HTTP.
#[derive(Default)]
pub(crate) struct Upstreams {
    pools: Mutex<HashMap<(Option<PathBuf>, Versions), Pool>>,
}

impl Upstreams {
    /// Sends a request to its URL, and returns once the head of the response is there. `ca` is trusted instead of the
    /// system's CAs.
    ///
    /// # Errors
    /// The CA cannot be read, the server cannot be reached, or answers with no HTTP.
    pub(crate) async fn send(
        &self,
        ca: Option<&Path>,
        versions: Versions,
        request: Request<UpstreamBody>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let pool = self.pool(ca, versions)?;
        pool.request(request).await.map_err(UpstreamError::Request)
    }

    fn pool(&self, ca: Option<&Path>, versions: Versions) -> Result<Pool, UpstreamError> {
        let key = (ca.map(Path::to_owned), versions);
        if let Some(pool) = lock(&self.pools).get(&key) {
            return Ok(pool.clone());
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_MAX));
        let roots = ca.map_or_else(|| Ok(system_roots()), roots_of).map_err(UpstreamError::Ca)?;
        let pool: Pool = client(connector, trusting(roots), versions);
        lock(&self.pools).insert(key, pool.clone());
        Ok(pool)
    }
}

/// The body of a request has not come whole from the client.
#[derive(Debug)]
pub(crate) struct ClientFault(pub(crate) BodyError);

impl std::fmt::Display for ClientFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the client's body: {}", self.0)
    }
}

impl std::error::Error for ClientFault {}

/// Why another server gave no response.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    /// The file of the CA cannot be used.
    Ca(String),
    /// The server cannot be reached, or does not speak HTTP.
    Request(Error),
}

impl UpstreamError {
    /// The fault of the client's body that has ended the request, if that is why.
    pub(crate) fn of_client(&self) -> Option<&ClientFault> {
        let UpstreamError::Request(error) = self else { return None };
        sources(error).find_map(|source| source.downcast_ref())
    }
}

impl std::fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UpstreamError::Ca(message) => f.write_str(message),
            UpstreamError::Request(error) => {
                write!(f, "{error}")?;
                sources(error).try_for_each(|source| write!(f, ": {source}"))
            }
        }
    }
}

/// What has caused an error, the nearest cause first.
fn sources(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(error), |error| error.source())
}

/// Reads the CAs of a file; the error says why it cannot be used.
fn roots_of(path: &Path) -> Result<RootCertStore, String> {
    let refuse =
        |error: &dyn std::fmt::Display| format!("the CA `{}` cannot be used: {error}", path.display());
    let pem = fs::read(path).map_err(|error| refuse(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| refuse(&error))?;
        roots.add(certificate).map_err(|error| refuse(&error))?;
    }
    Ok(roots)
}
