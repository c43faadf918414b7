//! Help, version, and the errors for a wrong command line.

use crate::binary::run;

#[test]
fn version_is_printed() {
    let expected = concat!("imori ", env!("CARGO_PKG_VERSION"), "\n");
    for arguments in [["--version"], ["-V"]] {
        let run = run(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), expected), "{arguments:?}");
    }
    let told = run(&["version"]).stdout;
    assert!(told.starts_with(expected) && told.contains("\ncommit ") && told.contains("\ntarget "), "{told}");
    let told = run(&["version", "--json"]).stdout;
    assert_eq!(
        serde_json::from_str::<serde_json::Value>(&told).unwrap()["version"],
        env!("CARGO_PKG_VERSION")
    );
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
        ("automate", &["run", "exec", "rule", "trigger", "pack", "kv", "new", "workflow", "fsck"]),
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
        (&["automate", "run", "core.local", "date"], "expected a key and a value"),
        (&["automate", "trigger", "emit", "a.b", "[1]"], "expected a JSON object"),
        (&["automate", "rule", "test", "a.b", "--event", "1", "--payload", "{}"], "cannot be used with"),
        (&["automate", "exec", "list", "--limit", "101"], "1..=100"),
        (&["automate", "exec", "re-run", "1", "--no-reset", "a"], "--tasks <NAME>"),
        (&["automate", "workflow", "rehearse"], "<FILE>..."),
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

#[test]
fn what_is_wrong_with_a_command_of_the_automation_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let rule = folder.path().join("rule.yaml");
    std::fs::write(&rule, "a: [").unwrap();
    let rule = rule.to_str().unwrap();
    // A port that nothing listens at.
    let api = "http://127.0.0.1:1";
    for (arguments, told) in [
        (&["automate", "new", "pack", "Bad-Name", "--dir", dir][..], "`Bad-Name` is no name of a pack"),
        (&["automate", "run", "core.noop", "--api", "ftp://x"], "`ftp://x` is no address"),
        (&["automate", "run", "core.noop", "--api", api], "no automation answers at `http://127.0.0.1:1`"),
        (&["automate", "run", "core.noop", "a=1", "a=2", "--api", api], "`a` is given twice"),
        (&["automate", "rule", "create", rule, "--api", api], "rule.yaml` is no YAML: line "),
        (&["automate", "rule", "create", "/no/file", "--api", api], "`/no/file` cannot be read"),
    ] {
        let run = run(arguments);
        assert_eq!(run.code, Some(1), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(run(&["automate", "new", "pack", "ours", "--dir", dir]).code, Some(0));
    let again = run(&["automate", "new", "pack", "ours", "--dir", dir]);
    assert!(again.stderr.contains("exists already"), "{again:?}");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let workflow =
        file("w.yaml", "tasks:\n  a: {action: core.noop, next: [{do: b}]}\n  b: {action: core.noop}\n");
    let wrong = file("wrong.yaml", "tasks:\n  a:\n    next:\n      - do: nowhere\n");
    let met = file("met.yaml", "workflow: w.yaml\nexpected_task_sequence: [a, b]\n");
    let unmet = file("unmet.yaml", "workflow: w.yaml\nexpected_task_sequence: [a]\n");
    let lost = file("lost.yaml", "workflow: no.yaml\nexpected_task_sequence: [a]\n");
    let sequence = format!("{unmet}:2:1: the sequence of tasks is [a, b], and not [a]\n");
    for (arguments, code, told) in [
        (
            &["inspect", &workflow, &wrong][..],
            1,
            format!("{workflow}: nothing is wrong\n{wrong}:4:9: semantic: The task"),
        ),
        (&["inspect", &workflow], 0, format!("{workflow}: nothing is wrong\n")),
        (&["rehearse", "-p", dir, &met], 0, format!("{met}: it does what is expected\n")),
        (&["rehearse", "-p", dir, &met, &unmet], 1, sequence),
        (&["rehearse", "-p", dir, &lost], 1, format!("{lost}:1:1: `{dir}/no.yaml` cannot be read")),
    ] {
        let run = run(&[&["automate", "workflow"][..], arguments].concat());
        assert!(run.code == Some(code) && run.stdout.contains(&told), "{arguments:?}: {run:?}");
    }
    let sound = run(&["automate", "fsck", "--data-dir", dir]);
    assert_eq!((sound.code, sound.stdout.as_str()), (Some(0), "nothing is wrong\n"));
}

#[test]
fn configurations_of_nginx_become_routes() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("nginx.conf"), folder.path().join("routes.toml"));
    let (input, output) = (input.to_str().unwrap(), output.to_str().unwrap());
    let import = |text: &str, options: &[&str]| {
        std::fs::write(input, text).unwrap();
        run(&[&["gateway", "import-nginx", input], options].concat())
    };
    let location = "location /a {\n  return 200;\n}\n";
    let done = import(location, &[]);
    assert_eq!((done.code, done.stderr.as_str()), (Some(0), ""));
    assert!(done.stdout.contains("prefix = \"/a\""), "{}", done.stdout);
    let incomplete = import(&format!("{location}gzip on;\n"), &["--output", output]);
    assert_eq!((incomplete.code, incomplete.stdout.as_str()), (Some(2), ""));
    assert!(incomplete.stderr.starts_with(&format!("{input}:4: `gzip`: ")), "{}", incomplete.stderr);
    assert_eq!(std::fs::read_to_string(output).unwrap(), done.stdout);
    let again = import(location, &["--output", output]);
    assert_eq!(again.code, Some(1), "an edited file stays");
    let broken = import("location /a {", &[]);
    assert_eq!((broken.code, broken.stdout.as_str()), (Some(2), ""));
}
