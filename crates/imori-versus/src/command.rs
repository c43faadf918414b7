//! The commands of `imori-bench`: those of `imori bench`, and the developers'.

use anyhow::Result;
use clap::{Args, Subcommand};
use imori_bench::interrupt;

use crate::automation;
use crate::automation::options::AutomationOptions;
use crate::versus::Beside;

/// Puts load on brokers, checks everything that comes back, and compares them.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// The task of `imori-bench`.
    #[command(subcommand)]
    pub task: Task,
}

/// The task of `imori-bench`.
#[derive(Debug, Clone, Subcommand)]
pub enum Task {
    /// Work with one broker, as `imori bench` does.
    #[command(flatten)]
    One(imori_bench::Task),
    /// Measure the automation of a broker, and the rules that it evaluates.
    Automation(Box<AutomationOptions>),
    /// Work with several brokers.
    #[command(flatten)]
    Beside(Beside),
}

/// Runs the task, prints and writes the results, and returns the exit code of the command.
///
/// # Errors
///
/// The task could not be run at all.
pub fn run(args: &BenchArgs) -> Result<u8> {
    match &args.task {
        Task::One(task) => task.run(),
        Task::Automation(options) => {
            interrupt::listen()?;
            automation::run(options)
        }
        Task::Beside(beside) => beside.run(),
    }
}
