//! A few threads for checks of credentials that take longer than a turn may.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;

use imori_core::id::ConnectionId;
use imori_core::login::{Login, Verdict, Verification};
use tracing::{error, warn};

use super::authenticator::Authenticator;
use crate::limits::{LOGINS_WAITING_MAX, VERIFIER_IDLE_MAX, VERIFIER_THREADS_MAX};
use crate::slots::unpoisoned;

/// Receives verdicts.
pub trait Verdicts: Send + Sync + 'static {
    /// Whether the connection still exists.
    fn is_awaited(&self, connection: ConnectionId) -> bool;

    /// Delivers a verdict, if the connection still exists.
    fn tell(&self, login: &Login, verdict: Verdict);
}

/// The threads and the queue of logins. A thread starts with the first login that needs it, and ends after some idle
/// time, so a broker without slow logins has none.
pub struct Verifiers {
    authenticator: Arc<dyn Authenticator>,
    queue: Arc<Queue>,
}

struct Queue {
    state: Mutex<State>,
    has_more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    threads: usize,
    idle: usize,
    is_closed: bool,
}

struct Waiting {
    login: Login,
    verdicts: Arc<dyn Verdicts>,
}

impl fmt::Debug for Verifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifiers").finish_non_exhaustive()
    }
}

impl Verifiers {
    /// Creates the queue without threads.
    pub fn new(authenticator: Arc<dyn Authenticator>) -> Verifiers {
        let queue = Queue { state: Mutex::default(), has_more: Condvar::new() };
        Verifiers { authenticator, queue: Arc::new(queue) }
    }

    /// Decides at once, or queues the login for a thread that reports to `verdicts`.
    pub fn verify(&self, login: Login, verdicts: impl FnOnce() -> Arc<dyn Verdicts>) -> Verification {
        if let Some(verdict) = self.authenticator.verify_now(&login) {
            return Verification::Done(verdict);
        }
        match self.enqueue(login, verdicts) {
            Ok(true) => Verification::Pending,
            Ok(false) => Verification::Done(Verdict::Busy),
            Err(error) => {
                warn!(%error, "no thread can be started that checks a login");
                Verification::Done(Verdict::Busy)
            }
        }
    }

    /// The authenticator in use.
    pub fn authenticator(&self) -> &dyn Authenticator {
        &*self.authenticator
    }

    /// Ends the threads; logins still in the queue get no verdict.
    pub fn close(&self) {
        let mut state = unpoisoned(self.queue.state.lock());
        state.is_closed = true;
        state.waiting.clear();
        self.queue.has_more.notify_all();
    }

    /// Queues a login; false if too many wait.
    fn enqueue(&self, login: Login, verdicts: impl FnOnce() -> Arc<dyn Verdicts>) -> io::Result<bool> {
        let mut state = unpoisoned(self.queue.state.lock());
        if state.is_closed || state.waiting.len() >= LOGINS_WAITING_MAX {
            return Ok(false);
        }
        if state.idle <= state.waiting.len() && state.threads < VERIFIER_THREADS_MAX {
            let (authenticator, queue) = (Arc::clone(&self.authenticator), Arc::clone(&self.queue));
            match Builder::new().name(String::from("verifier")).spawn(move || queue.run(&*authenticator)) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => return Err(error),
                // An existing thread will take the login.
                Err(_) => {}
            }
        }
        state.waiting.push_back(Waiting { login, verdicts: verdicts() });
        self.queue.has_more.notify_one();
        Ok(true)
    }
}

impl Queue {
    /// Checks logins until idle for a while.
    fn run(&self, authenticator: &dyn Authenticator) {
        while let Some(Waiting { login, verdicts }) = self.next() {
            // The client has disconnected.
            if !verdicts.is_awaited(login.connection) {
                continue;
            }
            // A panic in one check must not block the others.
            let verified = catch_unwind(AssertUnwindSafe(|| authenticator.verify(&login)));
            if verified.is_err() {
                error!(connection = ?login.connection, "a fault ended the check of a login; see the panic before");
            }
            verdicts.tell(&login, verified.unwrap_or(Verdict::Refused));
        }
    }

    /// Waits for a login; `None` if the thread has to end and has been uncounted.
    fn next(&self) -> Option<Waiting> {
        let mut state = unpoisoned(self.state.lock());
        loop {
            if state.is_closed {
                state.threads -= 1;
                return None;
            }
            if let Some(waiting) = state.waiting.pop_front() {
                return Some(waiting);
            }
            state.idle += 1;
            let waited = self.has_more.wait_timeout(state, VERIFIER_IDLE_MAX);
            let (woken, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if timeout.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use imori_core::authorize::Identity;
    use imori_core::login::Credentials;

    use super::*;

    /// Defers every login, and decides when told to.
    struct Slow(Mutex<mpsc::Receiver<()>>);

    impl Authenticator for Slow {
        fn verify_now(&self, _: &Login) -> Option<Verdict> {
            None
        }

        fn verify(&self, _: &Login) -> Verdict {
            unpoisoned(self.0.lock()).recv().expect("the test goes on");
            Verdict::Granted(Identity::guest())
        }
    }

    /// Treats connections with even slots as alive.
    struct Told(Mutex<mpsc::Sender<ConnectionId>>);

    impl Verdicts for Told {
        fn is_awaited(&self, connection: ConnectionId) -> bool {
            connection.slot.is_multiple_of(2)
        }

        fn tell(&self, login: &Login, _: Verdict) {
            let _ = unpoisoned(self.0.lock()).send(login.connection);
        }
    }

    fn login(slot: u32) -> Login {
        let connection = ConnectionId { cell: 0, slot, generation: 0 };
        Login {
            connection,
            is_local: true,
            source: None,
            is_encrypted: false,
            certificate: None,
            credentials: Credentials::Unsupported,
        }
    }

    #[test]
    fn logins_that_take_long_wait_up_to_a_limit_and_those_who_went_cost_nothing() {
        let (decide, decisions) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let verifiers = Verifiers::new(Arc::new(Slow(Mutex::new(decisions))));
        let verdicts: Arc<dyn Verdicts> = Arc::new(Told(Mutex::new(tell)));
        let verify = |slot| verifiers.verify(login(slot), || Arc::clone(&verdicts));
        assert_eq!(verify(0), Verification::Pending);
        assert_eq!(verify(1), Verification::Pending);
        assert_eq!(verify(2), Verification::Pending);
        decide.send(()).unwrap();
        decide.send(()).unwrap();
        let wait = Duration::from_secs(30);
        let mut slots = [told.recv_timeout(wait).unwrap().slot, told.recv_timeout(wait).unwrap().slot];
        slots.sort_unstable();
        assert_eq!(slots, [0, 2], "the one between them is gone and was never checked");
        let pending = (0..).map(|slot| verify(2 * slot)).take_while(|told| *told == Verification::Pending);
        let pending = pending.take(2 * LOGINS_WAITING_MAX).count();
        let room = LOGINS_WAITING_MAX..=LOGINS_WAITING_MAX + VERIFIER_THREADS_MAX;
        assert!(room.contains(&pending), "{pending} logins wait");
        assert_eq!(verify(0), Verification::Done(Verdict::Busy));
        verifiers.close();
        assert_eq!(verify(0), Verification::Done(Verdict::Busy), "it is closed");
    }
}
