//! Threads that compute slow hashes for others, and free their 19 MiB of memory when no more hashes are wanted.
//!
//! Keeping it made a broker hold 43 MiB, of which it used 24; allocating it for each check made the kernel clear 5,000
//! pages in a flood of wrong passwords. mimalloc returns pages a second after they were freed, when the thread ends.
//! Memory freed at once at a start would be reused by the cells' first buffers, so a hasher keeps it for eight seconds.
//! A flood of wrong passwords must delay no message (SECURITY AUTH-09), and a login must not wait for long where
//! other programs keep the cores busy. So the first checks of a second have normal priority, and those above it a low
//! one. A thread cannot raise its priority again, so there are two for one asking thread; they share the memory. The
//! waiting thread takes the locks before and after, because a cell would wait long for a lock whose owner gets no core.

use std::cell::RefCell;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, park_timeout};
use std::time::{Duration, Instant};

use rustix::process::nice;
use tracing::{debug, warn};

use super::password::{HashMemory, PasswordHash};
use crate::limits::{ALLOCATOR_PURGE_DELAY, HASH_MEMORY_IDLE_MAX, LOGIN_NICENESS, PROMPT_CHECKS_PER_S};

thread_local! {
    /// The hashers of this thread; they end with it or when idle.
    static HASHERS: RefCell<Hashers> = RefCell::default();
}

type Work = Box<dyn FnOnce(&mut HashMemory) + Send>;

/// The two threads that compute hashes for one thread, one at a time.
#[derive(Default)]
struct Hashers {
    normal: Option<Hasher>,
    low: Option<Hasher>,
    memory: Arc<Mutex<HashMemory>>,
    prompt: PromptChecks,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Priority {
    Normal,
    Low,
}

/// The checks that normal priority has been given to in the second that began at `since`.
#[derive(Default)]
struct PromptChecks {
    since: Option<Instant>,
    count: u32,
}

#[derive(Clone)]
struct Hasher(Sender<Work>);

/// Checks a password against a hash on another thread: at normal priority while such checks are few, else at a low one.
pub fn verify(hash: &PasswordHash, password: &[u8]) -> bool {
    let (hash, password) = (hash.clone(), Box::<[u8]>::from(password));
    let verify = move |memory: &mut HashMemory| hash.verify(&password, memory);
    let answer = HASHERS.with_borrow_mut(|hashers| {
        let priority = hashers.prompt.next(Instant::now());
        hashers.ask(priority, verify)
    });
    answer.unwrap_or(false)
}

/// Checks a password at normal priority, for a change of it or the broker's start, which must not be starved.
pub(crate) fn verify_promptly(hash: &PasswordHash, password: &[u8]) -> bool {
    let (hash, password) = (hash.clone(), Box::<[u8]>::from(password));
    let verify = move |memory: &mut HashMemory| hash.verify(&password, memory);
    HASHERS.with_borrow_mut(|hashers| hashers.ask(Priority::Normal, verify)).unwrap_or(false)
}

/// Hashes a password by argon2id with a new salt, for an operator or the first start. `None` if the system has no
/// random bytes.
pub(crate) fn hash(password: &[u8]) -> Option<PasswordHash> {
    let password = Box::<[u8]>::from(password);
    let hash = move |memory: &mut HashMemory| PasswordHash::of(&password, memory);
    HASHERS.with_borrow_mut(|hashers| hashers.ask(Priority::Normal, hash)).flatten()
}

impl PromptChecks {
    /// The priority of a check that begins now.
    fn next(&mut self, now: Instant) -> Priority {
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            *self = PromptChecks { since: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        if self.count > PROMPT_CHECKS_PER_S { Priority::Low } else { Priority::Normal }
    }
}

impl Hashers {
    /// Runs work on one of the threads; `None` if it panicked.
    fn ask<R: Send + 'static>(
        &mut self,
        priority: Priority,
        work: impl Fn(&mut HashMemory) -> R + Clone + Send + 'static,
    ) -> Option<R> {
        let hasher = match priority {
            Priority::Normal => &mut self.normal,
            Priority::Low => &mut self.low,
        };
        // An idle hasher may be ending just now; then a new one is started.
        for _ in 0..2 {
            let asked = match hasher {
                Some(hasher) => hasher.clone(),
                None => match Hasher::start(priority, Arc::clone(&self.memory)) {
                    Ok(started) => hasher.insert(started).clone(),
                    Err(error) => {
                        warn!(%error, "no thread can be started that computes hashes, so that this one does that");
                        return Some(work(&mut HashMemory::default()));
                    }
                },
            };
            if let Some(answer) = asked.ask(work.clone()) {
                return Some(answer);
            }
            *hasher = None;
        }
        None
    }
}

impl Hasher {
    fn start(priority: Priority, memory: Arc<Mutex<HashMemory>>) -> io::Result<Hasher> {
        let (asks, asked) = channel();
        Builder::new().name(String::from("hasher")).spawn(move || {
            if priority == Priority::Low
                && let Err(error) = nice(LOGIN_NICENESS)
            {
                debug!(%error, "the thread of a hasher keeps the priority of cells");
            }
            run(&asked, &memory);
        })?;
        Ok(Hasher(asks))
    }

    /// Waits for the result; `None` if the hasher ended before.
    fn ask<R: Send + 'static>(&self, work: impl FnOnce(&mut HashMemory) -> R + Send + 'static) -> Option<R> {
        let (answers, answer) = channel();
        let work = Box::new(move |memory: &mut HashMemory| drop(answers.send(work(memory))));
        self.0.send(work).ok()?;
        answer.recv().ok()
    }
}

/// Runs work until idle for a while, then returns the memory to the system.
fn run(asked: &Receiver<Work>, memory: &Mutex<HashMemory>) {
    let mut has_memory = false;
    loop {
        match asked.recv_timeout(if has_memory { HASH_MEMORY_IDLE_MAX } else { ALLOCATOR_PURGE_DELAY }) {
            Ok(work) => {
                work(&mut memory.lock().unwrap_or_else(PoisonError::into_inner));
                has_memory = true;
            }
            Err(_) if has_memory => {
                // The other thread may be computing in it; then that one frees it.
                if let Ok(mut memory) = memory.try_lock() {
                    *memory = HashMemory::default();
                }
                has_memory = false;
            }
            // The allocator keeps freed memory for a moment and returns it when a thread ends after that.
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => return park_timeout(ALLOCATOR_PURGE_DELAY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hasher_answers_its_thread_again_and_again() {
        let hash = hash(b"secret").unwrap();
        for (password, is_right) in [("secret", true), ("wrong", false), ("secret", true), ("", false)] {
            assert_eq!(verify(&hash, password.as_bytes()), is_right, "{password}");
        }
    }

    #[test]
    fn a_hasher_that_ended_is_followed_by_another() {
        let (asks, _) = channel();
        let mut hashers = Hashers { normal: Some(Hasher(asks)), ..Hashers::default() };
        assert_eq!(hashers.ask(Priority::Normal, |_| 7), Some(7));
        assert!(hashers.normal.is_some_and(|hasher| hasher.ask(|_| 8) == Some(8)));
    }

    #[test]
    fn a_fault_is_no_answer_and_ends_no_hasher_to_come() {
        let mut hashers = Hashers::default();
        for priority in [Priority::Normal, Priority::Low] {
            assert_eq!(hashers.ask(priority, |_| -> () { panic!("planted") }), None);
            assert_eq!(hashers.ask(priority, |_| 7), Some(7));
        }
    }

    #[test]
    fn the_first_checks_of_a_second_have_normal_priority() {
        let (mut prompt, start) = (PromptChecks::default(), Instant::now());
        let mut normal_until = |end: u64| {
            let times = (0..end).step_by(10).map(|ms| start + Duration::from_millis(ms));
            times.filter(|time| prompt.next(*time) == Priority::Normal).count()
        };
        assert_eq!(normal_until(1000), PROMPT_CHECKS_PER_S as usize);
        assert_eq!(PromptChecks::default().next(start), Priority::Normal);
    }

    #[test]
    fn both_priorities_share_the_memory() {
        let hash = hash(b"secret").unwrap();
        let mut hashers = Hashers::default();
        for priority in [Priority::Normal, Priority::Low] {
            let hash = hash.clone();
            assert_eq!(hashers.ask(priority, move |memory| hash.verify(b"secret", memory)), Some(true));
        }
        assert_eq!(Arc::strong_count(&hashers.memory), 3);
    }
}
