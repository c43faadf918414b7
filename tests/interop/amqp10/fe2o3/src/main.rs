//! Conversations of fe2o3-amqp with a broker, one a scenario.
//!
//! ```text
//! driver-fe2o3 SCENARIO URL NAME
//! ```
//!
//! A scenario ends well by returning and badly by panicking; waiting is always for an event.

use std::error::Error;
use std::time::Duration;

use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::link::delivery::Delivery;
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslScramSha256;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::transaction::{
    Controller, Transaction, TransactionDischarge, TransactionPosting, TransactionRetirement,
};
use fe2o3_amqp::types::definitions::{AmqpError, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Data, DistributionMode, Header, Message, MessageAnnotations, Modified,
    Outcome, Properties, Source, Target, TerminusDurability, TerminusExpiryPolicy,
};
use fe2o3_amqp::types::primitives::SimpleValue;
use fe2o3_amqp::{Connection, Receiver, Sendable, Sender, Session};
use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{Array, OrderedMap, Symbol, Timestamp, Uuid};

const DEADLINE: Duration = Duration::from_secs(100);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What every scenario needs: connections to the broker, and a name nobody has.
struct Run {
    url: String,
    name: String,
}

/// A connection with a session.
struct Client {
    connection: ConnectionHandle<()>,
    session: SessionHandle<()>,
    links: u32,
}

impl Run {
    async fn connect(&self) -> Result<Client> {
        self.connect_with(131_072, 60_000).await
    }

    async fn connect_with(&self, max_frame_size: u32, idle_time_out_ms: u32) -> Result<Client> {
        let builder = Connection::builder().container_id(&self.name).max_frame_size(max_frame_size);
        let mut connection = builder.idle_time_out(idle_time_out_ms).open(self.url.as_str()).await?;
        let session = Session::begin(&mut connection).await?;
        Ok(Client { connection, session, links: 0 })
    }

    fn topic(&self) -> String {
        format!("topic://{}", self.name)
    }
}

impl Client {
    fn link(&mut self) -> String {
        self.links += 1;
        format!("link-{}", self.links)
    }

    async fn sender(&mut self, address: &str) -> Result<Sender> {
        let name = self.link();
        Ok(Sender::attach(&mut self.session, name, address).await?)
    }

    /// A sender whose messages say where they go.
    async fn relay(&mut self) -> Result<Sender> {
        let name = self.link();
        Ok(Sender::builder().name(name).target(Target::default()).attach(&mut self.session).await?)
    }

    /// A receiver that asks for messages only when it is told to.
    async fn receiver(&mut self, source: impl Into<Source>) -> Result<Receiver> {
        let name = self.link();
        self.named_receiver(&name, source).await
    }

    async fn named_receiver(&mut self, name: &str, source: impl Into<Source>) -> Result<Receiver> {
        let builder = Receiver::builder().name(name).source(source).credit_mode(CreditMode::Manual);
        Ok(builder.attach(&mut self.session).await?)
    }

    /// All that a queue has.
    async fn rest(&mut self, queue: &str) -> Result<Vec<Value>> {
        accept(&mut self.sender(queue).await?, value("last")).await?;
        let mut receiver = self.receiver(queue).await?;
        receiver.set_credit(100).await?;
        let mut bodies = Vec::new();
        loop {
            match body(&mut receiver).await? {
                last if last == text("last") => break,
                body => bodies.push(body),
            }
        }
        receiver.close().await?;
        Ok(bodies)
    }
}

fn text(text: &str) -> Value {
    Value::String(text.to_string())
}

fn value(body: impl Into<Value>) -> Message<AmqpValue<Value>> {
    Message::builder().value(body.into()).build()
}

fn with_header(header: Header, body: impl Into<Value>) -> Message<AmqpValue<Value>> {
    Message::builder().header(header).value(body.into()).build()
}

fn with_properties(properties: Properties, body: impl Into<Value>) -> Message<AmqpValue<Value>> {
    Message::builder().properties(properties).value(body.into()).build()
}

async fn accept(sender: &mut Sender, message: Message<AmqpValue<Value>>) -> Result<()> {
    let outcome = sender.send(message).await?;
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
    Ok(())
}

async fn next(receiver: &mut Receiver) -> Result<Delivery<Value>> {
    Ok(receiver.recv::<Value>().await?)
}

async fn body(receiver: &mut Receiver) -> Result<Value> {
    let delivery = next(receiver).await?;
    receiver.accept(&delivery).await?;
    Ok(delivery.into_body())
}

/// Asks for one message more, and gives it.
async fn one(receiver: &mut Receiver) -> Result<Value> {
    receiver.set_credit(1).await?;
    body(receiver).await
}

fn pattern(size: u32) -> Vec<u8> {
    (0..size).map(|index| (index % 251) as u8).collect()
}

fn capabilities(names: &[&str]) -> Array<Symbol> {
    names.iter().map(|name| Symbol::from(*name)).collect::<Vec<_>>().into()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().expect("driver-fe2o3 SCENARIO URL NAME");
    let scenario = word();
    let run = Run { url: word(), name: word() };
    tokio::time::timeout(DEADLINE, converse(&scenario, &run))
        .await
        .expect("it hangs")
        .expect("the broker refuses");
    std::process::exit(0);
}

async fn converse(scenario: &str, run: &Run) -> Result<()> {
    match scenario {
        "settlement" => settlement(run).await,
        "outcomes" => outcomes(run).await,
        "refusal" => refusal(run).await,
        "credit_and_drain" => credit_and_drain(run).await,
        "large_message" => large_message(run).await,
        "small_frames" => small_frames(run).await,
        "dynamic_node" => dynamic_node(run).await,
        "anonymous_relay" => anonymous_relay(run).await,
        "selector" => selector(run).await,
        "browse" => browse(run).await,
        "durable_subscription" => durable_subscription(run).await,
        "shared_subscription" => shared_subscription(run).await,
        "transaction" => transaction(run).await,
        "delay" => delay(run).await,
        "expiry" => expiry(run).await,
        "priorities" => priorities(run).await,
        "types" => types(run).await,
        "idle_time_out" => idle_time_out(run).await,
        "not_found" => not_found(run).await,
        "scram" => scram(run).await,
        _ => panic!("no scenario `{scenario}`"),
    }
}

async fn settlement(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    let settled = Sendable::builder().message(value("settled")).settled(true).build();
    sender.send(settled).await?;
    accept(&mut sender, value("unsettled")).await?;
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(2).await?;
    assert_eq!(body(&mut receiver).await?, text("settled"));
    assert_eq!(body(&mut receiver).await?, text("unsettled"));
    receiver.close().await?;
    accept(&mut sender, value("for one who does not answer")).await?;
    let builder = Receiver::builder().name("forgetful").source(run.name.as_str());
    let mut forgetful = builder
        .sender_settle_mode(SenderSettleMode::Settled)
        .credit_mode(CreditMode::Manual)
        .attach(&mut client.session)
        .await?;
    forgetful.set_credit(1).await?;
    next(&mut forgetful).await?;
    forgetful.close().await?;
    assert_eq!(client.rest(&run.name).await?, []);
    Ok(())
}

async fn outcomes(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    for body in ["released", "modified", "rejected"] {
        accept(&mut sender, value(body)).await?;
    }
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(3).await?;
    let deliveries = [next(&mut receiver).await?, next(&mut receiver).await?, next(&mut receiver).await?];
    let failed =
        Modified { delivery_failed: Some(true), undeliverable_here: None, message_annotations: None };
    receiver.release(&deliveries[0]).await?;
    receiver.modify(&deliveries[1], failed).await?;
    receiver.reject(&deliveries[2], None).await?;
    receiver.set_credit(2).await?;
    for (count, body) in [(0, "released"), (1, "modified")] {
        let delivery = next(&mut receiver).await?;
        assert_eq!(*delivery.body(), text(body));
        let header = delivery.message().header.as_ref().expect("the broker has written a header");
        assert_eq!(header.delivery_count, count);
        receiver.accept(&delivery).await?;
    }
    receiver.close().await?;
    assert_eq!(client.rest(&run.name).await?, []);
    Ok(())
}

async fn refusal(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    accept(&mut sender, value("the only one")).await?;
    let Outcome::Rejected(rejected) = sender.send(value("too much")).await? else {
        panic!("it was not refused")
    };
    let error = rejected.error.expect("the broker says why");
    assert_eq!(error.condition, AmqpError::ResourceLimitExceeded.into());
    Ok(())
}

async fn credit_and_drain(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    for number in 1..=5 {
        accept(&mut sender, value(number)).await?;
    }
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(3).await?;
    for number in 1..=3 {
        assert_eq!(body(&mut receiver).await?, Value::Int(number));
    }
    receiver.set_credit(10).await?;
    receiver.drain().await?;
    assert_eq!(body(&mut receiver).await?, Value::Int(4));
    assert_eq!(body(&mut receiver).await?, Value::Int(5));
    // The credit that was left is given up: another receiver gets what comes now.
    accept(&mut sender, value(6)).await?;
    assert_eq!(one(&mut client.receiver(run.name.as_str()).await?).await?, Value::Int(6));
    Ok(())
}

async fn carry(run: &Run, mut client: Client, size: u32) -> Result<()> {
    let body = pattern(size);
    let message = Message::builder().data(body.clone()).build();
    let outcome = client.sender(&run.name).await?.send(message).await?;
    assert!(matches!(outcome, Outcome::Accepted(_)), "{outcome:?}");
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(1).await?;
    let delivery = receiver.recv::<Data>().await?;
    receiver.accept(&delivery).await?;
    assert_eq!(delivery.body().0.as_slice(), body);
    Ok(())
}

async fn large_message(run: &Run) -> Result<()> {
    let client = run.connect().await?;
    carry(run, client, 3 << 20).await
}

async fn small_frames(run: &Run) -> Result<()> {
    let client = run.connect_with(512, 60_000).await?;
    carry(run, client, 200_000).await
}

async fn dynamic_node(run: &Run) -> Result<()> {
    let (mut asking, mut answering) = (run.connect().await?, run.connect().await?);
    let mut replies = asking.receiver(Source::builder().dynamic(true).build()).await?;
    let address =
        replies.source().as_ref().and_then(|source| source.address.clone()).expect("it has an address");
    let request = Properties::builder().reply_to(address).message_id("id".to_string()).build();
    accept(&mut asking.sender(&run.name).await?, with_properties(request, "request")).await?;
    let mut requests = answering.receiver(run.name.as_str()).await?;
    requests.set_credit(1).await?;
    let delivery = next(&mut requests).await?;
    requests.accept(&delivery).await?;
    let asked = delivery.message().properties.clone().expect("it has properties");
    let reply = Properties::builder()
        .to(asked.reply_to.expect("it says where to reply"))
        .correlation_id(asked.message_id.expect("it has an id"));
    accept(&mut answering.relay().await?, with_properties(reply.build(), "answer")).await?;
    replies.set_credit(1).await?;
    let reply = next(&mut replies).await?;
    assert_eq!(*reply.body(), text("answer"));
    let properties = reply.message().properties.as_ref().expect("it has properties");
    assert_eq!(properties.correlation_id, Some("id".to_string().into()));
    Ok(())
}

async fn anonymous_relay(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.relay().await?;
    let queues = [format!("{}.a", run.name), format!("{}.b", run.name)];
    for queue in &queues {
        let properties = Properties::builder().to(queue.as_str()).build();
        accept(&mut sender, with_properties(properties, queue.as_str())).await?;
    }
    for queue in &queues {
        assert_eq!(client.rest(queue).await?, [text(queue)]);
    }
    Ok(())
}

async fn selector(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    for size in [5, 50, 500] {
        for colour in ["red", "blue"] {
            let properties =
                ApplicationProperties::builder().insert("colour", colour).insert("size", size).build();
            let body = text(&format!("{colour} {size}"));
            accept(&mut sender, Message::builder().application_properties(properties).value(body).build())
                .await?;
        }
    }
    let filter = Described {
        descriptor: Descriptor::Code(0x0000_468C_0000_0004),
        value: text("colour = 'red' AND size > 10"),
    };
    let source = Source::builder()
        .address(run.name.as_str())
        .add_to_filter("apache.org:selector-filter:string", filter)
        .build();
    let mut choosy = client.receiver(source).await?;
    choosy.set_credit(10).await?;
    assert_eq!(body(&mut choosy).await?, text("red 50"));
    assert_eq!(body(&mut choosy).await?, text("red 500"));
    let others = ["red 5", "blue 5", "blue 50", "blue 500"].map(text);
    assert_eq!(client.rest(&run.name).await?, others);
    Ok(())
}

async fn browse(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    for number in 1..=3 {
        accept(&mut sender, value(number)).await?;
    }
    for _ in 0..2 {
        let source =
            Source::builder().address(run.name.as_str()).distribution_mode(DistributionMode::Copy).build();
        let mut browser = client.receiver(source).await?;
        browser.set_credit(10).await?;
        for number in 1..=3 {
            assert_eq!(body(&mut browser).await?, Value::Int(number));
        }
        browser.close().await?;
    }
    assert_eq!(client.rest(&run.name).await?, [1, 2, 3].map(Value::Int));
    Ok(())
}

async fn durable_subscription(run: &Run) -> Result<()> {
    let source = Source::builder()
        .address(run.topic())
        .durable(TerminusDurability::UnsettledState)
        .expiry_policy(TerminusExpiryPolicy::Never)
        .build();
    let mut client = run.connect().await?;
    let receiver = client.named_receiver("subscription", source.clone()).await?;
    receiver.detach().await.map_err(|(_, error)| error)?;
    let mut other = run.connect().await?;
    let mut sender = other.sender(&run.topic()).await?;
    accept(&mut sender, value("missed")).await?;
    let mut again = run.connect().await?;
    let mut receiver = again.named_receiver("subscription", source.clone()).await?;
    receiver.set_credit(5).await?;
    accept(&mut sender, value("live")).await?;
    assert_eq!(body(&mut receiver).await?, text("missed"));
    assert_eq!(body(&mut receiver).await?, text("live"));
    receiver.close().await?;
    accept(&mut sender, value("for nobody")).await?;
    let mut anew = run.connect().await?;
    let mut receiver = anew.named_receiver("subscription", source).await?;
    accept(&mut sender, value("for the new one")).await?;
    assert_eq!(one(&mut receiver).await?, text("for the new one"));
    Ok(())
}

async fn shared_subscription(run: &Run) -> Result<()> {
    let (mut one, mut other) = (run.connect().await?, run.connect().await?);
    let source =
        Source::builder().address(run.topic()).capabilities(capabilities(&["shared", "global"])).build();
    let mut receivers = [
        one.named_receiver(&format!("{}|0", run.name), source.clone()).await?,
        other.named_receiver(&format!("{}|1", run.name), source).await?,
    ];
    for receiver in &mut receivers {
        receiver.set_credit(5).await?;
    }
    let mut sending = run.connect().await?;
    let mut sender = sending.sender(&run.topic()).await?;
    for number in 0..10 {
        accept(&mut sender, value(number)).await?;
    }
    let mut came = Vec::new();
    for number in 0..10 {
        came.push(body(&mut receivers[number % 2]).await?);
    }
    came.sort();
    assert_eq!(came, (0..10).map(Value::Int).collect::<Vec<_>>());
    Ok(())
}

async fn transaction(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let (from, to) = (format!("{}.in", run.name), format!("{}.out", run.name));
    accept(&mut client.sender(&from).await?, value("m")).await?;
    let mut sender = client.sender(&to).await?;
    let controller = Controller::attach(&mut client.session, "controller").await?;
    for commits in [false, true] {
        let mut receiver = client.receiver(from.as_str()).await?;
        receiver.set_credit(1).await?;
        let delivery = next(&mut receiver).await?;
        assert_eq!(*delivery.body(), text("m"));
        let transaction = Transaction::declare(&controller, None).await?;
        transaction.post(&mut sender, value("1")).await?;
        transaction.post(&mut sender, value("2")).await?;
        transaction.accept(&mut receiver, &delivery).await?;
        assert_eq!(client.rest(&to).await?, []);
        match commits {
            true => transaction.commit().await?,
            false => transaction.rollback().await?,
        }
        // What was retired stays with its receiver, which gives it back by its end.
        receiver.close().await?;
    }
    assert_eq!(client.rest(&to).await?, ["1", "2"].map(text));
    assert_eq!(client.rest(&from).await?, []);
    Ok(())
}

async fn delay(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    let annotations = MessageAnnotations::builder().insert("x-opt-delivery-delay", 500_i64).build();
    accept(&mut sender, Message::builder().message_annotations(annotations).value(text("delayed")).build())
        .await?;
    accept(&mut sender, value("at once")).await?;
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(2).await?;
    assert_eq!(body(&mut receiver).await?, text("at once"));
    assert_eq!(body(&mut receiver).await?, text("delayed"));
    Ok(())
}

async fn expiry(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    let past = Properties::builder().absolute_expiry_time(Timestamp::from_milliseconds(1000)).build();
    accept(&mut sender, with_properties(past, "expired")).await?;
    accept(&mut sender, with_header(Header::builder().ttl(600_000).build(), "fresh")).await?;
    assert_eq!(client.rest(&run.name).await?, [text("fresh")]);
    Ok(())
}

async fn priorities(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    for priority in 0..=9_u8 {
        let header = Header::builder().priority(priority).build();
        accept(&mut sender, with_header(header, i32::from(priority))).await?;
    }
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(10).await?;
    for priority in (0..=9).rev() {
        assert_eq!(body(&mut receiver).await?, Value::Int(priority));
    }
    Ok(())
}

async fn types(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let mut sender = client.sender(&run.name).await?;
    let mut receiver = client.receiver(run.name.as_str()).await?;
    let properties = ApplicationProperties::builder()
        .insert("boolean", true)
        .insert("int", -3)
        .insert("long", i64::MIN)
        .insert("double", 0.1)
        .insert("string", "Größe 🐟")
        .insert("uuid", Uuid::from([7; 16]))
        .insert("null", SimpleValue::Null)
        .build();
    let mut map = OrderedMap::new();
    map.insert(Value::Symbol(Symbol::from("k")), Value::List(vec![Value::Bool(true)]));
    let list = vec![Value::Int(1), text("two"), Value::Null, Value::Map(map)];
    let binary = Value::Binary(pattern(100).into());
    for sent in [text("text"), Value::Int(-7), Value::Ulong(u64::MAX), binary, Value::List(list)] {
        let message =
            Message::builder().application_properties(properties.clone()).value(sent.clone()).build();
        accept(&mut sender, message).await?;
        receiver.set_credit(1).await?;
        let delivery = next(&mut receiver).await?;
        receiver.accept(&delivery).await?;
        assert_eq!(*delivery.body(), sent);
        assert_eq!(delivery.message().application_properties.as_ref(), Some(&properties));
    }
    Ok(())
}

async fn idle_time_out(run: &Run) -> Result<()> {
    let mut client = run.connect_with(131_072, 1000).await?;
    let mut receiver = client.receiver(run.name.as_str()).await?;
    receiver.set_credit(1).await?;
    let silence = tokio::time::timeout(Duration::from_millis(2500), next(&mut receiver)).await;
    assert!(silence.is_err(), "nothing was sent");
    accept(&mut client.sender(&run.name).await?, value("m")).await?;
    assert_eq!(body(&mut receiver).await?, text("m"));
    Ok(())
}

async fn not_found(run: &Run) -> Result<()> {
    let mut client = run.connect().await?;
    let address = format!("/exchanges/{}/key", run.name);
    let refused = client.sender(&address).await.err().expect("it was not refused");
    assert!(format!("{refused:?}").contains("NotFound"), "{refused:?}");
    // In the session of a refused link fe2o3-amqp loses the next attach at times.
    client.session = Session::begin(&mut client.connection).await?;
    accept(&mut client.sender(&run.name).await?, value("m")).await
}

async fn scram(run: &Run) -> Result<()> {
    // The library would send the name and the password of an address by PLAIN.
    let (login, host) = run.url["amqp://".len()..].split_once('@').ok_or("the address has no user")?;
    let (user, password) = login.split_once(':').ok_or("the address has no password")?;
    let builder =
        Connection::builder().container_id(&run.name).sasl_profile(SaslScramSha256::new(user, password));
    let mut connection = builder.open(format!("amqp://{host}").as_str()).await?;
    let session = Session::begin(&mut connection).await?;
    let mut client = Client { connection, session, links: 0 };
    accept(&mut client.sender(&run.name).await?, value("m")).await
}
