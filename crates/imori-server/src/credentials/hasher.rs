//! Threads that compute slow hashes for others, and free their 19 MiB of memory when no more hashes are wanted.
//!
//! Keeping it made a broker hold 43 MiB, of which it used 24; allocating it for each check made the kernel clear 5,000
//! pages in a flood of wrong passwords. mimalloc returns pages a second after they were freed, when the thread ends.
//! Memory freed at once at a start would be reused by the cells' first buffers, so a hasher keeps it for eight seconds.
//! Checks have a low priority: a flood of wrong passwords must delay no message (SECURITY AUTH-09). The waiting
//! thread takes the locks before and after, because a cell would wait long for a lock whose owner gets no core.

use std::cell::RefCell;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, park_timeout};

use rustix::process::nice;
use tracing::{debug, warn};

use super::password::{HashMemory, PasswordHash};
use crate::limits::{ALLOCATOR_PURGE_DELAY, HASH_MEMORY_IDLE_MAX, LOGIN_NICENESS};

thread_local! {
    /// The hashers of this thread, at low and at normal priority; they end with it or when idle.
    static CHECKS: RefCell<Option<Hasher>> = const { RefCell::new(None) };
    static URGENT: RefCell<Option<Hasher>> = const { RefCell::new(None) };
}

type Work = Box<dyn FnOnce(&mut HashMemory) + Send>;

#[derive(Clone)]
struct Hasher(Sender<Work>);

/// Checks a password against a hash on a thread of low priority.
pub fn verify(hash: &PasswordHash, password: &[u8]) -> bool {
    let (hash, password) = (hash.clone(), Box::<[u8]>::from(password));
    let verify = move |memory: &mut HashMemory| hash.verify(&password, memory);
    CHECKS.with_borrow_mut(|hasher| ask(hasher, LOGIN_NICENESS, verify)).unwrap_or(false)
}

/// Checks a password at normal priority, for the broker's start, which must not be starved.
pub(crate) fn verify_for_start(hash: &PasswordHash, password: &[u8]) -> bool {
    let (hash, password) = (hash.clone(), Box::<[u8]>::from(password));
    let verify = move |memory: &mut HashMemory| hash.verify(&password, memory);
    URGENT.with_borrow_mut(|hasher| ask(hasher, 0, verify)).unwrap_or(false)
}

/// Hashes a password by argon2id with a new salt, for an operator or the first start. `None` if the system has no
/// random bytes.
pub(crate) fn hash(password: &[u8]) -> Option<PasswordHash> {
    let password = Box::<[u8]>::from(password);
    let hash = move |memory: &mut HashMemory| PasswordHash::of(&password, memory);
    URGENT.with_borrow_mut(|hasher| ask(hasher, 0, hash)).flatten()
}

/// Runs work on this thread's hasher; `None` if it panicked.
fn ask<R: Send + 'static>(
    hasher: &mut Option<Hasher>,
    niceness: i32,
    work: impl Fn(&mut HashMemory) -> R + Clone + Send + 'static,
) -> Option<R> {
    // An idle hasher may be ending just now; then a new one is started.
    for _ in 0..2 {
        let asked = match hasher {
            Some(hasher) => hasher.clone(),
            None => match Hasher::start(niceness) {
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

impl Hasher {
    fn start(niceness: i32) -> io::Result<Hasher> {
        let (asks, asked) = channel();
        let name = if niceness == LOGIN_NICENESS { "hasher" } else { "hasher-urgent" };
        Builder::new().name(String::from(name)).spawn(move || run(&asked, niceness))?;
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
fn run(asked: &Receiver<Work>, niceness: i32) {
    if let Err(error) = nice(niceness) {
        debug!(%error, "the thread of a hasher keeps the priority of cells");
    }
    let mut memory = HashMemory::default();
    loop {
        let has_memory = !memory.is_empty();
        match asked.recv_timeout(if has_memory { HASH_MEMORY_IDLE_MAX } else { ALLOCATOR_PURGE_DELAY }) {
            Ok(work) => work(&mut memory),
            Err(_) if has_memory => memory = HashMemory::default(),
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
        let mut hasher = Some(Hasher(asks));
        assert_eq!(ask(&mut hasher, 0, |_| 7), Some(7));
        assert!(hasher.is_some_and(|hasher| hasher.ask(|_| 8) == Some(8)));
    }

    #[test]
    fn a_fault_is_no_answer_and_ends_no_hasher_to_come() {
        let mut hasher = None;
        assert_eq!(ask(&mut hasher, 0, |_| -> () { panic!("planted") }), None);
        assert_eq!(ask(&mut hasher, 0, |_| 7), Some(7));
    }
}
