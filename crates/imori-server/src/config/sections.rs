//! The sections and keys. The text above a key is its documentation, also in the sample file.

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
use super::store_address::StoreAddress;
use super::web_address::WebAddress;

sections! {
    /// Addresses at which clients connect. A reload opens and closes listeners; connections stay, even if their
    /// listener closes. Beyond loopback the broker opens only listeners with TLS, and those without TLS that
    /// `broker.accept_plaintext` names.
    listeners: Listeners {
        /// Addresses that speak STOMP 1.0, 1.1 and 1.2. Port 0 takes a free port; an empty list switches the protocol
        /// off. On a host without IPv6 the broker skips IPv6 addresses without an error, as long as another address
        /// remains.
        stomp: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(61613), ListenAddress::loopback_v6(61613)] => AtOnce;
        /// Addresses that speak NATS, with the rules of `stomp`.
        nats: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(4222), ListenAddress::loopback_v6(4222)] => AtOnce;
        /// Addresses that speak AMQP 0-9-1 with RabbitMQ's extensions, and AMQP 1.0, with the rules of `stomp`.
        amqp: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(5672), ListenAddress::loopback_v6(5672)] => AtOnce;
        /// Addresses that speak STOMP and NATS over WebSocket, each only if it has a listener above, with the rules of
        /// `stomp`.
        ws: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(15674), ListenAddress::loopback_v6(15674)] => AtOnce;
        /// Addresses of the monitor, which shows connections, subscriptions and traffic over HTTP without a login, at
        /// the paths and in the JSON of nats-server's monitoring, with the rules of `stomp`.
        nats_monitor: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(8222), ListenAddress::loopback_v6(8222)] => AtOnce;
        /// Addresses of the admin API, through which users who log in show, close, purge and delete objects over HTTP,
        /// at the paths and in the JSON of RabbitMQ's management, with the rules of `stomp`.
        admin: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(15672), ListenAddress::loopback_v6(15672)] => AtOnce;
        /// Addresses of the automation's API, without which a broker starts no automation, at the paths and in the JSON of StackStorm, with the rules of `stomp`. Its
        /// clients look for the API at 9101 and for the stream at 9102, and for tokens at 9100, which Prometheus's
        /// node_exporter uses too and which is therefore to be added where it is free.
        automation: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(9101), ListenAddress::loopback_v4(9102)] => AtOnce;
        /// Addresses of the HTTP gateway, which are opened only with `gateway.routes`, with the rules of `stomp`.
        http: Vec<ListenAddress> = vec![ListenAddress::loopback_v4(8080)] => AtOnce;
        /// Addresses that speak STOMP inside TLS, with the certificate of the section `tls`; the usual port is 61614.
        stomp_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses that speak NATS inside TLS from the first byte, which NATS clients call TLS first. For TLS that
        /// begins after INFO, see `nats.tls`.
        nats_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses that speak AMQP inside TLS; the usual port is 5671.
        amqp_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses that speak WebSocket inside TLS.
        ws_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses of the monitor over HTTPS, also without a login.
        nats_monitor_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses of the admin API over HTTPS; the usual port is 15671.
        admin_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses of the automation's API over HTTPS.
        automation_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
        /// Addresses of the HTTP gateway over HTTPS; the usual port is 8443.
        http_tls: Vec<ListenAddress> = Vec::new() => AtOnce;
    }

    /// Certificates of the listeners with TLS. The broker reads a file again when it is replaced, and all files at
    /// SIGHUP; open connections keep the certificates that they began with.
    tls: Tls {
        /// The certificate of this host and the intermediate certificates up to its CA, in PEM. Empty: no listener
        /// speaks TLS.
        certificate: FilePath = FilePath::default() => NewConnections;
        /// The private key of the certificate, in PEM. Only the file's owner may have permission to write it, and only
        /// its owner and group to read it.
        key: FilePath = FilePath::default() => NewConnections;
        /// Certificates of the CAs that verify clients' certificates, in PEM.
        client_ca: FilePath = FilePath::default() => NewConnections;
        /// Revocation lists for clients' certificates, in PEM.
        client_crl: FilePath = FilePath::default() => NewConnections;
        /// Whether the broker asks clients for a certificate. With `asked` a client may have none; with `demanded` a
        /// client without a certificate is refused.
        client_certificates: ClientCertificates = ClientCertificates::Ignored => NewConnections;
        /// The oldest version of TLS that the broker accepts.
        min_version: TlsVersion = TlsVersion::Tls12 => NewConnections;
        /// The field of a client's certificate that is the name of its user, letter by letter. A certificate with two
        /// such fields names no user.
        user_from: UserFrom = UserFrom::Nothing => NewConnections;
        /// Time for the handshake, within `limits.login_timeout_s`.
        handshake_timeout_s: Seconds = Seconds(5), in Seconds(1)..=Seconds(60) => NewConnections;
    }

    /// The threads that own the connections.
    cells: Cells {
        /// Number of cells. 0 means one for each core that the process may use.
        count: u16 = 0, in 0..=1024 => Restart;
        /// Which cells write a plain TCP connection. With `any`, each cell that has output for a connection writes it,
        /// which saves a wake-up; with `own`, only the connection's own cell writes.
        write: WritePolicy = WritePolicy::Any => NewConnections;
        /// Microseconds for which a cell looks for more work before it sleeps. The cell then answers sooner, because no
        /// thread has to wake it, but it occupies a core while there is traffic. Use it only on a machine with spare
        /// cores.
        spin_us: u32 = 0, in 0..=1_000 => Restart;
        /// New connections go to the first cell until it is this busy, then to the least busy one.
        busy_percent: u8 = 70, in 1..=100 => AtOnce;
    }

    /// The broker as a whole.
    broker: Broker {
        /// The folder of all data that survives a restart. A relative path starts at the working directory of the
        /// broker.
        data_dir: PathBuf = PathBuf::from(".data") => Restart;
        /// Vhosts that a start creates if they are missing. Others can be created while the broker runs. A client that
        /// names no vhost enters `/`.
        vhosts: Names = Names::one("/") => Restart;
        /// Names of this host. A client that gives one of them instead of a vhost enters `/`, as
        /// it does with `localhost` or an IP address.
        host_names: Vec<HostName> = Vec::new() => NewConnections;
        /// Time in which connections may finish their work when the broker stops.
        shutdown_deadline_s: Seconds = Seconds(10), in Seconds(1)..=Seconds(3600) => AtOnce;
        /// Listeners without TLS that clients on other hosts may use, although the network can read their passwords:
        /// names such as `nats`.
        accept_plaintext: Vec<ListenerName> = Vec::new() => NewConnections;
        /// Networks of proxies that begin each connection with a header of PROXY protocol 2; the broker trusts the
        /// client's address in it. From any other network, a connection with such a header is refused.
        proxy_from: Vec<Network> = Vec::new() => NewConnections;
        /// Above this share of the memory that the process may use, publishers wait.
        memory_mark_percent: u8 = 40, in 1..=90 => AtOnce;
    }

    /// The automation engine, which runs with the listeners `automation`.
    automation: Automation {
        /// Time for which the history is kept: executions from their end on, events from their occurrence on. An
        /// execution that has not ended stays, and those below another go with it.
        history_age_s: Seconds = Seconds(30 * 86_400), in Seconds(1)..=Seconds(10 * 366 * 86_400) => Restart;
        /// Bytes of the store above which the oldest history is deleted, whatever its age.
        history_bytes: Bytes = Bytes::gib(1), in Bytes::mib(1)..=Bytes::gib(1_024) => Restart;
        /// Bytes that are recorded of each output of an action while it runs, of which its result keeps the first MiB. An
        /// action that prints more fails, and so does a command whose output is longer than its result keeps.
        output_bytes_max: Bytes = Bytes::mib(16), in Bytes::mib(1)..=Bytes::gib(1) => AtOnce;
        /// The PostgreSQL database that keeps the documents, for one broker at a time. Empty: a file in the data folder
        /// does. The environment variable `IMORI__AUTOMATION__STORE` keeps the password out of this file.
        store: Option<StoreAddress> = None => Restart;
        /// The CA of that server, in PEM, instead of those of the system.
        store_ca: FilePath = FilePath::default() => Restart;
        /// Whether clients on this machine need no login, for a demonstration. Each of them may then run programs as the
        /// user of the broker; a warning at each start says so.
        open: bool = false => AtOnce;
    }

    /// The HTTP gateway, which turns requests into messages.
    gateway: Gateway {
        /// The file of its routes. The gateway reads it, and the scripts that it names, again when one of them changes.
        /// Empty: there is no gateway.
        routes: FilePath = FilePath::default() => AtOnce;
        /// Threads that serve its connections. 0 means one for each core that the process may use, but at most 4.
        workers: u16 = 0, in 0..=256 => Restart;
    }

    /// Users, vhosts, permissions, exchanges, queues and bindings that the broker creates from a file.
    definitions: Definitions {
        /// A JSON document as `imori definitions export` and RabbitMQ write it, read at the start and at each reload.
        /// Its users and vhosts belong to the file: only the file changes them. Objects that are not in the file stay
        /// as they are.
        file: FilePath = FilePath::default() => AtOnce;
    }

    /// Logins. `imori user` or an HTTP request creates users, and the data folder keeps them.
    users: Users {
        /// Time for which the built-in user `guest` with the password `guest` exists. It may use all messaging,
        /// administer nothing, and log in only from this machine.
        guest: GuestLogin = GuestLogin::UntilUsers => AtOnce;
        /// Whether clients of AMQP 1.0 may log in by SASL SCRAM-SHA-256. Clients such as Qpid JMS prefer SCRAM, so the
        /// broker offers it once all users have SCRAM keys, which are made together with a password; `imori user ls`
        /// shows which users have keys.
        scram: bool = false => NewConnections;
        /// The tag whose users may set the policies of a vhost, which can move and drop messages.
        policies: PolicySetter = PolicySetter::Policymaker => AtOnce;
        /// A file that only its owner may write, and only its owner and group may read. Its first line becomes the
        /// password of the user `admin` at each start. Without such a file the first start makes a password and prints it
        /// once.
        admin_password_file: Option<PathBuf> = None => Restart;
    }

    /// Access tokens (JWT, RFC 9068) of one issuer, which clients send as password, as NATS token or as `Authorization:
    /// Bearer`. The scopes of a token are the client's rights, in RabbitMQ's syntax.
    jwt: Jwt {
        /// The value that a token's claim `iss` must have.
        issuer: Option<String> = None => Restart;
        /// The value that a token's claim `aud` must have, or must contain among others.
        audience: Option<String> = None => Restart;
        /// The public keys of the issuer: a JSON Web Key Set (RFC 7517). If this key and `keys_url` are both empty, no
        /// token is accepted.
        keys_file: FilePath = FilePath::default() => Restart;
        /// The address at which the issuer publishes its keys.
        keys_url: Option<WebAddress> = None => Restart;
        /// The CA of that address, in PEM, instead of those of the system.
        keys_ca: FilePath = FilePath::default() => Restart;
        /// Time between two reads of the issuer's keys. A token with an unknown key causes an earlier read, at most
        /// every 10 s.
        keys_refresh_s: Seconds = Seconds(300), in Seconds(10)..=Seconds(86_400) => Restart;
        /// The claim with the user's name.
        user_claim: String = String::from("sub") => Restart;
        /// The claim with the scopes, as a text separated by spaces or as a list.
        scope_claim: String = String::from("scope") => Restart;
        /// Prefix of the scopes that are for this broker; scopes without it are ignored.
        scope_prefix: Option<String> = None => Restart;
        /// Maximum difference between the clocks of issuer and broker.
        leeway_s: Seconds = Seconds(5), in Seconds(0)..=Seconds(300) => Restart;
    }

    /// OpenTelemetry spans of publishes, for messages whose header `traceparent` is marked as sampled.
    traces: Traces {
        /// The address of a collector that accepts OTLP over HTTP, such as `http://localhost:4318/v1/traces`. Empty:
        /// the broker traces nothing.
        otlp_url: Option<WebAddress> = None => Restart;
        /// The CA of that address, in PEM, instead of those of the system.
        otlp_ca: FilePath = FilePath::default() => Restart;
    }

    /// Limits of the resources that one client, or all clients together, can use. No limit can be switched off.
    limits: Limits {
        /// Open connections. More: the broker accepts the next one only after another has closed.
        connections: u32 = 65_536, in 1..=1_000_000 => AtOnce;
        /// Connections that have not logged in yet. More: the oldest that has sent no complete
        /// first frame is closed.
        unauthenticated: u32 = 4_096, in 1..=1_000_000 => AtOnce;
        /// Connections from one source address that have not logged in yet; loopback is exempt. More: a
        /// new one is closed.
        unauthenticated_per_source: u32 = 1_024, in 1..=1_000_000 => AtOnce;
        /// Bytes held for a connection that has not logged in yet. More: it is closed.
        unauthenticated_bytes: Bytes = Bytes::kib(64), in Bytes::kib(4)..=Bytes::mib(1) => NewConnections;
        /// Time from the accept of a connection to its login; no input from the client extends it.
        login_timeout_s: Seconds = Seconds(10), in Seconds(1)..=Seconds(300) => NewConnections;
        /// Bytes of a message's body. Longer: the message is refused before its body is read.
        message_bytes: Bytes = Bytes::mib(16), in Bytes::kib(1)..=Bytes::gib(1) => NewConnections;
        /// Headers of a message. More: the message is refused.
        headers: u32 = 128, in 8..=4_096 => NewConnections;
        /// Bytes of all headers of a message; the broker keeps header positions in 16 bits. More: the message is
        /// refused.
        header_bytes: Bytes = Bytes::kib(64), in Bytes::kib(1)..=Bytes::kib(64) => NewConnections;
        /// Bytes that wait to be written to one connection. They count toward the memory mark, and may be at most a
        /// quarter of it. More: the broker closes the connection, because its client does not read.
        unsent_bytes: Bytes = Bytes::mib(256), in Bytes::mib(1)..=Bytes::gib(16) => NewConnections;
        /// Unsent bytes above which queues stop delivering to a connection; the messages stay in the queues.
        queue_feed_bytes: Bytes = Bytes::mib(1), in Bytes::kib(4)..=Bytes::gib(1) => NewConnections;
        /// Unsettled deliveries of a consumer that sets no prefetch.
        prefetch_default: u32 = 65_535, in 1..=1_000_000 => NewConnections;
        /// Bytes of publishes that are parked for one connection while publishers wait. More: the broker does not read
        /// the connection until the parked publishes continue.
        parked_publish_bytes: Bytes = Bytes::mib(1), in Bytes::kib(64)..=Bytes::gib(1) => NewConnections;
        /// Bytes of memory that the waiting messages of a queue may use. More: the rest goes to disk and is read back
        /// before consumers need it. The limit is an eighth of this while more than half of the memory mark is used. If
        /// the disk is too slow for the rest, publishers to the queue wait for it.
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
        /// Bytes of a journal file, a multiple of 4096. A filled file is reused once its records are no longer needed.
        /// A message has to fit into one file, with eight bytes for each durable queue that it goes to; larger messages
        /// are refused. So are transactions whose publishes and settles together do not fit.
        file_bytes: Bytes = Bytes::mib(64), in Bytes::mib(1)..=Bytes::mib(256) => Restart;
        /// Journal files that may be in use. More: the records of the oldest file that are still needed are copied to
        /// segments.
        files: u16 = 4, in 2..=256 => Restart;
        /// Treatment of files with damage in confirmed records. With `quarantine` the broker sets the files aside
        /// unchanged and serves the entries that verify; with `refuse` it does not start.
        on_damage: DamagePolicy = DamagePolicy::Quarantine => Restart;
        /// The log reports a flush that takes longer, while it is still running.
        slow_flush_ms: Millis = Millis(250), in Millis(10)..=Millis(60_000) => AtOnce;
        /// While a flush takes longer, `/healthz` of the monitor reports that the broker is unhealthy.
        stalled_flush_ms: Millis = Millis(1_000), in Millis(10)..=Millis(600_000) => AtOnce;
        /// Free bytes of the disk that the broker leaves to other programs. If less than two journal files are free
        /// beyond these, publishers of persistent messages wait until there is room for four.
        reserve_bytes: Bytes = Bytes::mib(16), in Bytes::mib(1)..=Bytes::gib(1_024) => Restart;
    }

    /// Settings that apply only to STOMP.
    stomp: Stomp {
        /// Minimum interval at which the broker offers to send heart-beats. A client that wants a longer interval gets
        /// it, and a client that wants no heart-beats gets none.
        heart_beat_send_ms: Millis = Millis(1_000), in Millis(1_000)..=Millis(3_600_000) => NewConnections;
        /// Minimum interval at which the broker asks clients for heart-beats. A client may offer a longer interval, or
        /// no heart-beats at all.
        heart_beat_receive_ms: Millis = Millis(1_000), in Millis(1_000)..=Millis(3_600_000) => NewConnections;
        /// Whether a connection stays open after an ERROR that concerns one frame only. STOMP 1.1 and 1.2 demand that
        /// the broker closes it; some clients rely on an open connection.
        keep_open_after_error: bool = false => NewConnections;
        /// Open transactions of a connection. More: BEGIN is refused.
        transactions: u32 = 16, in 1..=1_024 => NewConnections;
        /// Frames of a transaction. More: the frame is refused.
        transaction_actions: u32 = 1_024, in 1..=65_536 => NewConnections;
    }

    /// Settings that apply only to NATS.
    nats: Nats {
        /// Whether clients may begin TLS after INFO on `listeners.nats`. With `demanded` they must.
        tls: NatsTls = NatsTls::None => NewConnections;
        /// Bytes of headers and payload of a message, which INFO announces. More: the connection is closed.
        max_payload: Bytes = Bytes::mib(1), in Bytes::kib(1)..=Bytes::mib(64) => NewConnections;
        /// Bytes of a control line. More: the connection is closed.
        max_control_line: Bytes = Bytes::kib(4), in Bytes::kib(1)..=Bytes::mib(1) => NewConnections;
        /// Subscriptions of a connection. More: the subscription is refused.
        max_subscriptions: u32 = 1_000_000, in 1..=100_000_000 => NewConnections;
        /// Time without input after which the broker sends a PING to a client.
        ping_interval_s: Seconds = Seconds(120), in Seconds(1)..=Seconds(3600) => NewConnections;
        /// PINGs that a client may leave unanswered. More: the connection is closed.
        max_pings_out: u32 = 2, in 1..=100 => NewConnections;
        /// Time that a client may stay connected after the broker has announced that it stops.
        lame_duck_ms: Millis = Millis(1_000), in Millis(0)..=Millis(600_000) => NewConnections;
        /// Other addresses of this broker, `host:port`, that its clients may connect to.
        connect_urls: Vec<HostAndPort> = Vec::new() => NewConnections;
        /// The name of the broker in INFO.
        server_name: String = String::from("imori") => Restart;
    }

    /// Settings that apply only to AMQP.
    amqp: Amqp {
        /// Other brokers, `host:port`, to which AMQP 1.0 clients may connect when this one is down.
        failover: Vec<HostAndPort> = Vec::new() => NewConnections;
    }

    /// Settings that apply only to WebSocket.
    ws: Ws {
        /// Web pages that may connect, each as its origin, such as `https://app.example`. A client that sends no origin
        /// may always connect; only browsers send one. A page from the same host and port that it connects to may
        /// connect too; all other pages are refused.
        origins: Vec<Origin> = Vec::new() => NewConnections;
    }

    /// The monitor, and `/metrics` of the admin listener when it is read without a login.
    monitor: Monitor {
        /// Readers that see names and addresses of queues, vhosts, users and clients. All other readers see only
        /// numbers. A user with the tag `monitoring` who logs in, by password or token, always sees names.
        names: NamesShown = NamesShown::Loopback => AtOnce;
    }

    /// The log.
    log: Log {
        /// The destination of the log. SIGUSR1 reopens a file, so that it can be moved away before.
        output: LogOutput = LogOutput::StandardError => Restart;
        /// The destination of the audit log, which records logins, refusals and changes with their users. With `log` it
        /// is part of the log, without the objects that clients declare, bind, purge and delete. SIGUSR1 reopens a
        /// file.
        audit: AuditOutput = AuditOutput::Log => Restart;
        /// The lowest level that is written.
        level: LogLevel = LogLevel::Info => AtOnce;
        /// `text` writes each record as a line for people, `json` as an object for programs.
        format: LogFormat = LogFormat::Text => Restart;
    }
}

choice! {
    /// Which cells write a plain TCP connection.
    WritePolicy {
        /// Every cell that has output for the connection.
        Any = "any",
        /// Only the cell that owns it.
        Own = "own",
    }
}

choice! {
    /// Time for which the built-in user exists.
    GuestLogin {
        /// Until another user than `admin` exists.
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
        /// Users with the tag `policymaker` and a permission in the vhost, as in RabbitMQ.
        Policymaker = "policymaker",
        /// Only users with the tag `administrator`.
        Administrator = "administrator",
    }
}

choice! {
    /// Readers of the monitor that see names without a login.
    NamesShown {
        /// Readers on this machine.
        Loopback = "loopback",
        /// None.
        Login = "login",
        /// All.
        All = "all",
    }
}

choice! {
    /// Whether the broker asks clients for a certificate.
    ClientCertificates {
        /// The broker does not ask.
        Ignored = "ignored",
        /// The broker asks, but accepts clients without one.
        Asked = "asked",
        /// The broker refuses clients without a certificate.
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
        /// No field names a user.
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
    /// TLS that begins after INFO.
    NatsTls {
        /// The broker does not offer TLS.
        None = "none",
        /// Clients may begin TLS.
        Offered = "offered",
        /// Clients must begin TLS.
        Demanded = "demanded",
    }
}

choice! {
    /// Treatment of damaged files.
    DamagePolicy {
        /// The broker sets damaged files aside.
        Quarantine = "quarantine",
        /// The broker does not start.
        Refuse = "refuse",
    }
}

choice! {
    /// Importance of a log record.
    LogLevel {
        /// Data was lost, or an operation failed.
        Error = "error",
        /// An operator should look into it.
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
    /// Format of a log record.
    LogFormat {
        /// A line for people.
        Text = "text",
        /// An object for programs.
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
