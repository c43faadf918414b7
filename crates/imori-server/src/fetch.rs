//! Requests that the broker makes itself, to servers that the configuration names.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::ring;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// A client that waits so long for an answer and trusts the CAs in this file, or else those of the system. It follows
/// no redirect, which could lead to another host than the one that is trusted, and uses no proxy.
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
