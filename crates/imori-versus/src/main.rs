//! The load tool as a program of its own: for machines that have no broker to run, and for comparisons of brokers.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use imori_versus::BenchArgs;

// As in `imori`, whose load tool has the same allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts load on brokers, checks everything that comes back, and compares them.
#[derive(Debug, Parser)]
#[command(name = "imori-bench", version)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    match imori_versus::run(&Command::parse().bench) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nothing is left to say if standard error is closed too.
            let _ = writeln!(std::io::stderr(), "imori-bench: {error:#}");
            ExitCode::from(1)
        }
    }
}
