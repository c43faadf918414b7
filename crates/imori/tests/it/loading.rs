//! How a configuration is loaded from a file and the environment, and what is told of one that is wrong.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use imori::for_tests::{Problems, distance, load, nearest_key, nearest_section, sample, show};
use imori_server::config::{Bytes, Config, LogFormat, LogLevel};

/// A temporary file, deleted when dropped.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Written {
        let path = std::env::temp_dir().join(format!("imori-config-{}-{name}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Written(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn from_file(name: &str, text: &str) -> Result<Config, Problems> {
    load(Some(&Written::new(name, text).0), std::iter::empty()).map(|loaded| loaded.config)
}

fn from_environment(variables: &[(&str, &str)]) -> Result<Config, Problems> {
    let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    load(None, variables).map(|loaded| loaded.config)
}

/// The problems without the file's path, one per line.
fn problems(loaded: Result<Config, Problems>) -> String {
    let text = loaded.expect_err("something is wrong").to_string();
    let lines = text.lines().map(|line| match line.split_once(".toml:") {
        Some((_, rest)) => rest,
        None => line,
    });
    lines.collect::<Vec<&str>>().join("\n")
}

#[test]
fn a_file_sets_keys_and_leaves_the_others() {
    let config = from_file(
        "sets",
        "[limits]\nconnections = 1_000\nmessage_bytes = \"1MiB\"\nheader_bytes = 0x1000\n[log]\nformat = 'json'\n",
    )
    .unwrap();
    assert_eq!(config.limits.connections, 1000);
    assert_eq!(config.limits.message_bytes, Bytes::mib(1));
    assert_eq!(config.limits.header_bytes, Bytes::kib(4));
    assert_eq!(config.log.format, LogFormat::Json);
    assert_eq!(config.stomp, Config::default().stomp);
}

#[test]
fn what_is_wrong_with_a_file_is_told_with_its_place() {
    for (name, text, expected) in [
        (
            "key",
            "[stomp]\n\n  hartbeat = 1\n",
            "3:3: unknown key `stomp.hartbeat`; did you mean `stomp.heart_beat_send_ms`?",
        ),
        (
            "far",
            "[stomp]\ncolour = 1",
            "2:1: unknown key `stomp.colour`; `imori config show --sample` prints them all",
        ),
        ("section", "[stmop]\nx = 1", "1:2: unknown section `[stmop]`; did you mean `[stomp]`?"),
        (
            "table",
            "[stomp.tls]\nx = 1",
            "1:8: unknown key `stomp.tls`; `imori config show --sample` prints them all",
        ),
        ("root", "stomp = 1", "1:1: `stomp` is a section; write `[stomp]`"),
        ("outside", "prefetch = 1", "1:1: key `prefetch` stands outside of a section"),
        (
            "dotted",
            "limits.queues = 0",
            "1:8: `limits.queues` is `0`; expected a whole number from 1 to 10000000",
        ),
        (
            "type",
            "[log]\nlevel = 3",
            "2:1: `log.level` is `3`; expected one of `error`, `warn`, `info`, `debug`, `trace`",
        ),
        (
            "float",
            "[cells]\ncount = 1.5",
            "2:1: `cells.count` is `1.5`; expected a whole number from 0 to 1024",
        ),
        (
            "huge",
            "[cells]\ncount = 99999999999999999999",
            "2:1: `cells.count` is `99999999999999999999`; expected a whole number from 0 to 1024",
        ),
        (
            "lines",
            "[log]\nlevel = \"\"\"a\nb\"\"\"",
            "2:1: `log.level` is `\"\"\"a\\nb\"\"\"`; expected one of `error`, `warn`, `info`, `debug`, `trace`",
        ),
        (
            "two",
            "[log]\nlevel = 3\n[cells]\nwrite = 'all'",
            "2:1: `log.level` is `3`; expected one of `error`, `warn`, `info`, `debug`, `trace`\n\
             4:1: `cells.write` is `'all'`; expected one of `any`, `own`",
        ),
    ] {
        assert_eq!(problems(from_file(name, text)), expected, "{text}");
    }
}

#[test]
fn what_is_not_toml_is_told_with_its_place() {
    for (name, text, location) in [
        ("open", "[log\nlevel = 1", "1:5: not TOML: "),
        ("twice", "[log]\nlevel = 'info'\nlevel = 'info'", "3:1: not TOML: "),
    ] {
        let told = problems(from_file(name, text));
        assert!(told.starts_with(location), "{told}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let loaded = load(Some(&PathBuf::from("/nowhere/imori.toml")), std::iter::empty());
    let told = loaded.unwrap_err().to_string();
    assert!(told.starts_with("/nowhere/imori.toml: cannot be read: "), "{told}");
}

#[test]
fn variables_set_keys_by_their_name() {
    let config = from_environment(&[
        ("IMORI__LIMITS__CONNECTIONS", "12"),
        ("IMORI__LIMITS__MESSAGE_BYTES", "2MiB"),
        ("IMORI__STOMP__KEEP_OPEN_AFTER_ERROR", "true"),
        ("IMORI__LISTENERS__STOMP", "[\"127.0.0.1:1\", \"[::1]:2\"]"),
        ("IMORI__BROKER__VHOSTS", "1"),
        ("IMORI_URL", "stomp://other"),
        ("PATH", "/bin"),
    ])
    .unwrap();
    assert_eq!(config.limits.connections, 12);
    assert_eq!(config.limits.message_bytes, Bytes::mib(2));
    assert!(config.stomp.keep_open_after_error);
    assert_eq!(config.listeners.stomp.len(), 2);
    assert_eq!(config.broker.vhosts.iter().collect::<Vec<&str>>(), ["1"]);
}

#[test]
fn what_is_wrong_with_a_variable_is_told_with_its_name() {
    for (name, value, expected) in [
        (
            "IMORI__STOMP__HARTBEAT",
            "1",
            "environment variable `IMORI__STOMP__HARTBEAT`: unknown key `stomp.hartbeat`; did you mean \
             `IMORI__STOMP__HEART_BEAT_SEND_MS`?",
        ),
        (
            "IMORI__LIMITS",
            "1",
            "environment variable `IMORI__LIMITS`: unknown key `limits`; `imori config show --sample` prints them all",
        ),
        (
            "IMORI__CELLS__COUNT",
            "all\n",
            "environment variable `IMORI__CELLS__COUNT`: `cells.count` is `all\\n`; expected a whole number from 0 to 1024",
        ),
    ] {
        assert_eq!(problems(from_environment(&[(name, value)])), expected);
    }
    let not_text = [(OsString::from("IMORI__CELLS__COUNT"), OsString::from_vec(vec![0xff]))];
    let told = problems(load(None, not_text.into_iter()).map(|loaded| loaded.config));
    assert_eq!(told, "environment variable `IMORI__CELLS__COUNT`: the value is not UTF-8");
}

#[test]
fn the_environment_goes_over_the_file() {
    let file = Written::new("order", "[log]\nlevel = 'warn'\n[limits]\nqueues = 5\n");
    let environment = [(OsString::from("IMORI__LOG__LEVEL"), OsString::from("debug"))];
    let config = load(Some(&file.0), environment.into_iter()).unwrap().config;
    assert_eq!((config.log.level, config.limits.queues), (LogLevel::Debug, 5));
}

/// The configuration without the places where its values were set.
fn values(config: Config) -> Config {
    Config { set_by: BTreeMap::new(), ..config }
}

#[test]
fn the_sample_is_the_default_with_and_without_its_comment_signs() {
    let sample = sample();
    assert_eq!(values(from_file("sample", &sample).unwrap()), Config::default());
    let uncommented: Vec<&str> = sample
        .lines()
        .filter(|line| !line.starts_with("# ") && *line != "#")
        .map(|line| line.trim_start_matches('#'))
        .collect();
    assert_eq!(values(from_file("uncommented", &uncommented.join("\n")).unwrap()), Config::default());
}

#[test]
fn what_is_shown_can_be_loaded_again() {
    let config =
        from_environment(&[("IMORI__BROKER__VHOSTS", "[\"a\\\"b\", \"/\"]"), ("IMORI__CELLS__COUNT", "3")])
            .unwrap();
    assert_eq!(values(from_file("shown", &show(&config)).unwrap()), values(config));
}

#[test]
fn slips_are_understood() {
    for (section, key, nearest) in [
        ("stomp", "hartbeat", Some(("stomp", "heart_beat_send_ms"))),
        ("stomp", "heart_beat_recieve_ms", Some(("stomp", "heart_beat_receive_ms"))),
        ("limits", "conections", Some(("limits", "connections"))),
        ("limits", "login_timeout", Some(("limits", "login_timeout_s"))),
        ("limit", "message_bytes", Some(("limits", "message_bytes"))),
        ("broker", "message_bytes", Some(("limits", "message_bytes"))),
        ("log", "levle", Some(("log", "level"))),
        ("broker", "colour", None),
        ("", "", None),
    ] {
        assert_eq!(nearest_key(section, key), nearest, "{section}.{key}");
    }
    for (section, nearest) in [("listener", Some("listeners")), ("stmop", Some("stomp")), ("mqtt", None)] {
        assert_eq!(nearest_section(section), nearest, "{section}");
    }
}

#[test]
fn distances() {
    for (typed, known, expected) in [
        ("level", "level", 0),
        ("levle", "level", 2),
        ("leve", "level", 1),
        ("levell", "level", 1),
        ("login_timeout", "login_timeout_s", 1),
        ("", "level", 1),
    ] {
        assert_eq!(distance(typed, known), expected, "{typed} against {known}");
    }
}
