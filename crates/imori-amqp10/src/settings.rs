//! Settings of an AMQP 1.0 listener.

use std::time::Duration;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::{
    CHANNEL_MAX, FRAME_BYTES_MAX, HANDLES_MAX, IDLE_TIME_OUT, LINK_CREDIT, LOGIN_TIMEOUT, MESSAGE_BYTES_MAX,
    PARKED_BYTES_MAX, SESSION_WINDOW, TRANSACTION_TIME_MAX, UNFINISHED_BYTES_MAX,
};

/// The version of RabbitMQ that clients are told, as over AMQP 0-9-1: one whose behaviour the broker aims at.
pub const RABBITMQ_VERSION: &str = "4.1.0";

/// Settings that the connections of a listener share.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The broker's own name and version, which clients show to people.
    pub platform: String,
    /// Time of silence after which the broker closes, as clients are told.
    pub idle_time_out: Duration,
    /// Hosts and ports of other brokers, which clients may go to when this one is gone.
    pub failover: Vec<(String, u16)>,
    /// Highest channel of a connection.
    pub channel_max: u16,
    /// Highest handle of a session.
    pub handle_max: u32,
    /// Bytes of a frame.
    pub frame_bytes_max: u32,
    /// Bytes of a message, all its sections together.
    pub message_bytes_max: usize,
    /// Bytes of messages that have come in part, of all links of a connection together.
    pub unfinished_bytes_max: usize,
    /// Bytes of frames that wait for the end of an alarm or for a queue.
    pub parked_bytes_max: usize,
    /// Deliveries that a producer may send before others of its own are answered.
    pub link_credit: u32,
    /// Transfers that a client may send before it is told that others were taken.
    pub session_window: u32,
    /// Clients may log in by SASL SCRAM-SHA-256.
    pub offers_scram: bool,
    /// From accepting a connection to its `open`.
    pub login_timeout: Duration,
    /// From the first step of a transaction to its discharge.
    pub transaction_time_max: Duration,
    /// Origins of messages of AMQP 1.0, which no other protocol of the broker has.
    pub origins: Origins,
    /// Kinds of encoders, which no other protocol of the broker has.
    pub encoder_kinds: EncoderKinds,
    /// Readers of other protocols' header blocks.
    pub header_readers: HeaderReaders,
}

impl Default for Settings {
    /// Settings of a broker that speaks AMQP 1.0 alone.
    fn default() -> Settings {
        Settings {
            platform: concat!("Imori ", env!("CARGO_PKG_VERSION")).to_string(),
            idle_time_out: IDLE_TIME_OUT,
            failover: Vec::new(),
            channel_max: CHANNEL_MAX,
            handle_max: HANDLES_MAX - 1,
            frame_bytes_max: FRAME_BYTES_MAX,
            message_bytes_max: MESSAGE_BYTES_MAX,
            unfinished_bytes_max: UNFINISHED_BYTES_MAX,
            parked_bytes_max: PARKED_BYTES_MAX,
            link_credit: LINK_CREDIT,
            session_window: SESSION_WINDOW,
            offers_scram: false,
            login_timeout: LOGIN_TIMEOUT,
            transaction_time_max: TRANSACTION_TIME_MAX,
            origins: SOLE_ORIGINS,
            encoder_kinds: EncoderKinds::of_protocol(4),
            header_readers: header_reader,
        }
    }
}
