//! Bodies that are produced while they are written.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::HttpBody as _;
use imori_admin::for_tests::gathered;

#[test]
fn others_have_their_turn_between_two_parts() {
    let mut parts = ["a", "b"].into_iter();
    let mut body = gathered(move || parts.next().map(String::from));
    let mut context = Context::from_waker(std::task::Waker::noop());
    let mut told = String::new();
    for _ in 0..6 {
        match Pin::new(&mut body).poll_frame(&mut context) {
            Poll::Pending => told.push('.'),
            Poll::Ready(Some(frame)) => {
                told += std::str::from_utf8(&frame.unwrap().into_data().unwrap()).unwrap();
            }
            Poll::Ready(None) => {
                told.push('!');
                break;
            }
        }
    }
    assert_eq!(told, "a.b.!");
}
