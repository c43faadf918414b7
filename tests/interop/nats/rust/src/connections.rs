//! The connection itself: what it is told, who is let in, how it comes back.

use std::time::Duration;

use async_nats::client::{PublishErrorKind, SubscribeErrorKind};
use async_nats::{ConnectErrorKind, ConnectOptions, Event, ServerError};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::timeout;

use crate::requests::respond;
use crate::{DEADLINE, Run, bodies, fence, is_empty, next, numbers, publish, subscribe};

/// Makes options note what happens to the connection.
fn noting(options: ConnectOptions) -> (ConnectOptions, UnboundedReceiver<Event>) {
    let (told, events) = mpsc::unbounded_channel();
    let options = options.event_callback(move |event| {
        let told = told.clone();
        async move { drop(told.send(event)) }
    });
    (options, events)
}

/// Returns once the event has come.
async fn wait_for(events: &mut UnboundedReceiver<Event>, expected: Event) {
    while timeout(DEADLINE, events.recv()).await.expect("the event comes").unwrap() != expected {}
}

pub async fn flush_and_round_trip(run: &Run) {
    let client = run.connect().await;
    client.flush().await.unwrap();
    fence(&client).await;
}

pub async fn no_echo(run: &Run) {
    let silent = run.connect_with(ConnectOptions::new().no_echo()).await;
    let other = run.connect().await;
    let mut own = silent.subscribe(run.name.clone()).await.unwrap();
    // A fence is an echo; here a request through the other one shows how far the broker is.
    respond(other.clone(), format!("{}.fence", run.name)).await;
    let fence = async || {
        silent.request(format!("{}.fence", run.name), "1".into()).await.unwrap();
    };
    fence().await;
    let mut others = subscribe(&other, &run.name).await;
    publish(&silent, &run.name, "from the one").await;
    fence().await;
    publish(&other, &run.name, "from the other").await;
    assert_eq!(bodies(&mut others, 2).await, ["from the one", "from the other"]);
    assert_eq!(bodies(&mut own, 1).await, ["from the other"]);
}

pub async fn invalid_subjects(run: &Run) {
    let client = run.connect().await;
    for subject in ["a..b", ".a", "a.", "a b", ""] {
        let error = client.subscribe(subject).await.unwrap_err();
        assert!(matches!(error.kind(), SubscribeErrorKind::InvalidSubject), "{subject}");
    }
    let error = client.publish("a b", "".into()).await.unwrap_err();
    assert!(matches!(error.kind(), PublishErrorKind::InvalidSubject));
    // What this client does not see is for the broker to refuse; the connection lives on.
    let (options, mut events) = noting(ConnectOptions::new().skip_subject_validation(true));
    let careless = run.connect_with(options).await;
    let _refused = careless.subscribe("a.>.b").await.unwrap();
    let told = ServerError::Other("Invalid Subject".to_owned());
    wait_for(&mut events, Event::ServerError(told)).await;
    let mut subscription = subscribe(&careless, &run.name).await;
    publish(&careless, &run.name, "still here").await;
    assert_eq!(bodies(&mut subscription, 1).await, ["still here"]);
    assert!(is_empty(&careless, &mut subscription).await);
}

pub async fn what_info_says(run: &Run) {
    let name = "a name of \"odd\" characters: größe";
    let info = run.connect_with(ConnectOptions::new().name(name)).await.server_info();
    for text in [&info.server_id, &info.server_name, &info.version, &info.host] {
        assert!(!text.is_empty());
    }
    assert!(info.headers && !info.tls_required && info.max_payload > 0);
    assert_eq!((info.client_ip.as_str(), info.proto), ("127.0.0.1", 1));
    assert_ne!(info.client_id, run.connect().await.server_info().client_id);
}

pub async fn right_password(run: &Run) {
    let options = ConnectOptions::with_user_and_password("guest".into(), "guest".into());
    fence(&run.connect_with(options).await).await;
}

async fn refused(run: &Run, options: ConnectOptions) {
    let error = run.options(options).connect(&run.url).await.unwrap_err();
    assert_eq!(error.kind(), ConnectErrorKind::AuthorizationViolation);
}

pub async fn wrong_password(run: &Run) {
    for (user, password) in [("guest", "wrong"), ("nobody", "guest"), ("guest", "")] {
        refused(run, ConnectOptions::with_user_and_password(user.into(), password.into())).await;
    }
}

pub async fn right_token(run: &Run) {
    fence(&run.connect_with(ConnectOptions::with_token("secret".into())).await).await;
}

pub async fn wrong_token(run: &Run) {
    refused(run, ConnectOptions::with_token("wrong".into())).await;
}

pub async fn reconnect(run: &Run) {
    let eager = || noting(ConnectOptions::new().reconnect_delay_callback(|_| Duration::from_millis(20)));
    let (options, mut subscriber_events) = eager();
    let subscriber = run.connect_with(options).await;
    let (options, mut publisher_events) = eager();
    let publisher = run.connect_with(options).await;
    wait_for(&mut subscriber_events, Event::Connected).await;
    wait_for(&mut publisher_events, Event::Connected).await;
    let mut plain = subscribe(&subscriber, &run.name).await;
    let mut group = subscriber.queue_subscribe(run.name.clone(), "group".into()).await.unwrap();
    let mut limited = subscribe(&subscriber, &run.name).await;
    limited.unsubscribe_after(3).await.unwrap();
    let service = format!("{}.service", run.name);
    respond(subscriber.clone(), service.clone()).await;
    publish(&publisher, &run.name, "before").await;
    for subscription in [&mut plain, &mut group, &mut limited] {
        assert_eq!(next(subscription).await.payload, "before");
    }
    publisher.request(service.clone(), "1".into()).await.unwrap();
    println!("ready");
    wait_for(&mut subscriber_events, Event::Connected).await;
    wait_for(&mut publisher_events, Event::Connected).await;
    fence(&subscriber).await;
    for body in numbers(3) {
        publish(&publisher, &run.name, body).await;
    }
    for subscription in [&mut plain, &mut group] {
        assert_eq!(bodies(subscription, 3).await, numbers(3));
    }
    assert_eq!(bodies(&mut limited, 2).await, numbers(2));
    publisher.request(service, "1".into()).await.unwrap();
}

pub async fn lame_duck(run: &Run) {
    let (options, mut events) = noting(ConnectOptions::new());
    let _client = run.connect_with(options).await;
    println!("ready");
    wait_for(&mut events, Event::LameDuckMode).await;
}
