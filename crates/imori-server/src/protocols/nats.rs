//! NATS, with JetStream.

use std::net::SocketAddr;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;
pub(super) use imori_nats::connection::Connection;
use imori_nats::limits::Limits;
use imori_nats::settings::Settings;
use imori_nats::{NatsArchives, NatsStreams};

use super::part::{OwnSettings, ProtocolPart, StreamParts};
use crate::config::Config;
use crate::run_facts::RunFacts;

const ORIGINS: Origins = Origins::new(10, imori_nats::FORMS);

static STREAMS: NatsStreams = NatsStreams::new(ORIGINS);
static ARCHIVES: NatsArchives = NatsArchives::new(ORIGINS);

/// Origins 10 and 11.
pub(super) const PART: ProtocolPart = ProtocolPart {
    origins: ORIGINS,
    encoder_kinds: EncoderKinds::of_protocol(2),
    reader_of_form: imori_nats::reader_of_form,
    streams: Some(StreamParts { forms: &STREAMS, archives: &ARCHIVES, words: &ARCHIVES }),
};

impl OwnSettings for Settings {
    fn numbered(self, header_readers: HeaderReaders) -> Settings {
        let ProtocolPart { origins, encoder_kinds, .. } = PART;
        Settings { origins, encoder_kinds, header_readers, ..self }
    }

    fn of(config: &Config, run: &RunFacts, client: SocketAddr) -> Settings {
        let (own, limits) = (&config.nats, &config.limits);
        Settings {
            limits: Limits {
                control_line_bytes_max: own.max_control_line.as_usize(),
                payload_bytes_max: own.max_payload.as_usize(),
            },
            server_id: run.server_id.clone(),
            host: client.ip().to_string(),
            port: client.port(),
            connect_urls: own.connect_urls.iter().map(|url| url.as_str().to_owned()).collect(),
            ping_interval: own.ping_interval_s.duration(),
            pings_out_max: own.max_pings_out,
            subscription_count_max: own.max_subscriptions as usize,
            parked_bytes_max: limits.parked_publish_bytes.as_usize(),
            login_timeout: limits.login_timeout_s.duration(),
            lame_duck: own.lame_duck_ms.duration(),
            vhost: run.nats_vhost,
            server_name: own.server_name.clone(),
            ..Settings::default()
        }
    }
}
