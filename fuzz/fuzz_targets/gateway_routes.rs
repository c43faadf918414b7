//! Any text is a routes file, or is refused: never a panic.
//!
//! Input: a routes file. Its files are not there, and its scripts are not compiled.
//! Held: each fault has a line of the input and a message on one line, and each route can be shown.

#![allow(dead_code, reason = "what serves routes is not built here")]

use std::path::Path;

use routes::load;

use crate::planted::fail_if_planted;

/// The gateway's own module, so that nobody builds a server to fuzz a parser.
#[allow(unused_imports, reason = "it exports what serves routes")]
#[path = "../../crates/imori-gateway/src/routes/mod.rs"]
mod routes;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let lines = text.matches('\n').count() + 1;
    match load(text, Path::new("none/routes.toml")) {
        Ok(configuration) => {
            let routes: Vec<String> = configuration.routes.iter().map(|route| route.line()).collect();
            assert!(routes.iter().all(|line| !line.is_empty()), "{routes:?}");
            planted(&routes);
        }
        Err(problems) => {
            let shown = problems.to_string();
            assert!(!shown.is_empty());
            for problem in shown.lines() {
                let rest = problem.strip_prefix("none/routes.toml:").and_then(|rest| rest.split_once(": "));
                let line = rest.and_then(|(line, _)| line.parse::<usize>().ok());
                assert!(line.is_some_and(|line| (1..=lines).contains(&line)), "{problem:?} of {lines} lines");
            }
        }
    }
}

/// Does nothing unless a fault is planted: then a route that responds by itself is one too many.
fn planted(routes: &[String]) {
    let is_found = routes.iter().any(|route| route.contains(" return "));
    fail_if_planted(is_found);
}
