//! Settings of NATS connections.

use std::time::Duration;

use imori_core::id::VhostId;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use crate::codec::info::NATS_VERSION;
use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::{
    LAME_DUCK, LOGIN_TIMEOUT, Limits, PARKED_BYTES_MAX, PING_INTERVAL, PINGS_OUT_MAX, SUBSCRIPTION_COUNT_MAX,
};

/// Settings shared by all connections of a listener.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of the decoder.
    pub limits: Limits,
    /// The vhost of clients whose user has no vhost of its own.
    pub vhost: VhostId,
    /// An id of the broker that stays the same while it runs.
    pub server_id: String,
    /// The configured name of the broker.
    pub server_name: String,
    /// The version of nats-server to report in INFO.
    pub version: String,
    /// The address to report in INFO.
    pub host: String,
    /// The port to report in INFO.
    pub port: u16,
    /// Other addresses of the broker, reported in INFO.
    pub connect_urls: Vec<String>,
    /// Silence of a client after which the broker sends PING.
    pub ping_interval: Duration,
    /// Limit on unanswered PINGs.
    pub pings_out_max: u32,
    /// Limit on the subscriptions of a connection.
    pub subscription_count_max: usize,
    /// Bytes of operations that a connection may park.
    pub parked_bytes_max: usize,
    /// Time from accepting a connection to its CONNECT.
    pub login_timeout: Duration,
    /// Grace period for clients when the broker stops.
    pub lame_duck: Duration,
    /// The origins of header blocks from NATS clients, [`FORMS`](crate::FORMS) in number.
    pub origins: Origins,
    /// The encoder kinds of NATS.
    pub encoder_kinds: EncoderKinds,
    /// Reads header blocks of other protocols.
    pub header_readers: HeaderReaders,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            vhost: VhostId(0),
            server_id: String::new(),
            server_name: concat!("imori/", env!("CARGO_PKG_VERSION")).to_string(),
            version: NATS_VERSION.to_string(),
            host: "0.0.0.0".to_string(),
            port: 4222,
            connect_urls: Vec::new(),
            ping_interval: PING_INTERVAL,
            pings_out_max: PINGS_OUT_MAX,
            subscription_count_max: SUBSCRIPTION_COUNT_MAX,
            parked_bytes_max: PARKED_BYTES_MAX,
            login_timeout: LOGIN_TIMEOUT,
            lame_duck: LAME_DUCK,
            origins: SOLE_ORIGINS,
            encoder_kinds: EncoderKinds::of_protocol(0),
            header_readers: header_reader,
        }
    }
}
