//! Conflicts between values that are valid individually; a broker does not start with them.

use std::error::Error;
use std::fmt;

use super::address::{ListenAddress, ListenerName};
use super::exposure::ExposedListener;
use super::sections::{ClientCertificates, Config, NatsTls};
use crate::limits::JOURNAL_MESSAGE_SLACK_BYTES;

/// Values that contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigConflict {
    /// A listener is reachable from other hosts and not safe.
    Exposed(ExposedListener),
    /// No listener for messages is configured.
    NoListener,
    /// Two listeners use the same port.
    SharedPort {
        /// The first.
        first: ListenerName,
        /// The second.
        second: ListenerName,
        /// The address of the second.
        address: ListenAddress,
    },
    /// TLS is configured without a certificate or without its key.
    NoCertificate,
    /// Client certificates are to be verified, but no CA is configured.
    NoClientCa,
    /// Access tokens are configured without their issuer, audience or source of keys.
    HalfIssuer,
    /// The largest message does not fit into a journal file.
    FilesTooSmall {
        /// Size of a journal file in bytes.
        file_bytes: usize,
        /// Bytes of the largest message with its headers.
        message_bytes: usize,
    },
}

impl ConfigConflict {
    /// The keys of which at least one has to change, as `section.key`.
    pub fn keys(&self) -> Vec<String> {
        let of = |keys: &[&str]| keys.iter().map(|key| String::from(*key)).collect();
        match self {
            ConfigConflict::Exposed(exposed) => vec![exposed.listener.key()],
            ConfigConflict::NoListener => of(&["listeners.stomp", "listeners.nats", "listeners.amqp"]),
            ConfigConflict::SharedPort { first, second, .. } => vec![second.key(), first.key()],
            ConfigConflict::NoCertificate => {
                let listeners = ListenerName::all().filter(|listener| listener.is_tls);
                let files = of(&["tls.certificate", "tls.key", "nats.tls"]);
                files.into_iter().chain(listeners.map(ListenerName::key)).collect()
            }
            ConfigConflict::NoClientCa => of(&["tls.client_certificates"]),
            ConfigConflict::HalfIssuer => {
                of(&["jwt.issuer", "jwt.audience", "jwt.keys_url", "jwt.keys_file"])
            }
            ConfigConflict::FilesTooSmall { .. } => {
                of(&["limits.message_bytes", "limits.header_bytes", "journal.file_bytes"])
            }
        }
    }
}

impl Config {
    /// Checks the configuration for conflicts. `imori serve` makes the same check before it opens anything.
    ///
    /// # Errors
    /// The first conflict found.
    pub fn check(&self) -> Result<(), ConfigConflict> {
        self.refuse_exposure().map_err(ConfigConflict::Exposed)?;
        if !self.open_listeners().any(|(listener, _)| listener.service.takes_messages()) {
            return Err(ConfigConflict::NoListener);
        }
        self.refuse_half_tls()?;
        self.refuse_half_issuer()?;
        self.refuse_shared_port()?;
        let file_bytes = self.journal.file_bytes.as_usize();
        let message_bytes = self.limits.message_bytes.as_usize() + self.limits.header_bytes.as_usize();
        if message_bytes + JOURNAL_MESSAGE_SLACK_BYTES > file_bytes {
            return Err(ConfigConflict::FilesTooSmall { file_bytes, message_bytes });
        }
        Ok(())
    }

    /// Whether any listener speaks TLS.
    pub fn speaks_tls(&self) -> bool {
        self.nats.tls != NatsTls::None || self.open_listeners().any(|(listener, _)| listener.is_tls)
    }

    fn refuse_half_tls(&self) -> Result<(), ConfigConflict> {
        let tls = &self.tls;
        let (has_certificate, has_key) = (tls.certificate.path().is_some(), tls.key.path().is_some());
        if has_certificate != has_key || (self.speaks_tls() && !has_certificate) {
            return Err(ConfigConflict::NoCertificate);
        }
        if tls.client_certificates != ClientCertificates::Ignored && tls.client_ca.path().is_none() {
            return Err(ConfigConflict::NoClientCa);
        }
        Ok(())
    }

    fn refuse_half_issuer(&self) -> Result<(), ConfigConflict> {
        let jwt = &self.jwt;
        let keys = usize::from(jwt.keys_file.path().is_some()) + usize::from(jwt.keys_url.is_some());
        let named = usize::from(jwt.issuer.is_some()) + usize::from(jwt.audience.is_some());
        match (keys, named) {
            (0, 0) | (1, 2) => Ok(()),
            _ => Err(ConfigConflict::HalfIssuer),
        }
    }

    fn refuse_shared_port(&self) -> Result<(), ConfigConflict> {
        let listeners: Vec<_> = self.open_listeners().collect();
        for (index, (first, taken)) in listeners.iter().enumerate() {
            let mut others = listeners.iter().skip(index + 1);
            if let Some(&(second, address)) = others.find(|(_, address)| shares_port(*taken, *address)) {
                return Err(ConfigConflict::SharedPort { first: *first, second, address });
            }
        }
        Ok(())
    }
}

/// Whether two addresses overlap. Port 0 never conflicts, and IPv6 listeners accept no IPv4.
pub(crate) fn shares_port(first: ListenAddress, second: ListenAddress) -> bool {
    let (first, second) = (first.0, second.0);
    let is_same_host =
        first.ip() == second.ip() || first.ip().is_unspecified() || second.ip().is_unspecified();
    first.port() != 0 && first.port() == second.port() && first.is_ipv4() == second.is_ipv4() && is_same_host
}

impl fmt::Display for ConfigConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigConflict::Exposed(exposed) => exposed.fmt(f),
            ConfigConflict::NoListener => {
                f.write_str("there is no address to listen on; set `listeners.stomp`, `listeners.nats` or `listeners.amqp`")
            }
            ConfigConflict::SharedPort { first, second, address } if first == second => write!(
                f,
                "listener `{second}={address}` is there twice, or an address of all interfaces includes it; \
                 leave one of them out"
            ),
            ConfigConflict::SharedPort { first, second, address } => write!(
                f,
                "listeners `{first}` and `{second}` both want `{address}`; give each a port of its own"
            ),
            ConfigConflict::NoCertificate => {
                f.write_str("TLS needs both a certificate and its key; set `tls.certificate` and `tls.key`")
            }
            ConfigConflict::NoClientCa => f.write_str(
                "`tls.client_certificates` asks for certificates that nothing verifies; set `tls.client_ca`",
            ),
            ConfigConflict::HalfIssuer => f.write_str(
                "access tokens need `jwt.issuer`, `jwt.audience` and one of `jwt.keys_file` and `jwt.keys_url`; set all three",
            ),
            ConfigConflict::FilesTooSmall { file_bytes, message_bytes } => write!(
                f,
                "a message of `{message_bytes}` bytes with its headers does not fit into a journal file of \
                 `{file_bytes}`; raise `journal.file_bytes` or lower `limits.message_bytes`"
            ),
        }
    }
}

impl Error for ConfigConflict {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use crate::config::{Bytes, Effect, FilePath, Listeners, Service};

    fn listening(stomp: &[&str], nats: &[&str]) -> Config {
        let parse = |addresses: &[&str]| addresses.iter().map(|address| address.parse().unwrap()).collect();
        let listeners = Listeners { stomp: parse(stomp), nats: parse(nats), ..Listeners::none() };
        Config { insecure_dev: true, listeners, ..Config::default() }
    }

    #[test]
    fn a_port_is_for_one_listener() {
        for (stomp, nats, is_shared) in [
            (&["127.0.0.1:1"][..], &["127.0.0.1:1"][..], true),
            (&["127.0.0.1:1", "127.0.0.1:1"], &[], true),
            (&["0.0.0.0:1"], &["127.0.0.1:1"], true),
            (&["[::]:1"], &["[::1]:1"], true),
            (&["127.0.0.1:1"], &["127.0.0.2:1"], false),
            (&["127.0.0.1:1"], &["[::1]:1"], false),
            (&["127.0.0.1:0"], &["127.0.0.1:0"], false),
            (&["127.0.0.1:1"], &["127.0.0.1:2"], false),
        ] {
            let checked = listening(stomp, nats).check();
            assert_eq!(
                matches!(checked, Err(ConfigConflict::SharedPort { .. })),
                is_shared,
                "{stomp:?} {nats:?}: {checked:?}"
            );
        }
    }

    #[test]
    fn messages_have_to_come_in_somewhere() {
        let mut config = listening(&[], &[]);
        config.listeners.nats_monitor = vec!["127.0.0.1:1".parse().unwrap()];
        assert_eq!(config.check(), Err(ConfigConflict::NoListener));
        config.listeners.http = vec!["127.0.0.1:2".parse().unwrap()];
        assert_eq!(config.check(), Err(ConfigConflict::NoListener), "without routes it is not opened");
        config.gateway.routes = FilePath::from(Path::new("routes.toml"));
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn tls_is_configured_whole_or_not_at_all() {
        let file = || FilePath::from(Path::new("/etc/imori/file.pem"));
        let mut config = listening(&["127.0.0.1:1"], &[]);
        config.tls.certificate = file();
        assert_eq!(config.check(), Err(ConfigConflict::NoCertificate));
        config.tls.key = file();
        assert_eq!(config.check(), Ok(()));
        config.tls.client_certificates = ClientCertificates::Asked;
        assert_eq!(config.check(), Err(ConfigConflict::NoClientCa));
        config.tls.client_ca = file();
        assert_eq!(config.check(), Ok(()));
        let mut config = listening(&["127.0.0.1:1"], &[]);
        config.nats.tls = NatsTls::Offered;
        assert_eq!(config.check(), Err(ConfigConflict::NoCertificate));
        let mut config = listening(&[], &[]);
        config.listeners.stomp_tls = vec!["127.0.0.1:1".parse().unwrap()];
        assert_eq!(config.check(), Err(ConfigConflict::NoCertificate));
    }

    #[test]
    fn a_reload_takes_over_what_does_not_need_a_restart() {
        let mut wanted = Config::default();
        wanted.journal.file_bytes = Bytes::mib(128);
        wanted.limits.message_bytes = Bytes::mib(100);
        wanted.limits.queues = 7;
        assert_eq!(wanted.check(), Ok(()));
        let (taken, changes) = Config::default().taking_over(&wanted);
        let told: Vec<_> = changes.iter().map(|change| (change.key.as_str(), change.effect)).collect();
        let expected = [
            ("limits.message_bytes", Effect::NewConnections),
            ("limits.queues", Effect::AtOnce),
            ("journal.file_bytes", Effect::Restart),
        ];
        assert_eq!(told, expected);
        assert_eq!((taken.limits.queues, taken.journal.file_bytes), (7, Bytes::mib(64)));
        // The values are consistent with each other, but not before the restart.
        assert!(matches!(taken.check(), Err(ConfigConflict::FilesTooSmall { .. })));
    }

    #[test]
    fn every_conflict_names_keys_that_there_are() {
        let sections = Config::default().sections();
        let known: Vec<String> = sections
            .iter()
            .flat_map(|section| section.keys.iter().map(|key| format!("{}.{}", section.name, key.name)))
            .collect();
        let first = ListenerName::plain(Service::Admin);
        let address = "127.0.0.1:1".parse().unwrap();
        for conflict in [
            ConfigConflict::Exposed(ExposedListener { listener: first, address }),
            ConfigConflict::NoListener,
            ConfigConflict::SharedPort { first, second: ListenerName::tls(Service::NatsMonitor), address },
            ConfigConflict::NoCertificate,
            ConfigConflict::NoClientCa,
            ConfigConflict::FilesTooSmall { file_bytes: 1, message_bytes: 1 },
        ] {
            let keys = conflict.keys();
            assert!(!keys.is_empty() && keys.iter().all(|key| known.contains(key)), "{keys:?}");
        }
    }

    #[test]
    fn the_largest_message_fits_into_a_file() {
        let mut config = Config::default();
        assert_eq!(config.check(), Ok(()));
        config.limits.message_bytes = Bytes::mib(64);
        config.journal.file_bytes = Bytes::mib(64);
        let told = config.check().unwrap_err().to_string();
        assert!(told.contains("raise `journal.file_bytes`"), "{told}");
    }
}
