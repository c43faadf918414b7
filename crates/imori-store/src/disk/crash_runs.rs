//! The framework of the crash tests: number of seeds, disk faults, and checks that planted faults
//! are caught.
//!
//! The ledgers and steps of the journal and the segments are in `journal/crash.rs` and
//! `segment/crash.rs`.

use super::sim_disk::{Call, DiskFault, EIO, ENOSPC, Random, SimDisk};
use crate::planted::Fault;
use crate::seal::{Seal, StoreId};

/// The number of random power cuts tried for each state of the disk.
pub(crate) const CRASHES: usize = 4;

/// The store of every crash test.
pub(crate) const STORE: StoreId = StoreId([9; 16]);

/// The seal of that store, optionally with a planted fault.
pub(crate) fn seal(fault: Option<Fault>) -> Seal {
    let mut seal = Seal::new(STORE);
    seal.planted.0 = fault;
    seal
}

/// Makes one of the next calls of the disk fail.
pub(crate) fn plan_fault(disk: &SimDisk, random: &mut Random) {
    let (call, fault) = match random.below(5) {
        0 => (Call::Write, DiskFault::Error(EIO)),
        1 => (Call::Write, DiskFault::Error(ENOSPC)),
        2 => (Call::Write, DiskFault::Short),
        3 => (Call::SyncFolder, DiskFault::Error(EIO)),
        _ => (Call::Sync, DiskFault::Error(EIO)),
    };
    disk.inject(call, random.below(20), fault);
}

/// The number of seeds in an ordinary run; `IMORI_STORE_SEEDS` overrides it.
pub(crate) fn seeds() -> u64 {
    std::env::var("IMORI_STORE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Runs every seed without a planted fault and returns the results; the first violation fails the
/// test.
pub(crate) fn run_all<T>(run: impl Fn(u64, Option<Fault>) -> Result<T, String>) -> Vec<T> {
    (0..seeds())
        .map(|seed| run(seed, None).unwrap_or_else(|violation| panic!("seed {seed}: {violation}")))
        .collect()
}

/// Fails the test unless each planted fault makes some seed end with the given violation.
pub(crate) fn assert_all_caught<T>(
    faults: &[(Fault, &str)],
    run: impl Fn(u64, Option<Fault>) -> Result<T, String>,
) {
    for (fault, violation) in faults {
        let says = |what: &String| what.contains(violation);
        let is_caught = (0..200).any(|seed| run(seed, Some(*fault)).err().as_ref().is_some_and(says));
        assert!(is_caught, "{fault:?} is not caught as `{violation}`");
    }
}

/// Prints a line for `--nocapture`, because a test that covers few crashes proves little.
pub(crate) fn tell(line: &str) {
    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{line}\n"))
        .expect("standard error takes it");
}
