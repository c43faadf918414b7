use super::*;
use crate::record::slow::SlowStretches;

fn here() -> (std::net::TcpListener, WatchOptions) {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let options =
        WatchOptions { host: "127.0.0.1".to_owned(), port, load_threads: 1, ..WatchOptions::default() };
    (listener, options)
}

#[test]
fn a_run_is_watched_from_its_first_second() {
    let (_listener, options) = here();
    let clock = Clock::start();
    let watch = Watch::start(clock, &options).unwrap();
    assert_eq!(watch.pids(), [std::process::id()], "found by the port");
    let measure = watch.measure().unwrap();
    let is_seen = |second: &HostSecond| {
        second.client_canary_max_us.is_some()
            && second.cpu_canary_max_us.is_some()
            && second.disk_canary_max_us.is_some()
            && second.network_canary_max_us.is_some()
            && second.steal.is_some()
    };
    while !is_seen(&watch.live().1) {
        std::thread::yield_now();
    }
    let cost = watch.measured(measure).unwrap();
    assert!(cost.broker_rss_peak >= cost.broker_after.rss_bytes && cost.broker_after.threads > 5);
    let watched = watch.stop();
    let (broker, host, client_cpu_s) = watched.second(0, 0);
    assert!(is_seen(&host) && client_cpu_s > 0.0, "{host:?}");
    assert!(broker.unwrap().rss_bytes > 0);
    assert_eq!(watched.failures(), Vec::<String>::new());
}

#[test]
fn a_broker_elsewhere_has_no_canaries_on_its_cpus_and_disk() {
    // TEST-NET-1 is not assigned to any host.
    let options = WatchOptions { host: "192.0.2.1".to_owned(), port: 1, ..WatchOptions::default() };
    let watch = Watch::start(Clock::start(), &options).unwrap();
    assert_eq!((watch.pids(), watch.disk_folder()), ([].as_slice(), None));
    let watched = watch.stop();
    let (broker, host, _) = watched.second(0, 0);
    assert_eq!((broker, host.cpu_canary_max_us, host.disk_canary_max_us), (None, None, None));
}

#[test]
fn a_slow_operation_becomes_a_stall_with_a_verdict() {
    let (_listener, options) = here();
    let clock = Clock::start();
    let watch = Watch::start(clock, &options).unwrap();
    let mut slow = SlowStretches::default();
    let begin = clock.now();
    while watch.live().1.network_canary_max_us.is_none() || clock.now() < begin + 50_000_000 {
        std::thread::yield_now();
    }
    slow.note(begin, clock.now());
    let watched = watch.stop();
    let stalls = watched.judge(&Operations {
        slow: &slow,
        p50_us: &[Some(200.0)],
        from: 0,
        until: clock.now(),
        total: 100,
        within_50_ms: 99,
        server: "imori",
    });
    let found: Vec<_> = stalls.list.iter().filter(|stall| stall.operations == 1).collect();
    assert_eq!(found.len(), 1, "{stalls:?}");
    assert!(found[0].evidence.contains("canaries late at most"), "{stalls:?}");
    assert_eq!((stalls.threshold_us, stalls.available_at_50_ms), (20_000.0, Some(0.99)));
    assert!(stalls.no_period.is_some());
}
