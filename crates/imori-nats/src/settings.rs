//! The settings that a NATS connection needs before it begins.

use std::time::Duration;

use imori_core::id::VhostId;
use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use crate::codec::info::NATS_VERSION;
use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::{
    LAME_DUCK, LOGIN_TIMEOUT, Limits, PARKED_BYTES_MAX, PING_INTERVAL, PINGS_OUT_MAX, SUBSCRIPTION_COUNT_MAX,
};

/// The settings of all connections of a listener.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Limits of operations.
    pub limits: Limits,
    /// The vhost that its clients are in.
    pub vhost: VhostId,
    /// A name of the broker that holds for as long as it runs.
    pub server_id: String,
    /// The name that people gave to the broker.
    pub server_name: String,
    /// The version of nats-server whose protocol is spoken.
    pub version: String,
    /// Where it listens, as INFO says.
    pub host: String,
    /// Where it listens, as INFO says.
    pub port: u16,
    /// Other addresses to connect to.
    pub connect_urls: Vec<String>,
    /// Time between PINGs of a client that says nothing.
    pub ping_interval: Duration,
    /// PINGs that a client may leave unanswered.
    pub pings_out_max: u32,
    /// Subscriptions of a connection.
    pub subscription_count_max: usize,
    /// Bytes of operations that wait for the end of a memory alarm.
    pub parked_bytes_max: usize,
    /// From accepting a connection to its CONNECT.
    pub login_timeout: Duration,
    /// How long a client may stay after it was told that the broker stops.
    pub lame_duck: Duration,
    /// The origins of header blocks that NATS clients send, [`FORMS`](crate::FORMS) of them.
    pub origins: Origins,
    /// The kinds of encoders of NATS.
    pub encoder_kinds: EncoderKinds,
    /// How headers of other protocols are read.
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
