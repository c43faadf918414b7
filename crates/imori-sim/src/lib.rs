//! Runs the real core, STOMP and journal on virtual cells, with a false network, disk and clock.
//!
//! A seed decides everything: what clients do, how frames are cut, who goes on at each lock.
//! Equal seeds make equal runs. A broken run names the [`Property`] that it breaks.

mod run;
mod check;
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

/// Runs a seed, with a planted bug if one is given, and gives the lines of its trace to `trace`.
/// A panic is a violation too.
pub fn run_seed(seed: u64, bug: Option<Bug>, trace: Option<TraceReader>) -> Outcome {
    let ran = catch_unwind(AssertUnwindSafe(|| Simulation::new(seed, bug, trace).run()));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| String::from(*text)));
        let violation = Violation { property: Property::Panic, text: text.unwrap_or_default() };
        Outcome { violation: Some(violation), ..Outcome::default() }
    })
}

/// The command that repeats a run and shows it.
pub fn repeat_command(seed: u64) -> String {
    format!("cargo run -p imori-sim -- --seed {seed} --trace")
}
