//! Settings of an AMQP listener.

use std::time::Duration;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::{
    BODY_BYTES_MAX, CHANNEL_MAX, FRAME_BYTES_MAX, HEARTBEAT, LOGIN_TIMEOUT, PARKED_BYTES_MAX,
    UNFINISHED_BYTES_MAX,
};

/// The version of RabbitMQ that this broker stands for: clients look at it to find out what they may ask for.
pub const RABBITMQ_VERSION: &str = "4.1.0";

/// Settings that the connections of a listener share.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The broker's own name and version, which clients show to people.
    pub platform: String,
    /// Time between heartbeats that the broker proposes.
    pub heartbeat: Duration,
    /// Channels of a connection.
    pub channel_max: u16,
    /// Bytes of a frame.
    pub frame_bytes_max: u32,
    /// Bytes of a body.
    pub body_bytes_max: usize,
    /// Bytes of bodies that have come in part, of all channels of a connection together.
    pub unfinished_bytes_max: usize,
    /// Bytes of frames that wait for the end of an alarm or for a queue.
    pub parked_bytes_max: usize,
    /// From accepting a connection to its `connection.open`.
    pub login_timeout: Duration,
    /// Origins of AMQP's header blocks, which no other protocol of the broker has.
    pub origins: Origins,
    /// Kinds of AMQP's encoders, which no other protocol of the broker has.
    pub encoder_kinds: EncoderKinds,
    /// Readers of other protocols' header blocks.
    pub header_readers: HeaderReaders,
}

impl Default for Settings {
    /// Settings of a broker that speaks AMQP alone.
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
