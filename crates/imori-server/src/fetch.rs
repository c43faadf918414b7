//! HTTP requests that the broker makes to configured servers.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// An HTTP client with a timeout of `patience` that trusts the CAs in this file, or else the system's. It uses no
/// proxy and follows no redirects, which could lead away from the trusted host.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn agent(ca: Option<&Path>, patience: Duration) -> Result<Agent, String> {
    let roots = match ca {
        Some(path) => certificates(path)?,
        None => {
            let found = rustls_native_certs::load_native_certs().certs;
            found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect()
        }
    };
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::from(roots))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
    let config = Agent::config_builder()
        .timeout_global(Some(patience))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .tls_config(tls.build());
    Ok(Agent::new_with_config(config.build()))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, String> {
    let pem = fs::read(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(format!("`{}`: {error}", path.display()))),
    };
    let found: Vec<_> = parse_pem(&pem).filter_map(certificate).collect::<Result<_, _>>()?;
    match found.is_empty() {
        true => Err(format!("`{}`: there is no certificate in it", path.display())),
        false => Ok(found),
    }
}
