//! Settings of AMQP 1.0 connections.

use std::time::Duration;

use imori_core::message::{HeaderReaders, Origins};
use imori_core::outbound::EncoderKinds;

use crate::header_block::{SOLE_ORIGINS, header_reader};
use crate::limits::{
    CHANNEL_MAX, FRAME_BYTES_MAX, HANDLES_MAX, IDLE_TIME_OUT, LINK_CREDIT, LOGIN_TIMEOUT, MESSAGE_BYTES_MAX,
    PARKED_BYTES_MAX, SESSION_WINDOW, TRANSACTION_TIME_MAX, UNFINISHED_BYTES_MAX,
};

/// The version of RabbitMQ to report to clients, as for AMQP 0-9-1; the broker aims at its
/// behaviour.
pub const RABBITMQ_VERSION: &str = "4.1.0";

/// Settings shared by all connections of a listener.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The broker's name and version, which clients show to people.
    pub platform: String,
    /// The idle time-out announced to clients.
    pub idle_time_out: Duration,
    /// Hosts and ports of other brokers that clients may fail over to.
    pub failover: Vec<(String, u16)>,
    /// Highest channel number of a connection.
    pub channel_max: u16,
    /// Highest handle of a session.
    pub handle_max: u32,
    /// Largest frame that the broker accepts, in bytes.
    pub frame_bytes_max: u32,
    /// Largest message with all its sections, in bytes.
    pub message_bytes_max: usize,
    /// Bytes of partly received messages on all links of a connection.
    pub unfinished_bytes_max: usize,
    /// Bytes of frames that a connection may park.
    pub parked_bytes_max: usize,
    /// Credit of a producer: messages that it may send before the next flow.
    pub link_credit: u32,
    /// Incoming window of a session: transfers that a client may send before the next flow.
    pub session_window: u32,
    /// Whether clients may log in by SASL SCRAM-SHA-256.
    pub offers_scram: bool,
    /// Time from accepting a connection to its `open`.
    pub login_timeout: Duration,
    /// Time from the first step of a transaction to its discharge.
    pub transaction_time_max: Duration,
    /// The origins of messages from AMQP 1.0 clients.
    pub origins: Origins,
    /// The encoder kinds of AMQP 1.0.
    pub encoder_kinds: EncoderKinds,
    /// Reads header blocks of other protocols.
    pub header_readers: HeaderReaders,
}

impl Default for Settings {
    /// The settings of a broker without other protocols.
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
