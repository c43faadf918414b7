//! A thread of the lowest priority, which computes slow hashes for another one.
//!
//! A flood of wrong passwords is to delay no message (SECURITY AUTH-09), so that cells go first where both want a core.
//! The thread that waits takes the locks before and after: a cell would wait long for one whose owner gets no core.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;

use rustix::process::nice;
use tracing::{debug, warn};

use super::password::{HashMemory, PasswordHash};

/// The lowest priority that the system has.
const NICEST: i32 = 19;

thread_local! {
    /// The hasher of this thread, which ends with it. `None` where no thread could be started.
    static OF_THREAD: Option<Hasher> = Hasher::start();
}

struct Hasher {
    questions: Sender<Question>,
    verdicts: Receiver<bool>,
}

struct Question {
    hash: PasswordHash,
    password: Box<[u8]>,
}

/// Says whether a password is the one that was hashed, once the hasher of this thread has found that out.
pub(crate) fn verify(hash: &PasswordHash, password: &[u8]) -> bool {
    OF_THREAD.with(|hasher| match hasher {
        Some(hasher) => hasher.ask(Question { hash: hash.clone(), password: password.into() }),
        None => hash.verify(password, &mut HashMemory::default()),
    })
}

impl Hasher {
    fn start() -> Option<Hasher> {
        let (questions, asked) = channel();
        let (answers, verdicts) = channel();
        match Builder::new().name(String::from("hasher")).spawn(move || run(&asked, &answers)) {
            Ok(_) => Some(Hasher { questions, verdicts }),
            Err(error) => {
                warn!(%error, "no thread can be started that computes hashes, so that a verifier does that");
                None
            }
        }
    }

    /// A fault in the hasher is the answer no.
    fn ask(&self, question: Question) -> bool {
        self.questions.send(question).is_ok() && self.verdicts.recv().unwrap_or(false)
    }
}

fn run(asked: &Receiver<Question>, answers: &Sender<bool>) {
    if let Err(error) = nice(NICEST) {
        debug!(%error, "the thread of a hasher keeps the priority of cells");
    }
    let mut memory = HashMemory::default();
    while let Ok(Question { hash, password }) = asked.recv() {
        if answers.send(hash.verify(&password, &mut memory)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hasher_answers_its_thread_again_and_again() {
        let hash = PasswordHash::of(b"secret").unwrap();
        for (password, is_right) in [("secret", true), ("wrong", false), ("secret", true), ("", false)] {
            assert_eq!(verify(&hash, password.as_bytes()), is_right, "{password}");
        }
    }
}
