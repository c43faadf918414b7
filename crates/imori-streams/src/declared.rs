//! Streams and consumers that an operator declares from configurations in JetStream's JSON.

use imori_core::arguments::check_name;
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::stream::ConsumerSettings;

use crate::account::{AccountLimits, ServerLimits, set_required_level};
use crate::consumer_check::{ConsumerContext, ConsumerPlace};
use crate::consumer_config::{ConsumerConfig, CreateConsumerRequest};
use crate::error::ApiError;
use crate::json::{UnknownNames, decode, to_json};
use crate::limits::CONFIGURATION_BYTES_MAX;
use crate::settings::{consumer_settings, stream_settings};
use crate::stream_check::StreamContext;
use crate::stream_config::{Retention, StreamConfig, StreamConfigRequest};

/// A stream to declare, with the defaults of its configuration filled in.
#[derive(Debug, Clone)]
pub struct DeclaredStream {
    config: StreamConfig,
}

impl DeclaredStream {
    /// Reads and checks the configuration of the stream `name`. `others` are the configurations of the vhost's other
    /// streams.
    ///
    /// # Errors
    /// JetStream's error for the first contradiction, or for a part that this broker does not have.
    pub fn read(
        name: &str,
        configuration: &[u8],
        others: &[StreamConfig],
    ) -> Result<DeclaredStream, ApiError> {
        let request = StreamConfigRequest::decode(configuration)?;
        request.check_create(name)?;
        let config = in_context(others, request.is_pedantic, |context| request.config.check_in(context))?;
        check_name(name).map_err(ApiError::stream_invalid_config)?;
        Ok(DeclaredStream { config: supported(config, others)? })
    }

    /// Reads a configuration that was checked before.
    ///
    /// # Errors
    /// As [`DeclaredStream::read`].
    pub fn checked(configuration: &[u8]) -> Result<DeclaredStream, ApiError> {
        Ok(DeclaredStream { config: decode(configuration, UnknownNames::Ignored)? })
    }

    /// Checks the configuration of a consumer that an archive of the stream has, and that has this name; `others` are
    /// those before it. Returns its configuration and settings.
    ///
    /// # Errors
    /// JetStream's error for the first contradiction.
    pub fn archived_consumer(
        &self,
        name: &str,
        config: &ConsumerConfig,
        others: &[ConsumerConfig],
    ) -> Result<(ConsumerConfig, ConsumerSettings), ApiError> {
        let (account, server) = (AccountLimits::default(), ServerLimits::default());
        let context =
            ConsumerContext { stream: &self.config, account: &account, server: &server, is_pedantic: false };
        let mut config = ConsumerConfig { name: name.to_owned(), ..config.clone() }.check(&context)?;
        let level = config.required_level();
        set_required_level(&mut config.metadata, level);
        if to_json(&config).len() > CONFIGURATION_BYTES_MAX {
            return Err(ApiError::consumer_metadata_length(CONFIGURATION_BYTES_MAX));
        }
        if others.iter().any(|other| other.name == config.name) {
            return Err(ApiError::CONSUMER_ALREADY_EXISTS);
        }
        if self.config.retention == Retention::WorkQueue {
            clash(&config, others)?;
        }
        let settings = consumer_settings(&config)?;
        Ok((config, settings))
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &StreamConfig {
        &self.config
    }

    /// The settings to declare it with.
    #[must_use]
    pub fn settings(&self) -> QueueSettings {
        stream_settings(&self.config)
    }

    /// The subjects whose messages it stores.
    #[must_use]
    pub fn subjects(&self) -> Vec<Name> {
        self.config.subjects.iter().map(|subject| Name::from(subject.as_str())).collect()
    }

    /// Reads and checks the configuration of a durable consumer of the stream, which has the consumers `others`.
    /// Returns its configuration and the settings to declare it with; no settings if the stream has that consumer.
    ///
    /// # Errors
    /// JetStream's error for the first contradiction.
    pub fn consumer(
        &self,
        configuration: &[u8],
        others: &[ConsumerConfig],
    ) -> Result<(ConsumerConfig, Option<ConsumerSettings>), ApiError> {
        let config: ConsumerConfig = decode(configuration, UnknownNames::Refused)?;
        let (stream, consumer) = (self.config.name.clone(), config.durable_name.clone());
        let request = CreateConsumerRequest {
            stream_name: stream.clone(),
            config: ConsumerConfig { name: String::new(), ..config },
            ..CreateConsumerRequest::default()
        };
        let place =
            ConsumerPlace { stream: &stream, consumer: Some(&consumer), filter: None, is_durable: true };
        let config = request.check_place(&place)?.config;
        let (account, server) = (AccountLimits::default(), ServerLimits::default());
        let context =
            ConsumerContext { stream: &self.config, account: &account, server: &server, is_pedantic: false };
        let mut config = config.check(&context)?;
        let level = config.required_level();
        set_required_level(&mut config.metadata, level);
        if to_json(&config).len() > CONFIGURATION_BYTES_MAX {
            return Err(ApiError::consumer_metadata_length(CONFIGURATION_BYTES_MAX));
        }
        match others.iter().find(|other| other.name == config.name) {
            Some(other) if *other == config => return Ok((config, None)),
            Some(_) => return Err(ApiError::CONSUMER_ALREADY_EXISTS),
            None => {}
        }
        if self.config.retention == Retention::WorkQueue {
            clash(&config, others)?;
        }
        let settings = consumer_settings(&config)?;
        Ok((config, Some(settings)))
    }
}

/// Calls `check` with the other streams.
///
/// # Errors
/// Those of `check`.
pub fn in_context(
    others: &[StreamConfig],
    is_pedantic: bool,
    check: impl FnOnce(&StreamContext<'_>) -> Result<StreamConfig, ApiError>,
) -> Result<StreamConfig, ApiError> {
    let (account, server) = (AccountLimits::default(), ServerLimits::default());
    let stream = |name: &str| others.iter().find(|other| other.name == name);
    check(&StreamContext { account: &account, server: &server, is_pedantic, stream: &stream })
}

/// Refuses what this broker has not, and subjects of another stream; sets the level that the configuration requires.
///
/// # Errors
/// JetStream's error.
pub fn supported(mut config: StreamConfig, others: &[StreamConfig]) -> Result<StreamConfig, ApiError> {
    for (is_asked, what) in [
        (config.mirror.is_some(), "mirrors"),
        (!config.sources.is_empty(), "sources"),
        (config.allow_batched, "fast batches"),
    ] {
        if is_asked {
            return Err(ApiError::stream_invalid_config(format_args!(
                "{what} are not supported yet; leave them out"
            )));
        }
    }
    if others.iter().any(|other| other.overlaps(&config)) {
        return Err(ApiError::STREAM_SUBJECT_OVERLAP);
    }
    let level = config.required_level();
    set_required_level(&mut config.metadata, level);
    if to_json(&config).len() > CONFIGURATION_BYTES_MAX {
        return Err(ApiError::stream_invalid_config(format_args!(
            "the configuration has more than {CONFIGURATION_BYTES_MAX} bytes; shorten its metadata"
        )));
    }
    Ok(config)
}

/// Refuses a consumer of a work queue that would get messages of `others`.
///
/// # Errors
/// JetStream's error.
pub fn clash(config: &ConsumerConfig, others: &[ConsumerConfig]) -> Result<(), ApiError> {
    for other in others.iter().filter(|other| other.name != config.name) {
        if other.filters().next().is_none() || config.filters().next().is_none() {
            return Err(ApiError::CONSUMER_WORK_QUEUE_MULTIPLE_UNFILTERED);
        }
        if config.overlaps(other) {
            return Err(ApiError::CONSUMER_WORK_QUEUE_CONSUMER_NOT_UNIQUE);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = br#"{"name":"ORDERS","subjects":["orders.>"],"retention":"workqueue"}"#;

    #[test]
    fn a_configuration_that_was_read_is_read_again_without_a_change() {
        let first = DeclaredStream::read("ORDERS", STREAM, &[]).unwrap();
        let again = DeclaredStream::read("ORDERS", &to_json(first.config()), &[]);
        assert_eq!(again.unwrap().config(), first.config());
        let (consumer, _) = first.consumer(br#"{"durable_name":"D","ack_policy":"explicit"}"#, &[]).unwrap();
        let again = first.consumer(&to_json(&consumer), std::slice::from_ref(&consumer)).unwrap();
        assert_eq!(again, (consumer, None));
    }

    #[test]
    fn contradictions_are_refused() {
        let stream = DeclaredStream::read("ORDERS", STREAM, &[]).unwrap();
        let other = [stream.config().clone()];
        for (name, configuration, others) in [
            ("ORDERS", &br#"{"name":"OTHER"}"#[..], &[][..]),
            ("ORDERS", br#"{"name":"ORDERS","bogus":1}"#, &[]),
            ("MIRROR", br#"{"name":"MIRROR","mirror":{"name":"ORDERS"}}"#, &[]),
            ("OTHER", br#"{"name":"OTHER","subjects":["orders.new"]}"#, &other),
        ] {
            assert!(DeclaredStream::read(name, configuration, others).is_err(), "{configuration:?}");
        }
        let (first, _) = stream.consumer(br#"{"durable_name":"D","ack_policy":"explicit"}"#, &[]).unwrap();
        for consumer in [
            &br#"{"durable_name":"E","ack_policy":"explicit"}"#[..],
            br#"{"durable_name":"D","ack_policy":"explicit","max_deliver":3}"#,
            br#"{"name":"E","ack_policy":"explicit"}"#,
            b"",
        ] {
            assert!(stream.consumer(consumer, std::slice::from_ref(&first)).is_err(), "{consumer:?}");
        }
    }
}
