//! STOMP.

use std::net::SocketAddr;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::name::Name;
use imori_core::outbound::EncoderKinds;
pub(super) use imori_stomp::connection::Connection;
use imori_stomp::heart_beat::HeartBeat;
use imori_stomp::limits::Limits;
use imori_stomp::settings::Settings;

use super::part::{OwnSettings, ProtocolPart};
use crate::config::Config;
use crate::run_facts::RunFacts;

/// Origins 1 to 4.
pub(super) const PART: ProtocolPart = ProtocolPart {
    origins: Origins::new(1, imori_stomp::FORMS),
    encoder_kinds: EncoderKinds::of_protocol(1),
    reader_of_form: imori_stomp::reader_of_form,
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
            limits: Limits {
                login_frame_bytes_max: limits.unauthenticated_bytes.as_usize(),
                body_bytes_max: limits.message_bytes.as_usize(),
                header_count_max: limits.headers as usize,
                header_bytes_max: limits.header_bytes.as_usize(),
                transaction_count_max: config.stomp.transactions as usize,
                transaction_action_count_max: config.stomp.transaction_actions as usize,
            },
            host_names: config.broker.host_names.iter().map(|name| Name::from(name.as_str())).collect(),
            heart_beat: HeartBeat {
                sends: config.stomp.heart_beat_send_ms.duration(),
                wants: config.stomp.heart_beat_receive_ms.duration(),
            },
            keeps_open_after_error: config.stomp.keep_open_after_error,
            prefetch_default: limits.prefetch_default,
            parked_bytes_max: limits.parked_publish_bytes.as_usize(),
            login_timeout: limits.login_timeout_s.duration(),
            ..Settings::default()
        }
    }
}
