//! What scripts decide, and the response that they make.

use bytes::Bytes;
use http::{HeaderName, StatusCode};
use imori_gateway::for_tests::{Connection, Decision, Exchange, Phase, Request};

fn exchange(phase: Phase) -> Exchange {
    let exchange = Exchange::new(Request::default(), Connection::default());
    exchange.phase.set(phase);
    exchange
}

#[test]
fn body_without_a_decision_is_a_response() {
    let exchange = exchange(Phase::Rewrite);
    assert_eq!(exchange.take_decision(), Decision::Continue);
    exchange.response.borrow_mut().body.extend_from_slice(b"hello");
    assert_eq!(exchange.take_decision(), Decision::Respond);
}

#[test]
fn status_200_without_a_body_lets_the_request_go_on_before_the_content() {
    for (phase, expected) in [(Phase::Access, Decision::Continue), (Phase::Content, Decision::Respond)] {
        let exchange = exchange(phase);
        exchange.response.borrow_mut().status = Some(StatusCode::OK);
        exchange.decide(Decision::Respond);
        assert_eq!(exchange.take_decision(), expected, "{phase:?}");
    }
}

#[test]
fn response_has_no_headers_of_the_connection() {
    let exchange = exchange(Phase::Content);
    {
        let mut response = exchange.response.borrow_mut();
        for name in ["content-length", "transfer-encoding", "connection", "keep-alive", "x-mine"] {
            response.headers.insert(HeaderName::from_static(name), http::HeaderValue::from_static("1"));
        }
    }
    let response = exchange.take_response();
    assert_eq!(response.headers().keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-mine"]);
}

#[test]
fn stream_is_taken_once_and_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime is small");
    runtime.block_on(async {
        let exchange = exchange(Phase::Content);
        assert!(exchange.take_stream().is_none());
        exchange.stream().send(Bytes::from_static(b"a")).await.expect("the receiver is there");
        let mut receiver = exchange.stream_started().await;
        assert!(exchange.take_stream().is_none());
        exchange.end_stream();
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"a"[..]));
        assert_eq!(receiver.recv().await, None);
    });
}
