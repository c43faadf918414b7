//! End-to-end tests with a client and a reader of the monitor. Names and types of fields are those of nats-server
//! 2.15.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use imori_server::Server;
use imori_server::config::{Config, ProtocolName, Service};
use jiff::Timestamp;
use serde_json::Value;
use tempfile::TempDir;

/// A broker that stops on drop.
struct Running {
    server: Option<Server>,
    _data: TempDir,
}

impl Running {
    fn start() -> Running {
        let data = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        config.broker.data_dir = data.path().to_owned();
        config.listeners.stomp = vec!["127.0.0.1:0".parse().unwrap()];
        config.listeners.nats = vec!["127.0.0.1:0".parse().unwrap()];
        config.listeners.amqp = Vec::new();
        config.listeners.ws = Vec::new();
        config.listeners.nats_monitor = vec!["127.0.0.1:0".parse().unwrap()];
        config.listeners.automation = Vec::new();
        config.listeners.admin = Vec::new();
        config.broker.host_names = vec!["mq.example".parse().unwrap()];
        Running {
            server: Some(Server::start_with(&config, |broker| imori_admin::services(broker, None)).unwrap()),
            _data: data,
        }
    }

    fn address(&self, service: Service) -> SocketAddr {
        let listeners = self.server.as_ref().map(Server::listeners).unwrap_or_default();
        listeners.iter().find(|listener| listener.name.service == service).expect("it was bound").address
    }

    fn connect(&self, service: Service) -> TcpStream {
        let stream = TcpStream::connect(self.address(service)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends a raw request; returns the response's status and body.
    fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = self.connect(Service::NatsMonitor);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).expect("a status").parse().unwrap();
        (status, String::from(body))
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.raw(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    fn login(&self) -> Client {
        let mut client = Client(BufReader::new(self.connect(Service::Messages(ProtocolName::Stomp))));
        client.write("CONNECT\naccept-version:1.2\nhost:/\n\n\0");
        assert!(client.read().starts_with("CONNECTED"));
        client
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let stop = server.stop_handle();
            stop.stop();
            stop.stop();
            server.join().unwrap();
        }
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn write(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    fn read(&mut self) -> String {
        let mut frame = Vec::new();
        self.0.read_until(b'\0', &mut frame).unwrap();
        String::from(String::from_utf8(frame).unwrap().trim_start())
    }

    /// Sends a frame and waits for its receipt.
    fn confirmed(&mut self, head: &str, body: &str) {
        self.write(&format!("{head}\nreceipt:r\n\n{body}\0"));
        assert!(self.read().starts_with("RECEIPT"));
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    /// An RFC 3339 timestamp.
    When,
    /// A duration in words, such as `1h2m3s`.
    Span,
    Whole,
    Number,
    List,
    Object,
}

use Kind::{List, Number, Object, Span, Text, When, Whole};

const VARZ: &[(&str, Kind)] = &[
    ("server_id", Text),
    ("server_name", Text),
    ("version", Text),
    ("host", Text),
    ("port", Whole),
    ("max_connections", Whole),
    ("proto", Whole),
    ("ping_interval", Whole),
    ("ping_max", Whole),
    ("max_control_line", Whole),
    ("http_host", Text),
    ("http_port", Whole),
    ("http_base_path", Text),
    ("https_port", Whole),
    ("auth_timeout", Number),
    ("max_payload", Whole),
    ("max_pending", Whole),
    ("cluster", Object),
    ("gateway", Object),
    ("leaf", Object),
    ("mqtt", Object),
    ("websocket", Object),
    ("jetstream", Object),
    ("start", When),
    ("now", When),
    ("uptime", Span),
    ("mem", Whole),
    ("cores", Whole),
    ("cpu", Number),
    ("connections", Whole),
    ("total_connections", Whole),
    ("routes", Whole),
    ("remotes", Whole),
    ("leafnodes", Whole),
    ("in_msgs", Whole),
    ("in_bytes", Whole),
    ("in_client_msgs", Whole),
    ("in_client_bytes", Whole),
    ("out_msgs", Whole),
    ("out_bytes", Whole),
    ("out_client_msgs", Whole),
    ("out_client_bytes", Whole),
    ("slow_consumers", Whole),
    ("subscriptions", Whole),
    ("http_req_stats", Object),
    ("config_load_time", When),
    ("slow_consumer_stats", Object),
];

const CONNZ: &[(&str, Kind)] = &[
    ("server_id", Text),
    ("now", When),
    ("num_connections", Whole),
    ("total", Whole),
    ("offset", Whole),
    ("limit", Whole),
    ("connections", List),
];

const CONNECTION: &[(&str, Kind)] = &[
    ("cid", Whole),
    ("kind", Text),
    ("type", Text),
    ("ip", Text),
    ("port", Whole),
    ("start", When),
    ("last_activity", When),
    ("uptime", Span),
    ("idle", Span),
    ("pending_bytes", Whole),
    ("in_msgs", Whole),
    ("out_msgs", Whole),
    ("in_bytes", Whole),
    ("out_bytes", Whole),
    ("subscriptions", Whole),
    ("version", Text),
];

const SUBSZ: &[(&str, Kind)] = &[
    ("server_id", Text),
    ("now", When),
    ("num_subscriptions", Whole),
    ("total", Whole),
    ("offset", Whole),
    ("limit", Whole),
];

/// Checks that an object has exactly these fields with these types.
fn check(object: &Value, fields: &[(&str, Kind)]) {
    for (name, kind) in fields {
        let value = object.get(name).unwrap_or_else(|| panic!("`{name}` is missing in {object}"));
        let is_right = match kind {
            Text => value.is_string(),
            When => {
                value.as_str().is_some_and(|text| text.ends_with('Z') && text.parse::<Timestamp>().is_ok())
            }
            Span => value.as_str().is_some_and(|text| {
                text.ends_with('s')
                    && text.chars().all(|char| char.is_ascii_digit() || "ydhms".contains(char))
            }),
            Whole => value.is_u64(),
            Number => value.is_number(),
            List => value.is_array(),
            Object => value.is_object(),
        };
        assert!(is_right, "`{name}` is no {kind:?}: {value}");
    }
    let others = object.as_object().unwrap().keys().filter(|key| fields.iter().all(|(name, _)| name != key));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn answers_have_the_fields_and_types_of_nats_server() {
    let running = Running::start();
    let _client = running.login();
    check(&running.json("/varz"), VARZ);
    let connz = running.json("/connz");
    check(&connz, CONNZ);
    check(&connz["connections"][0], CONNECTION);
    check(&running.json("/subsz"), SUBSZ);
    assert_eq!(running.json("/subscriptionsz?subs=0")["limit"], 1024);
    let routes =
        [("server_id", Text), ("server_name", Text), ("now", When), ("num_routes", Whole), ("routes", List)];
    check(&running.json("/routez"), &routes);
    check(&running.json("/healthz"), &[("status", Text)]);
    assert_eq!(running.get("/healthz?js-enabled-only=true").1, r#"{"status":"ok"}"#);
    assert_eq!(running.get("/healthz?damage=1").1, r#"{"status":"ok"}"#);
    let slow = &running.json("/varz")["slow_consumer_stats"];
    check(slow, &[("clients", Whole), ("routes", Whole), ("gateways", Whole), ("leafs", Whole)]);
    assert_eq!(
        running.json("/varz")["http_req_stats"],
        serde_json::json!({
            "/varz": 3, "/connz": 1, "/subsz": 2, "/routez": 1, "/healthz": 3,
        })
    );
}

#[test]
fn what_a_connection_does_is_counted() {
    let running = Running::start();
    let (mut reader, mut writer) = (running.login(), running.login());
    reader.confirmed("SUBSCRIBE\nid:live\ndestination:/topic/news.*", "");
    reader.confirmed("SUBSCRIBE\nid:queue\ndestination:/queue/orders", "");
    let before = running.json("/varz");
    for destination in ["/topic/news.today", "/queue/orders", "/topic/unheard"] {
        writer.confirmed(&format!("SEND\ndestination:{destination}"), "12345");
    }
    assert!(reader.read().starts_with("MESSAGE") && reader.read().starts_with("MESSAGE"));

    // Written bytes are pending until the writer has noted them.
    let mut connz = running.json("/connz?sort=cid");
    while connz["connections"].as_array().unwrap().iter().any(|one| one["pending_bytes"] != 0) {
        connz = running.json("/connz?sort=cid");
    }
    let [of_reader, of_writer] = connz["connections"].as_array().unwrap().as_slice() else {
        panic!("two connections: {connz}")
    };
    assert_eq!((&of_reader["cid"], &of_writer["cid"]), (&Value::from(1), &Value::from(2)));
    assert_eq!((&of_writer["type"], &of_writer["version"]), (&Value::from("stomp"), &Value::from("1.2")));
    assert_eq!((&of_writer["in_msgs"], &of_writer["out_msgs"]), (&Value::from(3), &Value::from(0)));
    assert_eq!((&of_reader["in_msgs"], &of_reader["out_msgs"]), (&Value::from(0), &Value::from(2)));
    assert_eq!(
        (&of_reader["subscriptions"], &of_writer["subscriptions"]),
        (&Value::from(2), &Value::from(0))
    );
    assert_eq!(of_writer["port"], writer.0.get_ref().local_addr().unwrap().port());
    let sent: u64 = ["/topic/news.today", "/queue/orders", "/topic/unheard"]
        .map(|to| format!("SEND\ndestination:{to}\nreceipt:r\n\n12345\0").len() as u64)
        .into_iter()
        .sum();
    let login = "CONNECT\naccept-version:1.2\nhost:/\n\n\0".len() as u64;
    assert_eq!(of_writer["in_bytes"], login + sent);

    let after = running.json("/varz");
    let grown = |field: &str| after[field].as_u64().unwrap() - before[field].as_u64().unwrap();
    assert_eq!((grown("in_msgs"), grown("out_msgs"), grown("in_bytes")), (3, 2, sent));
    assert!(grown("out_bytes") > 0);
    assert_eq!((&after["connections"], &after["total_connections"]), (&Value::from(2), &Value::from(2)));
    assert_eq!(after["subscriptions"], 2);
}

#[test]
fn a_nats_client_is_shown_as_it_was_told() {
    let running = Running::start();
    let _stomp = running.login();
    let mut client = BufReader::new(running.connect(Service::Messages(ProtocolName::Nats)));
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    let info: Value = serde_json::from_str(line.strip_prefix("INFO ").expect("it greets")).unwrap();
    let connect = r#"{"verbose":false,"name":"clock","lang":"go","version":"1.55.0"}"#;
    let operations = format!("CONNECT {connect}\r\nSUB time.* ticks 7\r\nPUB time.now 2\r\n12\r\nPING\r\n");
    client.get_mut().write_all(operations.as_bytes()).unwrap();
    let mut answers = [(); 3].map(|()| {
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        line
    });
    answers.sort();
    assert_eq!(answers, ["12\r\n", "MSG time.now 7 2\r\n", "PONG\r\n"]);

    let varz = running.json("/varz");
    for field in ["server_id", "server_name", "host", "port", "max_payload", "proto"] {
        assert_eq!(varz[field], info[field], "{field}");
    }
    assert_eq!(
        (&varz["ping_interval"], &varz["ping_max"]),
        (&Value::from(120_000_000_000_u64), &Value::from(2))
    );
    let connz = running.json(&format!("/connz?subs=detail&cid={}", info["client_id"]));
    let shown = &connz["connections"][0];
    for (field, expected) in
        [("type", "nats"), ("kind", "Client"), ("name", "clock"), ("lang", "go"), ("version", "1.55.0")]
    {
        assert_eq!(shown[field], expected, "{field}");
    }
    assert_eq!((&shown["in_msgs"], &shown["out_msgs"]), (&Value::from(1), &Value::from(1)));
    let detail = serde_json::json!([{ "subject": "time.*", "qgroup": "ticks", "cid": info["client_id"] }]);
    assert_eq!(shown["subscriptions_list_detail"], detail);
}

#[test]
fn what_was_counted_outlives_its_connection() {
    let running = Running::start();
    let mut client = running.login();
    client.confirmed("SUBSCRIBE\nid:live\ndestination:/topic/news", "");
    client.write("SEND\ndestination:/topic/news\n\n1\0");
    assert!(client.read().starts_with("MESSAGE"));
    let before = running.json("/varz");
    client.confirmed("DISCONNECT", "");
    drop(client);
    let mut after = running.json("/varz");
    while after["connections"] != 0 {
        after = running.json("/varz");
    }
    for field in ["in_msgs", "out_msgs", "in_bytes", "out_bytes"] {
        assert!(after[field].as_u64() >= before[field].as_u64(), "{field}: {before} {after}");
        assert!(after[field].as_u64() > Some(0), "{field}");
    }
    assert_eq!((&after["total_connections"], &after["subscriptions"]), (&Value::from(1), &Value::from(0)));
}

#[test]
fn a_send_that_makes_its_queue_is_published_once() {
    let running = Running::start();
    let mut client = running.login();
    client.confirmed("SEND\ndestination:/queue/new", "1");
    client.confirmed("SEND\ndestination:/queue/late\nx-delay:60000", "2");
    // The third publish with the same header takes the path for repeated headers.
    for _ in 0..3 {
        client.write("SEND\ndestination:/amq/queue/absent\ncontent-length:1\n\n3\0");
    }
    client.confirmed("SEND\ndestination:/queue/new", "6");
    let (_, metrics) = running.get("/metrics");
    for line in [
        "rabbitmq_global_messages_received_total{protocol=\"stomp\"} 6",
        "rabbitmq_global_messages_unroutable_dropped_total 3",
        "rabbitmq_global_messages_routed_total 3",
        "rabbitmq_queues_created_total 2",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line}: {metrics}");
    }
}

#[test]
fn the_store_is_shown_with_what_was_confirmed() {
    let running = Running::start();
    let mut client = running.login();
    for name in ["a", "b", "c"] {
        client.confirmed(&format!("SEND\ndestination:/queue/{name}\npersistent:true"), "12345");
    }
    client.confirmed("SEND\ndestination:/queue/a", "transient");
    let mut reader = running.login();
    reader.write("SUBSCRIBE\nid:r\ndestination:/queue/b\nack:client\n\n\0");
    assert!(reader.read().starts_with("MESSAGE"));
    let storez = running.json("/storez");
    assert_eq!(storez["confirms"], serde_json::json!({ "memory": 1, "os": 0, "disk": 3 }), "{storez}");
    assert_eq!(storez["store"]["id"].as_str().map(str::len), Some(8));
    assert_eq!(storez["store"]["last_end"], "never used before");
    assert_eq!(storez["store"]["damage"], serde_json::json!([]));
    assert_eq!(storez["store"]["recovered"]["records"], 0);
    assert_eq!(storez["store"]["recovered"]["absent"], serde_json::json!([]));
    let journal = &storez["journal"];
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
    assert_eq!((&journal["written"], &journal["synced"]), (&journal["synced"], &journal["written"]));
    assert!(number(&journal["next"]) > number(&journal["synced"]));
    let commits = &journal["commits"];
    let classes = commits["histogram"].as_array().unwrap().iter().map(|class| number(&class["count"]));
    assert_eq!(classes.sum::<u64>(), number(&commits["count"]), "{commits}");
    assert!(number(&commits["count"]) > 0 && number(&commits["max_us_last_minute"]) > 0);
    assert!(number(&commits["max_us_last_minute"]) >= number(&commits["mean_us"]));
    let alarms = serde_json::json!({ "memory": false, "disk": false, "disk_space": false, "queues": 0 });
    assert_eq!(storez["alarms"], alarms);
    assert!(storez["stalls"]["total"].is_u64() && !storez["cells"].as_array().unwrap().is_empty());
    let names = |path: &str| {
        let page = running.json(path);
        assert_eq!(
            (&page["total"], &page["num_queues"]),
            (&Value::from(3), &Value::from(page["queues"].as_array().unwrap().len()))
        );
        page["queues"]
            .as_array()
            .unwrap()
            .iter()
            .map(|queue| String::from(queue["name"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("/storez"), ["a", "b", "c"]);
    assert_eq!(names("/storez?offset=1&limit=1"), ["b"]);
    assert_eq!(names("/storez?offset=9"), Vec::<String>::new());
    let expected = serde_json::json!({
        "name": "b", "vhost": "/", "level": "disk", "ready": 0, "delayed": 0, "unsettled": 1, "consumers": 1, "pressing": false
    });
    assert_eq!(storez["queues"][1], expected);
}

#[test]
fn numbers_are_there_for_prometheus() {
    let running = Running::start();
    let mut client = running.login();
    // A commit is counted before the next one is confirmed.
    for _ in 0..2 {
        client.confirmed("SEND\ndestination:/queue/a\npersistent:true", "12345");
    }
    client.confirmed("SEND\ndestination:/topic/nobody", "");
    let (status, text) = running.get("/metrics");
    assert_eq!(status, 200);
    let value = |name: &str| {
        let line =
            text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
        line.unwrap_or_else(|| panic!("`{name}` is missing: {text}"))
            .rsplit(' ')
            .next()
            .unwrap()
            .parse::<f64>()
            .unwrap()
    };
    for (name, expected) in [
        ("imori_confirms_total{protocol=\"stomp\",level=\"memory\"}", 1.0),
        ("imori_confirms_total{protocol=\"stomp\",level=\"disk\"}", 2.0),
        ("imori_confirms_total{protocol=\"nats\",level=\"disk\"}", 0.0),
        ("rabbitmq_global_messages_confirmed_total{protocol=\"stomp\"}", 3.0),
        ("rabbitmq_queue_messages_ready", 2.0),
        ("rabbitmq_queue_messages_ready_bytes", 10.0),
        ("rabbitmq_detailed_queue_messages_ready{vhost=\"/\",queue=\"a\"}", 2.0),
        ("imori_queue_messages_delayed", 0.0),
        ("rabbitmq_connections", 1.0),
        ("imori_connections{protocol=\"stomp\"}", 1.0),
        ("rabbitmq_connections_opened_total{protocol=\"stomp\"}", 1.0),
        ("imori_logins_total{protocol=\"stomp\",result=\"granted\"}", 1.0),
        ("imori_alarm{of=\"disk\"}", 0.0),
        ("imori_queues_throttling", 0.0),
        ("imori_publishers_throttled_total", 0.0),
        ("imori_stalls_total{cause=\"frozen\"}", 0.0),
    ] {
        assert_eq!(value(name), expected, "{name}");
    }
    assert!(value("imori_messages_dropped_total{reason=\"unroutable\"}") >= 1.0);
    assert!(value("imori_confirm_seconds_count") >= 1.0, "a confirm that waited for the disk is followed");
    let received = value("rabbitmq_global_messages_received_total{protocol=\"stomp\"}");
    assert_eq!(Some(received), running.json("/varz")["in_msgs"].as_f64());
    assert!(value("imori_commit_seconds_count") >= 1.0);
    assert_eq!(value("imori_commit_seconds_bucket{le=\"+Inf\"}"), value("imori_commit_seconds_count"));
    assert!(value("imori_commit_max_seconds") > 0.0);
    assert!(value("imori_cell_lag_seconds{cell=\"0\"}") >= 0.0);
    let is_sample = |line: &str| {
        ["imori_", "rabbitmq_", "process_"].iter().any(|prefix| line.starts_with(prefix))
            && line.rsplit(' ').next().is_some_and(|v| v.parse::<f64>().is_ok())
    };
    assert!(text.lines().all(|line| line.starts_with("# ") || is_sample(line)), "{text}");
}

#[test]
fn lists_are_cut_into_pages_and_filtered() {
    let running = Running::start();
    let mut clients: Vec<_> = (0..3).map(|_| running.login()).collect();
    let cids = |path: &str| {
        let list = running.json(path);
        assert_eq!(list["num_connections"], list["connections"].as_array().unwrap().len());
        let cids = list["connections"].as_array().unwrap().iter().map(|one| one["cid"].as_u64().unwrap());
        cids.collect::<Vec<_>>()
    };
    for (path, expected) in [
        ("/connz", &[1, 2, 3][..]),
        ("/connz?offset=1&limit=1", &[2]),
        ("/connz?offset=9", &[]),
        ("/connz?cid=3", &[3]),
        ("/connz?cid=9", &[]),
        ("/connz?state=closed", &[]),
        ("/connz?state=all&sort=uptime", &[3, 2, 1]),
        ("/connz?auth=true", &[1, 2, 3]),
    ] {
        assert_eq!(cids(path), expected, "{path}");
    }
    clients[0].confirmed("SUBSCRIBE\nid:a\ndestination:/topic/a.*", "");
    clients[1].confirmed("SUBSCRIBE\nid:b\ndestination:/topic/a.b", "");
    clients[1].confirmed("SUBSCRIBE\nid:c\ndestination:/queue/a.b", "");
    clients[2].confirmed("SUBSCRIBE\nid:d\ndestination:/exchange/amq.direct/a.b", "");
    let subjects = |path: &str| {
        let list = running.json(path)["subscriptions_list"].take();
        let subjects =
            list.as_array().into_iter().flatten().map(|one| String::from(one["subject"].as_str().unwrap()));
        subjects.collect::<Vec<_>>()
    };
    for (path, expected) in [
        ("/subsz?subs=1", &["a.*", "a.b", "a.b", "amq.direct/a.b"][..]),
        ("/subsz?subs=true&offset=3&limit=5", &["amq.direct/a.b"]),
        ("/subsz?subs=1&test=a.b", &["a.*", "a.b"]),
        ("/subsz?subs=1&test=a%2Ec", &["a.*"]),
        ("/subsz", &[]),
    ] {
        assert_eq!(subjects(path), expected, "{path}");
    }
    assert_eq!(running.json("/subsz?subs=1&test=a.b&limit=1")["total"], 2);
    assert_eq!(running.json("/subsz")["num_subscriptions"], 4);
    let listed = running.json("/connz?subs=1");
    assert_eq!(listed["connections"][1]["subscriptions_list"], serde_json::json!(["a.b", "a.b"]));
    let detail = running.json("/connz?subs=detail&cid=1");
    let expected = serde_json::json!([{ "subject": "a.*", "cid": 1 }]);
    assert_eq!(detail["connections"][0]["subscriptions_list_detail"], expected);
}

/// SECURITY WEB-02, WEB-07.
#[test]
fn only_proper_requests_are_answered() {
    let running = Running::start();
    let end = "Connection: close\r\n\r\n";
    let long = format!("X: {}\r\n", "x".repeat(16 * 1024));
    let many = "X: x\r\n".repeat(40);
    for (request, status) in [
        (format!("GET /varz HTTP/1.1\r\nHost: mq.example:8222\r\n{end}"), 200),
        (format!("GET /varz HTTP/1.1\r\nHost: evil.example\r\n{end}"), 421),
        (format!("GET /varz HTTP/1.1\r\n{end}"), 400),
        (format!("POST /varz HTTP/1.1\r\nHost: localhost\r\n{end}"), 405),
        (format!("DELETE /connz HTTP/1.1\r\nHost: localhost\r\n{end}"), 405),
        (format!("GET /nothing HTTP/1.1\r\nHost: localhost\r\n{end}"), 404),
        (format!("GET /jsz HTTP/1.1\r\nHost: localhost\r\n{end}"), 200),
        (format!("GET /connz?sort=foo HTTP/1.1\r\nHost: localhost\r\n{end}"), 400),
        (format!("GET /subsz?test=a.* HTTP/1.1\r\nHost: localhost\r\n{end}"), 400),
        (format!("GET /varz HTTP/1.1\r\nHost: localhost\r\n{long}{end}"), 431),
        (format!("GET /varz HTTP/1.1\r\nHost: localhost\r\n{many}{end}"), 431),
        (format!("GET /varz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n{end}ab"), 400),
        (String::from("CONNECT\naccept-version:1.2\n\n\0"), 400),
    ] {
        let (found, body) = running.raw(&request);
        assert_eq!(found, status, "{:?}: {body}", request.get(..80));
    }
    let head = running.raw(&format!("HEAD /varz HTTP/1.1\r\nHost: localhost\r\n{end}"));
    assert_eq!(head, (200, String::new()));
    assert!(running.get("/").1.contains("<a href=\"connz\">"));
}

#[test]
fn the_space_on_the_disk_is_known_before_anybody_can_ask() {
    for start in 0..3 {
        let storez = Running::start().json("/storez");
        assert!(storez["journal"]["free_bytes"].is_u64(), "start {start}: {}", storez["journal"]);
    }
}
