//! Tests of internal clients against a whole broker in this process.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use imori_core::authorize::{Identity, Rights, Tags};
use imori_core::broker::DeleteOptions;
use imori_core::confirm::Level;
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::internal::{Bind, BindTarget, IncomingMessage, OutgoingMessage, SubscriptionEnd};
use imori_core::login::Credentials;
use imori_core::message::{Address, DEFAULT_EXCHANGE, Property, TOPIC_EXCHANGE, Value};
use imori_core::name::Name;
use imori_core::outbound::CutReason;
use imori_core::queue::QueueSettings;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings, Syntax};
use tempfile::TempDir;
use tokio::time::timeout;

use super::{
    ClientOptions, ConsumeOptions, InternalClient, InternalClients, InternalError, SubscribeOptions,
    Subscription,
};
use crate::cell_state::internal_counts::Owner;
use crate::config::{self, Config, Names, Setting};
use crate::limits::VHOSTS_MAX;
use crate::server::Server;

/// Long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

/// Runs a broker for the duration of `test`, on threads of its own.
fn with_server(test: impl AsyncFnOnce(&Server)) {
    with_vhosts(&[], test);
}

/// Runs a broker with `/` and these vhosts.
fn with_vhosts(vhosts: &[String], test: impl AsyncFnOnce(&Server)) {
    let data: TempDir = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.broker.data_dir = data.path().to_owned();
    config.listeners.stomp = vec!["127.0.0.1:0".parse().unwrap()];
    config.listeners.nats = Vec::new();
    config.listeners.amqp = Vec::new();
    config.listeners.ws = Vec::new();
    config.listeners.nats_monitor = Vec::new();
    config.listeners.automation = Vec::new();
    config.listeners.admin = Vec::new();
    config.cells.count = 2;
    config.broker.vhosts = names(vhosts);
    let server = Server::start(&config).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        timeout(DEADLINE, test(&server)).await.expect("it comes to its end");
    });
    server.stop_handle().stop();
    server.join().unwrap();
}

/// `/` and these vhosts as a configuration value.
fn names(vhosts: &[String]) -> Names {
    let names = std::iter::once("/").chain(vhosts.iter().map(String::as_str));
    let names = names.map(|name| config::Value::Text(String::from(name))).collect();
    Names::read(&config::Value::List(names)).expect("none of them twice")
}

fn with_broker(test: impl AsyncFnOnce(InternalClients)) {
    with_server(async |server| test(server.internal_clients()).await);
}

async fn connected(clients: &InternalClients) -> InternalClient {
    clients.connect(Identity::guest(), b"/").await.unwrap()
}

fn topic(subject: &str) -> Address {
    Address::new(TOPIC_EXCHANGE, subject.as_bytes())
}

fn queue(name: &str) -> Address {
    Address::new(DEFAULT_EXCHANGE, name.as_bytes())
}

fn key(pattern: &str) -> BindingKey {
    BindingKey::new(Syntax::Nats, pattern.as_bytes())
}

fn to(pattern: &str) -> SubscribeOptions {
    SubscribeOptions::new(TOPIC_EXCHANGE, key(pattern))
}

fn text(message: &IncomingMessage) -> &str {
    std::str::from_utf8(&message.body).unwrap()
}

async fn declare(client: &InternalClient, name: &str) {
    client.declare_queue(name.as_bytes(), QueueSettings::default(), false).await.unwrap();
}

async fn consume(client: &InternalClient, name: &str, credit: u32) -> Subscription {
    client.consume(ConsumeOptions::new(name.as_bytes(), credit)).await.unwrap()
}

/// Waits until the queue has exactly `ready` ready messages.
async fn has_ready(client: &InternalClient, name: &str, ready: usize) {
    while client.look_up_queue(name.as_bytes()).await.unwrap().ready != ready {
        tokio::task::yield_now().await;
    }
}

/// Polls a future once; returns whether it is pending.
async fn is_pending<F: Future>(future: F) -> bool {
    let mut future = pin!(future);
    poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
}

#[test]
fn the_broker_answers_pings_of_internal_clients() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        // The responder starts with the cell, shortly after the listeners.
        let pong = loop {
            match client.call(topic("imori.service.ping"), OutgoingMessage::new(""), DEADLINE).await {
                Err(InternalError::NoResponder) => tokio::task::yield_now().await,
                answered => break answered.unwrap(),
            }
        };
        assert!(text(&pong).starts_with(r#"{"name":"imori","version":""#), "{}", text(&pong));
        assert_eq!(pong.property(Property::ContentType), Some(&b"application/json"[..]));
    });
}

#[test]
fn calls_at_the_same_time_get_their_own_replies() {
    with_broker(async |clients| {
        let (requester, responder) = (connected(&clients).await, connected(&clients).await);
        let mut requests = responder.subscribe(to("double.*")).await.unwrap();
        let responding = async {
            while let Ok(request) = requests.recv().await {
                let number: u32 = text(&request).parse().unwrap();
                let reply = OutgoingMessage::new((2 * number).to_string());
                responder.reply(&request, reply).await.unwrap();
                if number == 99 {
                    return;
                }
            }
        };
        let requesting = async {
            for number in 0..100_u32 {
                let question =
                    OutgoingMessage::new(number.to_string()).with(Property::CorrelationId, b"same");
                let reply = requester.call(topic("double.it"), question, DEADLINE).await.unwrap();
                assert_eq!(text(&reply), (2 * number).to_string());
                assert_eq!(reply.property(Property::CorrelationId), Some(&b"same"[..]));
            }
        };
        tokio::join!(responding, requesting);
        let nobody = requester.call(topic("nobody.there"), OutgoingMessage::new(""), DEADLINE).await;
        assert_eq!(nobody.map(drop), Err(InternalError::NoResponder));
    });
}

#[test]
fn a_call_is_late_after_its_deadline_and_too_many_are_refused() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        let mut requests = client.subscribe(to("slow")).await.unwrap();
        let call = |within| client.call(topic("slow"), OutgoingMessage::new("?"), within);
        let late = call(Duration::from_millis(5)).await;
        assert_eq!(late.map(drop), Err(InternalError::Late));
        // A late reply has no receiver.
        let request = requests.recv().await.unwrap();
        let replied = client.reply(&request, OutgoingMessage::new("!")).await.unwrap();
        assert_eq!(replied.receivers, 0);
        let mut waiting = Vec::new();
        for _ in 0..crate::limits::INBOXES_MAX {
            let mut called = Box::pin(call(DEADLINE));
            assert!(is_pending(called.as_mut()).await);
            waiting.push(called);
        }
        assert_eq!(call(DEADLINE).await.map(drop), Err(InternalError::TooManyCalls));
        drop(waiting);
        let late = call(Duration::from_millis(5)).await;
        assert_eq!(
            late.map(drop),
            Err(InternalError::Late),
            "those that were dropped gave their places back"
        );
    });
}

#[test]
fn a_subscription_whose_receiver_is_slow_loses_nothing_and_holds_up_no_other() {
    with_broker(async |clients| {
        let (publisher, reader) = (connected(&clients).await, connected(&clients).await);
        let slow = SubscribeOptions { waiting_max: 1, ..to("many") };
        let mut slow = reader.subscribe(slow).await.unwrap();
        declare(&reader, "q").await;
        let mut work = consume(&reader, "q", 2).await;
        for number in 0..500 {
            let message = OutgoingMessage::new(number.to_string());
            assert_eq!(publisher.publish(topic("many"), message).await.map(|done| done.receivers), Ok(1));
        }
        // None of these messages was received, yet confirms, replies and other subscriptions go on.
        let mut other = reader.subscribe(to("other")).await.unwrap();
        for number in 0..9 {
            reader.publish(queue("q"), OutgoingMessage::new(number.to_string())).await.unwrap();
            let message = work.recv().await.unwrap();
            reader.settle(&message, Outcome::Accept).await.unwrap();
            reader.publish(topic("other"), OutgoingMessage::new("")).await.unwrap();
            other.recv().await.unwrap();
        }
        let called = reader.call(topic("imori.service.ping"), OutgoingMessage::new(""), DEADLINE).await;
        assert!(matches!(called, Ok(_) | Err(InternalError::NoResponder)), "{called:?}");
        for number in 0..500 {
            assert_eq!(text(&slow.recv().await.unwrap()), number.to_string());
        }
    });
}

#[test]
fn a_live_subscription_that_is_too_slow_is_cut_alone() {
    with_broker(async |clients| {
        let (publisher, reader) = (connected(&clients).await, connected(&clients).await);
        let mut slow = reader.subscribe(SubscribeOptions { waiting_max: 1, ..to("many") }).await.unwrap();
        let body = bytes::Bytes::from(vec![7; 1 << 20]);
        while publisher.publish(topic("many"), OutgoingMessage::new(body.clone())).await.unwrap().receivers
            > 0
        {}
        let reason = loop {
            match slow.recv().await {
                Ok(_) => {}
                Err(reason) => break reason,
            }
        };
        assert!(matches!(reason, SubscriptionEnd::Cut(CutReason::TooSlow { .. })), "{reason:?}");
        assert_eq!(slow.recv().await.map(drop), Err(reason));
        assert!(reader.publish(topic("many"), OutgoingMessage::new("")).await.is_ok());
    });
}

#[test]
fn a_subscription_ends_at_once_with_its_handle_and_unseen_messages_go_back() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        let live = client.subscribe(to("left")).await.unwrap();
        let publish = || client.publish(topic("left"), OutgoingMessage::new(""));
        assert_eq!(publish().await.unwrap().receivers, 1);
        drop(live);
        // The connection ends on its own cell; the drop does not wait for it.
        while publish().await.unwrap().receivers > 0 {
            tokio::task::yield_now().await;
        }
        declare(&client, "q").await;
        for number in 0..3 {
            client.publish(queue("q"), OutgoingMessage::new(number.to_string())).await.unwrap();
        }
        let mut work = consume(&client, "q", 9).await;
        let seen = work.recv().await.unwrap();
        drop(work);
        has_ready(&client, "q", 2).await;
        let (again, left) = client.get(b"q", true).await.unwrap().unwrap();
        assert_eq!((text(&again), again.is_redelivered, again.failures, left), ("1", true, 0, 1));
        client.settle_all([seen.number, again.number], Outcome::Accept).await.unwrap();
        assert_eq!(client.look_up_queue(b"q").await.unwrap().consumers, 0);
    });
}

#[test]
fn a_subscription_says_why_it_ends() {
    with_server(async |server| {
        let clients = server.internal_clients();
        let client = connected(&clients).await;
        declare(&client, "gone").await;
        let mut work = consume(&client, "gone", 1).await;
        client.delete_queue(b"gone", DeleteOptions::default()).await.unwrap();
        let deleted = SubscriptionEnd::QueueDeleted(Name::from("gone"));
        assert_eq!(work.recv().await.map(drop), Err(deleted));
        let mut live = client.subscribe(to("a")).await.unwrap();
        server.live_users().renew_identity(&Name::from("guest"), None);
        let ended = live.recv().await.unwrap_err();
        assert!(matches!(ended, SubscriptionEnd::Cut(CutReason::Revoked { .. })), "{ended:?}");
        let refused = loop {
            match client.publish(topic("a"), OutgoingMessage::new("")).await {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, InternalError::Ended(SubscriptionEnd::Cut(CutReason::Revoked { .. }))));
        let other = clients.connect(Identity::broker(), b"/").await.unwrap();
        let mut live = other.subscribe(to("a")).await.unwrap();
        server.stop_handle().stop();
        let ended = live.recv().await.unwrap_err();
        assert_eq!(ended, SubscriptionEnd::Cut(CutReason::ShuttingDown));
        let refused = clients.connect(Identity::broker(), b"/").await.map(drop);
        assert!(matches!(refused, Err(InternalError::Ended(_))), "{refused:?}");
    });
}

#[test]
fn a_subscription_begins_with_the_rights_of_now() {
    with_server(async |server| {
        let clients = server.internal_clients();
        let client = connected(&clients).await;
        let mut earlier = client.subscribe(to("a")).await.unwrap();
        let outside = Rights::new(&Name::from("guest"), Tags::NONE, []).unwrap();
        let identity = Identity { user: Name::from("guest"), rights: outside.into() };
        server.live_users().renew_identity(&Name::from("guest"), Some(identity));
        // At once, before the client's own connection has had its turn.
        let later = client.subscribe(to("a")).await.map(drop);
        assert!(later.is_err(), "{later:?}");
        assert!(earlier.recv().await.is_err(), "the rights are withdrawn");
    });
}

#[test]
fn a_get_that_is_given_up_leaves_its_message_in_the_queue() {
    with_broker(async |clients| {
        let (client, other) = (connected(&clients).await, connected(&clients).await);
        declare(&client, "q").await;
        client.publish(queue("q"), OutgoingMessage::new("1")).await.unwrap();
        loop {
            let mut get = Box::pin(client.get(b"q", true));
            if let Poll::Ready(got) = poll_fn(|cx| Poll::Ready(get.as_mut().poll(cx))).await {
                // The cell was quicker than the first poll.
                let (message, _) = got.unwrap().unwrap();
                client.settle(&message, Outcome::Release { failed: false }).await.unwrap();
                continue;
            }
            // Its answer has the message, and is not awaited.
            has_ready(&other, "q", 0).await;
            drop(get);
            has_ready(&other, "q", 1).await;
            break;
        }
    });
}

#[test]
fn a_name_that_no_record_holds_is_refused() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        let name = vec![b'q'; 70_000];
        let durable = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let declared = client.declare_queue(&name, durable, false).await.unwrap_err();
        assert_eq!(declared.to_string(), "subject has 70000 bytes; use at most 1024");
        let settings = Settings { is_durable: true, ..Settings::default() };
        assert!(client.declare_exchange(&name, ExchangeKind::Topic, settings).await.is_err());
        declare(&client, "q").await;
    });
}

#[test]
fn messages_arrive_with_everything_they_have() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        let mut live = client.subscribe(to("a.>")).await.unwrap();
        let mut message = OutgoingMessage::new("body")
            .persistent(true)
            .with(Property::MessageId, b"7")
            .with(Property::Type, b"order")
            .typed_header(b"n", Value::Int(1));
        message.properties.priority = Some(3);
        message.properties.expiration_ms = Some(90_000);
        message.properties.timestamp = Some(12);
        client.publish(topic("a.b"), message).await.unwrap();
        let heard = live.recv().await.unwrap();
        assert_eq!(
            (heard.property(Property::MessageId), heard.property(Property::Type)),
            (Some(&b"7"[..]), Some(&b"order"[..]))
        );
        assert_eq!(heard.header(b"n"), Some(Value::Int(1)));
        assert_eq!((heard.properties.priority, heard.timestamp_ms()), (Some(3), Some(12_000)));
        assert_eq!((&heard.address, heard.deaths.is_none()), (&topic("a.b"), true));
    });
}

#[test]
fn a_durable_publish_is_confirmed_at_the_level_of_its_queue() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        let settings = QueueSettings { is_durable: true, ..QueueSettings::default() };
        let declared = client.declare_queue(b"safe", settings, false).await.unwrap();
        assert!(declared.is_new);
        let message = OutgoingMessage::new("").persistent(true);
        let published = client.publish(queue("safe"), message).await.unwrap();
        assert_eq!((published.receivers, published.level), (1, Level::Disk));
        client.sync().await.unwrap();
        assert_eq!(client.purge(b"safe").await, Ok(1));
    });
}

#[test]
fn exchanges_and_bindings_are_declared_and_deleted() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        let own = client.declare_queue(b"", QueueSettings::default(), true).await.unwrap().name;
        client.declare_exchange(b"x", ExchangeKind::Fanout, Settings::default()).await.unwrap();
        assert_eq!(client.look_up_exchange(b"x").await.map(|(kind, _)| kind), Ok(ExchangeKind::Fanout));
        let bind = || Bind {
            source: Name::from("x"),
            key: BindingKey::new(Syntax::Amqp, b""),
            arguments: Arguments::NONE,
            target: BindTarget::Queue(own.clone()),
        };
        client.bind(bind()).await.unwrap();
        let publish = || client.publish(Address::new(b"x", b""), OutgoingMessage::new(""));
        assert_eq!(publish().await.map(|done| done.receivers), Ok(1));
        client.unbind(bind()).await.unwrap();
        assert_eq!(publish().await.map(|done| done.receivers), Ok(0));
        client.delete_exchange(b"x", true).await.unwrap();
        let other = connected(&clients).await;
        let locked = other.look_up_queue(own.as_bytes()).await.map(drop);
        assert_eq!(locked, Err(InternalError::Broker(BrokerError::Locked(own.clone()))));
        drop(client);
        let gone = InternalError::Broker(BrokerError::NoQueue(own.clone()));
        while other.look_up_queue(own.as_bytes()).await.map(drop) != Err(gone.clone()) {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_consumer_that_does_not_settle_gets_more_as_its_receiver_takes_them() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        declare(&client, "q").await;
        for number in 0..100 {
            client.publish(queue("q"), OutgoingMessage::new(number.to_string())).await.unwrap();
        }
        let options = ConsumeOptions { settles: false, ..ConsumeOptions::new(b"q", 4) };
        let mut work = client.consume(options).await.unwrap();
        has_ready(&client, "q", 96).await;
        for number in 0..100 {
            assert_eq!(text(&work.recv().await.unwrap()), number.to_string());
        }
    });
}

#[test]
fn refusals_say_why() {
    with_broker(async |clients| {
        let no_vhost = clients.connect(Identity::guest(), b"none").await.map(drop);
        assert_eq!(no_vhost, Err(InternalError::NoVhost("none".into())));
        let refused = clients.connect(Identity::nobody(), b"/").await.map(drop);
        assert!(matches!(refused, Err(InternalError::Broker(BrokerError::Refused(_)))), "{refused:?}");
        let on_no_cell = ClientOptions { cell: Some(9), ..ClientOptions::new(Identity::guest(), b"/") };
        assert_eq!(clients.connect_with(on_no_cell).await.map(drop), Err(InternalError::NoCell(9)));
        let client = connected(&clients).await;
        let no_queue = client.consume(ConsumeOptions::new(b"none", 1)).await.map(drop);
        assert_eq!(no_queue, Err(InternalError::Broker(BrokerError::NoQueue("none".into()))));
        let published = client.publish(queue("none"), OutgoingMessage::new("")).await;
        assert_eq!(published.map(|done| done.receivers), Ok(0));
        let long = OutgoingMessage::new("").header(b"long", &[b'a'; 70_000]);
        let refused = client.publish(topic("a"), long).await;
        assert_eq!(refused.map(drop), Err(InternalError::Broker(BrokerError::HeadersTooLarge)));
        let other_user = OutgoingMessage::new("").with(Property::UserId, b"root");
        let refused = client.publish(topic("a"), other_user).await;
        assert_eq!(refused.map(drop), Err(InternalError::OtherUser));
        let settled = client.settle_all([77], Outcome::Accept).await;
        assert_eq!(settled, Err(InternalError::Broker(BrokerError::NoDelivery(77))));
    });
}

#[test]
fn credentials_are_checked_as_those_of_connections() {
    with_server(async |server| {
        let clients = server.internal_clients();
        let here = SocketAddr::from(([127, 0, 0, 1], 4000));
        let elsewhere = SocketAddr::from(([192, 0, 2, 1], 4000));
        let wrong = || Credentials::password(Some(b"admin"), Some(b"wrong"));
        for (source, is_encrypted) in [(here, false), (elsewhere, true), (elsewhere, false)] {
            let refused = clients.log_in(source, is_encrypted, wrong()).await;
            assert_eq!(refused.map(drop), Err(InternalError::LoginRefused));
        }
    });
}

#[test]
fn clients_stand_on_the_cell_that_was_asked_for() {
    with_broker(async |clients| {
        for cell in [0, 1] {
            let options = ClientOptions { cell: Some(cell), ..ClientOptions::new(Identity::broker(), b"/") };
            let client = clients.connect_with(options).await.unwrap();
            assert_eq!(client.cell(), cell);
            let mut live = client.subscribe(to("a")).await.unwrap();
            client.publish(topic("a"), OutgoingMessage::new("")).await.unwrap();
            live.recv().await.unwrap();
        }
    });
}

#[test]
fn hundreds_of_clients_leave_places_to_the_broker_and_to_others() {
    with_broker(async |clients| {
        let mut all = Vec::new();
        for _ in 0..600 {
            all.push(connected(&clients).await);
        }
        let operators = InternalClients::owned(&all[0].0.shared, Owner::Operator);
        assert!(operators.connect(Identity::broker(), b"/").await.is_ok());
    });
}

#[test]
fn each_of_256_vhosts_has_its_responder_and_room_for_clients() {
    let vhosts: Vec<String> = (1..VHOSTS_MAX).map(|number| format!("vhost-{number}")).collect();
    with_vhosts(&vhosts, async |server| {
        let clients = server.internal_clients();
        let operators = InternalClients::owned(&connected(&clients).await.0.shared, Owner::Operator);
        for vhost in &vhosts {
            let client = clients.connect(Identity::broker(), vhost.as_bytes()).await.unwrap();
            let pong = client.call(topic("imori.service.ping"), OutgoingMessage::new(""), DEADLINE).await;
            assert!(text(&pong.unwrap()).starts_with(r#"{"name":"imori""#), "{vhost}");
            assert!(operators.connect(Identity::broker(), vhost.as_bytes()).await.is_ok(), "{vhost}");
        }
    });
}

#[test]
fn a_client_that_is_dropped_leaves_what_it_published() {
    with_broker(async |clients| {
        let client = connected(&clients).await;
        declare(&client, "q").await;
        let dropped = connected(&clients).await;
        // The message is on its way; its confirm may have come already.
        let _ = is_pending(dropped.publish(queue("q"), OutgoingMessage::new("m"))).await;
        drop(dropped);
        has_ready(&client, "q", 1).await;
    });
}
