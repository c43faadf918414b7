//! The example of `docs/internals/client-inside.md`, run as it stands there.

use std::error::Error;
use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::delivery::Outcome;
use imori_core::internal::OutgoingMessage;
use imori_core::message::Address;
use imori_core::queue::QueueSettings;
use imori_server::config::Config;
use imori_server::{ConsumeOptions, InternalClients, Server};

/// The page that shows the example.
const PAGE: &str = include_str!("../../../../docs/internals/client-inside.md");

/// This file.
const SOURCE: &str = include_str!("internal_client.rs");

// The example begins here.
async fn serve_and_call(clients: InternalClients) -> Result<(), Box<dyn Error>> {
    let client = clients.connect(Identity::broker(), b"/").await?;
    let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
    client.declare_queue(b"orders", settings, false).await?;

    // At most 16 requests are unsettled.
    let mut requests = client.consume(ConsumeOptions::new(b"orders", 16)).await?;
    let service = client.clone();
    let serving = tokio::spawn(async move {
        loop {
            let request = match requests.recv().await {
                Ok(request) => request,
                Err(reason) => return reason,
            };
            let reply = OutgoingMessage::new([b"brewed ", &*request.body].concat());
            let _ = service.reply(&request, reply).await;
            let _ = service.settle(&request, Outcome::Accept).await;
        }
    });

    let to = Address::new(b"", b"orders");
    let reply = client.call(to, OutgoingMessage::new("coffee"), Duration::from_secs(5)).await?;
    assert_eq!(reply.body, "brewed coffee");

    client.delete_queue(b"orders", Default::default()).await?;
    assert_eq!(serving.await?.to_string(), "queue `orders` was deleted; declare it and consume again");
    Ok(())
}
// The example ends here.

#[test]
fn the_example_of_the_page_runs() {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.broker.data_dir = data.path().to_owned();
    config.listeners.stomp = vec!["127.0.0.1:0".parse().unwrap()];
    config.listeners.nats = Vec::new();
    config.listeners.amqp = Vec::new();
    config.listeners.ws = Vec::new();
    config.listeners.nats_monitor = Vec::new();
    config.listeners.automation = Vec::new();
    config.listeners.admin = Vec::new();
    let server = Server::start(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(serve_and_call(server.internal_clients())).unwrap();
    server.stop_handle().stop();
    server.join().unwrap();
}

#[test]
fn the_page_shows_the_example_as_it_is() {
    let (_, rest) = SOURCE.split_once("// The example begins here.\n").unwrap();
    let (example, _) = rest.split_once("// The example ends here.\n").unwrap();
    assert!(PAGE.contains(example), "copy the example into docs/internals/client-inside.md");
}
