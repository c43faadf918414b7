//! AMQP 0-9-1.

use std::net::SocketAddr;

pub(super) use imori_amqp091::connection::Connection;
use imori_amqp091::settings::Settings;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use super::part::{OwnSettings, ProtocolPart};
use crate::config::Config;
use crate::run_facts::RunFacts;

/// Origin 20.
pub(super) const PART: ProtocolPart = ProtocolPart {
    origins: Origins::new(20, imori_amqp091::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(3),
    reader_of_form: imori_amqp091::reader_of_form,
    streams: None,
};

impl OwnSettings for Settings {
    fn numbered(self, header_readers: HeaderReaders) -> Settings {
        let ProtocolPart { origins, encoder_kinds, .. } = PART;
        Settings { origins, encoder_kinds, header_readers, ..self }
    }

    fn of(config: &Config, _: &RunFacts, _: SocketAddr) -> Settings {
        let limits = &config.limits;
        Settings {
            body_bytes_max: limits.message_bytes.as_usize(),
            parked_bytes_max: limits.parked_publish_bytes.as_usize(),
            login_timeout: limits.login_timeout_s.duration(),
            ..Settings::default()
        }
    }
}
