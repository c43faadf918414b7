//! Compares `docs/reference/cli.md` with the help texts.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::binary::run;

const HEAD: &str = "\
# The command line

This page is made from the help texts of `imori`; a test fails when it is stale, and says how to renew it.
";

#[test]
fn the_command_line_reference_is_that_of_this_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/cli.md");
    let mut expected = String::from(HEAD);
    append(&mut expected, &[]);
    if env::var_os("IMORI_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let reference = fs::read_to_string(path).unwrap_or_default();
    assert!(
        reference == expected,
        "the file is stale; run `IMORI_BLESS=1 cargo test -p imori --test it reference`"
    );
}

/// Appends the help of a command and then of its subcommands.
fn append(out: &mut String, command: &[&str]) {
    let help = run(&[command, &["--help"]].concat());
    assert_eq!(help.code, Some(0), "{command:?}");
    let name = ["imori"].iter().chain(command).copied().collect::<Vec<_>>().join(" ");
    let text: String = help.stdout.trim_end().lines().flat_map(|line| [line.trim_end(), "\n"]).collect();
    write!(out, "\n## `{name}`\n\n```text\n{text}```\n").unwrap();
    for below in commands_in(&help.stdout) {
        append(out, &[command, &[below]].concat());
    }
}

/// The names listed under `Commands:` in a help text, or in groups under the usage of `imori` itself.
fn commands_in(help: &str) -> Vec<&str> {
    let is_grouped = help.contains("\nUsage: imori <COMMAND>\n");
    let begin = if is_grouped { "Usage: imori <COMMAND>" } else { "Commands:" };
    let list = help.lines().skip_while(|line| *line != begin).skip(1);
    list.take_while(|line| if is_grouped { *line != "Options:" } else { !line.is_empty() })
        // Continuation lines have a deeper indentation.
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect()
}
