//! Internal clients of a whole broker in this process.

use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::internal::{IncomingMessage, OutgoingMessage};
use imori_core::message::{Address, DEFAULT_EXCHANGE, Property, TOPIC_EXCHANGE};
use imori_core::route::{BindingKey, Syntax};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{InternalClient, InternalClients, InternalError};
use crate::config::Config;
use crate::server::Server;

/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs a broker while `test` does, on a thread and a runtime of its own.
fn with_broker(test: impl AsyncFnOnce(InternalClients)) {
    let data: TempDir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.broker.data_dir = data.path().to_owned();
    config.listeners.stomp = vec!["127.0.0.1:0".parse().unwrap()];
    config.listeners.nats = Vec::new();
    config.listeners.amqp = Vec::new();
    config.listeners.ws = Vec::new();
    config.listeners.nats_monitor = Vec::new();
    config.listeners.admin = Vec::new();
    config.cells.count = 2;
    let server = Server::start(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let clients = server.internal_clients();
        timeout(DEADLINE, test(clients)).await.expect("it comes to its end");
    });
    server.stop_handle().stop();
    server.join().unwrap();
}

async fn connected(clients: &InternalClients) -> InternalClient {
    clients.connect(Identity::guest(), b"/").await.unwrap()
}

fn topic(subject: &str) -> Address {
    Address::new(TOPIC_EXCHANGE, subject.as_bytes())
}

fn key(pattern: &str) -> BindingKey {
    BindingKey::new(Syntax::Nats, pattern.as_bytes())
}

fn text(message: &IncomingMessage) -> &str {
    std::str::from_utf8(&message.body).unwrap()
}

#[test]
fn the_broker_answers_pings_of_internal_clients() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        // The responder begins with the cell, a moment after the listeners.
        let pong = loop {
            match client.ask(topic("imori.service.ping"), OutgoingMessage::new("")).await {
                Err(InternalError::NoResponder) => tokio::task::yield_now().await,
                answered => break answered.unwrap(),
            }
        };
        assert!(text(&pong).starts_with(r#"{"name":"imori","version":""#), "{}", text(&pong));
        assert_eq!(pong.content_type.as_deref(), Some(&b"application/json"[..]));
    });
}

#[test]
fn requests_at_the_same_time_get_their_own_answers() {
    with_broker(async |clients| {
        let (requester, responder) = (connected(&clients).await, connected(&clients).await);
        let mut requests = responder.subscribe(TOPIC_EXCHANGE, key("double.*"), None, 4).await.unwrap();
        let responding = async {
            while let Some(request) = requests.recv().await {
                let number: u32 = text(&request).parse().unwrap();
                responder.reply(request, OutgoingMessage::new((2 * number).to_string())).await.unwrap();
                if number == 99 {
                    return;
                }
            }
        };
        let requesting = async {
            for number in 0..100_u32 {
                let question =
                    OutgoingMessage::new(number.to_string()).with(Property::CorrelationId, b"same");
                let answer = requester.ask(topic("double.it"), question).await.unwrap();
                assert_eq!(text(&answer), (2 * number).to_string());
            }
        };
        tokio::join!(responding, requesting);
        let nobody = requester.ask(topic("nobody.there"), OutgoingMessage::new("")).await;
        assert_eq!(nobody, Err(InternalError::NoResponder));
    });
}

#[test]
fn a_receiver_that_is_slow_loses_nothing_and_keeps_the_order() {
    with_broker(async |clients| {
        let (publisher, reader) = (connected(&clients).await, connected(&clients).await);
        let mut heard = reader.subscribe(TOPIC_EXCHANGE, key("many"), None, 1).await.unwrap();
        for number in 0..500 {
            let message = OutgoingMessage::new(number.to_string());
            assert_eq!(publisher.publish(topic("many"), message).await, Ok(1));
        }
        for number in 0..500 {
            assert_eq!(text(&heard.recv().await.unwrap()), number.to_string());
        }
    });
}

#[test]
fn a_subscription_ends_with_its_receiver() {
    with_broker(async |clients| {
        let (publisher, reader) = (connected(&clients).await, connected(&clients).await);
        drop(reader.subscribe(TOPIC_EXCHANGE, key("left"), None, 1).await.unwrap());
        // The first message finds the receiver gone, and the subscription ends.
        while publisher.publish(topic("left"), OutgoingMessage::new("")).await != Ok(0) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn refusals_say_why() {
    with_broker(async |clients| {
        let no_vhost = clients.connect(Identity::guest(), b"none").await.map(drop);
        assert_eq!(no_vhost, Err(InternalError::NoVhost("none".into())));
        let nobody = Identity::nobody();
        let refused = clients.connect(nobody, b"/").await.map(drop);
        assert!(matches!(refused, Err(InternalError::Broker(BrokerError::Refused(_)))), "{refused:?}");
        let client = connected(&clients).await;
        let no_queue = client.consume(b"none", 1).await.map(drop);
        assert_eq!(no_queue, Err(InternalError::Broker(BrokerError::NoQueue("none".into()))));
        let to_queue = Address::new(DEFAULT_EXCHANGE, b"none");
        assert_eq!(client.publish(to_queue, OutgoingMessage::new("")).await, Ok(0));
        let long = OutgoingMessage::new("").header(b"long", &[b'a'; 70_000]);
        assert_eq!(
            client.publish(topic("a"), long).await,
            Err(InternalError::Broker(BrokerError::HeadersTooLarge))
        );
        let other = connected(&clients).await;
        let mut heard = other.subscribe(TOPIC_EXCHANGE, key("a"), None, 1).await.unwrap();
        client.publish(topic("a"), OutgoingMessage::new("")).await.unwrap();
        let message = heard.recv().await.unwrap();
        let settled = client.settle(&message, Outcome::Accept).await;
        assert_eq!(settled, Err(InternalError::Broker(BrokerError::NoDelivery(message.number))));
    });
}

#[test]
fn there_is_an_end_to_internal_clients_and_they_give_their_places_back() {
    with_broker(async |clients| {
        let mut all = Vec::new();
        let refused = loop {
            match clients.connect(Identity::guest(), b"/").await {
                Ok(client) => all.push(client),
                Err(error) => break error,
            }
        };
        assert_eq!(refused, InternalError::TooMany);
        assert!(all.len() > 100);
        all.clear();
        // The places come back by and by.
        while clients.connect(Identity::guest(), b"/").await.is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
}
