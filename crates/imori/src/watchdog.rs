//! The service manager's watchdog, which restarts a broker that no longer answers (`sd_notify(3)`, `WatchdogSec=`).

use std::env;
use std::thread;
use std::time::Duration;

use imori_server::broker::Broker;
use imori_server::stall::{LateWork, Stall};
use tracing::warn;

use crate::notify::{State, tell_service_manager};

/// Tells the service manager that the broker is alive, several times in each period of its watchdog, until the process
/// ends. Does nothing if there is no watchdog for this process.
///
/// A cell that is late for half a period is not alive: its clients wait for nothing. A late disk is no reason to
/// restart, since it would be as late afterwards.
pub(crate) fn start(broker: Broker) {
    let Some(period) = period(env::var("WATCHDOG_USEC").ok(), env::var("WATCHDOG_PID").ok()) else { return };
    let run = move || {
        loop {
            if is_alive(&broker.stalls(), period)
                && let Err(error) = tell_service_manager(State::Alive)
            {
                warn!(%error, "the service manager's watchdog cannot be told that the broker is alive");
            }
            thread::sleep(period / 4);
        }
    };
    if let Err(error) = thread::Builder::new().name("watchdog".to_owned()).spawn(run) {
        warn!(%error, "no thread for the service manager's watchdog, so it will restart the broker");
    }
}

/// The period of the watchdog, given `WATCHDOG_USEC` in microseconds and `WATCHDOG_PID`, the process it is meant for.
pub fn period(micros: Option<String>, pid: Option<String>) -> Option<Duration> {
    let is_ours = pid.is_none_or(|pid| pid == std::process::id().to_string());
    let micros = micros?.parse().ok().filter(|micros| *micros > 0 && is_ours)?;
    Some(Duration::from_micros(micros))
}

/// Whether every cell has made progress within half the period.
pub fn is_alive(stalls: &[Stall], period: Duration) -> bool {
    let is_stuck = |stall: &Stall| {
        matches!(stall.what, LateWork::Cell(_)) && !stall.is_over && stall.lasted > period / 2
    };
    !stalls.iter().any(is_stuck)
}
