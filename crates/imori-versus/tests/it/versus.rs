//! Comparisons run as processes: turns, medians, absent or dying peers, and no orphans.

use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use imori_versus::Comparison;

use crate::liar::{Liar, Lie};

const BENCH: &str = env!("CARGO_BIN_EXE_imori-bench");

/// A folder for results, removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("imori-bench-test-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        Folder(folder)
    }

    fn comparison(&self) -> Comparison {
        let packed = self.0.join("versus.json.gz");
        let unpacked = Command::new("gzip").arg("-dc").arg(packed).output().unwrap();
        serde_json::from_slice(&unpacked.stdout).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn versus(folder: &Folder, arguments: &[&str]) -> Output {
    Command::new(BENCH)
        .arg("versus")
        .args(arguments)
        .args(["--peers-dir", "/nowhere", "--out"])
        .arg(&folder.0)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Path of the example `relay`, which stands in for a broker.
fn relay() -> String {
    let relay = Path::new(BENCH).parent().unwrap().join("examples").join("relay");
    assert!(relay.exists(), "`cargo test` builds the examples unless it is told which targets to build");
    relay.to_str().unwrap().to_owned()
}

/// URL and start command of a new relay for each turn; `before` precedes the program.
fn fresh_relay(before: &str) -> (String, String) {
    let address = format!("127.0.0.1:{}", free_port());
    (format!("stomp://{address}"), format!("exec {before} {} {address} stomp", relay()))
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn peers_take_turns_and_all_of_them_count() {
    let ((one, start_one), (two, start_two)) = (fresh_relay(""), fresh_relay(""));
    let folder = Folder::new("turns");
    let done = versus(
        &folder,
        &[
            "rpc",
            "one",
            "two",
            "--peer-url",
            &one,
            "--peer-url",
            &two,
            "--peer-start",
            &start_one,
            "--peer-start",
            &start_two,
            "--rounds",
            "3",
            "--requests=500",
            "--depth",
            "4",
            "--reply",
            "named",
        ],
    );
    assert!(matches!(done.status.code(), Some(0 | 4)), "{done:?}");
    let comparison = folder.comparison();
    let order: Vec<(u32, bool)> = comparison.runs.iter().map(|run| (run.turn, run.peer == "one")).collect();
    assert_eq!(order, [(1, true), (1, false), (2, true), (2, false), (3, true), (3, false)]);
    assert!(comparison.runs.iter().all(|run| run.report.operations == 500 && run.exit_code == 0));
    assert_eq!(comparison.settings.jobs[0].arguments.join(" "), "rpc --requests=500 --depth 4 --reply named");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("| operations a second (better above 1) |"), "{text}");
    assert_eq!(text, fs::read_to_string(folder.0.join("README.md")).unwrap());
}

#[test]
fn a_list_runs_line_by_line_and_a_peer_misses_only_what_it_cannot_do() {
    let ((one, start_one), (two, start_two)) = (fresh_relay(""), fresh_relay(""));
    let folder = Folder::new("list");
    fs::create_dir_all(&folder.0).unwrap();
    let list = folder.0.join("mine.txt");
    let lines = "# two lines of each peer's own protocol, and one that relays do not speak here\n\
        shallow own   rpc --requests 300 --depth 2 --reply named\n\
        deep    own   rpc --requests 500 --depth 8 --reply named\n\
        other   nats  rpc --requests 500\n";
    fs::write(&list, lines).unwrap();
    let done = versus(
        &folder,
        &[
            list.to_str().unwrap(),
            "a=one",
            "two",
            "--peer-url",
            &one,
            "--peer-start",
            &start_one,
            "--peer-url",
            &two,
            "--peer-start",
            &start_two,
            "--rounds",
            "2",
            "--requests",
            "400",
            "--only",
            "shallow,deep,other",
        ],
    );
    assert!(matches!(done.status.code(), Some(0 | 4)), "{done:?}");
    let comparison = folder.comparison();
    let order: Vec<String> =
        comparison.runs.iter().map(|run| format!("{} {} {}", run.turn, run.job, run.peer)).collect();
    let of_turn =
        |turn: u32| ["shallow a", "shallow two", "deep a", "deep two"].map(|run| format!("{turn} {run}"));
    assert_eq!(order, [of_turn(1), of_turn(2)].concat());
    assert!(comparison.runs.iter().all(|run| run.report.operations == 400 && run.protocol == "stomp"));
    let left_out: Vec<&str> = comparison.left_out.iter().filter_map(|left| left.job.as_deref()).collect();
    assert_eq!(left_out, ["other", "other"]);
    let text = String::from_utf8(done.stdout).unwrap();
    let again = Command::new(BENCH).arg("report").arg(&folder.0).output().unwrap();
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text, "{:?}", again.stderr);
    let one = Command::new(BENCH).arg("report").arg(&folder.0).args(["--job", "deep"]).output().unwrap();
    assert!(!String::from_utf8(one.stdout).unwrap().contains("shallow"));
    for part in [
        "# mine: a beside two",
        "## a ÷ two, turn by turn",
        "| shallow | ",
        "\n## deep\n",
        "a is left out of other: ",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn a_peer_that_is_absent_or_unable_is_named_and_the_rest_runs() {
    for (scenario, other, amount, why) in [
        ("rpc", "grpc", "--requests=200", "run `imori-brokerless`"),
        ("rpc", "./no/imori", "--requests=200", "`./no/imori` is absent"),
        ("queue", "relay", "--messages=200", "it answers requests"),
        ("queue", "nats-server", "--messages=200", "core NATS keeps nothing"),
    ] {
        let (folder, liar) = (Folder::new("absent"), Liar::start(Lie::None, "/", 0));
        let done = versus(
            &folder,
            &[scenario, other, "mine", "--peer-url", &liar.url(), "--rounds", "1", "--closed", amount],
        );
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let comparison = folder.comparison();
        assert!(comparison.left_out[0].why.contains(why), "{:?}", comparison.left_out);
        assert_eq!(comparison.runs.len(), 1);
        assert!(String::from_utf8(done.stdout).unwrap().contains("is left out: "));
    }
}

#[test]
fn nobody_to_compare_is_an_error() {
    let done = versus(&Folder::new("nobody"), &["queue", "zeromq", "grpc"]);
    assert_eq!(done.status.code(), Some(1), "{done:?}");
}

#[test]
fn a_ledger_that_is_broken_is_told_by_the_exit_code() {
    let (honest, liar) = (Liar::start(Lie::None, "/", 0), Liar::start(Lie::Alter, "/reply-queue/", 100));
    let folder = Folder::new("broken");
    let done = versus(
        &folder,
        &["rpc", &honest.url(), &liar.url(), "--rounds", "1", "--requests", "500", "--warmup", "0"],
    );
    assert_eq!(done.status.code(), Some(3), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("does not count") && text.contains("n/a"), "{text}");
}

#[test]
fn a_peer_that_dies_in_the_middle_costs_its_turn_only() {
    let ((mortal, start_mortal), (other, start_other)) = (fresh_relay("timeout 1"), fresh_relay(""));
    let folder = Folder::new("dies");
    let done = versus(
        &folder,
        &[
            "rpc",
            "mortal",
            "other",
            "--peer-url",
            &mortal,
            "--peer-url",
            &other,
            "--peer-start",
            &start_mortal,
            "--peer-start",
            &start_other,
            "--rounds",
            "2",
            "--time",
            "2s",
            "--warmup",
            "0",
            "--reply",
            "named",
        ],
    );
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let comparison = folder.comparison();
    let counted =
        |name: &str| comparison.runs.iter().filter(|run| run.peer == name && run.exit_code == 0).count();
    assert_eq!((counted("mortal"), counted("other")), (0, 2), "{done:?}");
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("What did not go well") && text.contains("mortal, "), "{text}");
}

#[test]
fn a_peer_that_does_not_start_says_why() {
    let folder = Folder::new("silent");
    let url = format!("stomp://127.0.0.1:{}", free_port());
    let start = "echo no such configuration; exit 1";
    let done = versus(
        &folder,
        &["rpc", "silent", "--peer-url", &url, "--peer-start", start, "--rounds", "1", "--requests", "10"],
    );
    assert_eq!(done.status.code(), Some(1), "{done:?}");
    let why = &folder.comparison().failures[0].why;
    assert!(why.contains("it ended before it answered") && why.contains("no such configuration"), "{why}");
}

#[test]
fn nobody_is_left_behind_when_the_comparison_is_killed() {
    let relay = relay();
    for start in [
        format!("exec {relay} ADDRESS stomp"),
        format!("{relay} ADDRESS stomp"),
        // Daemonized: in a session of its own, and reparented.
        format!("setsid -f {relay} ADDRESS stomp"),
    ] {
        let (folder, address) = (Folder::new("orphans"), format!("127.0.0.1:{}", free_port()));
        let url = format!("stomp://{address}");
        let mut comparison = Command::new(BENCH)
            .args(["versus", "rpc", "mine", "--peer-url", &url, "--time", "60s", "--reply", "named"])
            .args(["--peer-start", &start.replace("ADDRESS", &address), "--peers-dir", "/nowhere", "--out"])
            .arg(&folder.0)
            .args(["--rounds", "1"])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The connection only ends when the broker ends.
        let mut link = connected(&address);
        comparison.kill().unwrap();
        comparison.wait().unwrap();
        link.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut rest = Vec::new();
        let ended = link.read_to_end(&mut rest);
        let reset = ended.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(ended.is_ok() || reset, "{start}: {ended:?}");
    }
}

#[test]
fn what_was_measured_until_it_is_stopped_by_hand_is_kept() {
    let (folder, (url, start)) = (Folder::new("stopped"), fresh_relay(""));
    let mut comparison = Command::new(BENCH)
        .args(["versus", "rpc", "mine", "--peer-url", &url, "--peer-start", &start, "--time", "60s"])
        .args(["--reply", "named", "--rounds", "2", "--peers-dir", "/nowhere", "--out"])
        .arg(&folder.0)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut link = connected(url.strip_prefix("stomp://").unwrap());
    let pid = rustix::process::Pid::from_raw(i32::try_from(comparison.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(comparison.wait().unwrap().code(), Some(1));
    assert!(folder.comparison().runs.iter().all(|run| run.turn == 1 && run.exit_code == 1));
    // By now the relay has ended.
    assert!(link.read(&mut [0]).map_or(true, |length| length == 0));
}

/// Connects as soon as the port is listened on.
fn connected(address: &str) -> TcpStream {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match TcpStream::connect(address) {
            // On Linux, connecting to a local port without a listener can connect a socket to itself.
            Ok(link) if link.local_addr().unwrap() != link.peer_addr().unwrap() => return link,
            Ok(_) => {}
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::yield_now();
    }
}
