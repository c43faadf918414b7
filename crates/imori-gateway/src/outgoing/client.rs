//! The client of HTTP that scripts, `proxy` and `deliver` use, each with a connector and a policy of its own.

use std::sync::Arc;

use hyper::body::Body;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};

use crate::limits::{UPSTREAM_IDLE_COUNT_MAX, UPSTREAM_IDLE_MAX};

/// The versions of HTTP that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Versions {
    /// HTTP/2 where a server offers it over TLS, and else HTTP/1.1.
    All,
    /// HTTP/1.1 alone, for requests that ask for another protocol.
    Http11,
}

/// A client without connections. It makes plain ones by `connector`, keeps unused ones, and belongs to the runtime that
/// first uses it.
pub(crate) fn client<C, B>(
    connector: C,
    tls: ClientConfig,
    versions: Versions,
) -> Client<HttpsConnector<C>, B>
where
    HttpsConnector<C>: Connect + Clone,
    B: Body<Data: Send> + Send,
{
    let builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    let connector = match versions {
        Versions::All => builder.enable_all_versions().wrap_connector(connector),
        Versions::Http11 => builder.enable_http1().wrap_connector(connector),
    };
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .pool_idle_timeout(UPSTREAM_IDLE_MAX)
        .pool_max_idle_per_host(UPSTREAM_IDLE_COUNT_MAX)
        .build(connector)
}

/// TLS that trusts these CAs.
pub(crate) fn trusting(roots: RootCertStore) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    builder.expect("ring has both versions of TLS").with_root_certificates(roots).with_no_client_auth()
}

/// The CAs that the system trusts.
pub(crate) fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}
