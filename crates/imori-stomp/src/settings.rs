//! Settings of STOMP connections.

use std::time::Duration;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::name::Name;
use imori_core::outbound::EncoderKinds;

use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::heart_beat::HeartBeat;
use crate::limits::{
    HEART_BEAT_MIN, LOGIN_TIMEOUT, Limits, PARKED_BYTES_MAX, PREFETCH_DEFAULT, SUBSCRIPTION_COUNT_MAX,
};

/// Settings shared by all connections of a listener.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of frames and transactions.
    pub limits: Limits,
    /// Names of this host; a `host` header with one of them means the vhost `/`.
    pub host_names: Vec<Name>,
    /// The heart-beats that the broker offers and asks for.
    pub heart_beat: HeartBeat,
    /// Keep the connection open after an ERROR about one frame, as RabbitMQ does.
    pub keeps_open_after_error: bool,
    /// Deliveries that a subscription without `prefetch-count` may leave unsettled.
    pub prefetch_default: u32,
    /// Limit on the subscriptions of a connection.
    pub subscription_count_max: usize,
    /// Bytes of frames that a connection may park.
    pub parked_bytes_max: usize,
    /// Time from accepting a connection to its login.
    pub login_timeout: Duration,
    /// The `server` header of CONNECTED.
    pub server: String,
    /// The origins of header blocks from STOMP clients, [`FORMS`](crate::FORMS) in number.
    pub origins: Origins,
    /// The encoder kinds of STOMP.
    pub encoder_kinds: EncoderKinds,
    /// Reads header blocks of other protocols.
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
