//! Every fuzz target in one program: `IMORI_FUZZ_TARGET` names the one that libFuzzer runs.
//!
//! Without a target, it lists their names. The arguments are libFuzzer's, which passes them and the
//! environment on to the processes that it starts.

#![no_main]

mod fuzz_targets;
mod planted;

use std::sync::LazyLock;
use std::{env, process};

use libfuzzer_sys::fuzz_target;

use crate::fuzz_targets::{Run, TARGETS};

/// The environment variable that names the target.
const VARIABLE: &str = "IMORI_FUZZ_TARGET";

static RUN: LazyLock<Run> = LazyLock::new(selected);

fuzz_target!(
    init: LazyLock::force(&RUN),
    |data: &[u8]| RUN(data)
);

/// The selected target; ends the process if there is none.
fn selected() -> Run {
    let Ok(name) = env::var(VARIABLE) else {
        TARGETS.iter().for_each(|(name, _)| println!("{name}"));
        process::exit(0);
    };
    let Some((_, run)) = TARGETS.iter().find(|(known, _)| *known == name) else {
        eprintln!("there is no target `{name}`; without {VARIABLE}, the targets are listed");
        process::exit(2);
    };
    *run
}
