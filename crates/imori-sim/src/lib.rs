//! Runs the real core, protocols and journal on virtual cells, with a simulated network, disk and
//! clock.
//!
//! A seed decides everything: what clients do, how frames are cut, which thread continues at each
//! lock. Equal seeds make equal runs. A failed run names the [`Property`] that it breaks.

mod run;
mod check;
mod streams;
mod client;
mod cell;
mod store;
mod model;
mod machine;
mod journal;
mod workload;
mod broker_end;
mod planted;
mod property;
mod message_text;
mod trace;
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};

pub use model::Goodbyes;
pub use planted::Bug;
pub use property::{Property, Violation};
pub use run::Outcome;
pub use trace::TraceReader;

use run::Simulation;

/// Runs a seed, with a planted bug if one is given, and passes the lines of its trace to `trace`. A
/// panic counts as a violation.
pub fn run_seed(seed: u64, bug: Option<Bug>, trace: Option<TraceReader>) -> Outcome {
    let ran = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, bug, trace).run()));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| String::from(*text)));
        let violation = Violation { property: Property::Panic, text: text.unwrap_or_default() };
        Outcome { violation: Some(violation), ..Outcome::default() }
    })
}

/// The command that repeats a run and prints its trace.
pub fn repeat_command(seed: u64) -> String {
    format!("cargo run -p imori-sim -- --seed {seed} --trace")
}

/// What the tests of this crate reach beside its public items.
#[doc(hidden)]
pub mod for_tests {
    pub use crate::machine::{Lock, Locks};
    pub use crate::model::{Span, histories, is_match};
}
