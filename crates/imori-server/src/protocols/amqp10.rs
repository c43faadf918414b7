//! AMQP 1.0.

use std::net::SocketAddr;

pub(super) use imori_amqp10::connection::Connection;
use imori_amqp10::settings::Settings;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use super::part::{OwnSettings, ProtocolPart};
use crate::config::{Config, HostAndPort};
use crate::run_facts::RunFacts;

/// Origins 30 and 31.
pub(super) const PART: ProtocolPart = ProtocolPart {
    origins: Origins::new(30, imori_amqp10::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(4),
    reader_of_form: imori_amqp10::reader_of_form,
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
            message_bytes_max: limits.message_bytes.as_usize(),
            parked_bytes_max: limits.parked_publish_bytes.as_usize(),
            failover: config.amqp.failover.iter().filter_map(HostAndPort::parts).collect(),
            offers_scram: config.users.scram,
            login_timeout: limits.login_timeout_s.duration(),
            ..Settings::default()
        }
    }
}
