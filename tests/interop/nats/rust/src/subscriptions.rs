//! Queue groups, and the ways to end a subscription.

use std::sync::atomic::Ordering;

use async_nats::{Client, ConnectOptions, Event};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use crate::{Run, bodies, fence, numbers, publish, subscribe, text};

pub async fn queue_groups(run: &Run) {
    let (members, count) = (3, 600);
    let (publisher, observer) = (run.connect().await, run.connect().await);
    let mut plain = subscribe(&observer, &run.name).await;
    let (taken, mut all) = mpsc::unbounded_channel();
    let mut clients = Vec::new();
    for group in 0..2 {
        for member in 0..members {
            let (client, taken) = (run.connect().await, taken.clone());
            let name = format!("group-{group}");
            let mut messages = client.queue_subscribe(run.name.clone(), name).await.unwrap();
            fence(&client).await;
            clients.push(client);
            tokio::spawn(async move {
                while let Some(message) = messages.next().await {
                    let number = text(&message).parse::<usize>().unwrap();
                    taken.send((group, member, number)).unwrap();
                }
            });
        }
    }
    for body in numbers(count) {
        publish(&publisher, &run.name, body).await;
    }
    let mut shares = vec![vec![0; members]; 2];
    let mut seen = vec![vec![0; count]; 2];
    for _ in 0..2 * count {
        let (group, member, number) = all.recv().await.unwrap();
        shares[group][member] += 1;
        seen[group][number] += 1;
    }
    assert_eq!(bodies(&mut plain, count).await, numbers(count));
    assert_eq!(seen, vec![vec![1; count]; 2]);
    for client in &clients {
        fence(client).await;
    }
    assert!(all.try_recv().is_err());
    assert!(shares.iter().flatten().all(|share| *share > count / members / 4));
}

pub async fn unsubscribe(run: &Run) {
    let (publisher, subscriber) = (run.connect().await, run.connect().await);
    let mut left = subscriber.subscribe(run.name.clone()).await.unwrap();
    let mut stays = subscriber.subscribe(run.name.clone()).await.unwrap();
    left.unsubscribe().await.unwrap();
    fence(&subscriber).await;
    let before = received(&subscriber);
    publish(&publisher, &run.name, "after").await;
    assert_eq!(bodies(&mut stays, 1).await, ["after"]);
    assert!(left.next().await.is_none());
    assert_eq!(received(&subscriber) - before, 1);
}

pub async fn unsubscribe_after_a_number(run: &Run) {
    let client = run.connect().await;
    let [early_subject, late_subject, over_subject] =
        ["early", "late", "over"].map(|way| format!("{}.{way}", run.name));
    let mut early = subscribe(&client, &early_subject).await;
    early.unsubscribe_after(5).await.unwrap();
    let mut late = subscribe(&client, &late_subject).await;
    let mut over = subscribe(&client, &over_subject).await;
    for (subscription, subject, limit) in [(&mut late, &late_subject, 5), (&mut over, &over_subject, 2)] {
        for body in ["1", "2", "3"] {
            publish(&client, subject, body).await;
        }
        assert_eq!(bodies(subscription, 3).await, ["1", "2", "3"]);
        subscription.unsubscribe_after(limit).await.unwrap();
    }
    fence(&client).await;
    let before = received(&client);
    for subject in [&early_subject, &late_subject, &over_subject] {
        for number in 4..=10 {
            publish(&client, subject, number.to_string()).await;
        }
    }
    assert_eq!(bodies(&mut early, 5).await, ["4", "5", "6", "7", "8"]);
    assert_eq!(bodies(&mut late, 2).await, ["4", "5"]);
    for mut ended in [early, late, over] {
        assert!(ended.next().await.is_none());
    }
    fence(&client).await;
    // The client drops what is over the number; what counts is what the broker sent, and one
    // of these is the fence.
    assert_eq!(received(&client) - before, 5 + 2 + 1);
}

pub async fn drain_a_subscription(run: &Run) {
    let (publisher, subscriber, count) = (run.connect().await, run.connect().await, 500);
    let mut drained = subscribe(&subscriber, &run.name).await;
    let mut other = subscribe(&subscriber, &run.name).await;
    for body in numbers(count) {
        publish(&publisher, &run.name, body).await;
    }
    fence(&publisher).await;
    drained.drain().await.unwrap();
    fence(&subscriber).await;
    publish(&publisher, &run.name, "too late").await;
    assert_eq!(bodies(&mut drained, count).await, numbers(count));
    assert!(drained.next().await.is_none());
    assert_eq!(bodies(&mut other, count + 1).await[count], "too late");
}

pub async fn drain_a_connection(run: &Run) {
    let (observer, publisher, count) = (run.connect().await, run.connect().await, 500);
    let (told, mut events) = mpsc::unbounded_channel();
    let options = ConnectOptions::new().event_callback(move |event| {
        let told = told.clone();
        async move { told.send(event).unwrap() }
    });
    let worker = run.connect_with(options).await;
    let mut answers = subscribe(&observer, format!("{}.out", run.name)).await;
    let mut work = subscribe(&worker, format!("{}.in", run.name)).await;
    for body in numbers(count) {
        publish(&publisher, &format!("{}.in", run.name), body).await;
    }
    fence(&publisher).await;
    fence(&worker).await;
    worker.drain().await.unwrap();
    let mut taken = 0;
    while let Some(message) = work.next().await {
        // While it drains this client takes no messages to publish, so another answers.
        publish(&publisher, &format!("{}.out", run.name), text(&message)).await;
        taken += 1;
    }
    assert_eq!(taken, count);
    assert_eq!(bodies(&mut answers, count).await, numbers(count));
    while events.recv().await.unwrap() != Event::Closed {}
}

/// How many messages the broker has sent to this client.
fn received(client: &Client) -> u64 {
    client.statistics().in_messages.load(Ordering::Relaxed)
}
