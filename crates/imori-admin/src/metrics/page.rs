//! `/metrics`: current values of all metrics.

use std::process;

use imori_amqp091::settings::RABBITMQ_VERSION;
use imori_core::confirm::Level;
use imori_core::message::DeathReason;
use imori_core::world::{Counter, Latency};
use imori_server::RouteFigures;
use imori_server::broker::{COMMIT_BOUNDS_US, LATENCY_BOUNDS_US, Sums, kind};
use imori_server::config::Spoken;
use imori_server::login::OUTCOMES;
use imori_server::stall::Cause;

use super::exposition::Exposition;
use super::families::QUEUE_FAMILIES;
use super::limits_used::push_limits;
use super::process::{memory_bytes, usage};
use super::queues::QueueSums;
use super::sources::{Metrics, Traffic};
use super::streams::STREAM_FAMILIES;
use crate::http::Names;

/// Renders the page; samples that name users, vhosts or queues are included only if `names` allows it.
pub(crate) async fn page(metrics: &Metrics, names: Names) -> String {
    let mut page = Exposition::default();
    metrics.push_identity(&mut page, "aggregated");
    push_process(&mut page, metrics);
    push_connections(&mut page, metrics, &metrics.traffic().await);
    push_logins(&mut page, metrics);
    if names == Names(true) {
        push_limits(&mut page, &metrics.broker);
    }
    push_traces(&mut page, metrics);
    push_messages(&mut page, metrics);
    let sums = metrics.queue_sums().await;
    push_queues(&mut page, metrics, &sums);
    if names == Names(true) {
        push_busiest(&mut page, &sums);
    }
    push_memory(&mut page, metrics);
    push_store(&mut page, metrics);
    push_cells(&mut page, metrics);
    push_gateway(&mut page, metrics);
    page.into_text()
}

fn push_gateway(page: &mut Exposition, metrics: &Metrics) {
    let figures = metrics.broker.gateway_figures();
    let help = "Open connections of the HTTP gateway.";
    page.gauge("imori_gateway_connections", help, figures.connections as f64);
    let help = "Responses of the gateway, by route and the class of their status.";
    page.head("imori_gateway_responses_total", help, "counter");
    const CLASSES: [&str; 6] = ["other", "1xx", "2xx", "3xx", "4xx", "5xx"];
    for route in &figures.routes {
        for (class, count) in CLASSES.iter().zip(route.responses).filter(|(_, count)| *count > 0) {
            let labels = [("route", route.name.as_str()), ("status", *class)];
            page.sample("imori_gateway_responses_total", &labels, count as f64);
        }
    }
    let each =
        |value: fn(&RouteFigures) -> f64| figures.routes.iter().map(move |of| (of.name.clone(), value(of)));
    let help = "Seconds from requests to the heads of their responses, by route.";
    let time = each(|route| route.time.as_secs_f64());
    page.each("counter", ("imori_gateway_response_seconds_total", help), "route", time);
    let help = "Requests that wait for their response, by route.";
    let waiting = each(|route| route.in_flight as f64);
    page.each("gauge", ("imori_gateway_requests_in_flight", help), "route", waiting);
}

/// The value of the label `protocol`; `none` before a protocol is chosen.
fn label(protocol: Option<Spoken>) -> &'static str {
    protocol.map_or("none", Spoken::label)
}

impl Metrics {
    /// Writes the broker's identity, as RabbitMQ's dashboards expect it.
    pub(super) fn push_identity(&self, page: &mut Exposition, endpoint: &str) {
        let labels = [
            ("rabbitmq_node", self.node.as_str()),
            ("rabbitmq_cluster", "imori"),
            ("rabbitmq_endpoint", endpoint),
        ];
        page.head("rabbitmq_identity_info", "The broker by RabbitMQ's labels; always 1.", "gauge");
        page.sample("rabbitmq_identity_info", &labels, 1.0);
    }
}

fn push_process(page: &mut Exposition, metrics: &Metrics) {
    let version = env!("CARGO_PKG_VERSION");
    page.head("imori_build_info", "The version of the broker; always 1.", "gauge");
    page.sample("imori_build_info", &[("version", version)], 1.0);
    page.head("rabbitmq_build_info", "The version of RabbitMQ that clients are told; always 1.", "gauge");
    let labels =
        [("rabbitmq_version", RABBITMQ_VERSION), ("product_name", "Imori"), ("product_version", version)];
    page.sample("rabbitmq_build_info", &labels, 1.0);
    let up = metrics.broker.now().since(metrics.started).as_secs_f64();
    page.gauge("rabbitmq_erlang_uptime_seconds", "Time since the broker began, by RabbitMQ's name.", up);
    page.gauge("process_start_time_seconds", "When the broker began, since 1970.", metrics.started_s);
    let is_refused = metrics.broker.settings().is_certificate_refused();
    let help = "1 while certificates that were to be renewed cannot be used, and older ones are in force.";
    page.gauge("imori_tls_renewal_refused", help, f64::from(u8::from(is_refused)));
    let usage = usage();
    let figures = [
        (
            "counter",
            "process_cpu_seconds_total",
            "Time of the processors that the process used.",
            usage.cpu_s,
        ),
        ("gauge", "process_virtual_memory_bytes", "Addresses that the process has.", usage.virtual_bytes),
        ("gauge", "process_threads", "Threads of the process.", usage.threads),
        ("gauge", "process_open_fds", "Files and sockets that are open.", usage.open_files),
        ("gauge", "process_max_fds", "Files and sockets that may be open.", usage.open_files_max),
        ("gauge", "rabbitmq_process_open_fds", "Files and sockets that are open.", usage.open_files),
        ("gauge", "rabbitmq_process_max_fds", "Files and sockets that may be open.", usage.open_files_max),
    ];
    for (kind, name, help, value) in figures {
        if let Some(value) = value {
            page.head(name, help, kind);
            page.sample(name, &[], value);
        }
    }
    page.gauge("rabbitmq_process_id", "The number of the process.", f64::from(process::id()));
    if let Some(bytes) = memory_bytes() {
        for name in ["process_resident_memory_bytes", "rabbitmq_process_resident_memory_bytes"] {
            page.gauge(name, "Memory that the process has.", bytes as f64);
        }
    }
}

/// A metric of connections by protocol: type, name, help, value.
type OfProtocol = (&'static str, &'static str, &'static str, fn(&Sums) -> u64);

fn push_connections(page: &mut Exposition, metrics: &Metrics, traffic: &Traffic) {
    let kinds: Vec<Option<Spoken>> = Spoken::ALL.map(Some).into_iter().chain([None]).collect();
    let closed = |of: usize| {
        let both = traffic.ever.get(of).zip(traffic.open.get(of));
        both.map_or(0, |(ever, open)| ever.connections.saturating_sub(open.connections))
    };
    let open: u64 = traffic.open.iter().map(|sums| sums.connections).sum();
    page.gauge("rabbitmq_connections", "Open connections.", open as f64);
    page.gauge("rabbitmq_channels", "Open channels of AMQP.", traffic.channels as f64);
    page.gauge(
        "rabbitmq_consumers",
        "Consumers and subscriptions.",
        traffic.readers.iter().sum::<u64>() as f64,
    );
    let accepted = metrics.broker.admitted_connections() as f64;
    page.counter("imori_connections_accepted_total", "Connections that were let in.", accepted);
    let by_kind = |value: &dyn Fn(usize) -> u64| -> Vec<(&'static str, f64)> {
        kinds.iter().map(|protocol| (label(*protocol), value(kind(*protocol)) as f64)).collect()
    };
    let family = ("rabbitmq_connections_closed_total", "Connections that have ended.");
    page.each("counter", family, "protocol", by_kind(&closed));
    let family = ("rabbitmq_global_consumers", "Consumers and subscriptions.");
    page.each("gauge", family, "protocol", by_kind(&|of| traffic.readers.get(of).copied().unwrap_or(0)));
    let open: [OfProtocol; 2] = [
        ("gauge", "imori_connections", "Open connections.", |sums| sums.connections),
        ("gauge", "rabbitmq_global_publishers", "Open connections that have published.", |sums| {
            sums.publishers
        }),
    ];
    let ever: [OfProtocol; 15] = [
        ("counter", "rabbitmq_connections_opened_total", "Connections that were opened.", |of| {
            of.connections
        }),
        ("counter", "rabbitmq_channels_opened_total", "Channels that were opened.", |of| {
            of.activity.sessions_opened
        }),
        ("counter", "rabbitmq_channels_closed_total", "Channels that were closed by their clients.", |of| {
            of.activity.sessions_ended
        }),
        ("counter", "imori_received_bytes_total", "Bytes that were read.", |of| of.bytes_in),
        ("counter", "imori_sent_bytes_total", "Bytes that were written, or are to be.", |of| of.bytes_out),
        ("counter", "rabbitmq_global_messages_received_total", "Messages that clients published.", |of| {
            of.messages_in
        }),
        ("counter", "rabbitmq_global_messages_delivered_total", "Deliveries to clients.", |of| {
            of.messages_out
        }),
        (
            "counter",
            "rabbitmq_global_messages_delivered_consume_manual_ack_total",
            "Deliveries to consumers that settle them.",
            |of| of.activity.delivered_unsettled,
        ),
        (
            "counter",
            "rabbitmq_global_messages_delivered_consume_auto_ack_total",
            "Deliveries to consumers that do not settle, to live subscriptions and to inboxes.",
            |of| {
                let settled_or_got =
                    of.activity.delivered_unsettled + of.activity.got_unsettled + of.activity.got_settled;
                of.messages_out.saturating_sub(settled_or_got)
            },
        ),
        (
            "counter",
            "rabbitmq_global_messages_delivered_get_manual_ack_total",
            "Messages that were asked for and are settled.",
            |of| of.activity.got_unsettled,
        ),
        (
            "counter",
            "rabbitmq_global_messages_delivered_get_auto_ack_total",
            "Messages that were asked for and are not settled.",
            |of| of.activity.got_settled,
        ),
        (
            "counter",
            "rabbitmq_global_messages_get_empty_total",
            "Times that a queue asked for had none.",
            |of| of.activity.got_nothing,
        ),
        (
            "counter",
            "rabbitmq_global_messages_redelivered_total",
            "Deliveries of messages that were given out before.",
            |of| of.activity.redelivered,
        ),
        (
            "counter",
            "rabbitmq_global_messages_acknowledged_total",
            "Deliveries that clients accepted.",
            |of| of.activity.accepted,
        ),
        ("counter", "rabbitmq_global_messages_confirmed_total", "Confirms that left.", |of| {
            of.activity.confirmed.iter().sum()
        }),
    ];
    let figures = open.into_iter().map(|figure| (figure, &traffic.open));
    for ((kind, name, help, value), sums) in
        figures.chain(ever.into_iter().map(|figure| (figure, &traffic.ever)))
    {
        page.each(kind, (name, help), "protocol", by_kind(&|of| sums.get(of).map_or(0, value)));
    }
    let name = "imori_settled_total";
    page.head(name, "Deliveries that clients settled.", "counter");
    for protocol in &kinds {
        let activity = traffic.ever.get(kind(*protocol)).map(|sums| sums.activity).unwrap_or_default();
        let outcomes =
            [("accept", activity.accepted), ("release", activity.released), ("reject", activity.rejected)];
        for (outcome, count) in outcomes {
            page.sample(name, &[("protocol", label(*protocol)), ("outcome", outcome)], count as f64);
        }
    }
    let name = "imori_confirms_total";
    page.head(name, "Confirms that left, by what they promise.", "counter");
    for protocol in &kinds {
        let activity = traffic.ever.get(kind(*protocol)).map(|sums| sums.activity).unwrap_or_default();
        for (level, count) in Level::ALL.into_iter().zip(activity.confirmed) {
            page.sample(name, &[("protocol", label(*protocol)), ("level", level.as_str())], count as f64);
        }
    }
}

fn push_logins(page: &mut Exposition, metrics: &Metrics) {
    let name = "imori_logins_total";
    page.head(name, "Logins, by what became of them.", "counter");
    let (mut granted, mut refused) = (0, 0);
    for (protocol, counts) in metrics.broker.login_counts() {
        let protocol = protocol.map_or("http", Spoken::label);
        for (outcome, count) in OUTCOMES.into_iter().zip(counts) {
            page.sample(name, &[("protocol", protocol), ("result", outcome)], count as f64);
        }
        granted += counts[0];
        refused += counts[1];
    }
    let all = (granted + refused) as f64;
    page.counter("rabbitmq_auth_attempts_total", "Logins that were decided.", all);
    page.counter("rabbitmq_auth_attempts_succeeded_total", "Logins that were granted.", granted as f64);
    page.counter("rabbitmq_auth_attempts_failed_total", "Logins that were refused.", refused as f64);
}

fn push_traces(page: &mut Exposition, metrics: &Metrics) {
    let help = "Spans that were not sent, as the collector was slower than the publishers.";
    page.counter("imori_trace_spans_lost_total", help, metrics.broker.lost_spans() as f64);
}

fn push_messages(page: &mut Exposition, metrics: &Metrics) {
    let unroutable = metrics.counted(Counter::Unroutable);
    let routed = (metrics.counted(Counter::Published) - unroutable).max(0.0);
    let help = "Messages that found a queue, a subscription or an inbox.";
    page.counter("rabbitmq_global_messages_routed_total", help, routed);
    let help = "Messages that found nobody, those included that were returned.";
    page.counter("rabbitmq_global_messages_unroutable_dropped_total", help, unroutable);
    let lost = [
        ("unroutable", unroutable),
        ("inbox_gone", metrics.counted(Counter::ReplyDropped)),
        ("dead_letter_unroutable", metrics.counted(Counter::DeadLetterDropped)),
        ("no_form", metrics.counted(Counter::NoForm)),
    ];
    let family = ("imori_messages_dropped_total", "Messages and deliveries that nobody has, by the reason.");
    page.each("counter", family, "reason", lost);
    let died = DeathReason::ALL.map(|reason| (reason.as_str(), metrics.counted(Counter::died(reason))));
    let family =
        ("imori_messages_died_total", "Messages that left a queue without being accepted, by the reason.");
    page.each("counter", family, "reason", died);
    for reason in DeathReason::ALL {
        let name = format!("rabbitmq_global_messages_dead_lettered_{}_total", reason.as_str());
        let value = metrics.counted(Counter::dead_lettered(reason));
        page.counter(&name, "Messages that were dead-lettered for this reason.", value);
    }
    let refused = metrics.counted(Counter::BytesRefused);
    let help = "Publishes that were refused, as the vhost was at its `max-bytes`.";
    page.counter("imori_publishes_over_max_bytes_total", help, refused);
    let limited = metrics.counted(Counter::RateLimited);
    let help = "Times that a publisher had to wait for the rate of its user or vhost.";
    page.counter("imori_publishers_rate_limited_total", help, limited);
    let cut = [
        ("too_slow", metrics.counted(Counter::CutTooSlow)),
        ("unfinished", metrics.counted(Counter::CutUnfinished)),
        ("fault", metrics.counted(Counter::Fault)),
    ];
    let family = ("imori_connections_cut_total", "Connections that the broker ended, by the reason.");
    page.each("counter", family, "reason", cut);
    let confirms = metrics.broker.times(Latency::Confirm);
    let family =
        ("imori_confirm_seconds", "From a publish to its confirm, where that waited for the disk; a sample.");
    page.histogram(family, &LATENCY_BOUNDS_US, &confirms.classes, confirms.sum);
    let waits = metrics.broker.times(Latency::QueueWait);
    let family = ("imori_queue_wait_seconds", "How old a message is when a queue gives it out; a sample.");
    page.histogram(family, &LATENCY_BOUNDS_US, &waits.classes, waits.sum);
}

fn push_queues(page: &mut Exposition, metrics: &Metrics, sums: &QueueSums) {
    for (counter, name, help) in [
        (Counter::QueueDeclared, "rabbitmq_queues_declared_total", "Declarations of queues."),
        (Counter::QueueCreated, "rabbitmq_queues_created_total", "Queues that were made."),
        (Counter::QueueDeleted, "rabbitmq_queues_deleted_total", "Queues that were deleted."),
        (
            Counter::Throttled,
            "imori_publishers_throttled_total",
            "Times that a publisher had to wait for a queue.",
        ),
    ] {
        page.counter(name, help, metrics.counted(counter));
    }
    let throttling = metrics.broker.memory_figures().throttling_queues;
    for (name, help, value) in [
        ("rabbitmq_queues", "Queues.", sums.queues),
        ("rabbitmq_queue_messages_ready", "Messages that wait in queues.", sums.ready),
        ("rabbitmq_queue_messages_unacked", "Messages that are with consumers.", sums.unsettled),
        ("rabbitmq_queue_messages", "Messages in queues.", sums.ready + sums.unsettled),
        ("rabbitmq_queue_messages_ready_bytes", "Bytes of the bodies that wait in queues.", sums.ready_bytes),
        ("imori_queue_messages_delayed", "Messages that wait for their time.", sums.delayed),
        (
            "imori_queues_throttling",
            "Queues that have their publishers wait, as they grow faster than their pages are written.",
            throttling as u64,
        ),
        ("imori_streams", "Streams, which are queues too.", sums.streams),
    ] {
        page.gauge(name, help, value as f64);
    }
    let requests = metrics.broker.stream_requests(None);
    let help = "Answers to requests of JetStream's API.";
    page.counter("imori_stream_api_requests_total", help, requests.total as f64);
    let help = "Answers among these that are errors.";
    page.counter("imori_stream_api_errors_total", help, requests.errors as f64);
}

fn push_busiest(page: &mut Exposition, sums: &QueueSums) {
    for family in &QUEUE_FAMILIES {
        family.head(page, "rabbitmq_detailed_");
        for queue in &sums.busiest {
            family.sample(page, "rabbitmq_detailed_", queue);
        }
    }
    for family in &STREAM_FAMILIES {
        family.head(page);
        for stream in &sums.busiest_streams {
            family.samples(page, stream);
        }
    }
}

fn push_memory(page: &mut Exposition, metrics: &Metrics) {
    let memory = metrics.broker.memory_figures();
    let bytes = [
        ("waiting", memory.waiting_bytes as f64),
        ("unfinished", memory.unfinished_bytes as f64),
        ("bodies", memory.bodies_bytes as f64),
    ];
    let help =
        "Memory of messages that wait, of large ones that are not whole yet, and of HTTP requests' bodies.";
    let family = ("imori_memory_bytes", help);
    page.each("gauge", family, "of", bytes);
    let help = "Connections that are not read until there is memory for their large message.";
    page.gauge("imori_connections_waiting_for_memory", help, memory.waiting_connections as f64);
    let mark = memory.mark_bytes as f64;
    page.gauge("rabbitmq_resident_memory_limit_bytes", "Above this much that waits, publishers wait.", mark);
    let is_full = metrics.broker.journal_figures().is_space_low;
    let alarms = [("memory", memory.is_alarmed), ("disk", memory.is_disk_alarmed), ("disk_space", is_full)];
    let family = ("imori_alarm", "Whether publishers wait: for memory, for the disk, or for space on it.");
    page.each("gauge", family, "of", alarms.map(|(of, is_raised)| (of, f64::from(u8::from(is_raised)))));
    let is_raised = |is_raised: bool| f64::from(u8::from(is_raised));
    let help = "Whether publishers wait for memory.";
    page.gauge("rabbitmq_alarms_memory_used_watermark", help, is_raised(memory.is_alarmed));
    let help = "Whether publishers wait for space on the disk.";
    page.gauge("rabbitmq_alarms_free_disk_space_watermark", help, is_raised(is_full));
}

fn push_store(page: &mut Exposition, metrics: &Metrics) {
    let broker = &metrics.broker;
    let (journal, commits) = (broker.journal_figures(), broker.commit_figures());
    let counts = &commits.counts;
    let family = ("imori_commit_seconds", "From the write of a batch to the end of its sync.");
    page.histogram(family, &COMMIT_BOUNDS_US, &counts.classes, counts.total);
    // The commit in progress is not counted yet, but it is the one that matters.
    let longest = commits.longest_of_second.max(journal.flushing_for.unwrap_or_default());
    let help = "The longest commit of the last second, the one under way included.";
    page.gauge("imori_commit_max_seconds", help, longest.as_secs_f64());
    let longest = commits.longest_of_minute.max(longest);
    let help = "The longest commit of the last minute, the one under way included.";
    page.gauge("imori_commit_max_minute_seconds", help, longest.as_secs_f64());
    page.counter("imori_journal_records_total", "Records that were committed.", counts.records as f64);
    page.counter("imori_journal_bytes_total", "Bytes of these.", counts.bytes as f64);
    page.gauge("imori_journal_queued_bytes", "Bytes that wait for the disk.", journal.queued_bytes as f64);
    page.gauge("imori_journal_live_files", "Journal files that are needed.", journal.live_files as f64);
    if let Some(free_bytes) = journal.free_bytes {
        let help = "What is left on the disk.";
        page.gauge("rabbitmq_disk_space_available_bytes", help, free_bytes as f64);
        let help = "What is kept free on the disk.";
        page.gauge("rabbitmq_disk_space_available_limit_bytes", help, metrics.disk_reserve_bytes as f64);
    }
    let help = "Findings of damage that nobody has acknowledged.";
    page.gauge("imori_store_damages", help, broker.damages().len() as f64);
    let stalls = Cause::ALL.map(|cause| (cause.label(), broker.stall_count(cause) as f64));
    let family = ("imori_stalls_total", "Late flushes and cells that are over, by what was behind them.");
    page.each("counter", family, "cause", stalls);
}

fn push_cells(page: &mut Exposition, metrics: &Metrics) {
    let (mut lags, mut busy) = (Vec::new(), Vec::new());
    for (id, cell) in metrics.broker.cell_figures().into_iter().enumerate() {
        lags.push((id.to_string(), cell.longest_lag.as_secs_f64()));
        busy.push((id.to_string(), f64::from(cell.busy_percent) / 100.0));
    }
    let family = ("imori_cell_lag_seconds", "How late a cell came to its work at most, in the last second.");
    page.each("gauge", family, "cell", lags);
    page.each(
        "gauge",
        ("imori_cell_busy_ratio", "The part of the time in which a cell works."),
        "cell",
        busy,
    );
}
