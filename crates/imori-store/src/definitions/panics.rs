//! Panics of redb on a damaged file: caught, and kept from the panic hook of the process.
//!
//! A damaged file is an outcome that the caller reports in one line; a backtrace of a library is not.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// Calls of [`quietly`] that this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Calls `call`; `None` if it panics. The panic hook of the process hears nothing of that.
pub(super) fn quietly<T>(call: impl FnOnce() -> T) -> Option<T> {
    silence_hook();
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    DEPTH.with(|depth| depth.set(depth.get() - 1));
    outcome.ok()
}

/// A panic hook, as the standard library keeps it.
type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Send + Sync>;

/// Puts [`silencing`] before the hook of the process, once.
fn silence_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| panic::set_hook(silencing(panic::take_hook())));
}

/// A hook that passes on all panics but those within [`quietly`].
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
        // The one of the process first, as another test may put it there at any time.
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
