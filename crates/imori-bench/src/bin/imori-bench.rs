//! `imori bench` as a program of its own, for machines that have no broker to run.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use imori_bench::BenchArgs;

/// Puts load on a broker and checks everything that comes back.
#[derive(Debug, Parser)]
#[command(name = "imori-bench", version)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    match imori_bench::run(&Command::parse().bench) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nothing is left to say if standard error is closed too.
            let _ = writeln!(std::io::stderr(), "imori bench: {error:#}");
            ExitCode::from(1)
        }
    }
}
