//! The options of scenario `soak`.

use anyhow::{Result, ensure};
use clap::Args;

use crate::options::broker::BrokerOptions;
use crate::options::level::KeepOptions;
use crate::options::load::LoadOptions;
use crate::stamp::STAMP_BYTES;

/// A mix of all scenarios at a moderate rate, for hours.
#[derive(Debug, Clone, Args)]
pub struct SoakOptions {
    /// Broker, accounting and output.
    #[command(flatten)]
    pub broker: BrokerOptions,
    /// How load is made and how long. Of the rate, requests get 40 %, single subscribers 30 %, ten
    /// subscribers 10 % and queues 20 %; what the protocol has not, the others share.
    #[command(flatten)]
    pub load: LoadOptions,
    /// The safety and the arguments of the queues.
    #[command(flatten)]
    pub keep: KeepOptions,
    /// Bytes of each body.
    #[arg(long, default_value_t = 256)]
    pub size: usize,
    /// Requesters, publishers and queues of each part.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub connections: u32,
}

impl SoakOptions {
    /// Refuses combinations of options that cannot be run.
    pub fn check(&self) -> Result<()> {
        self.load.check()?;
        ensure!(
            self.load.rate.is_some(),
            "a soak is an open loop; name a rate well below the highest, with `--rate 5000`"
        );
        ensure!(
            self.size >= STAMP_BYTES.max(20),
            "a body of `{}` bytes does not hold what is checked; use `--size 20` or more",
            self.size
        );
        Ok(())
    }
}
