//! Loads the configuration from defaults, file and environment, in rising precedence. Problems are
//! collected and reported together.

mod file;
mod environment;
pub(crate) mod loading;
pub(crate) mod problem;
pub(crate) mod nearest;
mod value;
pub(crate) mod text;

use std::ffi::OsString;
use std::path::Path;

use loading::Loading;

pub(crate) use loading::Loaded;
pub(crate) use problem::Problems;
pub(crate) use text::{sample, show};

/// Loads a configuration from its sources.
///
/// # Errors
/// All problems of all sources.
pub fn load(
    file: Option<&Path>,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Loaded, Problems> {
    let mut loading = Loading::default();
    if let Some(path) = file {
        file::load(path, &mut loading);
    }
    environment::load(environment, &mut loading);
    loading.outcome()
}
