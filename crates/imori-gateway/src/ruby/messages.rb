# Messages of the broker, and events of a streamed response.

module Imori
  # How a message was published: the number of its receivers, and how safe it is.
  class Receipt
    attr_reader :receivers, :level

    def initialize(receivers, level)
      @receivers = receivers
      @level = level
    end
  end

  class Message
    attr_reader :body, :headers, :exchange, :key, :id, :content_type, :correlation_id

    def initialize(body, headers, exchange, key, id, content_type, correlation_id, redelivered, delivery)
      @body = body
      @headers = headers
      @exchange = exchange
      @key = key
      @id = id
      @content_type = content_type
      @correlation_id = correlation_id
      @redelivered = redelivered
      @delivery = delivery
    end

    def redelivered?
      @redelivered
    end

    def json
      JSON.parse(@body)
    end

    def to_s
      @body
    end

    # The message is done.
    def ack
      settle("ack")
    end

    # The message returns to its queue, or is dead-lettered with `requeue: false`.
    def nack(requeue: true)
      settle(requeue ? "requeue" : "reject")
    end

    private

    def settle(outcome)
      raise Imori::BrokerError, "the message has nothing to settle" unless @delivery

      @delivery.settle(outcome)
    end
  end

  class << self
    # Publishes to `queue:`, to `topic:`, or to `exchange:` with `key:`. Returns once the message is as safe as its
    # queues promise.
    def publish(body, queue: nil, topic: nil, exchange: nil, key: nil, headers: nil, **options)
      exchange, key = __address(queue, topic, exchange, key)
      Receipt.new(*__publish(exchange, key, body, headers, options))
    end

    # Publishes a request, and returns the first reply within `timeout` milliseconds.
    def call(body, queue: nil, topic: nil, exchange: nil, key: nil, headers: nil, timeout: 5000, **options)
      exchange, key = __address(queue, topic, exchange, key)
      Message.new(*__call(exchange, key, body, headers, options, timeout))
    end

    # Takes the first message of a queue, or waits for one for `wait` milliseconds; nil if there is none. A message that
    # the script does not settle returns to its queue when the script ends.
    def get(queue, wait: 0, ack: true)
      fields = __get(queue.to_s, ack, wait)
      fields && Message.new(*fields)
    end

    # Answers with the JSON of a value.
    def json(value, status: 200)
      Nginx::Request.new.content_type = "application/json"
      Nginx.rputs(JSON.generate(value))
      Nginx.return(status)
    end

    private

    def __address(queue, topic, exchange, key)
      named = [queue, topic, exchange].compact.size
      raise ArgumentError, "name one of `queue:`, `topic:` and `exchange:`" if named != 1
      raise ArgumentError, "`key:` belongs to `exchange:`" if key && !exchange

      return ["", queue.to_s] if queue
      return ["amq.topic", topic.to_s] if topic

      [exchange.to_s, key.to_s]
    end
  end

  # Server-sent events: each push leaves at once, and waits while the client is slow.
  module SSE
    class << self
      def push(data, event: nil, id: nil, retry_ms: nil)
        headers = Nginx::Headers_out.new
        unless headers["Content-Type"]
          headers["Content-Type"] = "text/event-stream"
          headers["Cache-Control"] ||= "no-store"
        end
        data = JSON.generate(data) unless data.is_a?(String)
        text = ""
        text += "event: #{line(event)}\n" if event
        text += "id: #{line(id)}\n" if id
        text += "retry: #{retry_ms.to_i}\n" if retry_ms
        data.split("\n", -1).each { |part| text += "data: #{part}\n" }
        text += "data: \n" if data.empty?
        __push(text + "\n")
      end

      # A line that clients do not see, to keep the connection.
      def comment(text = "")
        __push(": #{line(text)}\n\n")
      end

      private

      def line(text)
        text = text.to_s
        raise ArgumentError, "an event's name and id are one line" if text.include?("\n") || text.include?("\r")

        text
      end
    end
  end
end

SSE = Imori::SSE
