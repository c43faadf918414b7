//! Requests to other servers, over pooled connections of a worker.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::limits::{CONNECT_MAX, UPSTREAM_IDLE_COUNT_MAX, UPSTREAM_IDLE_MAX};
use crate::lock::lock;
use crate::respond::BodyError;

/// The body of a request to another server.
pub(crate) type UpstreamBody = UnsyncBoxBody<Bytes, BodyError>;

type Pool = Client<HttpsConnector<HttpConnector>, UpstreamBody>;

/// The connections of a worker to other servers, by the CA that is trusted.
#[derive(Default)]
pub(crate) struct Upstreams {
    pools: Mutex<HashMap<Option<PathBuf>, Pool>>,
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
        request: Request<UpstreamBody>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let pool = self.pool(ca)?;
        pool.request(request).await.map_err(UpstreamError::Request)
    }

    fn pool(&self, ca: Option<&Path>) -> Result<Pool, UpstreamError> {
        let key = ca.map(Path::to_owned);
        if let Some(pool) = lock(&self.pools).get(&key) {
            return Ok(pool.clone());
        }
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_MAX));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(client_config(ca)?)
            .https_or_http()
            .enable_http1()
            .enable_http2()
            .wrap_connector(connector);
        let pool: Pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .pool_idle_timeout(UPSTREAM_IDLE_MAX)
            .pool_max_idle_per_host(UPSTREAM_IDLE_COUNT_MAX)
            .build(connector);
        lock(&self.pools).insert(key, pool.clone());
        Ok(pool)
    }
}

/// Why another server gave no response.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    /// The file of the CA cannot be used.
    Ca(String),
    /// The server cannot be reached, or does not speak HTTP.
    Request(Error),
}

impl std::fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UpstreamError::Ca(message) => f.write_str(message),
            UpstreamError::Request(error) => {
                write!(f, "{error}")?;
                let mut source = std::error::Error::source(error);
                while let Some(error) = source {
                    write!(f, ": {error}")?;
                    source = error.source();
                }
                Ok(())
            }
        }
    }
}

fn client_config(ca: Option<&Path>) -> Result<ClientConfig, UpstreamError> {
    let mut roots = RootCertStore::empty();
    match ca {
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        Some(path) => {
            let refuse = |error: &dyn std::fmt::Display| {
                UpstreamError::Ca(format!("the CA `{}` cannot be used: {error}", path.display()))
            };
            let pem = fs::read(path).map_err(|error| refuse(&error))?;
            for certificate in CertificateDer::pem_slice_iter(&pem) {
                let certificate = certificate.map_err(|error| refuse(&error))?;
                roots.add(certificate).map_err(|error| refuse(&error))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| UpstreamError::Ca(error.to_string()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
