//! The settings that a STOMP connection needs before it begins.

use std::time::Duration;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::name::Name;
use imori_core::outbound::EncoderKinds;

use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::heart_beat::HeartBeat;
use crate::limits::{
    HEART_BEAT_MIN, LOGIN_TIMEOUT, Limits, PARKED_BYTES_MAX, PREFETCH_DEFAULT, SUBSCRIPTION_COUNT_MAX,
};

/// The settings of all connections of a listener.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of frames and transactions.
    pub limits: Limits,
    /// Names of this host, by which a client that names no vhost means `/`.
    pub host_names: Vec<Name>,
    /// The heart-beats that the broker offers and would like.
    pub heart_beat: HeartBeat,
    /// An ERROR that concerns one frame does not end the connection, as in RabbitMQ.
    pub keeps_open_after_error: bool,
    /// Deliveries that a subscription without `prefetch-count` may leave unsettled.
    pub prefetch_default: u32,
    /// Subscriptions of a connection.
    pub subscription_count_max: usize,
    /// Bytes of frames that wait for the end of a memory alarm.
    pub parked_bytes_max: usize,
    /// From accepting a connection to its login.
    pub login_timeout: Duration,
    /// The header `server` of CONNECTED.
    pub server: String,
    /// The origins of header blocks that STOMP clients send, [`FORMS`](crate::FORMS) of them.
    pub origins: Origins,
    /// The kinds of STOMP's encoders.
    pub encoder_kinds: EncoderKinds,
    /// How headers of other protocols are read.
    pub header_readers: HeaderReaders,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            host_names: Vec::new(),
            heart_beat: HeartBeat { sends: HEART_BEAT_MIN, wants: HEART_BEAT_MIN },
            keeps_open_after_error: false,
            prefetch_default: PREFETCH_DEFAULT,
            subscription_count_max: SUBSCRIPTION_COUNT_MAX,
            parked_bytes_max: PARKED_BYTES_MAX,
            login_timeout: LOGIN_TIMEOUT,
            server: concat!("imori/", env!("CARGO_PKG_VERSION")).to_string(),
            origins: SOLE_ORIGINS,
            encoder_kinds: EncoderKinds::of_protocol(0),
            header_readers: header_reader,
        }
    }
}
