//! The handshake of TLS, with the certificate of the broker or one that a script chooses.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use imori_server::tls::TlsOffer;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::Acceptor;
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};
use tracing::warn;

use super::opening::run_alone;
use crate::request_context::{Connection, Pem, Phase, RequestContext, Tls};
use crate::routes::ScriptId;
use crate::worker::Worker;

/// Makes the handshake of a connection with these ends and this number.
///
/// # Errors
/// The client does not agree, or is gone.
pub(super) async fn shake_hands(
    worker: &Rc<Worker>,
    tls: &TlsOffer,
    stream: TcpStream,
    (peer, local, number): (SocketAddr, SocketAddr, u64),
) -> io::Result<TlsStream<TcpStream>> {
    let Some(script) = worker.served().configuration.ssl_handshake else {
        return TlsAcceptor::from(Arc::clone(&tls.config)).accept(stream).await;
    };
    let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
    let name = start.client_hello().server_name().unwrap_or_default().to_owned();
    let connection = Connection { peer, local, is_tls: true, number, requests: 0 };
    let config = match choose(worker, script, connection, name, tls).await {
        Ok(Some(config)) => config,
        Ok(None) => Arc::clone(&tls.config),
        Err(message) => {
            warn!(message, "a script has chosen a certificate that cannot be used");
            return Err(io::Error::other(message));
        }
    };
    start.into_stream(config).await
}

/// Has a script choose a certificate; `None` if it chooses none.
async fn choose(
    worker: &Rc<Worker>,
    script: ScriptId,
    connection: Connection,
    name: String,
    tls: &TlsOffer,
) -> Result<Option<Arc<ServerConfig>>, String> {
    let served = worker.served();
    let Some(scripts) = served.scripts() else { return Ok(None) };
    let context = RequestContext::without_request(Phase::SslHandshake, connection);
    context.tls.borrow_mut().server_name = name;
    if !run_alone(worker, &served, &scripts, &context, script).await {
        return Err(String::from("the script has failed"));
    }
    let Tls { certificate, key, .. } = context.tls.take();
    let (certificate, key) = match (certificate, key) {
        (Some(certificate), Some(key)) => (text_of(&certificate)?, text_of(&key)?),
        (None, None) => return Ok(None),
        _ => return Err(String::from("a certificate and its key belong together; set both")),
    };
    let read = || server_config(&certificate, &key, &tls.config.alpn_protocols);
    worker.chosen_certificates.find(&certificate, &key, read).map(Some)
}

fn text_of(pem: &Pem) -> Result<Vec<u8>, String> {
    match pem {
        Pem::Text(text) => Ok(text.clone()),
        Pem::File(path) => fs::read(path).map_err(|error| format!("`{path}` cannot be read: {error}")),
    }
}

/// The configuration of a certificate with these protocols to choose from.
fn server_config(certificate: &[u8], key: &[u8], protocols: &[Vec<u8>]) -> Result<Arc<ServerConfig>, String> {
    let chain = CertificateDer::pem_slice_iter(certificate).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| format!("the certificate is no PEM: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key is no PEM: {error}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| error.to_string())?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
    config.alpn_protocols = protocols.to_vec();
    Ok(Arc::new(config))
}
