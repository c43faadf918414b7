//! Settings of AMQP 0-9-1 connections.

use std::time::Duration;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::{
    BODY_BYTES_MAX, CHANNEL_MAX, FRAME_BYTES_MAX, HEARTBEAT, LOGIN_TIMEOUT, PARKED_BYTES_MAX,
    UNFINISHED_BYTES_MAX,
};

/// The version of RabbitMQ to report; clients infer from it which features they may use.
pub const RABBITMQ_VERSION: &str = "4.1.0";

/// Settings shared by all connections of a listener.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The broker's name and version, which clients show to people.
    pub platform: String,
    /// Proposed time between heartbeats.
    pub heartbeat: Duration,
    /// Maximum number of channels of a connection.
    pub channel_max: u16,
    /// Maximum length of a frame in bytes.
    pub frame_bytes_max: u32,
    /// Maximum length of a body in bytes.
    pub body_bytes_max: usize,
    /// Bytes of partly received bodies on all channels of a connection.
    pub unfinished_bytes_max: usize,
    /// Bytes of frames that a connection may park.
    pub parked_bytes_max: usize,
    /// Time from accepting a connection to its `connection.open`.
    pub login_timeout: Duration,
    /// The origins of messages from AMQP 0-9-1 clients.
    pub origins: Origins,
    /// The encoder kinds of AMQP 0-9-1.
    pub encoder_kinds: EncoderKinds,
    /// Reads header blocks of other protocols.
    pub header_readers: HeaderReaders,
}

impl Default for Settings {
    /// The settings of a broker without other protocols.
    fn default() -> Settings {
        Settings {
            platform: concat!("Imori ", env!("CARGO_PKG_VERSION")).to_string(),
            heartbeat: HEARTBEAT,
            channel_max: CHANNEL_MAX,
            frame_bytes_max: FRAME_BYTES_MAX,
            body_bytes_max: BODY_BYTES_MAX,
            unfinished_bytes_max: UNFINISHED_BYTES_MAX,
            parked_bytes_max: PARKED_BYTES_MAX,
            login_timeout: LOGIN_TIMEOUT,
            origins: SOLE_ORIGINS,
            encoder_kinds: EncoderKinds::of_protocol(3),
            header_readers: header_reader,
        }
    }
}
