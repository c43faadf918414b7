//! A configuration that is read again while the broker runs.

use std::sync::Arc;

use imori_server::config::{Config, LogLevel};
use imori_server::tls::{TlsAcceptor, TlsFiles};
use tracing::{info, warn};

use crate::log;

/// The key that can change while the broker runs, beside those of certificates.
const CHANGEABLE: &str = "log.level";

/// The configuration in force.
pub(crate) struct Reload {
    /// Every key of the start with its value then.
    started_with: Vec<(String, String)>,
    level: LogLevel,
    certificates: Option<Arc<TlsAcceptor>>,
}

impl Reload {
    /// Begins with the configuration that the broker was started with.
    pub(crate) fn of(config: &Config, certificates: Option<Arc<TlsAcceptor>>) -> Reload {
        Reload { started_with: keys(config), level: config.log.level, certificates }
    }

    /// Takes over of a configuration what can change, and logs what was done. One that is wrong changes nothing.
    pub(crate) fn run(&mut self, loaded: anyhow::Result<Config>) {
        let config = match loaded {
            Ok(config) => config,
            Err(error) => {
                let error = format!("{error:#}");
                return warn!(error, "the configuration is not taken over; the one in force stays");
            }
        };
        let is_level_new = config.log.level != self.level;
        if is_level_new {
            self.level = config.log.level;
            log::set_level(self.level);
        }
        if let (Some(certificates), Some(files)) = (&self.certificates, TlsFiles::of(&config.tls)) {
            certificates.reload(files);
        }
        let waiting = self.waiting(&config);
        if !waiting.is_empty() {
            let keys = waiting.join(", ");
            warn!(keys, "these keys have other values now, which need a restart");
        }
        let changed = if is_level_new { CHANGEABLE } else { "nothing" };
        info!(changed, "the configuration was read again");
    }

    /// Whether a key is taken over without a restart.
    fn is_changeable(&self, key: &str) -> bool {
        let is_file = key.starts_with("tls.") && key != "tls.handshake_timeout_s";
        key == CHANGEABLE || (is_file && self.certificates.is_some())
    }

    /// The keys that differ from those of the start, and cannot change before the next.
    fn waiting(&self, config: &Config) -> Vec<String> {
        let differ = |(old, new): (&(String, String), (String, String))| {
            (old.1 != new.1 && !self.is_changeable(&new.0)).then_some(new.0)
        };
        self.started_with.iter().zip(keys(config)).filter_map(differ).collect()
    }
}

/// Every key with its value, in the order of the sample.
fn keys(config: &Config) -> Vec<(String, String)> {
    let of_section = |section: imori_server::config::Section| {
        let name = section.name;
        section.keys.into_iter().map(move |key| (format!("{name}.{}", key.name), key.value))
    };
    config.sections().into_iter().flat_map(of_section).collect()
}

#[cfg(test)]
mod tests {
    use imori_server::config::Value;

    use super::*;

    fn with(changes: &[(&str, &str, Value)]) -> Config {
        let mut config = Config::default();
        for (section, key, value) in changes {
            config.set(section, key, value).unwrap();
        }
        config
    }

    #[test]
    fn a_change_is_taken_over_or_named() {
        let mut reload = Reload::of(&Config::default(), None);
        let level = ("log", "level", Value::Text(String::from("debug")));
        let queues = ("limits", "queues", Value::Integer(7));
        assert_eq!(reload.waiting(&with(std::slice::from_ref(&level))), Vec::<String>::new());
        assert_eq!(reload.waiting(&with(&[level.clone(), queues])), ["limits.queues"]);
        reload.run(Ok(with(&[level])));
        assert_eq!(reload.level, LogLevel::Debug);
        reload.run(Err(anyhow::anyhow!("it is wrong")));
        assert_eq!(reload.level, LogLevel::Debug);
    }
}
