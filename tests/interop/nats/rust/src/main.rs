//! Conversations of async-nats with a broker, one a scenario.
//!
//!     driver-rust SCENARIO URL NAME
//!
//! A scenario ends well by returning; whatever is wrong panics. Waiting is always for an event.

mod connections;
mod messages;
mod requests;
mod subscriptions;

use std::time::Duration;

use async_nats::{Client, ConnectOptions, Message, Subscriber};
use futures_util::StreamExt;

/// When to give up on an event that must come; it decides nothing else.
pub const DEADLINE: Duration = Duration::from_secs(100);

/// What every scenario needs: connections to the broker, and a name nobody else has.
pub struct Run {
    url: String,
    name: String,
}

impl Run {
    /// Opens a connection.
    pub async fn connect(&self) -> Client {
        self.connect_with(ConnectOptions::new()).await
    }

    /// Opens a connection with options.
    pub async fn connect_with(&self, options: ConnectOptions) -> Client {
        self.options(options).connect(&self.url).await.unwrap()
    }

    /// Makes options patient with a slow machine.
    pub fn options(&self, options: ConnectOptions) -> ConnectOptions {
        options.connection_timeout(DEADLINE).request_timeout(Some(DEADLINE))
    }
}

/// Returns the next message.
pub async fn next(subscriber: &mut Subscriber) -> Message {
    tokio::time::timeout(DEADLINE, subscriber.next()).await.expect("a message comes").unwrap()
}

/// Returns the bodies of the next messages.
pub async fn bodies(subscriber: &mut Subscriber, count: usize) -> Vec<String> {
    let mut bodies = Vec::new();
    for _ in 0..count {
        bodies.push(text(&next(subscriber).await));
    }
    bodies
}

/// Returns the body of a message as text.
pub fn text(message: &Message) -> String {
    String::from_utf8(message.payload.to_vec()).unwrap()
}

/// Returns once the broker has obeyed, and this client has read, everything up to now.
///
/// The client's own `flush` waits for its socket alone, so a message is sent round.
pub async fn fence(client: &Client) {
    let inbox = client.new_inbox();
    let mut subscriber = client.subscribe(inbox.clone()).await.unwrap();
    client.publish(inbox, "".into()).await.unwrap();
    next(&mut subscriber).await;
}

/// Returns a subscription that the broker knows.
pub async fn subscribe(client: &Client, subject: impl Into<String>) -> Subscriber {
    let subscriber = client.subscribe(subject.into()).await.unwrap();
    fence(client).await;
    subscriber
}

/// Publishes a text.
pub async fn publish(client: &Client, subject: &str, body: impl Into<String>) {
    client.publish(subject.to_owned(), body.into().into()).await.unwrap();
}

/// Says whether nothing waits in a subscription that was sent before.
pub async fn is_empty(client: &Client, subscriber: &mut Subscriber) -> bool {
    fence(client).await;
    tokio::select! {
        biased;
        _ = subscriber.next() => false,
        () = std::future::ready(()) => true,
    }
}

/// Returns the bodies that the scenarios count with.
pub fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let [scenario, url, name] = std::env::args().skip(1).collect::<Vec<_>>().try_into().unwrap();
    let run = &Run { url, name };
    match scenario.as_str() {
        "publish_and_subscribe" => messages::publish_and_subscribe(run).await,
        "wildcards" => messages::wildcards(run).await,
        "headers" => messages::headers(run).await,
        "large_messages" => messages::large_messages(run).await,
        "max_payload" => messages::max_payload(run).await,
        "ten_thousand_in_order" => messages::ten_thousand_in_order(run).await,
        "many_connections" => messages::many_connections(run).await,
        "request_and_reply" => requests::request_and_reply(run).await,
        "old_style_requests" => requests::old_style_requests(run).await,
        "no_responders" => requests::no_responders(run).await,
        "many_replies" => requests::many_replies(run).await,
        "service" => requests::service(run).await,
        "queue_groups" => subscriptions::queue_groups(run).await,
        "unsubscribe" => subscriptions::unsubscribe(run).await,
        "unsubscribe_after_a_number" => subscriptions::unsubscribe_after_a_number(run).await,
        "drain_a_subscription" => subscriptions::drain_a_subscription(run).await,
        "drain_a_connection" => subscriptions::drain_a_connection(run).await,
        "flush_and_round_trip" => connections::flush_and_round_trip(run).await,
        "no_echo" => connections::no_echo(run).await,
        "invalid_subjects" => connections::invalid_subjects(run).await,
        "what_info_says" => connections::what_info_says(run).await,
        "right_password" => connections::right_password(run).await,
        "wrong_password" => connections::wrong_password(run).await,
        "right_token" => connections::right_token(run).await,
        "wrong_token" => connections::wrong_token(run).await,
        "reconnect" => connections::reconnect(run).await,
        "lame_duck" => connections::lame_duck(run).await,
        _ => panic!("unknown scenario `{scenario}`"),
    }
}
