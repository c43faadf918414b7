//! The certificates that scripts have chosen, so that sessions of TLS are resumed.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use rustls::ServerConfig;

use crate::limits::CHOSEN_CERTIFICATES_MAX;

/// The certificates that scripts have chosen.
#[derive(Default)]
pub(crate) struct ChosenCertificates(RefCell<HashMap<Texts, Arc<ServerConfig>>>);

/// The texts of a certificate and its key.
type Texts = (Vec<u8>, Vec<u8>);

impl ChosenCertificates {
    /// The configuration of a certificate, which `read` makes for the first handshake.
    ///
    /// # Errors
    /// That of `read`.
    pub(crate) fn find(
        &self,
        certificate: &[u8],
        key: &[u8],
        read: impl FnOnce() -> Result<Arc<ServerConfig>, String>,
    ) -> Result<Arc<ServerConfig>, String> {
        let pair = (certificate.to_vec(), key.to_vec());
        let mut known = self.0.borrow_mut();
        if let Some(config) = known.get(&pair) {
            return Ok(Arc::clone(config));
        }
        let config = read()?;
        if known.len() >= CHOSEN_CERTIFICATES_MAX {
            known.clear();
        }
        known.insert(pair, Arc::clone(&config));
        Ok(config)
    }
}
