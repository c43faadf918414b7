//! The load tool with the protocols of peers that need no broker.

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use imori_bench::driver;
use imori_brokerless::PROTOCOLS;
use imori_versus::BenchArgs;

// As in `imori`, whose load tool has the same allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Puts load on a broker, or on a peer that answers without one, and checks everything that comes back.
///
/// For `rpc`, `--url` may also be `zmq-rep://host:port`, `zmq-router://host:port` or
/// `grpc://host:port/package.Service/Method`, where the method may be left out.
#[derive(Debug, Parser)]
#[command(name = "imori-brokerless", version)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn main() -> ExitCode {
    driver::bring(&PROTOCOLS);
    match imori_versus::run(&Command::parse().bench) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nothing is left to say if standard error is closed too.
            let _ = writeln!(std::io::stderr(), "imori-brokerless: {error:#}");
            ExitCode::from(1)
        }
    }
}
