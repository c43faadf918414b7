//! `imori gateway run`: the gateway alone, with a broker that has no other listener.

use std::fs::{DirBuilder, remove_dir_all};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use imori_server::config::{ListenAddress, LogLevel, parse};

/// Serve the routes of a file until SIGTERM, SIGINT or SIGUSR2, without a configuration.
///
/// The broker behind the routes listens at no other address. Prints the same lines as `imori serve`, and ends with the same
/// exit codes. The routes and their scripts are read again when their files change.
#[derive(Debug, Args)]
pub(crate) struct RunGateway {
    /// The routes file.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Listen at this address. Can be given several times. Port 0 takes a free port.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = parse::<ListenAddress>)]
    pub(crate) listen: Vec<ListenAddress>,
    /// Keep queues and their messages in this folder. Without it, they are gone when the gateway ends.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The lowest level that is logged: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL", value_parser = parse::<LogLevel>)]
    pub(crate) log: Option<LogLevel>,
}

/// A folder of this process alone, which is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Makes a folder that only this user can enter.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub(crate) fn create() -> io::Result<TemporaryFolder> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(io::Error::other)?;
        let number = u64::from_ne_bytes(number);
        let path = std::env::temp_dir().join(format!("imori-gateway-{number:016x}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(TemporaryFolder(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // What stays is the system's to remove, as of a process that was killed.
        let _ = remove_dir_all(&self.0);
    }
}
