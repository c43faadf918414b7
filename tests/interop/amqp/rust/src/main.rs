//! Conversations of lapin with a broker, one a scenario.
//!
//! ```text
//! driver-lapin SCENARIO URL NAME
//! ```
//!
//! A scenario ends well by returning and badly by panicking; waiting is always for an event.

use std::time::Duration;

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::*;
use lapin::types::{AMQPValue, DecimalValue, FieldArray, FieldTable};
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ExchangeKind, Result,
};

const DEADLINE: Duration = Duration::from_secs(100);

/// What every scenario needs: channels of connections to the broker, and a name nobody has.
struct Run {
    url: String,
    name: String,
}

impl Run {
    /// Opens a channel on a connection of its own, which lives as long as the channel.
    async fn channel(&self) -> Result<Channel> {
        let options = ConnectionProperties::default();
        let connection = Connection::connect(&self.url, options).await?;
        let channel = connection.create_channel().await?;
        std::mem::forget(connection);
        Ok(channel)
    }
}

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let mut word = || words.next().expect("driver-lapin SCENARIO URL NAME");
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
        "confirms" => confirms(run).await,
        "mandatory_return" => mandatory_return(run).await,
        "prefetch_and_requeue" => prefetch_and_requeue(run).await,
        "direct_reply_to" => direct_reply_to(run).await,
        "transactions" => transactions(run).await,
        "dead_letters" => dead_letters(run).await,
        "headers" => headers(run).await,
        "exclusive_queue" => exclusive_queue(run).await,
        "large_body" => large_body(run).await,
        "cancelled" => cancelled(run).await,
        "restart" => restart(run).await,
        _ => panic!("no scenario `{scenario}`"),
    }
}

async fn declare(channel: &Channel, queue: &str, arguments: FieldTable) -> Result<()> {
    let options = QueueDeclareOptions::default();
    channel.queue_declare(queue.into(), options, arguments).await?;
    Ok(())
}

async fn publish(
    channel: &Channel,
    queue: &str,
    properties: BasicProperties,
    body: &[u8],
) -> Result<Confirmation> {
    let options = BasicPublishOptions::default();
    let sent = channel.basic_publish("".into(), queue.into(), options, body, properties);
    sent.await?.await
}

async fn consume(channel: &Channel, queue: &str, no_ack: bool) -> Result<Consumer> {
    let options = BasicConsumeOptions { no_ack, ..Default::default() };
    let arguments = FieldTable::default();
    channel.basic_consume(queue.into(), "".into(), options, arguments).await
}

async fn next(consumer: &mut Consumer) -> Result<Delivery> {
    consumer.next().await.expect("the consumer ended")
}

/// How many messages of a queue are ready; refused where the queue is not there.
async fn ready(channel: &Channel, queue: &str) -> Result<u32> {
    let options = QueueDeclareOptions { passive: true, ..Default::default() };
    let declared = channel.queue_declare(queue.into(), options, FieldTable::default());
    Ok(declared.await?.message_count())
}

/// The code of the error with which the broker ends a channel.
fn code_of(refusal: Result<u32>) -> u16 {
    match refusal.expect_err("it was not refused").kind() {
        lapin::ErrorKind::ProtocolError(error) => error.get_id(),
        other => panic!("{other:?}"),
    }
}

fn persistent() -> BasicProperties {
    BasicProperties::default().with_delivery_mode(2)
}

async fn confirms(run: &Run) -> Result<()> {
    let channel = run.channel().await?;
    let name = run.name.as_str();
    let (kind, none) = (ExchangeKind::Topic, FieldTable::default());
    channel.exchange_declare(name.into(), kind, ExchangeDeclareOptions::default(), none.clone()).await?;
    let durable = QueueDeclareOptions::durable();
    channel.queue_declare(name.into(), durable, none.clone()).await?;
    let options = QueueBindOptions::default();
    channel.queue_bind(name.into(), name.into(), "number.*".into(), options, none).await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    for number in 0..100 {
        let (key, body) = (format!("number.{number}"), number.to_string());
        let options = BasicPublishOptions::default();
        let sent =
            channel.basic_publish(name.into(), key.into(), options, body.as_bytes(), persistent()).await?;
        assert_eq!(sent.await?, Confirmation::Ack(None));
    }
    let mut arrived = consume(&channel, name, false).await?;
    for number in 0..100 {
        let message = next(&mut arrived).await?;
        assert_eq!(message.data, number.to_string().as_bytes());
        assert!(!message.redelivered);
        message.ack(BasicAckOptions::default()).await?;
    }
    assert_eq!(ready(&channel, name).await?, 0);
    Ok(())
}

async fn mandatory_return(run: &Run) -> Result<()> {
    let channel = run.channel().await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let key = run.name.as_str().into();
    let sent = channel.basic_publish("".into(), key, options, b"back", BasicProperties::default());
    let Confirmation::Ack(Some(returned)) = sent.await?.await? else {
        panic!("it was not returned");
    };
    assert_eq!((returned.reply_code, returned.reply_text.as_str()), (312, "NO_ROUTE"));
    assert_eq!(returned.delivery.data, b"back");
    Ok(())
}

async fn prefetch_and_requeue(run: &Run) -> Result<()> {
    let channel = run.channel().await?;
    channel.basic_qos(2, BasicQosOptions::default()).await?;
    declare(&channel, &run.name, FieldTable::default()).await?;
    for body in [b"0", b"1", b"2", b"3"] {
        publish(&channel, &run.name, BasicProperties::default(), body).await?;
    }
    let mut arrived = consume(&channel, &run.name, false).await?;
    let (first, second) = (next(&mut arrived).await?, next(&mut arrived).await?);
    assert_eq!(ready(&channel, &run.name).await?, 2);
    let requeue = BasicNackOptions { requeue: true, ..Default::default() };
    first.nack(requeue).await?;
    let again = next(&mut arrived).await?;
    assert_eq!((again.data.as_slice(), again.redelivered), (b"0".as_slice(), true));
    second.ack(BasicAckOptions::default()).await?;
    again.ack(BasicAckOptions::default()).await?;
    assert_eq!(next(&mut arrived).await?.data, b"2");
    assert_eq!(next(&mut arrived).await?.data, b"3");
    Ok(())
}

async fn direct_reply_to(run: &Run) -> Result<()> {
    let (requester, responder) = (run.channel().await?, run.channel().await?);
    declare(&responder, &run.name, FieldTable::default()).await?;
    let mut requests = consume(&responder, &run.name, true).await?;
    let mut replies = consume(&requester, "amq.rabbitmq.reply-to", true).await?;
    for number in 0..10 {
        let text = number.to_string();
        let asks = BasicProperties::default()
            .with_reply_to("amq.rabbitmq.reply-to".into())
            .with_correlation_id(text.as_str().into());
        publish(&requester, &run.name, asks, text.as_bytes()).await?;
        let request = next(&mut requests).await?;
        let asked = &request.properties;
        let to = asked.reply_to().clone().expect("a request names where its reply goes");
        let id = asked.correlation_id().clone().expect("a request has its number");
        let answers = BasicProperties::default().with_correlation_id(id);
        publish(&responder, to.as_str(), answers, &request.data.repeat(2)).await?;
        let reply = next(&mut replies).await?;
        assert_eq!(reply.data, text.repeat(2).as_bytes());
        assert_eq!(reply.properties.correlation_id(), &Some(text.as_str().into()));
    }
    Ok(())
}

async fn transactions(run: &Run) -> Result<()> {
    let (channel, reader) = (run.channel().await?, run.channel().await?);
    declare(&channel, &run.name, FieldTable::default()).await?;
    channel.tx_select().await?;
    publish(&channel, &run.name, BasicProperties::default(), b"dropped").await?;
    channel.tx_rollback().await?;
    publish(&channel, &run.name, BasicProperties::default(), b"kept").await?;
    assert_eq!(ready(&reader, &run.name).await?, 0);
    channel.tx_commit().await?;
    assert_eq!(ready(&reader, &run.name).await?, 1);
    Ok(())
}

async fn dead_letters(run: &Run) -> Result<()> {
    let channel = run.channel().await?;
    let dead = format!("{}.dead", run.name);
    declare(&channel, &dead, FieldTable::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-dead-letter-exchange".into(), text(""));
    arguments.insert("x-dead-letter-routing-key".into(), text(&dead));
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(10));
    declare(&channel, &run.name, arguments).await?;
    publish(&channel, &run.name, BasicProperties::default(), b"bad").await?;
    let message = next(&mut consume(&channel, &run.name, false).await?).await?;
    message.reject(BasicRejectOptions::default()).await?;
    let corpse = next(&mut consume(&channel, &dead, true).await?).await?;
    let headers = corpse.properties.headers().clone().expect("it tells why it died");
    let deaths = headers.inner()["x-death"].as_array().expect("a list of deaths");
    let death = deaths.as_slice()[0].as_field_table().expect("a death").inner();
    assert_eq!(death["queue"], text(&run.name));
    assert_eq!(death["reason"], text("rejected"));
    assert_eq!(death["count"], AMQPValue::LongLongInt(1));
    assert_eq!(death["exchange"], text(""));
    let keys = FieldArray::from(vec![text(&run.name)]);
    assert_eq!(death["routing-keys"], AMQPValue::FieldArray(keys));
    assert_eq!(headers.inner()["x-first-death-queue"], text(&run.name));
    Ok(())
}

async fn headers(run: &Run) -> Result<()> {
    let channel = run.channel().await?;
    declare(&channel, &run.name, FieldTable::default()).await?;
    let mut table = FieldTable::default();
    table.insert("a".into(), AMQPValue::FieldArray(vec![text("b"), AMQPValue::Void].into()));
    let mut sent = FieldTable::default();
    for (key, value) in [
        ("text", text("é")),
        ("true", AMQPValue::Boolean(true)),
        ("byte", AMQPValue::ShortShortInt(-5)),
        ("unsigned-byte", AMQPValue::ShortShortUInt(250)),
        ("short", AMQPValue::ShortInt(-5)),
        ("unsigned-short", AMQPValue::ShortUInt(60_000)),
        ("int", AMQPValue::LongInt(-5)),
        ("unsigned-int", AMQPValue::LongUInt(4_000_000_000)),
        ("long", AMQPValue::LongLongInt(1 << 40)),
        ("float", AMQPValue::Float(2.5)),
        ("double", AMQPValue::Double(2.5)),
        ("time", AMQPValue::Timestamp(1_714_979_289)),
        ("bytes", AMQPValue::ByteArray(vec![0, 255].into())),
        ("nothing", AMQPValue::Void),
        ("table", AMQPValue::FieldTable(table)),
        ("decimal", AMQPValue::DecimalValue(DecimalValue { scale: 2, value: 125 })),
    ] {
        sent.insert(key.into(), value);
    }
    let properties = BasicProperties::default().with_headers(sent.clone());
    publish(&channel, &run.name, properties, b"").await?;
    let message = next(&mut consume(&channel, &run.name, true).await?).await?;
    assert_eq!(message.properties.headers(), &Some(sent));
    Ok(())
}

async fn exclusive_queue(run: &Run) -> Result<()> {
    let (owner, other) = (run.channel().await?, run.channel().await?);
    let exclusive = QueueDeclareOptions { exclusive: true, ..Default::default() };
    let none = FieldTable::default();
    owner.queue_declare(run.name.as_str().into(), exclusive, none.clone()).await?;
    assert_eq!(code_of(ready(&other, &run.name).await), 405);
    let auto = format!("{}.auto", run.name);
    let auto_delete = QueueDeclareOptions { auto_delete: true, ..Default::default() };
    owner.queue_declare(auto.as_str().into(), auto_delete, none).await?;
    let consumer = consume(&owner, &auto, true).await?;
    owner.basic_cancel(consumer.tag(), BasicCancelOptions::default()).await?;
    assert_eq!(code_of(ready(&owner, &auto).await), 404);
    Ok(())
}

async fn large_body(run: &Run) -> Result<()> {
    let channel = run.channel().await?;
    declare(&channel, &run.name, FieldTable::default()).await?;
    let body: Vec<u8> = (0..=250).cycle().take(1_000_000).collect();
    publish(&channel, &run.name, BasicProperties::default(), &body).await?;
    assert!(next(&mut consume(&channel, &run.name, true).await?).await?.data == body);
    Ok(())
}

async fn cancelled(run: &Run) -> Result<()> {
    let (channel, other) = (run.channel().await?, run.channel().await?);
    declare(&channel, &run.name, FieldTable::default()).await?;
    let mut consumer = consume(&channel, &run.name, true).await?;
    other.queue_delete(run.name.as_str().into(), QueueDeleteOptions::default()).await?;
    assert!(consumer.next().await.is_none());
    Ok(())
}

async fn restart(run: &Run) -> Result<()> {
    let options = ConnectionProperties::default().enable_auto_recover();
    let connection = Connection::connect(&run.url, options).await?;
    let channel = connection.create_channel().await?;
    channel
        .queue_declare(run.name.as_str().into(), QueueDeclareOptions::durable(), FieldTable::default())
        .await?;
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let mut arrived = consume(&channel, &run.name, false).await?;
    publish(&channel, &run.name, persistent(), b"before").await?;
    next(&mut arrived).await?;
    println!("ready");
    let again = recovered(&channel, &mut arrived).await?;
    assert_eq!((again.data.as_slice(), again.redelivered), (b"before".as_slice(), true));
    again.ack(BasicAckOptions::default()).await?;
    publish(&channel, &run.name, BasicProperties::default(), b"after").await?;
    assert_eq!(next(&mut arrived).await?.data, b"after");
    Ok(())
}

/// The next delivery, whatever happens to the connection in between.
async fn recovered(channel: &Channel, consumer: &mut Consumer) -> Result<Delivery> {
    loop {
        match consumer.next().await.expect("the consumer ended") {
            Ok(delivery) => return Ok(delivery),
            Err(error) => channel.wait_for_recovery(error).await?,
        }
    }
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}
