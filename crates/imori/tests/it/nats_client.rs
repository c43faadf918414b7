//! `pub`, `sub`, `call` and `respond` against a NATS server that follows a script.

use crate::binary::{Run, run, run_with_input};
use crate::peer::Peer;

const GREETING: (&str, &str) =
    ("", "INFO {\"server_id\":\"N\",\"headers\":true,\"max_payload\":1048576} \r\n");
const LOGIN: (&str, &str) = ("CONNECT ~\r\nPING\r\n", "PONG\r\n");
const BYE: (&str, &str) = ("PING\r\n", "PONG\r\n");

fn converse(arguments: &[&str], input: &str, script: &[(&str, &str)]) -> Run {
    let peer = Peer::start(&[&[GREETING, LOGIN], script].concat());
    let url = format!("nats://{}", peer.address);
    let run = run_with_input(&[arguments, &["--url", &url]].concat(), input);
    peer.finish();
    run
}

#[test]
fn pub_sends_and_waits_until_the_server_has_seen_it() {
    let sent = "PUB a.b 2\r\nhi\r\nPUB a.b 2\r\nhi\r\nPING\r\n";
    let run = converse(&["pub", "a.b", "-", "--count", "2"], "hi", &[(sent, "PONG\r\n"), BYE]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));

    let sent = "HPUB a.b 20 22\r\nNATS/1.0\r\nx: a:b\r\n\r\nhi\r\nPING\r\n";
    let run = converse(&["pub", "a.b", "hi", "--header", "x:a:b"], "", &[(sent, "PONG\r\n"), BYE]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn sub_prints_bodies_with_what_they_carry() {
    let messages = "PING\r\nMSG a.b 1 3\r\none\r\nHMSG a.c 1 r 18 21\r\nNATS/1.0\r\nk: v\r\n\r\ntwo\r\n";
    let script = [("SUB a.* 1\r\n", messages), ("PONG\r\n", ""), BYE];
    let run = converse(&["sub", "a.*", "--count", "2", "--headers"], "", &script);
    assert_eq!(run.stdout, "subject:a.b\n\none\nsubject:a.c\nreply-to:r\nk:v\n\ntwo\n");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn call_prints_the_reply_to_its_inbox() {
    let request = "SUB ~ 1\r\nPUB a ~ 1\r\n1\r\n";
    let run = converse(&["call", "a", "1"], "", &[(request, "MSG inbox 1 1\r\n2\r\n"), BYE]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "2\n"));

    let refused = "HMSG inbox 1 23 23\r\nNATS/1.0\r\nerror: no\r\n\r\n\r\n";
    let run = converse(&["call", "a", "1"], "", &[(request, refused), BYE]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), "imori: the responder answers: no\n"));
}

#[test]
fn call_to_a_queue_leaves_no_dead_request() {
    let request = "SUB ~ 1\r\nHPUB imori.queue.a ~ 29 30\r\nNATS/1.0\r\nexpiration: 900\r\n\r\n1\r\n";
    let arguments = ["call", "imori.queue.a", "1", "--timeout", "900ms"];
    let run = converse(&arguments, "", &[(request, "MSG inbox 1 1\r\n2\r\n"), BYE]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "2\n"));
}

#[test]
fn call_tells_at_once_that_nobody_hears() {
    let nobody = "HMSG inbox 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n";
    let run = converse(&["call", "a", "1"], "", &[("SUB ~ 1\r\nPUB a ~ 1\r\n1\r\n", nobody)]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "imori: nobody is subscribed there; start a responder\n");
}

#[test]
fn call_without_a_reply_is_exit_code_3() {
    let script = [("SUB ~ 1\r\nPUB a ~ 0\r\n\r\n", "")];
    let run = converse(&["call", "a", "--timeout", "50ms"], "", &script);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
}

#[test]
fn respond_shares_its_subject_and_answers_each_request() {
    let requests = "MSG a 1 x 2\r\n41\r\nMSG a 1 6\r\nnobody\r\nMSG a 1 y 3\r\none\r\n";
    let error = "error: the request is not a decimal number of 64 bits";
    let head = format!("NATS/1.0\r\n{error}\r\n\r\n");
    let answers = format!("PUB x 2\r\n42\r\nHPUB y {0} {0}\r\n{head}\r\nPING\r\n", head.len());
    let script = [("SUB a imori-respond 1\r\n", requests), (&answers, "PONG\r\n")];
    let run = converse(&["respond", "a", "--add-one", "--count", "3"], "", &script);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn an_error_of_the_server_is_told_on_one_line() {
    let refused = "-ERR 'Authorization Violation\x1b[31m'\r\n";
    let peer = Peer::start(&[GREETING, (LOGIN.0, refused)]);
    let run = run(&["pub", "a", "--url", &format!("nats://user:canary@{}", peer.address)]);
    peer.finish();
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "imori: refused by the broker: Authorization Violation\\u{1b}[31m\n");
}

#[test]
fn what_is_no_nats_server_is_told() {
    let peer = Peer::start(&[("", "HTTP/1.1 400 Bad Request\r\n\r\n")]);
    let run = run(&["pub", "a", "--url", &format!("nats://{}", peer.address)]);
    peer.finish();
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("imori: the broker does not speak NATS: "), "{}", run.stderr);
}

#[test]
fn what_nats_cannot_say_is_told() {
    for (arguments, told) in [
        (&["sub", "a", "--ack", "client"][..], "knows no acknowledgement"),
        (&["sub", "a", "--header", "x:y"], "has no headers"),
        (&["pub", "a b"], "`a b` is no subject"),
        (&["pub", "a", "--header", "a b:c"], "cannot carry the header `a b`"),
    ] {
        let run = converse(arguments, "", &[]);
        assert_eq!(run.code, Some(1), "{arguments:?}");
        assert!(run.stderr.contains(told), "{arguments:?}: {}", run.stderr);
    }
}
