//! TLS options of a client: the CAs that it trusts, and its own certificate.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, anyhow, bail};
use clap::Args;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The CAs that a client of TLS trusts, and the certificate that it shows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct Trust {
    /// Trust the CAs in this file, in PEM, instead of the system's CAs; for URLs with TLS.
    #[arg(long, value_name = "FILE", env = "IMORI_CA")]
    ca: Option<PathBuf>,
    /// Present this certificate, in PEM, with the intermediate certificates up to its CA.
    #[arg(long, value_name = "FILE", requires = "key", env = "IMORI_CERT")]
    cert: Option<PathBuf>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert", env = "IMORI_KEY")]
    key: Option<PathBuf>,
    /// Begin TLS with the first byte and not after INFO, as `listeners.nats_tls` requires; for `tls://`.
    #[arg(long)]
    tls_first: bool,
}

/// The TLS settings of this process.
static IN_FORCE: OnceLock<Trust> = OnceLock::new();

impl Trust {
    /// Makes these the settings of every connection of this process; only the first call counts.
    pub fn put_in_force(&self) {
        IN_FORCE.get_or_init(|| self.clone());
    }

    /// The settings of this process; the defaults if none were put in force.
    pub(crate) fn in_force() -> &'static Trust {
        IN_FORCE.get_or_init(Trust::default)
    }

    /// Whether a NATS client begins TLS at once, without waiting for INFO.
    pub(crate) fn begins_first(&self) -> bool {
        self.tls_first
    }

    /// Reads the files and builds the configuration of TLS sessions.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or holds no certificate or key.
    pub fn config(&self) -> Result<Arc<ClientConfig>> {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions()?.with_root_certificates(self.roots()?);
        let config = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                let key = PrivateKeyDer::from_pem_file(key)
                    .map_err(|error| anyhow!("`{}` holds no private key: {error}", key.display()))?;
                builder.with_client_auth_cert(chain, key).context("the certificate and the key do not fit")?
            }
            _ => builder.with_no_client_auth(),
        };
        Ok(Arc::new(config))
    }

    /// The certificates named by `--ca`, or else those of the system.
    ///
    /// # Errors
    /// Fails if there is none, or the file cannot be read.
    pub fn ca_certificates(&self) -> Result<Vec<CertificateDer<'static>>> {
        let Some(path) = &self.ca else {
            let of_system = rustls_native_certs::load_native_certs().certs;
            if of_system.is_empty() {
                bail!("this system has no CAs to trust; name one with `--ca`");
            }
            return Ok(of_system);
        };
        certificates(path)
    }

    fn roots(&self) -> Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(self.ca_certificates()?);
        if added == 0 {
            bail!("no certificate of a CA can be used; name one with `--ca`");
        }
        Ok(roots)
    }
}

fn certificates(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => bail!("`{}` holds no certificate; write it as PEM", path.display()),
        Err(error) => bail!("`{}` holds no certificates: {error}", path.display()),
    }
}
