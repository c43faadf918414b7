//! The sections and keys. The text above a key is its documentation, in the sample file too.

use std::path::PathBuf;

use super::address::{ListenAddress, ListenerName};
use super::audit_output::AuditOutput;
use super::declare::sections;
use super::file_path::FilePath;
use super::host::{HostAndPort, HostName};
use super::log_output::LogOutput;
use super::network::Network;
use super::origin::Origin;
use super::quantity::{Bytes, Millis, Seconds};
use super::setting::{Names, choice};
use super::web_address::WebAddress;

sections! {
    /// Where clients connect. A reload opens and closes them; connections stay, whatever becomes of their listener. Beyond loopback only listeners with TLS are opened, and those without it that
    /// `broker.accept_plaintext` names.
    listeners: Listeners {
        /// Addresses that speak STOMP 1.0, 1.1 and 1.2. Port 0 takes a free port; an empty list
        /// switches the protocol off. An IPv6 address is left out, and that is no error, on a
        /// host without IPv6, as long as another address remains.
        stomp: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(61613), ListenAddress::loopback_v6(61613)] => AtOnce;
        /// Addresses that speak NATS. Otherwise as above.
        nats: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(4222), ListenAddress::loopback_v6(4222)] => AtOnce;
        /// Addresses that speak AMQP 0-9-1 with RabbitMQ's extensions. Otherwise as above.
        amqp: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(5672), ListenAddress::loopback_v6(5672)] => AtOnce;
        /// Addresses that speak, over WebSocket, those of STOMP and NATS that have a listener above. Otherwise
        /// as above.
        ws: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(15674), ListenAddress::loopback_v6(15674)] => AtOnce;
        /// Addresses that show connections, subscriptions and traffic over HTTP, at the paths and in
        /// the JSON of nats-server's monitoring, to whoever asks. Otherwise as above.
        nats_monitor: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(8222), ListenAddress::loopback_v6(8222)] => AtOnce;
        /// Addresses that show, close, purge and delete over HTTP, at the paths and in the JSON of RabbitMQ's
        /// management, for those who log in. Otherwise as above.
        admin: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(15672), ListenAddress::loopback_v6(15672)] => AtOnce;
        /// Addresses that speak STOMP inside TLS, by the certificate of the section `tls`; the usual port is 61614.
        /// Those below do likewise for the other protocols.
        stomp_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// NATS inside TLS from the first byte, which its clients call TLS first. For TLS that begins behind INFO
        /// there is `nats.tls`.
        nats_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// AMQP 0-9-1 inside TLS; the usual port is 5671.
        amqp_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// WebSocket inside TLS.
        ws_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Monitoring over HTTPS, still for whoever asks.
        nats_monitor_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Administration over HTTPS; the usual port is 15671.
        admin_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
    }

    /// Certificates of the listeners with TLS. A file that is replaced is read again, and so are all of them at SIGHUP;
    /// connections that are there keep theirs.
    tls: Tls {
        /// The certificate of this host and those between it and its CA, in PEM. Empty: nothing speaks TLS.
        certificate: FilePath = FilePath::default() => NewConnections;
        /// The private key of the certificate, in PEM. Only its owner may write it, and nobody beyond its group may
        /// read it.
        key: FilePath = FilePath::default() => NewConnections;
        /// Certificates of the CAs that clients' certificates are verified by, in PEM.
        client_ca: FilePath = FilePath::default() => NewConnections;
        /// Lists of clients' certificates that were revoked, in PEM.
        client_crl: FilePath = FilePath::default() => NewConnections;
        /// Whether clients are asked for a certificate. With `asked` they may have none; with `demanded` a client
        /// without one is refused.
        client_certificates: ClientCertificates = ClientCertificates::Ignored => NewConnections;
        /// The oldest version of TLS that is spoken.
        min_version: TlsVersion = TlsVersion::Tls12 => NewConnections;
        /// The field of a client's certificate that is the name of its user, letter by letter. A certificate that has
        /// it twice names nobody.
        user_from: UserFrom = UserFrom::Nothing => NewConnections;
        /// Time for the handshake, within `limits.login_timeout_s`.
        handshake_timeout_s: Seconds = Seconds(5), in Seconds(1)..=Seconds(60) => NewConnections;
    }

    /// The threads that own the connections.
    cells: Cells {
        /// How many cells there are. 0 means one for each core the process may use.
        count: u16 = 0, in 0..=1024 => Restart;
        /// Which cells write a plain TCP connection. With `any`, a cell that has something for it writes it,
        /// which saves a wake-up; with `own`, only its own cell does.
        write: WritePolicy = WritePolicy::Any => NewConnections;
        /// Microseconds for which a cell looks for more to do before it sleeps. It answers sooner, as nobody
        /// has to wake it, and takes a core for itself while there is traffic. That is worth it where cores
        /// are to spare.
        spin_us: u32 = 0, in 0..=1_000 => Restart;
        /// New connections go to the first cell until it is this busy, then to the least busy one.
        busy_percent: u8 = 70, in 1..=100 => AtOnce;
    }

    /// The broker as a whole.
    broker: Broker {
        /// The folder of everything that outlives a restart. A relative path starts where the
        /// broker was started.
        data_dir: PathBuf = PathBuf::from(".data") => Restart;
        /// Vhosts that a start makes where they are missing. Others can be made while the broker runs. A client that
        /// names none enters `/`.
        vhosts: Names = Names::one("/") => Restart;
        /// Names of this host. A client that gives one of them instead of a vhost enters `/`, as
        /// it does with `localhost` or an IP address.
        host_names: Vec<HostName> = Vec::new() => NewConnections;
        /// How long connections may finish what they have begun when the broker is asked to stop.
        shutdown_deadline_s: Seconds = Seconds(10), in Seconds(1)..=Seconds(3600) => AtOnce;
        /// Listeners without TLS that other hosts may reach, and log in at with a password that anybody on the way
        /// can read: names such as `nats`.
        accept_plaintext: Vec<ListenerName> = Vec::new() => NewConnections;
        /// Networks of proxies that begin each connection with a header of PROXY protocol 2, and are believed where
        /// it came from. Whoever else sends one is refused.
        proxy_from: Vec<Network> = Vec::new() => NewConnections;
        /// Above this share of the memory that the process may use, publishers wait.
        memory_mark_percent: u8 = 40, in 1..=90 => AtOnce;
    }

    /// Users, vhosts, permissions, exchanges, queues and bindings that the broker has without being asked.
    definitions: Definitions {
        /// A document in JSON as `imori definitions export` and RabbitMQ write it, read at the start and at each reload.
        /// Its users and vhosts belong to it: only the file changes them. What it does not have stays as it is.
        file: FilePath = FilePath::default() => AtOnce;
    }

    /// Logins. Users are made with `imori user` or over HTTP, and are kept in the data folder.
    users: Users {
        /// How long the built-in user `guest` with the password `guest` is there. It may use all messaging, administer
        /// nothing, and log in from this machine alone.
        guest: GuestLogin = GuestLogin::UntilUsers => AtOnce;
        /// Whether clients of AMQP 1.0 may log in by SASL SCRAM-SHA-256. Clients such as Qpid JMS prefer it, so it is
        /// offered once all users have keys for it, which are made with a password; `imori user ls` shows who has.
        scram: bool = false => NewConnections;
        /// The tag that sets the policies of a vhost, which can move and drop messages.
        policies: PolicySetter = PolicySetter::Policymaker => AtOnce;
        /// A file that nobody but its owner may read. Its first line becomes the password of the user `admin` at each
        /// start. Without one the first start makes a password and prints it once.
        admin_password_file: Option<PathBuf> = None => Restart;
    }

    /// Access tokens (JWT, RFC 9068) of one issuer, which clients give as password, as token of NATS or as
    /// `Authorization: Bearer`. Their scopes are the rights, in RabbitMQ's words.
    jwt: Jwt {
        /// The claim `iss` that a token has to have.
        issuer: Option<String> = None => Restart;
        /// The claim `aud` that a token has to have, or to have among others.
        audience: Option<String> = None => Restart;
        /// The public keys of the issuer: a JSON Web Key Set (RFC 7517). Empty, and `keys_url` too: no token is taken.
        keys_file: FilePath = FilePath::default() => Restart;
        /// Where the issuer publishes its keys.
        keys_url: Option<WebAddress> = None => Restart;
        /// The CA of that address, in PEM, instead of those of the system.
        keys_ca: FilePath = FilePath::default() => Restart;
        /// How often the keys are read again. A token with an unknown one has them read sooner, at most every 10 s.
        keys_refresh_s: Seconds = Seconds(300), in Seconds(10)..=Seconds(86_400) => Restart;
        /// The claim that is the user's name.
        user_claim: String = String::from("sub") => Restart;
        /// The claim that has the scopes, as a text with spaces between or as a list.
        scope_claim: String = String::from("scope") => Restart;
        /// Beginning of the scopes that are for this broker; others mean nothing here.
        scope_prefix: Option<String> = None => Restart;
        /// How far the clocks of issuer and broker may differ.
        leeway_s: Seconds = Seconds(5), in Seconds(0)..=Seconds(300) => Restart;
    }

    /// Spans of publishes for OpenTelemetry, of messages whose header `traceparent` says that their trace is kept.
    traces: Traces {
        /// The address of a collector that takes OTLP over HTTP, such as `http://localhost:4318/v1/traces`. Empty:
        /// nothing is traced.
        otlp_url: Option<WebAddress> = None => Restart;
        /// The CA of that address, in PEM, instead of those of the system.
        otlp_ca: FilePath = FilePath::default() => Restart;
    }

    /// Limits of the memory and places that one client, or all of them, can take. None can be switched off.
    limits: Limits {
        /// Open connections. More: accepting waits until one closes.
        connections: u32 = 65_536, in 1..=1_000_000 => AtOnce;
        /// Connections that have not logged in yet. More: the oldest that has sent no complete
        /// first frame is closed.
        unauthenticated: u32 = 4_096, in 1..=1_000_000 => AtOnce;
        /// Connections from one source address that have not logged in yet; loopback is exempt. More: a
        /// new one is closed.
        unauthenticated_per_source: u32 = 1_024, in 1..=1_000_000 => AtOnce;
        /// Bytes held for a connection that has not logged in yet. More: it is closed.
        unauthenticated_bytes: Bytes = Bytes::kib(64), in Bytes::kib(4)..=Bytes::mib(1) => NewConnections;
        /// Time from accept to logged in; nothing that a client sends extends it.
        login_timeout_s: Seconds = Seconds(10), in Seconds(1)..=Seconds(300) => NewConnections;
        /// Bytes of a message's body. Longer: the message is refused before its body is read.
        message_bytes: Bytes = Bytes::mib(16), in Bytes::kib(1)..=Bytes::gib(1) => NewConnections;
        /// Headers of a message. More: the message is refused.
        headers: u32 = 128, in 8..=4_096 => NewConnections;
        /// Bytes of all headers of a message, whose places are numbers of 16 bits. More: the message is refused.
        header_bytes: Bytes = Bytes::kib(64), in Bytes::kib(1)..=Bytes::kib(64) => NewConnections;
        /// Bytes that wait to be written to one connection, charged to the memory mark, of which they
        /// may be a quarter at most. More: a connection that does not read is closed.
        unsent_bytes: Bytes = Bytes::mib(256), in Bytes::mib(1)..=Bytes::gib(16) => NewConnections;
        /// Unsent bytes above which queues stop feeding a connection; the messages stay there.
        queue_feed_bytes: Bytes = Bytes::mib(1), in Bytes::kib(4)..=Bytes::gib(1) => NewConnections;
        /// Unsettled deliveries of a consumer that states no prefetch.
        prefetch_default: u32 = 65_535, in 1..=1_000_000 => NewConnections;
        /// Bytes of publishes that are parked for one connection while publishers wait. More: the
        /// connection is not read until they have gone on.
        parked_publish_bytes: Bytes = Bytes::mib(1), in Bytes::kib(64)..=Bytes::gib(1) => NewConnections;
        /// Bytes of memory that the waiting messages of a queue may keep. More: the rest goes to disk and is
        /// read ahead in time. It is an eighth while more than half of the memory mark is used. Where the disk takes
        /// the rest too slowly, publishers of the queue wait for it.
        queue_memory_bytes: Bytes = Bytes::mib(64), in Bytes::kib(16)..=Bytes::gib(64) => AtOnce;
        /// Subscriptions of a vhost. More: the subscription is refused.
        subscriptions: u32 = 1_000_000, in 1..=100_000_000 => AtOnce;
        /// Bindings of a vhost. More: the binding is refused.
        bindings: u32 = 1_000_000, in 1..=100_000_000 => AtOnce;
        /// Queues of a vhost. More: the declaration is refused.
        queues: u32 = 200_000, in 1..=10_000_000 => AtOnce;
    }

    /// The records kept on disk, in the folder `broker.data_dir`.
    journal: Journal {
        /// Bytes of a journal file, a multiple of 4096. Each is filled once and used again for ever. A
        /// message has to fit into one, with eight bytes for each durable queue that it goes to; larger ones
        /// are refused. The same holds for all that a transaction publishes and settles together.
        file_bytes: Bytes = Bytes::mib(64), in Bytes::mib(1)..=Bytes::mib(256) => Restart;
        /// Journal files that may be in use. More: what is still needed of the oldest is copied to segments.
        files: u16 = 4, in 2..=256 => Restart;
        /// The treatment of files with damage in records that were confirmed. With `quarantine` they are set
        /// aside unchanged, and the entries that verify are served; with `refuse` the broker does not start.
        on_damage: DamagePolicy = DamagePolicy::Quarantine => Restart;
        /// A flush that takes longer is told of in the log, while it lasts.
        slow_flush_ms: Millis = Millis(250), in Millis(10)..=Millis(60_000) => AtOnce;
        /// While a flush takes longer, `/healthz` of the monitor says that the broker is not healthy.
        stalled_flush_ms: Millis = Millis(1_000), in Millis(10)..=Millis(600_000) => AtOnce;
        /// Bytes of the disk that are left to others. Where less than two journal files are free beyond,
        /// publishers of persistent messages wait until four are.
        reserve_bytes: Bytes = Bytes::mib(16), in Bytes::mib(1)..=Bytes::gib(1_024) => Restart;
    }

    /// Settings of STOMP alone.
    stomp: Stomp {
        /// The broker offers heart-beats at least this far apart. A client that wants them rarer gets them
        /// rarer, and one that wants none gets none.
        heart_beat_send_ms: Millis = Millis(1_000), in Millis(1_000)..=Millis(3_600_000) => NewConnections;
        /// The broker asks for heart-beats at most this often; a client that sends them rarer may, and
        /// one that sends none is not asked to.
        heart_beat_receive_ms: Millis = Millis(1_000), in Millis(1_000)..=Millis(3_600_000) => NewConnections;
        /// Whether a connection stays open after an ERROR that concerns one frame only. STOMP 1.1
        /// and 1.2 demand that it is closed; some clients rely on the opposite.
        keep_open_after_error: bool = false => NewConnections;
        /// Open transactions of a connection. More: BEGIN is refused.
        transactions: u32 = 16, in 1..=1_024 => NewConnections;
        /// Frames of a transaction. More: the frame is refused.
        transaction_actions: u32 = 1_024, in 1..=65_536 => NewConnections;
    }

    /// Settings of NATS alone.
    nats: Nats {
        /// Whether clients may begin TLS behind INFO on `listeners.nats`. With `demanded` they have to.
        tls: NatsTls = NatsTls::None => NewConnections;
        /// Bytes of headers and payload of a message, as INFO says. More: the connection is closed.
        max_payload: Bytes = Bytes::mib(1), in Bytes::kib(1)..=Bytes::mib(64) => NewConnections;
        /// Bytes of a control line. More: the connection is closed.
        max_control_line: Bytes = Bytes::kib(4), in Bytes::kib(1)..=Bytes::mib(1) => NewConnections;
        /// Subscriptions of a connection. More: the subscription is refused.
        max_subscriptions: u32 = 1_000_000, in 1..=100_000_000 => NewConnections;
        /// A client that has said nothing for so long is asked for a PONG.
        ping_interval_s: Seconds = Seconds(120), in Seconds(1)..=Seconds(3600) => NewConnections;
        /// PINGs that a client may leave unanswered. More: the connection is closed.
        max_pings_out: u32 = 2, in 1..=100 => NewConnections;
        /// How long a client may stay after it was told that the broker stops.
        lame_duck_ms: Millis = Millis(1_000), in Millis(0)..=Millis(600_000) => NewConnections;
        /// Other addresses of this broker, `host:port`, that its clients may connect to.
        connect_urls: Vec<HostAndPort> = Vec::new() => NewConnections;
        /// The name of the broker in INFO.
        server_name: String = String::from("imori") => Restart;
    }

    /// Settings of AMQP alone.
    amqp: Amqp {
        /// Other brokers, `host:port`, that clients of AMQP 1.0 may go to when this one is gone.
        failover: Vec<HostAndPort> = Vec::new() => NewConnections;
    }

    /// Settings of WebSocket alone.
    ws: Ws {
        /// Web pages that may connect, each as its origin, such as `https://app.example`. A client that names
        /// no origin may connect in any case; only browsers name one. A page from the very host and
        /// port that it connects to may connect too; all others are refused.
        origins: Vec<Origin> = Vec::new() => NewConnections;
    }

    /// The monitor, and `/metrics` of the admin listener where it is read without a login.
    monitor: Monitor {
        /// Readers that see names and addresses: of queues, vhosts, users and clients. All others see numbers alone. A
        /// user with the tag `monitoring` who logs in, by password or token, sees names in any case.
        names: NamesShown = NamesShown::Loopback => AtOnce;
    }

    /// The log.
    log: Log {
        /// Where it is written. SIGUSR1 opens a file anew, so that it can be moved away before.
        output: LogOutput = LogOutput::StandardError => Restart;
        /// Where the audit log is written: who logged in, was refused or changed something. With `log` that is the rest
        /// of the log; then what clients declare, bind, purge and delete is left out. SIGUSR1 opens a file anew.
        audit: AuditOutput = AuditOutput::Log => Restart;
        /// The least important level that is still written.
        level: LogLevel = LogLevel::Info => AtOnce;
        /// `text` is one line for people, `json` one object for machines.
        format: LogFormat = LogFormat::Text => Restart;
    }
}

choice! {
    /// Which cells write a plain TCP connection.
    WritePolicy {
        /// Every cell that has something for it.
        Any = "any",
        /// Only the cell that owns it.
        Own = "own",
    }
}

choice! {
    /// How long the built-in user is there.
    GuestLogin {
        /// Until there is a user besides `admin`.
        UntilUsers = "until-users",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

choice! {
    /// Users that set the policies of a vhost.
    PolicySetter {
        /// Those with the tag `policymaker` and a permission in the vhost, as in RabbitMQ.
        Policymaker = "policymaker",
        /// Those with the tag `administrator` alone.
        Administrator = "administrator",
    }
}

choice! {
    /// Readers of the monitor that see names without a login.
    NamesShown {
        /// Those on this machine.
        Loopback = "loopback",
        /// None.
        Login = "login",
        /// All.
        All = "all",
    }
}

choice! {
    /// Whether clients are asked for a certificate.
    ClientCertificates {
        /// They are not.
        Ignored = "ignored",
        /// They are, and may have none.
        Asked = "asked",
        /// They are, and have to have one.
        Demanded = "demanded",
    }
}

choice! {
    /// A version of TLS.
    TlsVersion {
        /// TLS 1.2.
        Tls12 = "1.2",
        /// TLS 1.3.
        Tls13 = "1.3",
    }
}

choice! {
    /// The field of a certificate that names a user.
    UserFrom {
        /// None does.
        Nothing = "nothing",
        /// The common name of its subject.
        CommonName = "cn",
        /// A DNS name among its alternative names.
        Dns = "dns",
        /// A mail address among its alternative names.
        Email = "email",
        /// A URI among its alternative names.
        Uri = "uri",
        /// The whole subject, as RFC 4514 writes it.
        Subject = "subject",
    }
}

choice! {
    /// TLS that begins behind INFO.
    NatsTls {
        /// There is none.
        None = "none",
        /// Clients may begin it.
        Offered = "offered",
        /// Clients have to begin it.
        Demanded = "demanded",
    }
}

choice! {
    /// The treatment of damaged files.
    DamagePolicy {
        /// They are set aside.
        Quarantine = "quarantine",
        /// The broker does not start.
        Refuse = "refuse",
    }
}

choice! {
    /// How important a line of the log is.
    LogLevel {
        /// Something was lost or could not be done.
        Error = "error",
        /// Somebody should look at it.
        Warn = "warn",
        /// Events that an operator wants to know.
        Info = "info",
        /// Events that explain a connection's behaviour.
        Debug = "debug",
        /// Every step.
        Trace = "trace",
    }
}

choice! {
    /// The form of a line of the log.
    LogFormat {
        /// One line for people.
        Text = "text",
        /// One object for machines.
        Json = "json",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::declare::SetError;
    use crate::config::setting::Value;

    fn set(key: &str, value: &Value) -> Result<Config, SetError> {
        let mut config = Config::default();
        let (section, key) = key.split_once('.').expect("a dotted key");
        config.set(section, key, value).map(|()| config)
    }

    fn text(text: &str) -> Value {
        Value::Text(String::from(text))
    }

    #[test]
    fn every_default_lies_in_its_own_range() {
        for section in Config::default().sections() {
            for key in section.keys {
                assert!(key.is_in_range, "{}.{}", section.name, key.name);
            }
        }
    }

    #[test]
    fn values_are_read_by_section_and_key() {
        assert_eq!(set("limits.connections", &Value::Integer(7)).unwrap().limits.connections, 7);
        assert_eq!(set("limits.message_bytes", &text("2MiB")).unwrap().limits.message_bytes, Bytes::mib(2));
        assert_eq!(set("log.format", &text("json")).unwrap().log.format, LogFormat::Json);
        assert_eq!(set("broker.data_dir", &text("/srv")).unwrap().broker.data_dir, PathBuf::from("/srv"));
        let named = set("broker.host_names", &text("mq.example")).unwrap();
        assert_eq!(named.broker.host_names.first().map(HostName::as_str), Some("mq.example"));
        assert!(set("listeners.stomp", &Value::List(Vec::new())).unwrap().listeners.stomp.is_empty());
    }

    #[test]
    fn no_limit_can_be_zero_or_unlimited() {
        for section in Config::default().sections().iter().filter(|section| section.name == "limits") {
            for key in &section.keys {
                for value in [Value::Integer(0), Value::Integer(-1), text("unlimited"), text("0")] {
                    let refused = Config::default().set(section.name, key.name, &value);
                    assert!(matches!(refused, Err(SetError::Refused { .. })), "{} = {value:?}", key.name);
                }
            }
        }
    }

    #[test]
    fn a_refusal_says_what_is_expected() {
        for (key, value, expected) in [
            ("limits.connections", text("many"), "a whole number from 1 to 1000000"),
            (
                "limits.message_bytes",
                Value::Integer(1),
                "a size from `1KiB` to `1GiB`, as a number of bytes or a string such as `16MiB`",
            ),
            ("limits.login_timeout_s", Value::Integer(301), "a whole number of seconds from 1 to 300"),
            (
                "stomp.heart_beat_send_ms",
                Value::Integer(999),
                "a whole number of milliseconds from 1000 to 3600000",
            ),
            ("stomp.keep_open_after_error", Value::Integer(1), "`true` or `false`"),
            ("cells.write", text("all"), "one of `any`, `own`"),
            ("broker.vhosts", Value::Integer(1), "a list of at least one string, none of them twice"),
            (
                "broker.host_names",
                Value::Integer(1),
                "a list, each item a host name such as `mq.example`, without scheme and port",
            ),
            (
                "listeners.stomp",
                text("host:1"),
                "a list, each item an address such as `127.0.0.1:61613` or `[::1]:61613`",
            ),
            ("broker.data_dir", text(""), "a path"),
        ] {
            assert_eq!(
                set(key, &value),
                Err(SetError::Refused { expected: String::from(expected) }),
                "{key}"
            );
        }
        assert_eq!(set("limits.conections", &Value::Integer(1)), Err(SetError::UnknownKey));
        assert_eq!(set("limit.connections", &Value::Integer(1)), Err(SetError::UnknownKey));
    }
}
