//! `/varz`: the broker as a whole.

use std::collections::BTreeMap;

use imori_core::world::Counter;
use imori_nats::settings::Settings;
use imori_server::config::{ProtocolName, Service};
use serde::Serialize;

use super::jsz::JetStreamVarz;
use super::monitor_state::MonitorState;
use super::rows::each_row;
use super::wording::{timestamp, uptime};
use crate::metrics::memory_bytes;

/// The NATS protocol version, as in INFO.
const PROTOCOL: u32 = 1;

/// The response.
#[derive(Debug, Serialize)]
pub(super) struct Varz<'a> {
    server_id: &'a str,
    server_name: String,
    /// The version of Imori.
    version: &'static str,
    host: String,
    port: u16,
    max_connections: u32,
    #[serde(flatten)]
    nats: Option<NatsVarz>,
    http_host: String,
    http_port: u16,
    http_base_path: &'static str,
    https_port: u16,
    /// In seconds.
    auth_timeout: f64,
    max_payload: usize,
    max_pending: usize,
    cluster: Absent,
    gateway: Absent,
    leaf: Absent,
    mqtt: Absent,
    websocket: Absent,
    jetstream: JetStreamVarz,
    start: String,
    now: String,
    uptime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    mem: Option<u64>,
    cores: usize,
    cpu: f64,
    connections: usize,
    total_connections: u64,
    routes: u32,
    remotes: u32,
    leafnodes: u32,
    in_msgs: u64,
    in_bytes: u64,
    in_client_msgs: u64,
    in_client_bytes: u64,
    out_msgs: u64,
    out_bytes: u64,
    out_client_msgs: u64,
    out_client_bytes: u64,
    slow_consumers: u64,
    subscriptions: usize,
    http_req_stats: BTreeMap<&'static str, u64>,
    config_load_time: String,
    slow_consumer_stats: SlowConsumers,
}

/// Settings for NATS clients, present if there is a NATS listener.
#[derive(Debug, Serialize)]
struct NatsVarz {
    proto: u32,
    /// In nanoseconds.
    ping_interval: u64,
    ping_max: u32,
    max_control_line: usize,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    connect_urls: Vec<String>,
}

/// A feature that does not exist, shown as an empty object.
#[derive(Debug, Serialize)]
struct Absent {}

#[derive(Debug, Serialize)]
struct SlowConsumers {
    clients: u64,
    routes: u64,
    gateways: u64,
    leafs: u64,
}

impl Varz<'_> {
    /// The current state of the broker.
    pub(super) fn of(state: &MonitorState) -> Varz<'_> {
        let (mut connections, mut subscriptions) = (0, 0);
        let mut sums = [0; 3];
        for of_kind in state.broker.closed_traffic() {
            add(&mut sums, [of_kind.bytes_in, of_kind.messages_out, of_kind.bytes_out]);
        }
        each_row(state, |row| {
            connections += 1;
            subscriptions += row.subscriptions;
            add(&mut sums, [row.bytes_in, row.messages_out, row.bytes_out]);
        });
        let [in_bytes, out_msgs, out_bytes] = state.shown.rise(sums);
        let in_msgs = state.broker.counted(Counter::Published);
        let slow_consumers = state.broker.counted(Counter::CutTooSlow);
        let now = state.broker.now();
        let start = timestamp(state.started);
        let settings = state.broker.settings();
        let config = settings.config();
        let has_nats = settings.address_of(Service::Messages(ProtocolName::Nats)).is_some();
        let nats = has_nats.then_some(&*settings.protocols().nats);
        let client_address = settings.client_address();
        let http_address = settings.address_of(Service::NatsMonitor).unwrap_or(client_address);
        Varz {
            server_id: state.broker.server_id(),
            server_name: config.nats.server_name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            host: client_address.ip().to_string(),
            port: client_address.port(),
            max_connections: config.limits.connections,
            nats: nats.map(nats_varz),
            http_host: http_address.ip().to_string(),
            http_port: http_address.port(),
            http_base_path: "",
            https_port: 0,
            auth_timeout: config.limits.login_timeout_s.duration().as_secs_f64(),
            max_payload: match nats {
                Some(nats) => nats.limits.payload_bytes_max,
                None => config.limits.message_bytes.as_usize(),
            },
            max_pending: settings.unsent_bytes_max(),
            cluster: Absent {},
            gateway: Absent {},
            leaf: Absent {},
            mqtt: Absent {},
            websocket: Absent {},
            jetstream: JetStreamVarz::of(state),
            config_load_time: start.clone(),
            start,
            now: timestamp(now),
            uptime: uptime(now.since(state.started)),
            mem: memory_bytes(),
            cores: state.cores,
            cpu: state.cpu.percent(),
            connections,
            total_connections: state.broker.admitted_connections(),
            routes: 0,
            remotes: 0,
            leafnodes: 0,
            in_msgs,
            in_bytes,
            in_client_msgs: in_msgs,
            in_client_bytes: in_bytes,
            out_msgs,
            out_bytes,
            out_client_msgs: out_msgs,
            out_client_bytes: out_bytes,
            slow_consumers,
            subscriptions,
            http_req_stats: state.requests.counted().collect(),
            slow_consumer_stats: SlowConsumers { clients: slow_consumers, routes: 0, gateways: 0, leafs: 0 },
        }
    }
}

fn nats_varz(settings: &Settings) -> NatsVarz {
    NatsVarz {
        proto: PROTOCOL,
        ping_interval: u64::try_from(settings.ping_interval.as_nanos()).unwrap_or(u64::MAX),
        ping_max: settings.pings_out_max,
        max_control_line: settings.limits.control_line_bytes_max,
        connect_urls: settings.connect_urls.clone(),
    }
}

fn add(sums: &mut [u64; 3], more: [u64; 3]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.wrapping_add(more);
    }
}
