# Conversations of bunny with a broker, one a scenario.
#
#     ruby driver.rb SCENARIO URL NAME
#
# A scenario ends well by returning and badly by raising; waiting is always for an event.

require "bunny"
require "timeout"

DEADLINE_S = 100

SCENARIO, URL, NAME = ARGV

def expect(came, wanted)
  raise "#{came.inspect} came, and not #{wanted.inspect}" unless came == wanted
end

# Opens a channel on a connection of its own.
def channel(**options)
  Bunny.new(URL, network_recovery_interval: 0.2, **options).start.create_channel
end

# Collects what comes from a queue, each with its properties and body.
def consume(queue, **options)
  arrived = Queue.new
  queue.subscribe(**options) { |*message| arrived << message }
  arrived
end

def ready(channel, name)
  channel.queue_declare(name, passive: true).message_count
end

# Gives the error with which the broker ends a channel.
def refused(kind)
  yield
rescue kind => error
  error
else
  raise "it was not refused"
end

SCENARIOS = {
  confirms: lambda do
    channel = channel()
    exchange = channel.topic(NAME, durable: true)
    queue = channel.queue(NAME, durable: true).bind(exchange, routing_key: "number.*")
    channel.confirm_select
    100.times { |number| exchange.publish(number.to_s, routing_key: "number.#{number}", persistent: true) }
    expect(channel.wait_for_confirms, true)
    arrived = consume(queue, manual_ack: true)
    100.times do |number|
      info, _properties, body = arrived.pop
      expect([body, info.redelivered], [number.to_s, false])
      channel.ack(info.delivery_tag)
    end
    expect(ready(channel, NAME), 0)
  end,

  mandatory_return: lambda do
    channel = channel()
    channel.confirm_select
    exchange = channel.default_exchange
    returned = Queue.new
    exchange.on_return { |info, _properties, body| returned << [info.reply_code, info.reply_text, body] }
    exchange.publish("back", routing_key: NAME, mandatory: true)
    expect(channel.wait_for_confirms, true)
    expect(returned.pop, [312, "NO_ROUTE", "back"])
  end,

  prefetch_and_requeue: lambda do
    channel = channel()
    channel.prefetch(2)
    queue = channel.queue(NAME)
    4.times { |number| queue.publish(number.to_s) }
    arrived = consume(queue, manual_ack: true)
    first, second = arrived.pop, arrived.pop
    expect(ready(channel, NAME), 2)
    channel.nack(first[0].delivery_tag, false, true)
    again = arrived.pop
    expect([again[2], again[0].redelivered], ["0", true])
    channel.ack(second[0].delivery_tag)
    channel.ack(again[0].delivery_tag)
    expect([arrived.pop[2], arrived.pop[2]], %w[2 3])
  end,

  direct_reply_to: lambda do
    requester, responder = channel, channel
    responder.queue(NAME).subscribe do |_info, request, body|
      responder.default_exchange.publish(body * 2, routing_key: request.reply_to, correlation_id: request.correlation_id)
    end
    replies = Queue.new
    requester.basic_consume("amq.rabbitmq.reply-to", "replies", true) { |*reply| replies << reply }
    10.times do |number|
      request = { routing_key: NAME, reply_to: "amq.rabbitmq.reply-to", correlation_id: number.to_s }
      requester.default_exchange.publish(number.to_s, **request)
      _info, properties, body = replies.pop
      expect([body, properties.correlation_id], [number.to_s * 2, number.to_s])
    end
  end,

  transactions: lambda do
    channel, reader = channel(), channel()
    queue = channel.queue(NAME)
    channel.tx_select
    queue.publish("dropped")
    channel.tx_rollback
    queue.publish("kept")
    expect(ready(reader, NAME), 0)
    channel.tx_commit
    expect(ready(reader, NAME), 1)
  end,

  dead_letters: lambda do
    channel = channel()
    dead = channel.queue("#{NAME}.dead")
    arguments = { "x-dead-letter-exchange" => "", "x-dead-letter-routing-key" => dead.name, "x-max-length" => 10 }
    queue = channel.queue(NAME, arguments: arguments)
    queue.publish("bad")
    channel.reject(consume(queue, manual_ack: true).pop[0].delivery_tag, false)
    headers = consume(dead).pop[1].headers
    death = headers["x-death"].first
    expect(death.values_at("queue", "reason", "count", "exchange"), [NAME, "rejected", 1, ""])
    expect(death["routing-keys"], [NAME])
    expect(headers["x-first-death-queue"], NAME)
  end,

  headers: lambda do
    queue = channel.queue(NAME)
    sent = {
      "text" => "é".b, "true" => true, "small" => -5, "large" => 1 << 40, "real" => 2.5,
      "time" => Time.at(1_714_979_289), "nothing" => nil,
      "table" => { "a" => { "b" => [1, "c"] } }, "list" => [1, "a"]
    }
    queue.publish("", headers: sent)
    expect(consume(queue).pop[1].headers, sent)
  end,

  exclusive_queue: lambda do
    owner, other = channel, channel
    owner.queue(NAME, exclusive: true)
    refused(Bunny::ResourceLocked) { other.queue_declare(NAME, passive: true) }
    queue = owner.queue("#{NAME}.auto", auto_delete: true)
    queue.subscribe { nil }.cancel
    refused(Bunny::NotFound) { owner.queue_declare(queue.name, passive: true) }
  end,

  large_body: lambda do
    queue = channel.queue(NAME)
    body = (0...1_000_000).map { |at| at % 251 }.pack("C*")
    queue.publish(body)
    expect(consume(queue).pop[2].b == body, true)
  end,

  cancelled: lambda do
    cancels = Queue.new
    queue = channel.queue(NAME)
    consumer = Bunny::Consumer.new(queue.channel, queue, "tag")
    consumer.on_cancellation { |cancel| cancels << cancel.consumer_tag }
    queue.subscribe_with(consumer)
    channel.queue_delete(NAME)
    expect(cancels.pop, "tag")
  end,

  restart: lambda do
    channel = channel(recover_from_connection_close: true)
    queue = channel.queue(NAME, durable: true)
    arrived = consume(queue, manual_ack: true)
    channel.confirm_select
    queue.publish("before", persistent: true)
    channel.wait_for_confirms
    arrived.pop
    $stdout.puts("ready")
    $stdout.flush
    info, _properties, body = arrived.pop
    expect([body, info.redelivered], ["before", true])
    channel.ack(info.delivery_tag)
    queue.publish("after")
    expect(arrived.pop[2], "after")
  end
}.freeze

Thread.abort_on_exception = true
Timeout.timeout(DEADLINE_S) { SCENARIOS.fetch(SCENARIO.to_sym).call }
exit!(0)
