//! Certificates and keys in files, read and verified as a whole before they are used.

use std::error::Error;
use std::fmt;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig};

use super::identity::{valid_from, valid_until};
use crate::config::{ClientCertificates, Tls, TlsVersion, UserFrom};

/// Mode bits that give other users access to the key file, or let its group write it.
const OPEN_TO_OTHERS: u32 = 0o027;

/// The section `tls` of a configuration that names a certificate and a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    client_crl: Option<PathBuf>,
    client_certificates: ClientCertificates,
    min_version: TlsVersion,
    pub(super) user_from: UserFrom,
}

/// Inode, size and modification time of each file; changes when a file is replaced or written.
pub(super) type Stamp = Vec<Option<(u64, u64, i64, i64)>>;

impl TlsFiles {
    /// The files that a configuration names; `None` if it names no certificate or no key.
    pub fn of(tls: &Tls) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: tls.certificate.path()?.to_owned(),
            key: tls.key.path()?.to_owned(),
            client_ca: tls.client_ca.path().map(Path::to_owned),
            client_crl: tls.client_crl.path().map(Path::to_owned),
            client_certificates: tls.client_certificates,
            min_version: tls.min_version,
            user_from: tls.user_from,
        })
    }

    /// Reads all files into a configuration for sessions. `now` decides whether the certificate is valid.
    pub(super) fn load(&self, now: SystemTime) -> Result<ServerConfig, TlsError> {
        let chain = certificates("tls.certificate", &self.certificate)?;
        let first = chain.first().ok_or_else(|| TlsError::empty("tls.certificate", &self.certificate))?;
        let expired = |is| TlsError::new("tls.certificate", &self.certificate, is);
        if valid_until(first).is_some_and(|until| until < now) {
            return Err(expired(Fault::Expired));
        }
        if valid_from(first).is_some_and(|from| from > now) {
            return Err(expired(Fault::NotYetValid));
        }
        let key = self.read_key()?;
        let provider = Arc::new(ring::default_provider());
        let versions: &[_] = match self.min_version {
            TlsVersion::Tls12 => &[&TLS13, &TLS12],
            TlsVersion::Tls13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| TlsError::new("tls.min_version", &self.certificate, Fault::Unusable(error)))?;
        let builder = match self.client_verifier(provider)? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let unusable = |error| TlsError::new("tls.key", &self.key, Fault::Unusable(error));
        let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
        config.ignore_client_order = true;
        Ok(config)
    }

    /// The stamp of the files as they are now.
    pub(super) fn stamp(&self) -> Stamp {
        let files =
            [Some(&self.certificate), Some(&self.key), self.client_ca.as_ref(), self.client_crl.as_ref()];
        let stamp = |path: &PathBuf| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
        };
        files.into_iter().flatten().map(stamp).collect()
    }

    /// SECURITY OPS-03: refuses a key that other users can read.
    fn read_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let error = |fault| TlsError::new("tls.key", &self.key, fault);
        let metadata = fs::metadata(&self.key).map_err(|failure| error(Fault::Unreadable(failure)))?;
        let mode = metadata.permissions().mode() & 0o777;
        if mode & OPEN_TO_OTHERS != 0 {
            return Err(error(Fault::OpenToOthers(mode)));
        }
        let bytes = fs::read(&self.key).map_err(|failure| error(Fault::Unreadable(failure)))?;
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| error(Fault::NoKey))
    }

    fn client_verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        let (Some(path), true) = (&self.client_ca, self.client_certificates != ClientCertificates::Ignored)
        else {
            return Ok(None);
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("tls.client_ca", path)? {
            let unusable = |error| TlsError::new("tls.client_ca", path, Fault::Unusable(error));
            roots.add(certificate).map_err(unusable)?;
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        if let Some(path) = &self.client_crl {
            let lists = CertificateRevocationListDer::pem_file_iter(path)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|_| TlsError::new("tls.client_crl", path, Fault::NoPem))?;
            builder = builder.with_crls(lists).allow_unknown_revocation_status();
        }
        if self.client_certificates == ClientCertificates::Asked {
            builder = builder.allow_unauthenticated();
        }
        let unusable = |error: rustls::server::VerifierBuilderError| {
            TlsError::new("tls.client_ca", path, Fault::Verifier(error.to_string()))
        };
        builder.build().map(Some).map_err(unusable)
    }
}

/// The certificates in a file; the first one begins the chain.
fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bytes = fs::read(path).map_err(|error| TlsError::new(key, path, Fault::Unreadable(error)))?;
    let certificates = CertificateDer::pem_slice_iter(&bytes).collect::<Result<Vec<_>, _>>();
    let certificates = certificates.map_err(|_| TlsError::new(key, path, Fault::NoPem))?;
    if certificates.is_empty() {
        return Err(TlsError::empty(key, path));
    }
    Ok(certificates)
}

/// A file of TLS that cannot be used.
#[derive(Debug)]
pub struct TlsError {
    key: &'static str,
    path: PathBuf,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    Unreadable(std::io::Error),
    OpenToOthers(u32),
    NoPem,
    Empty,
    NoKey,
    Expired,
    NotYetValid,
    Verifier(String),
    Unusable(rustls::Error),
}

impl TlsError {
    /// The key of the configuration that names the file.
    pub fn key(&self) -> &'static str {
        self.key
    }

    fn new(key: &'static str, path: &Path, fault: Fault) -> TlsError {
        TlsError { key, path: path.to_owned(), fault }
    }

    fn empty(key: &'static str, path: &Path) -> TlsError {
        TlsError::new(key, path, Fault::Empty)
    }
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(f, "`{}`: `{path}` ", self.key)?;
        match &self.fault {
            Fault::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Fault::OpenToOthers(mode) => {
                write!(f, "is open to other users (mode {mode:o}); run `chmod 600 {path}`")
            }
            Fault::NoPem => {
                f.write_str("is not PEM; write certificates between `-----BEGIN` and `-----END` lines")
            }
            Fault::Empty => f.write_str("holds no certificate; write it as PEM"),
            Fault::NoKey => f.write_str("holds no private key; write one as PEM, without a passphrase"),
            Fault::Expired => f.write_str("has expired; put a new certificate there"),
            Fault::NotYetValid => f.write_str("is not valid yet; look at the clock of this host"),
            Fault::Verifier(error) => write!(f, "cannot verify clients: {error}"),
            Fault::Unusable(error) => write!(f, "cannot be used: {error}"),
        }
    }
}

impl Error for TlsError {}
