//! What the service manager is told, and how its watchdog is kept calm.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use imori::for_tests::{ServiceState, is_alive, notify, watchdog_period};
use imori_core::time::Time;
use imori_server::stall::{Cause, Evidence, LateWork, Stall};

fn received(receiver: &UnixDatagram) -> Vec<u8> {
    let mut text = [0; 64];
    let len = receiver.recv(&mut text).unwrap();
    text[..len].to_vec()
}

#[test]
fn the_service_manager_hears_of_every_state() {
    let path = env::temp_dir().join(format!("imori-notify-{}", std::process::id()));
    let receiver = UnixDatagram::bind(&path).unwrap();
    for (state, text) in [
        (ServiceState::Ready, &b"READY=1"[..]),
        (ServiceState::Alive, b"WATCHDOG=1"),
        (ServiceState::Stopping, b"STOPPING=1"),
    ] {
        notify(path.as_os_str(), state).unwrap();
        assert_eq!(received(&receiver), text);
    }
    fs::remove_file(&path).unwrap();
    assert!(notify(path.as_os_str(), ServiceState::Ready).is_err());
}

#[test]
fn an_at_sign_names_an_abstract_socket() {
    let name = format!("imori-notify-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let receiver = UnixDatagram::bind_addr(&address).unwrap();
    notify(&OsString::from(format!("@{name}")), ServiceState::Ready).unwrap();
    assert_eq!(received(&receiver), b"READY=1");
}

fn stall(what: LateWork, lasted: Duration, is_over: bool) -> Stall {
    Stall {
        what,
        began: Time(0),
        lasted,
        is_over,
        cause: Cause::Unknown,
        evidence: Evidence::default(),
        step: None,
        queued_bytes: 0,
        unsynced: 0,
    }
}

#[test]
fn only_a_cell_that_is_late_now_is_not_alive() {
    let (period, short, long) = (Duration::from_secs(30), Duration::from_secs(14), Duration::from_secs(16));
    for (stalls, expected) in [
        (vec![], true),
        (vec![stall(LateWork::Cell(0), short, false)], true),
        (vec![stall(LateWork::Cell(0), long, true)], true),
        (vec![stall(LateWork::Flush, long, false)], true),
        (vec![stall(LateWork::Cell(0), long, true), stall(LateWork::Cell(1), long, false)], false),
    ] {
        assert_eq!(is_alive(&stalls, period), expected, "{stalls:?}");
    }
}

#[test]
fn a_watchdog_of_another_process_is_not_ours() {
    let ours = std::process::id().to_string();
    let text = |text: &str| Some(text.to_owned());
    for (micros, pid, expected) in [
        (None, None, None),
        (text("30000000"), None, Some(Duration::from_secs(30))),
        (text("30000000"), Some(ours), Some(Duration::from_secs(30))),
        (text("30000000"), text("0"), None),
        (text("0"), None, None),
        (text("soon"), None, None),
    ] {
        assert_eq!(watchdog_period(micros.clone(), pid.clone()), expected, "{micros:?} {pid:?}");
    }
}
