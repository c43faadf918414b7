//! Puts a new configuration in force.
//!
//! Everything that can fail comes first and is undone if a later step fails, so that a configuration is taken over as
//! a whole or not at all. The objects of a definitions file are the exception: those that were applied stay.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;

use super::definitions_file::{DefinitionsError, take_over};
use super::listening::Listening;
use crate::broker::Reloaded;
use crate::config::{Config, ConfigConflict, Effect};
use crate::services::ImportDefinitions;
use crate::shared::{Phase, Shared};
use crate::slots::unpoisoned;
use crate::start::prepare::settings;
use crate::start::start_error::StartError;
use crate::tls::{TlsAcceptor, TlsError, TlsFiles};

/// Changes the configuration of a running broker.
#[derive(Clone)]
pub struct Reloader(Arc<Reloading>);

struct Reloading {
    shared: Arc<Shared>,
    /// The import of the definitions file.
    definitions: Option<Box<dyn ImportDefinitions>>,
    /// The runtime for operators' requests.
    runtime: Handle,
    listening: Arc<Listening>,
    /// Serializes reloads.
    reloading: Mutex<()>,
}

/// Why a configuration was not put in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReloadError {
    /// The keys of which one has to change, as `section.key`.
    pub keys: Vec<String>,
    text: String,
}

impl ReloadError {
    fn of_start(error: &StartError) -> ReloadError {
        ReloadError { keys: error.keys(), text: error.to_string() }
    }

    fn of_definitions(error: &DefinitionsError) -> ReloadError {
        ReloadError::of_start(&StartError::Definitions(error.to_string()))
    }

    fn of_conflict(conflict: ConfigConflict) -> ReloadError {
        ReloadError { keys: conflict.keys(), text: conflict.to_string() }
    }
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for ReloadError {}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").finish_non_exhaustive()
    }
}

impl Reloader {
    pub(crate) fn new(
        shared: Arc<Shared>,
        definitions: Option<Box<dyn ImportDefinitions>>,
        runtime: Handle,
        listening: Arc<Listening>,
    ) -> Reloader {
        Reloader(Arc::new(Reloading { shared, definitions, runtime, listening, reloading: Mutex::default() }))
    }

    /// The configuration in force.
    pub fn in_force(&self) -> Config {
        self.0.shared.settings.load().config.clone()
    }

    /// Puts those values of a configuration in force that can change at run time. Binds addresses and reads files, so
    /// it must not run on a cell.
    ///
    /// # Errors
    /// The configuration contradicts itself or a value that only a restart changes, or a certificate, the definitions
    /// file or an address cannot be used. The configuration in force stays; objects of a definitions file that was
    /// already applied stay too.
    pub fn reload(&self, wanted: &Config) -> Result<Reloaded, ReloadError> {
        let Reloading { shared, definitions, runtime, listening, reloading } = &*self.0;
        let _reloading = unpoisoned(reloading.lock());
        if *shared.phase.borrow() > Phase::Serving {
            return Err(ReloadError { keys: Vec::new(), text: String::from("the broker stops") });
        }
        let before = shared.settings.load_full();
        wanted.check().map_err(ReloadError::of_conflict)?;
        let (config, changes) = before.config.taking_over(wanted);
        config.check().map_err(|conflict| {
            let error = ReloadError::of_conflict(conflict);
            let text = format!("with the values in force until a restart, {}", error.text);
            ReloadError { text, ..error }
        })?;
        let certificates = Certificates::read(before.tls.as_ref(), &config).map_err(|error| {
            shared.settings.load().tls.iter().for_each(|tls| tls.refuse(&error));
            ReloadError::of_start(&StartError::Tls(error))
        })?;
        take_over(&config, definitions.as_deref(), &shared.access, runtime)
            .map_err(|error| ReloadError::of_definitions(&error))?;
        let offered = shared.access.offer_scram(config.users.scram);
        offered.map_err(|error| ReloadError::of_start(&StartError::Scram(error.to_string())))?;
        let planned = listening.prepare(&config).map_err(|error| {
            // The secret that this needs is there already, so that it cannot fail.
            let _ = shared.access.offer_scram(before.config.users.scram);
            ReloadError::of_start(&error)
        })?;
        let tls = certificates.install();
        let guest = config.users.guest;
        shared.limit(&config);
        shared.settings.store(Arc::new(settings(config, &shared.run, planned.listeners(), tls)));
        listening.commit(planned);
        shared.access.set_guest(guest);
        shared.access.warn_of_missing_scram_keys();
        let (waiting, taken_over) = changes.into_iter().partition(|change| change.effect == Effect::Restart);
        Ok(Reloaded { taken_over, waiting })
    }
}

/// Certificates that were verified but are not in force yet.
enum Certificates {
    None,
    First(TlsAcceptor),
    Renewed(Arc<TlsAcceptor>, crate::tls::Renewal),
}

impl Certificates {
    fn read(in_force: Option<&Arc<TlsAcceptor>>, config: &Config) -> Result<Certificates, TlsError> {
        match (TlsFiles::of(&config.tls), in_force) {
            (None, _) => Ok(Certificates::None),
            (Some(files), None) => TlsAcceptor::start(files).map(Certificates::First),
            (Some(files), Some(acceptor)) => {
                let renewal = acceptor.read(files)?;
                Ok(Certificates::Renewed(Arc::clone(acceptor), renewal))
            }
        }
    }

    fn install(self) -> Option<Arc<TlsAcceptor>> {
        match self {
            Certificates::None => None,
            Certificates::First(acceptor) => Some(Arc::new(acceptor)),
            Certificates::Renewed(acceptor, renewal) => {
                acceptor.install(renewal);
                Some(acceptor)
            }
        }
    }
}
