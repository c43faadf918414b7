//! What scripts decide, and the response that they make.

use bytes::Bytes;
use http::{HeaderName, StatusCode};
use imori_gateway::for_tests::{Connection, Decision, Phase, Request, RequestContext};

fn context(phase: Phase) -> RequestContext {
    let context = RequestContext::new(Request::default(), Connection::default());
    context.phase.set(phase);
    context
}

#[test]
fn body_without_a_decision_is_a_response() {
    let context = context(Phase::Rewrite);
    assert_eq!(context.take_decision(), Decision::Continue);
    context.response.borrow_mut().body.extend_from_slice(b"hello");
    assert_eq!(context.take_decision(), Decision::Respond);
}

#[test]
fn status_200_without_a_body_lets_the_request_go_on_before_the_content() {
    for (phase, expected) in [(Phase::Access, Decision::Continue), (Phase::Content, Decision::Respond)] {
        let context = context(phase);
        context.response.borrow_mut().status = Some(StatusCode::OK);
        context.decide(Decision::Respond);
        assert_eq!(context.take_decision(), expected, "{phase:?}");
    }
}

#[test]
fn response_has_no_headers_of_the_connection() {
    let context = context(Phase::Content);
    {
        let mut response = context.response.borrow_mut();
        for name in ["content-length", "transfer-encoding", "connection", "keep-alive", "x-mine"] {
            response.headers.insert(HeaderName::from_static(name), http::HeaderValue::from_static("1"));
        }
    }
    let response = context.take_response();
    assert_eq!(response.headers().keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-mine"]);
}

#[test]
fn stream_is_taken_once_and_ends() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime is small");
    runtime.block_on(async {
        let context = context(Phase::Content);
        assert!(context.take_stream().is_none());
        context.stream().send(Bytes::from_static(b"a")).await.expect("the receiver is there");
        let mut receiver = context.stream_started().await;
        assert!(context.take_stream().is_none());
        context.end_stream();
        assert_eq!(receiver.recv().await.as_deref(), Some(&b"a"[..]));
        assert_eq!(receiver.recv().await, None);
    });
}
