//! Any text becomes routes, or is refused: never a panic.
//!
//! Input: a configuration of nginx.
//! Held: the routes are TOML, each problem has a line of the input and a message on one line, and a text without problems
//! has routes.

use imori_nginx::import;
use toml::Table;

use crate::planted::fail_if_planted;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let imported = import(text, "fuzz.conf");
    let lines = text.matches('\n').count() + 1;
    for problem in &imported.problems {
        assert!((1..=lines).contains(&problem.line), "{problem:?} of {lines} lines");
        assert!(!problem.message.is_empty() && !problem.message.contains('\n'), "{problem:?}");
    }
    assert!(!imported.routes.is_empty() || !imported.problems.is_empty());
    let table =
        imported.routes.parse::<Table>().unwrap_or_else(|error| panic!("{error}\n{}", imported.routes));
    planted(&table);
}

/// Does nothing unless a fault is planted: then a route that a script answers is one too many.
fn planted(table: &Table) {
    let routes = table.get("route").and_then(|routes| routes.as_array());
    let is_found = routes.is_some_and(|routes| routes.iter().any(|route| route.get("content").is_some()));
    fail_if_planted(is_found);
}
