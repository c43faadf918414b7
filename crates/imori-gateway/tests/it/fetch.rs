//! Requests to other servers, and what may be wrong with them and their answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use imori_gateway::for_tests::{Answer, FetchError, FetchOptions, Fetcher, HostError, HostList, Outgoing};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn fetcher(hosts: &[&str]) -> Fetcher {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tls = ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty());
    Fetcher::new(FetchOptions {
        hosts: Arc::new(HostList::parse(hosts.iter().copied()).expect("the entries are right")),
        tls: tls.with_no_client_auth(),
        connect_timeout: Duration::from_secs(2),
    })
}

fn outgoing(port: u16) -> Outgoing {
    Outgoing {
        method: Method::GET,
        uri: format!("http://127.0.0.1:{port}/x").parse().expect("a URI"),
        headers: HeaderMap::new(),
        body: Bytes::new(),
        timeout: Duration::from_millis(300),
        answer_bytes: 1000,
    }
}

/// Fetches from a server that sends these parts to each connection, and closes it if the last part is empty.
async fn fetch_from(parts: &'static [&'static str]) -> Result<Answer, FetchError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let serving = tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            let _ = stream.read(&mut [0; 4096]).await;
            for part in parts {
                let _ = stream.write_all(part.as_bytes()).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            if parts.last() != Some(&"") {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        }
    });
    let answer = fetcher(&["127.0.0.1"]).fetch(outgoing(port)).await;
    serving.abort();
    answer
}

#[tokio::test(flavor = "current_thread")]
async fn answers_are_whole_or_errors() {
    let answer = fetch_from(&["HTTP/1.1 201 Created\r\ncontent-length: 4\r\na: b\r\n\r\n", "bo", "dy"]).await;
    let answer = answer.expect("the answer is right");
    assert_eq!((answer.status, &*answer.body), (StatusCode::CREATED, &b"body"[..]));
    for (parts, expected) in [
        (&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nbody", ""][..], "broken"),
        (&["nonsense\r\n\r\n", ""], "broken"),
        (&[""], "broken"),
        (&["HTTP/1.1 200 OK\r\n"], "within 300 ms"),
        (&["HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\nabc"], "within 300 ms"),
        (&["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", ""], "broken"),
    ] {
        let error = fetch_from(parts).await.expect_err("the answer is wrong").to_string();
        assert!(error.contains(expected), "{parts:?}: {error}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn large_answer_is_refused() {
    static LARGE: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        format!(
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1388\r\n{}\r\n0\r\n\r\n",
            "x".repeat(5000)
        )
    });
    let error = fetch_from(Box::leak(Box::new([LARGE.as_str(), ""]))).await;
    assert_eq!(error, Err(FetchError::TooLarge(1000)));
}

#[tokio::test(flavor = "current_thread")]
async fn server_that_refuses_or_is_not_allowed_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let error = fetcher(&["*"]).fetch(outgoing(port)).await.expect_err("the address is private");
    assert!(matches!(&error, FetchError::Host(HostError::Private(..))), "{error:?}");
    let error = fetcher(&[]).fetch(outgoing(port)).await.expect_err("the list is empty");
    assert!(error.to_string().contains("allow_hosts"), "{error}");
    drop(listener);
    let error = fetcher(&["127.0.0.1"]).fetch(outgoing(port)).await.expect_err("nobody listens");
    assert!(matches!(&error, FetchError::Connect(_)), "{error:?}");
}
