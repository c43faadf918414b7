//! `pub`, `sub`, `call` and `respond` against a broker that follows a script.

use crate::binary::{Run, run, run_with_input};
use crate::peer::Peer;

const HELLO: (&str, &str) = (
    "CONNECT\naccept-version:1.0,1.1,1.2\nhost:/\nheart-beat:0,0\n\n^@",
    "CONNECTED\nversion:1.2\nsession:1\n\n^@\n",
);
const BYE: (&str, &str) = ("DISCONNECT\nreceipt:bye\n\n^@", "RECEIPT\nreceipt-id:bye\n\n^@");

fn converse(arguments: &[&str], input: &str, script: &[(&str, &str)]) -> Run {
    let peer = Peer::start(script);
    let url = format!("stomp://{}/", peer.address);
    let run = run_with_input(&[arguments, &["--url", &url]].concat(), input);
    peer.finish();
    run
}

#[test]
fn pub_sends_and_waits_for_the_receipt() {
    let first = "SEND\ndestination:/queue/a\npriority:4\nx:a\\cb\ncontent-length:2\n\nhi^@";
    let last = "SEND\ndestination:/queue/a\npriority:4\nx:a\\cb\nreceipt:last\ncontent-length:2\n\nhi^@";
    let run = converse(
        &["pub", "/queue/a", "-", "--header", "priority:4", "--header", "x:a:b", "--count", "2"],
        "hi",
        &[HELLO, (first, ""), (last, "RECEIPT\nreceipt-id:last\n\n^@"), BYE],
    );
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn sub_prints_bodies_and_acknowledges_them() {
    let run = converse(
        &["sub", "/queue/a", "--ack", "client-individual", "--count", "2", "--headers"],
        "",
        &[
            HELLO,
            (
                "SUBSCRIBE\nid:0\ndestination:/queue/a\nack:client-individual\n\n^@",
                "MESSAGE\nack:x1\nk:a\\nb\ncontent-length:3\n\none^@\n\nMESSAGE\nack:x2\n\ntwo^@",
            ),
            ("ACK\nid:x1\n\n^@", ""),
            ("ACK\nid:x2\n\n^@", ""),
            BYE,
        ],
    );
    assert_eq!(run.stdout, "ack:x1\nk:a\\nb\ncontent-length:3\n\none\nack:x2\n\ntwo\n");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn sub_acknowledges_an_older_broker_by_message_id() {
    let run = converse(
        &["sub", "/queue/a", "--ack", "client", "--count", "1"],
        "",
        &[
            (HELLO.0, "CONNECTED\nversion:1.1\n\n^@"),
            ("SUBSCRIBE\nid:0\ndestination:/queue/a\nack:client\n\n^@", "MESSAGE\nmessage-id:7\n\none^@"),
            ("ACK\nmessage-id:7\nsubscription:0\n\n^@", ""),
            BYE,
        ],
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "one\n"));
}

#[test]
fn call_prints_the_reply() {
    let send = "SEND\ndestination:/queue/a\nreply-to:/temp-queue/imori-call\nexpiration:5000\ncontent-length:1\n\n1^@";
    let run = converse(
        &["call", "/queue/a", "1"],
        "",
        &[HELLO, (send, "MESSAGE\nsubscription:/temp-queue/imori-call\n\n2^@"), BYE],
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "2\n"));

    let run =
        converse(&["call", "/queue/a", "1"], "", &[HELLO, (send, "MESSAGE\nerror:no\\nnumber\n\n^@"), BYE]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert_eq!(run.stderr, "imori: the responder answers: no\\nnumber\n");
}

#[test]
fn call_leaves_an_expiry_that_is_said() {
    let send =
        "SEND\ndestination:/queue/a\nreply-to:/temp-queue/imori-call\nexpiration:7\ncontent-length:1\n\n1^@";
    let run = converse(
        &["call", "/queue/a", "1", "--header", "expiration:7"],
        "",
        &[HELLO, (send, "MESSAGE\n\n2^@"), BYE],
    );
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "2\n"));
}

#[test]
fn sub_that_hears_nothing_says_so() {
    let subscribe = "SUBSCRIBE\nid:0\ndestination:/queue/a\nack:auto\n\n^@";
    for (sent, said) in [
        ("", "no message came in time; does anyone send there, and is the name the same?"),
        ("MESSAGE\n\none^@", "no further message came in time"),
    ] {
        let run = converse(&["sub", "/queue/a", "--timeout", "50ms"], "", &[HELLO, (subscribe, sent)]);
        assert_eq!((run.code, run.stderr), (Some(3), format!("imori: {said}\n")));
    }
}

#[test]
fn call_without_a_reply_is_exit_code_3() {
    let send =
        "SEND\ndestination:/queue/a\nreply-to:/temp-queue/imori-call\nexpiration:50\ncontent-length:0\n\n^@";
    let run = converse(&["call", "/queue/a", "--timeout", "50ms"], "", &[HELLO, (send, "")]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    assert_eq!(run.stderr, "imori: no reply in time; is anyone subscribed?\n");
}

#[test]
fn respond_answers_to_the_address_of_each_request() {
    let subscribe = "SUBSCRIBE\nid:0\ndestination:/queue/a\nack:auto\n\n^@";
    let requests = "MESSAGE\nreply-to:/reply-queue/x\ncorrelation-id:7\n\n41^@MESSAGE\n\nnobody waits^@\
                    MESSAGE\nreply-to:/reply-queue/y\n\none^@";
    let run = converse(
        &["respond", "/queue/a", "--add-one", "--count", "3"],
        "",
        &[
            HELLO,
            (subscribe, requests),
            ("SEND\ndestination:/reply-queue/x\ncorrelation-id:7\ncontent-length:2\n\n42^@", ""),
            (
                "SEND\ndestination:/reply-queue/y\nerror:the request is not a decimal number of 64 \
                 bits\ncontent-length:0\n\n^@",
                "",
            ),
            BYE,
        ],
    );
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""));
}

#[test]
fn an_error_of_the_broker_is_told_on_one_line() {
    let run = converse(
        &["pub", "/queue/a"],
        "",
        &[(HELLO.0, "ERROR\nmessage:Bad\\nCONNECT\n\nAccess\nrefused\x1b[31m^@")],
    );
    assert_eq!(run.code, Some(1));
    assert_eq!(run.stderr, "imori: refused by the broker: Bad\\nCONNECT: Access\\nrefused\\u{1b}[31m\n");
}

#[test]
fn what_is_no_broker_is_told() {
    let run = converse(&["pub", "/queue/a"], "", &[(HELLO.0, "HTTP/1.1 400 Bad Request\r\n\r\n")]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("imori: the broker does not speak STOMP: "), "{}", run.stderr);
}

// SECURITY OPS-02
#[test]
fn a_broker_that_is_not_there_is_told_without_the_password() {
    // Port 1 is reserved for tcpmux, which no test machine runs.
    let run = run(&["pub", "/queue/a", "--url", "stomp://user:canary@127.0.0.1:1/"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.starts_with("imori: cannot connect to `stomp://127.0.0.1:1`: "), "{}", run.stderr);
    assert!(!run.stderr.contains("canary"), "{}", run.stderr);
}
