//! The order of sleeps, and how they end.

use std::io;
use std::time::{Duration, Instant};

use imori_gateway::for_tests::Timer;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime is small").block_on(future)
}

#[test]
fn sleeps_end_in_the_order_of_their_time() {
    block_on(async {
        let timer = Timer::start().expect("there is a descriptor left");
        let order = std::cell::RefCell::new(Vec::new());
        let sleep = |ms| {
            let (order, timer) = (&order, &timer);
            async move {
                timer.sleep(Duration::from_millis(ms)).await;
                order.borrow_mut().push(ms);
            }
        };
        // Sleeps that are over at once end in the order of this line.
        tokio::join!(sleep(400), sleep(100), sleep(300), sleep(0), sleep(200));
        assert_eq!(*order.borrow(), [0, 100, 200, 300, 400]);
        assert!(timer.is_idle());
    });
}

#[test]
fn dropped_sleep_is_forgotten() {
    block_on(async {
        let timer = Timer::start().expect("there is a descriptor left");
        let short = timer.sleep(Duration::from_millis(5));
        let long = timer.sleep(Duration::from_secs(3600));
        tokio::select! {
            biased;
            () = long => unreachable!("it is an hour long"),
            () = short => {}
        }
        assert!(timer.is_idle());
        let never = timer.sleep(Duration::MAX);
        tokio::select! {
            biased;
            () = never => unreachable!("it has no end"),
            () = timer.sleep(Duration::from_millis(1)) => {}
        }
    });
}

/// Prints how late sleeps are: `cargo test -p imori-gateway timer -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn lateness() {
    block_on(async {
        let timer = Timer::start().expect("there is a descriptor left");
        let mut late = Vec::new();
        for _ in 0..300 {
            let started = Instant::now();
            timer.sleep(Duration::from_millis(10)).await;
            late.push(started.elapsed() - Duration::from_millis(10));
        }
        late.sort();
        let line = format!("p50 {:?}, p99 {:?}, most {:?}\n", late[150], late[297], late[299]);
        let _ = io::Write::write_all(&mut io::stderr(), line.as_bytes());
    });
}
