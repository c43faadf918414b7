//! Starts the broker as its operators do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout, Command, Stdio};

use tempfile::TempDir;

use crate::binary::{imori, run};

/// A broker that is killed when dropped.
struct Broker {
    child: Child,
    lines: BufReader<ChildStdout>,
    _data: TempDir,
}

impl Broker {
    fn start(command: &mut Command) -> Broker {
        let data = tempfile::tempdir().unwrap();
        command.env("IMORI__BROKER__DATA_DIR", data.path());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Broker { child, lines, _data: data }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        if line.starts_with("created user admin with password ") { self.line() } else { line }
    }

    /// The address in a line `listening stomp ADDRESS`.
    fn address(&mut self) -> String {
        let line = self.line();
        let address =
            line.strip_prefix("listening stomp ").unwrap_or_else(|| panic!("unexpected line {line:?}"));
        String::from(address.trim_end())
    }

    fn log_line(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn listeners_are_printed_with_their_port_and_ready_comes_last() {
    let mut broker = Broker::start(&mut imori(&[
        "serve",
        "--listen",
        "stomp=127.0.0.1:0",
        "--listen",
        "stomp=localhost:0",
    ]));
    let addresses = [broker.address(), broker.address()];
    assert_eq!(broker.line(), "ready\n");
    for address in addresses {
        assert!(address.starts_with("127.0.0.1:") && !address.ends_with(":0"), "{address}");
        TcpStream::connect(address).unwrap();
    }
}

#[test]
fn listeners_of_http_are_printed_like_any() {
    for kind in ["nats-monitor", "admin"] {
        let listen = format!("{kind}=127.0.0.1:0");
        let arguments = ["serve", "--listen", "stomp=127.0.0.1:0", "--listen", &listen];
        let mut broker = Broker::start(&mut imori(&arguments));
        broker.address();
        let line = broker.line();
        let address = line.strip_prefix(&format!("listening {kind} "));
        let address = address.unwrap_or_else(|| panic!("unexpected {line:?}")).trim_end();
        assert_eq!(broker.line(), "ready\n");
        TcpStream::connect(address).unwrap();
    }
}

#[test]
fn the_gateway_runs_alone_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (routes, temporary) = (folder.path().join("routes.toml"), folder.path().join("temporary"));
    std::fs::create_dir(&temporary).unwrap();
    std::fs::write(
        &routes,
        "gateway = { user = 'guest' }\n[[route]]\npath = '/a'\npublish = { topic = 'a' }\n",
    )
    .unwrap();
    let mut command = imori(&["gateway", "run", routes.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let mut broker = Broker::start(command.env("TMPDIR", &temporary));
    let line = broker.line();
    let address =
        line.strip_prefix("listening http ").unwrap_or_else(|| panic!("unexpected {line:?}")).trim_end();
    assert_eq!(broker.line(), "ready\n");
    let mut client = TcpStream::connect(address).unwrap();
    let request = "POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx";
    client.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
    let pid = broker.child.id().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    assert_eq!(broker.child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn a_pipe_and_a_service_manager_are_told_when_clients_can_connect() {
    let socket = std::env::temp_dir().join(format!("imori-it-notify-{}", std::process::id()));
    let manager = UnixDatagram::bind(&socket).unwrap();
    // The shell duplicates its standard output, a pipe, to descriptor 3.
    let mut command = Command::new("sh");
    let script = "exec \"$0\" serve --listen stomp=127.0.0.1:0 --ready-fd 3 3>&1 >/dev/null";
    command.args(["-c", script, env!("CARGO_BIN_EXE_imori")]).env("NOTIFY_SOCKET", &socket);
    command.env("WATCHDOG_USEC", "200000").env_remove("WATCHDOG_PID");
    let mut broker = Broker::start(&mut command);
    assert_eq!(broker.line(), "ready\n");
    assert_eq!(broker.line(), "", "the pipe ends, and the broker does not");
    assert!(broker.child.try_wait().unwrap().is_none());
    for expected in [&b"READY=1"[..], b"WATCHDOG=1", b"WATCHDOG=1"] {
        let mut told = [0; 64];
        let len = manager.recv(&mut told).unwrap();
        assert_eq!(&told[..len], expected);
    }
    std::fs::remove_file(&socket).unwrap();
}

// SECURITY OPS-01
#[test]
fn listening_beyond_loopback_without_tls_is_refused() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:61613"] {
        let listen = format!("stomp={address}");
        let run = run(&["serve", "--listen", &listen]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert_eq!(
            run.stderr,
            format!(
                "imori: listener `stomp={address}` can be reached from other hosts without TLS, so anyone on the way \
                 could read passwords and messages; use `stomp-tls` with a certificate, listen on `127.0.0.1` or \
                 `[::1]`, name `stomp` in `broker.accept_plaintext`, or give `--insecure-dev` on a network that you \
                 trust\n"
            )
        );
    }
}

// SECURITY OPS-01
#[test]
fn insecure_dev_is_allowed_and_logged() {
    let mut broker = Broker::start(&mut imori(&["serve", "--listen", "stomp=0.0.0.0:0", "--insecure-dev"]));
    assert!(broker.address().starts_with("0.0.0.0:"));
    assert_eq!(broker.line(), "ready\n");
    let line = broker.log_line();
    assert!(line.contains("WARN") && line.contains("`--insecure-dev` is on"), "{line}");
}

#[test]
fn an_address_in_use_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("stomp={}", taken.local_addr().unwrap());
    let run = run(&["serve", "--listen", &listen]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    assert!(run.stderr.contains(&format!("imori: cannot listen on `{listen}`: ")), "{}", run.stderr);
}

#[test]
fn a_closed_ready_descriptor_is_told_before_anything_is_bound() {
    let run = run(&["serve", "--listen", "stomp=127.0.0.1:0", "--ready-fd", "99"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{run:?}");
    let expected = "imori: `--ready-fd` cannot be written: `99` is no open file descriptor; hand one over, as by `99>FILE`\n";
    assert_eq!(run.stderr, expected);
}
