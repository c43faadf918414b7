//! Checks, shows and serves configuration files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::binary::{ended, imori, run};

/// A temporary file, deleted when dropped.
struct Written(PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Written {
        let path = std::env::temp_dir().join(format!("imori-it-{}-{name}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Written(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_disk_that_is_too_small_is_told_of_and_is_no_mistake() {
    // `/proc` has no free space at all.
    let file =
        Written::new("small", "[broker]\ndata_dir = \"/proc/imori\"\n[journal]\nfile_bytes = \"20MiB\"\n");
    let path = file.path();
    let checked = run(&["config", "check", path]);
    let needed = (20 << 20) * 10 + (16 << 20);
    let expected = format!(
        "{path}: ok\n{path}: on this machine the disk of `/proc/imori` has `0` bytes for the journal, which may take \
         `{needed}`; make space, or lower `journal.file_bytes`, for which `limits.message_bytes` has to be lower too\n"
    );
    assert_eq!((checked.code, checked.stdout), (Some(0), expected));
}

#[test]
fn a_wrong_file_is_told_by_line_and_column() {
    let file =
        Written::new("wrong", "[log]\nlevel = \"info\"\n\n[stomp]\n  hartbeat = 5\ntransactions = \"all\"\n");
    let path = file.path();
    let expected = format!(
        "imori: {path}:5:3: unknown key `stomp.hartbeat`; did you mean `stomp.heart_beat_send_ms`?\n\
         imori: {path}:6:1: `stomp.transactions` is `\"all\"`; expected a whole number from 1 to 1024\n"
    );
    for arguments in
        [&["config", "check", path][..], &["serve", "--config", path], &["config", "show", "--config", path]]
    {
        let run = run(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), expected.as_str()), "{arguments:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

#[test]
fn what_serve_refuses_is_refused_by_check_with_the_same_code() {
    let all = "stomp = [\"127.0.0.1:0\"]\nnats = []\namqp = []\nws = []\nnats_monitor = []\nadmin = []\nautomation = []\n";
    for (text, told) in [
        (
            String::from("[limits]\nmessage_bytes = \"64MiB\"\n"),
            "does not fit into a journal file of `67108864`; raise `journal.file_bytes` or lower `limits.message_bytes`",
        ),
        (
            String::from("[listeners]\nstomp = \"127.0.0.1:4444\"\nnats = \"127.0.0.1:4444\"\n"),
            "listeners `stomp` and `nats` both want `127.0.0.1:4444`; give each a port of its own",
        ),
        (
            all.replace("\"127.0.0.1:0\"", "").replace("stomp", "[listeners]\nstomp"),
            "there is no address to listen on; set `listeners.stomp`, `listeners.nats` or `listeners.amqp`",
        ),
        (
            String::from("[listeners]\nstomp = \"0.0.0.0:61613\"\n"),
            "listener `stomp=0.0.0.0:61613` can be reached from other hosts",
        ),
        (
            String::from("[nats]\nconnect_urls = \"nats://mq.example\"\n"),
            "expected a list, each item a host and a port such as `mq.example:4222`",
        ),
        (
            String::from("[broker]\nhost_names = \"mq.example:61613\"\n"),
            "expected a list, each item a host name such as `mq.example`, without scheme and port",
        ),
    ] {
        let file = Written::new("conflict", &text);
        let path = file.path();
        for arguments in [&["config", "check", path][..], &["serve", "--config", path]] {
            let run = run(arguments);
            assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments:?} {text}");
            assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
        }
    }
    let file = Written::new("exposed", "[listeners]\nstomp = \"0.0.0.0:61613\"\n");
    assert_eq!(run(&["config", "check", file.path(), "--insecure-dev"]).code, Some(0));
}

#[test]
fn a_right_file_is_ok() {
    let file = Written::new("right", "[listeners]\nstomp = \"127.0.0.1:0\"\n");
    let run = run(&["config", "check", file.path()]);
    assert_eq!((run.code, run.stdout), (Some(0), format!("{}: ok\n", file.path())));
}

#[test]
fn a_wrong_variable_is_told_by_its_name() {
    let output = imori(&["config", "show"]).env("IMORI__LIMITS__CONECTIONS", "5").output().unwrap();
    let run = ended(output);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.stderr,
        "imori: environment variable `IMORI__LIMITS__CONECTIONS`: unknown key `limits.conections`; did you mean \
         `IMORI__LIMITS__CONNECTIONS`?\n"
    );
}

#[test]
fn the_values_in_force_are_shown() {
    let file = Written::new("shown", "[limits]\nqueues = 5\n");
    let output =
        imori(&["config", "show", "--config", file.path()]).env("IMORI__CELLS__COUNT", "3").output().unwrap();
    let run = ended(output);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    for line in ["[limits]", "queues = 5", "count = 3", "message_bytes = \"16MiB\"", "vhosts = [\"/\"]"] {
        assert!(run.stdout.lines().any(|shown| shown == line), "{line} is missing in\n{}", run.stdout);
    }
}

#[test]
fn the_reference_is_the_sample_of_this_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/imori.toml");
    let reference = fs::read_to_string(path).unwrap();
    let sample = run(&["config", "show", "--sample"]);
    assert_eq!(sample.code, Some(0));
    assert!(
        reference == sample.stdout,
        "the file is stale; run `cargo run -p imori -- config show --sample > docs/reference/imori.toml`"
    );
}
