//! `imori gateway import-nginx`: a configuration of nginx as a routes file.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Args;
use imori_nginx::{Problem, import};

use crate::output::{print, print_problem};

/// The exit code if something was left out.
const INCOMPLETE: u8 = 2;

/// Turn a configuration of nginx with the directives of ngx_mruby into a routes file.
///
/// Reads `listen`, `server_name`, `location`, `root`, `proxy_pass`, `return`, `set` and all `mruby_` directives; other files
/// are not read. Prints the routes, and to standard error each directive that it leaves out, with its line and what to write
/// instead. Exit codes: 0 nothing is left out, 1 a file cannot be read or written, 2 something is left out.
#[derive(Debug, Args)]
pub(super) struct ImportNginx {
    /// The configuration of nginx.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write the routes to this file, which must not exist yet, instead of standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ImportNginx {
    pub(super) fn run(self) -> anyhow::Result<u8> {
        let name = self.file.display().to_string();
        let text = fs::read(&self.file).with_context(|| format!("`{name}` cannot be read"))?;
        let Ok(text) = String::from_utf8(text) else { bail!("`{name}` is not UTF-8; convert it first") };
        let imported = import(&text, &name);
        match &self.output {
            // An existing file is not overwritten, because it may have been edited.
            Some(path) if !imported.routes.is_empty() => fs::File::create_new(path)
                .and_then(|mut file| std::io::Write::write_all(&mut file, imported.routes.as_bytes()))
                .with_context(|| format!("`{}` cannot be written", path.display()))?,
            Some(_) => {}
            None => print(imported.routes.as_bytes())?,
        }
        for problem in &imported.problems {
            let Problem { line, .. } = problem;
            print_problem(&format!("{name}:{line}: {problem}"));
        }
        Ok(if imported.problems.is_empty() { 0 } else { INCOMPLETE })
    }
}
