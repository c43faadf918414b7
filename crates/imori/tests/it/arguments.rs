//! Arguments of the command line: what they may be, and the groups of the commands.

use std::time::Duration;

use clap::CommandFactory as _;
use imori::for_tests::{Cli, GROUPS, Header, add_one, duration_argument, header_argument, output_of};

#[test]
fn the_arguments_are_declared_without_contradiction() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_is_in_one_group() {
    let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
    grouped.sort_unstable();
    let command = Cli::command();
    let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    all.sort_unstable();
    assert_eq!(grouped, all);
}

#[test]
fn times_have_a_unit() {
    for (text, expected) in [
        ("5s", Some(5000)),
        ("250ms", Some(250)),
        ("2m", Some(120_000)),
        ("0s", Some(0)),
        ("5", None),
        ("s", None),
        ("-1s", None),
        ("1.5s", None),
        ("99999999999s", None),
        ("", None),
    ] {
        assert_eq!(duration_argument(text).ok(), expected.map(Duration::from_millis), "{text}");
    }
}

#[test]
fn headers_have_a_name() {
    for (text, expected) in [
        ("a:b", Some(("a", "b"))),
        ("a:b:c", Some(("a", "b:c"))),
        ("a:", Some(("a", ""))),
        (":b", None),
        ("a", None),
    ] {
        let expected =
            expected.map(|(name, value)| Header { name: String::from(name), value: String::from(value) });
        assert_eq!(header_argument(text).ok(), expected, "{text}");
    }
}

#[test]
fn one_is_added_to_decimal_numbers() {
    for (request, expected) in [
        (&b"1"[..], Some("2")),
        (b" 41\n", Some("42")),
        (b"-1", Some("0")),
        (b"9223372036854775807", None),
        (b"one", None),
        (b"", None),
        (b"\xff", None),
    ] {
        assert_eq!(add_one(request).ok(), expected.map(|text| text.as_bytes().to_vec()), "{request:?}");
    }
}

#[test]
fn a_command_answers_with_its_output() {
    let large = vec![b'a'; 1 << 20];
    for (command, request, expected) in [
        ("tr a b", &b"banana"[..], Ok(&b"bbnbnb"[..])),
        ("cat", &large, Ok(&large)),
        ("echo ok", &large, Ok(b"ok\n")),
        ("exit 3", b"", Err("the command ended with exit status: 3")),
    ] {
        let answer = output_of(command, request);
        assert_eq!(answer.as_deref().map_err(String::as_str), expected, "{command}");
    }
}
