//! What is in a message, and whom it reaches.

use async_nats::HeaderMap;
use async_nats::client::PublishErrorKind;

use crate::{Run, bodies, fence, is_empty, next, numbers, publish, subscribe, text};

pub async fn publish_and_subscribe(run: &Run) {
    let (publisher, subscriber) = (run.connect().await, run.connect().await);
    let mut subscription = subscribe(&subscriber, &run.name).await;
    let every_byte: Vec<u8> = (0..=u8::MAX).cycle().take(4096).collect();
    for body in ["größe 🦀".as_bytes(), b"", &every_byte, b"\r\nPING\r\n"] {
        publisher.publish(run.name.clone(), body.to_vec().into()).await.unwrap();
        let message = next(&mut subscription).await;
        assert_eq!(message.subject.as_str(), run.name);
        assert_eq!((message.reply, message.headers), (None, None));
        assert_eq!(message.payload, body);
    }
}

pub async fn wildcards(run: &Run) {
    let (publisher, subscriber) = (run.connect().await, run.connect().await);
    let all = ["a", "a.b", "a.b.c", "b.b.c", "b.b.d.c", "end"];
    let expected: [(&str, &[&str]); 8] = [
        ("*", &["a", "end"]),
        (">", &all),
        ("a.*", &["a.b"]),
        ("*.b.c", &["a.b.c", "b.b.c"]),
        ("a.>", &["a.b", "a.b.c"]),
        ("*.*.>", &["a.b.c", "b.b.c", "b.b.d.c"]),
        ("a.*.c", &["a.b.c"]),
        ("b*.b", &[]),
    ];
    let mut subscriptions = Vec::new();
    for (pattern, subjects) in expected {
        let subscription = subscribe(&subscriber, format!("{}.{pattern}", run.name)).await;
        subscriptions.push((subscription, subjects));
    }
    for subject in all {
        publish(&publisher, &format!("{}.{subject}", run.name), "").await;
    }
    fence(&publisher).await;
    for (mut subscription, subjects) in subscriptions {
        for subject in subjects {
            let message = next(&mut subscription).await;
            assert_eq!(message.subject.as_str(), format!("{}.{subject}", run.name));
        }
        assert!(is_empty(&subscriber, &mut subscription).await);
    }
}

pub async fn headers(run: &Run) {
    let (publisher, subscriber) = (run.connect().await, run.connect().await);
    let mut subscription = subscribe(&subscriber, &run.name).await;
    let long = "x".repeat(8192);
    let mut sent = HeaderMap::new();
    for (name, value) in [
        ("Several", "one"),
        ("Several", "two"),
        ("Several", "one"),
        ("Empty", ""),
        ("lower-case", "kept"),
        ("LOWER-case", "another"),
        ("Odd!#$%&'*+.^_", "a:b::c; d=\"e\" \\ \t f"),
        ("Text", "größe 🦀"),
        ("Long", &long),
    ] {
        sent.append(name, value);
    }
    for body in ["body", ""] {
        let subject = run.name.clone();
        publisher.publish_with_headers(subject, sent.clone(), body.into()).await.unwrap();
        let message = next(&mut subscription).await;
        assert_eq!(message.headers.as_ref(), Some(&sent));
        assert_eq!(text(&message), body);
    }
}

pub async fn large_messages(run: &Run) {
    let (publisher, subscriber) = (run.connect().await, run.connect().await);
    let mut subscription = subscribe(&subscriber, &run.name).await;
    assert!(publisher.max_payload() >= 1 << 20);
    for number in 0..5 {
        publisher.publish(run.name.clone(), vec![number; 1 << 20].into()).await.unwrap();
    }
    for number in 0..5 {
        assert!(next(&mut subscription).await.payload == vec![number; 1 << 20]);
    }
}

pub async fn max_payload(run: &Run) {
    let client = run.connect().await;
    let mut subscription = subscribe(&client, &run.name).await;
    let size = client.max_payload();
    let error = client.publish(run.name.clone(), vec![0; size + 1].into()).await.unwrap_err();
    assert!(matches!(error.kind(), PublishErrorKind::MaxPayloadExceeded));
    client.publish(run.name.clone(), vec![0; size].into()).await.unwrap();
    assert_eq!(next(&mut subscription).await.payload.len(), size);
}

pub async fn ten_thousand_in_order(run: &Run) {
    let (publisher, subscriber) = (run.connect().await, run.connect().await);
    let mut subscription = subscribe(&subscriber, &run.name).await;
    for body in numbers(10_000) {
        publish(&publisher, &run.name, body).await;
    }
    assert_eq!(bodies(&mut subscription, 10_000).await, numbers(10_000));
}

pub async fn many_connections(run: &Run) {
    let mut connections = Vec::new();
    for number in 0..20 {
        let options = async_nats::ConnectOptions::new().name(format!("connection {number}"));
        let client = run.connect_with(options).await;
        let subscription = subscribe(&client, &run.name).await;
        connections.push((client, subscription));
    }
    for (client, _) in &connections {
        publish(client, &run.name, "hello").await;
        fence(client).await;
    }
    for (client, subscription) in &mut connections {
        assert_eq!(bodies(subscription, 20).await, ["hello"; 20]);
        assert!(is_empty(client, subscription).await);
    }
}
