//! Catches panics of redb on a damaged file, and hides them from the process's panic hook.
//!
//! The caller reports a damaged file in one line; a library's backtrace would only confuse.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// The depth of nested [`quietly`] calls on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Calls `call`; `None` if it panics. The process's panic hook is not called.
pub(super) fn quietly<T>(call: impl FnOnce() -> T) -> Option<T> {
    silence_hook();
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    outcome.ok()
}

/// The type of a panic hook in the standard library.
type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Installs [`silencing`] in front of the process's panic hook, once.
fn silence_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(silencing(panic::take_hook())));
}

/// A hook that passes on all panics except those within [`quietly`].
fn silencing(next: Hook) -> Hook {
    Box::new(move |panic| {
        if DEPTH.with(Cell::get) == 0 {
            next(panic);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_caught_panic_is_told_to_nobody_and_any_other_is() {
        static HEARD: AtomicUsize = AtomicUsize::new(0);
        const REASON: &str = "a panic of this test";
        // Install the real one first, because another test may do so at any time.
        silence_hook();
        let before = panic::take_hook();
        panic::set_hook(silencing(Box::new(move |panic| match panic.payload_as_str() {
            Some(REASON) => drop(HEARD.fetch_add(1, Ordering::Relaxed)),
            _ => before(panic),
        })));
        assert_eq!(quietly(|| 7), Some(7));
        let is_caught = quietly(|| -> u8 { panic::panic_any(REASON) }).is_none();
        assert!(is_caught && HEARD.load(Ordering::Relaxed) == 0);
        let other = thread::spawn(|| -> u8 { panic::panic_any(REASON) }).join();
        assert!(other.is_err() && HEARD.load(Ordering::Relaxed) == 1);
        assert!(quietly(|| quietly(|| -> u8 { panic::panic_any(REASON) })) == Some(None));
        assert_eq!(HEARD.load(Ordering::Relaxed), 1);
    }
}
