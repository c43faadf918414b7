//! The options by which a command is told its broker, besides an address.

use std::env;
use std::path::PathBuf;

use clap::Args;
use imori_bench::Trust;

use super::context::Contexts;
use super::destination::{Destination, Named, destination};
use super::listens::Listens;

/// A context or a data folder, and whom to trust.
#[derive(Debug, Args)]
pub(crate) struct BrokerOptions {
    /// The name of a broker in `imori context`; without it, the current context.
    #[arg(long, value_name = "NAME", env = "IMORI_CONTEXT")]
    context: Option<String>,
    #[command(flatten)]
    pub(crate) trust: Trust,
    /// The data folder of the broker on this machine, where it is `.data` unless another is named.
    #[arg(long, value_name = "DIR", env = "IMORI__BROKER__DATA_DIR")]
    data_dir: Option<PathBuf>,
}

impl BrokerOptions {
    /// Finds the broker; `address` is the address that the command was given, if any.
    ///
    /// # Errors
    /// As [`destination`], or the contexts cannot be read.
    pub(crate) fn find(&self, listens: Listens, address: Option<&str>) -> anyhow::Result<Destination> {
        let (context, data_dir) = (self.context.as_deref(), self.data_dir.as_deref());
        let named = Named { address, context, data_dir };
        destination(listens, named, &Contexts::load()?, |name| env::var_os(name))
    }
}
