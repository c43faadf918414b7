//! Help, version, and the errors for a wrong command line.

use crate::binary::run;

#[test]
fn version_is_printed() {
    let expected = concat!("imori ", env!("CARGO_PKG_VERSION"), "\n");
    for arguments in [&["version"][..], &["--version"], &["-V"]] {
        let run = run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), expected), "{arguments:?}");
    }
}

#[test]
fn help_names_every_command_and_exit_code() {
    let run = run(&["--help"]);
    assert_eq!(run.code, Some(0));
    for word in
        ["serve", "pub", "sub", "call", "respond", "config", "verify", "store", "version", "Exit codes:"]
    {
        assert!(run.stdout.contains(word), "{word} is missing in\n{}", run.stdout);
    }
}

#[test]
fn every_command_has_help_with_an_example_of_its_arguments() {
    for (command, words) in [
        (
            "serve",
            &["--listen <PROTOCOL=HOST:PORT>", "--config <FILE>", "--ready-fd <N>", "--insecure-dev"][..],
        ),
        ("pub", &["<DESTINATION>", "[BODY]", "--header <NAME:VALUE>", "--url <URL>"]),
        ("sub", &["--ack <MODE>", "client-individual", "--count <N>"]),
        ("call", &["--timeout <TIME>", "[default: 5s]"]),
        ("respond", &["--command <COMMAND>", "--echo", "--add-one"]),
        ("config", &["check", "show"]),
        ("verify", &["--data-dir <DIR>", "Exit codes: 0 sound, 1 damage, 2 it cannot be looked at"]),
        ("store", &["dump", "acknowledge"]),
    ] {
        let run = run(&[command, "--help"]);
        assert_eq!(run.code, Some(0), "{command}");
        for word in words {
            assert!(run.stdout.contains(word), "{word} is missing in\n{}", run.stdout);
        }
    }
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for (arguments, told) in [
        (&[][..], "Usage: imori"),
        (&["serv"], "serve"),
        (
            &["serve", "--listen", "mqtt=127.0.0.1:1883"],
            "unknown protocol; use one of `stomp`, `stomp-tls`, `nats`, `nats-tls`, `amqp`, `amqp-tls`, `ws`, `ws-tls`, \
             `nats-monitor`, `nats-monitor-tls`, `admin`, `admin-tls`",
        ),
        (
            &["serve", "--listen", "stomp=::1:61613"],
            "expected an address such as `127.0.0.1:61613` or `[::1]:61613`",
        ),
        (
            &["serve", "--listen", "127.0.0.1:61613"],
            "unknown protocol; use one of `stomp`, `stomp-tls`, `nats`, `nats-tls`, `amqp`, `amqp-tls`, `ws`, `ws-tls`, \
             `nats-monitor`, `nats-monitor-tls`, `admin`, `admin-tls`",
        ),
        (&["serve", "--ready-fd", "2"], "3.."),
        (&["serve", "--log", "loud"], "expected one of `error`, `warn`"),
        (&["respond", "/queue/a"], "--echo"),
        (&["respond", "/queue/a", "--echo", "--add-one"], "cannot be used with"),
        (&["call", "/queue/a", "--timeout", "5"], "expected a number and a unit"),
        (&["pub", "/queue/a", "--header", "priority"], "expected a name, a colon and a value"),
        (&["store", "dump", "--from", "first"], "invalid value 'first' for '--from <LSN>'"),
        (&["pub", "/queue/a", "--url", "http://127.0.0.1"], "use `stomp://` or `nats://` or `amqp://`"),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
    }
}

#[test]
fn a_refused_name_of_a_certificate_leaves_no_folder() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("certs");
    let run = run(&["cert", "dev", "--dir", folder.to_str().unwrap(), "https://broker.example:15671"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    let told = "`https://broker.example:15671` is neither a host name nor an address";
    assert!(run.stderr.contains(told), "{run:?}");
    assert!(!folder.exists(), "{run:?}");
}
