//! When a run compares its queues with those that a restart would make.

use super::simulation::{Shadows, Simulation};
use crate::check::{check_shadow, is_quiet};
use crate::planted::Bug;
use crate::property::Property;
use crate::random::Random;

/// One in this many of the first quiet moments is compared. Each comparison makes further ones rarer, because long runs
/// have many.
const RARITY: usize = 3;

impl Shadows {
    /// The choices for a seed: half of the runs are compared. The others prove that clients notice, too, what a restart
    /// does wrong; so do all runs with a planted bug that another property has to catch.
    pub(crate) fn new(seed: u64, bug: Option<Bug>) -> Shadows {
        let random = Random::new(seed.rotate_left(17));
        let is_for_replica = |bug: Bug| bug.properties().contains(&Property::Replica);
        let is_compared = random.chance(1, 2) && bug.is_none_or(is_for_replica);
        Shadows { random, is_compared }
    }
}

impl Simulation {
    /// Compares some of the moments at which nothing moves with a restart.
    pub(super) fn look_at_shadow(&self) {
        let (shared, Shadows { random, is_compared }) = (&self.shared, &self.shadows);
        let compared = shared.shadows.get();
        let rarity = RARITY * (1 + usize::try_from(compared).unwrap_or(usize::MAX));
        if *is_compared && is_quiet(shared) && random.chance(1, rarity) {
            shared.shadows.set(compared + 1);
            check_shadow(shared, &self.workload, random);
        }
    }
}
