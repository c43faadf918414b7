# A client of Redis on TCPSocket, in the words of the gem mruby-redis. An object may serve many requests at once: each
# command has a connection to itself, and connections are kept for the next ones.

class Redis
  class Error < StandardError; end
  class ConnectionError < Error; end
  class ReplyError < Error; end

  # Unused connections that are kept.
  IDLE_MAX = 64

  # Commands whose reply is 1 for yes.
  QUESTIONS = %w[exists? hexists? sismember setnx msetnx expire pexpire persist].freeze

  # Commands that make a connection something that only one script can use.
  REFUSED = %w[subscribe psubscribe ssubscribe monitor watch multi exec discard].freeze

  attr_reader :host, :port

  def self.connect_set_raw(host, port)
    new(host, port)
  end

  # `timeout` is in seconds, as in mruby-redis.
  def initialize(host = "127.0.0.1", port = 6379, timeout = 5)
    @host = host
    @port = port
    @timeout = (timeout * 1000).to_i
    @idle = []
    @setup = []
    @queued = []
  end

  # Sends a command, and returns its reply.
  def command(*words)
    replies = exchange([words])
    raise replies[0] if replies[0].is_a?(ReplyError)

    replies[0]
  end
  alias_method :call, :command

  def auth(*credentials)
    set_up(["AUTH", *credentials])
  end

  def select(database)
    set_up(["SELECT", database])
  end

  # Sends the commands of the block together, and returns their replies.
  def pipelined
    pipeline = Pipeline.new
    yield pipeline
    exchange(pipeline.commands)
  end

  # Runs the commands of the block as one transaction, and returns their replies.
  def multi
    raise ArgumentError, "multi takes a block with the commands" unless block_given?

    pipeline = Pipeline.new
    yield pipeline
    replies = exchange([["MULTI"], *pipeline.commands, ["EXEC"]])
    raise replies.last if replies.last.is_a?(ReplyError)

    replies.last
  end

  # Keeps a command for bulk_reply.
  def queue(*words)
    @queued << words
    self
  end

  # The replies to the commands that were kept.
  def bulk_reply
    commands = @queued
    @queued = []
    exchange(commands)
  end

  def hgetall(key)
    pairs = {}
    command("HGETALL", key).each_slice(2) { |name, value| pairs[name] = value }
    pairs.empty? ? nil : pairs
  end

  def hmset(key, *pairs)
    pairs = pairs[0].to_a.flatten if pairs[0].is_a?(Hash)
    command("HMSET", key, *pairs)
  end

  def mset(*pairs)
    pairs = pairs[0].to_a.flatten if pairs[0].is_a?(Hash)
    command("MSET", *pairs)
  end

  def set(key, value, options = {})
    words = ["SET", key, value]
    options.each { |name, setting| setting == true ? words << name.to_s.upcase : words.push(name.to_s.upcase, setting) }
    command(*words)
  end
  alias_method :[]=, :set

  def [](key)
    command("GET", key)
  end

  def keys(pattern = "*")
    command("KEYS", pattern)
  end

  def close
    @idle.each { |socket| socket.close }
    @idle = []
    nil
  end

  # Any other method is the command of its name.
  def method_missing(name, *arguments)
    name = name.to_s
    raise NotImplementedError, "Redis##{name} is not offered; use pipelined or a block of multi" if REFUSED.include?(name)
    return super unless name.each_char.all? { |letter| letter >= "a" && letter <= "z" || "_?0123456789".include?(letter) }

    reply = command(name.sub("?", "").upcase, *arguments)
    QUESTIONS.include?(name) ? reply == 1 : reply
  end

  def respond_to_missing?(name, _private = false)
    !REFUSED.include?(name.to_s)
  end

  # The commands of a block.
  class Pipeline
    attr_reader :commands

    def initialize
      @commands = []
    end

    def method_missing(name, *arguments)
      @commands << [name.to_s.sub("?", "").upcase, *arguments]
      self
    end

    def respond_to_missing?(_name, _private = false)
      true
    end

    # Commands that every object has as methods.
    def select(*arguments)
      method_missing(:select, *arguments)
    end
  end

  private

  # Has every connection begin with a command, from the next one on.
  def set_up(words)
    close
    @setup = @setup.reject { |other| other[0] == words[0] } << words
    command("PING")
    "OK"
  end

  def exchange(commands)
    return [] if commands.empty?

    request = commands.map { |words| encode(words) }.join
    while (socket = @idle.pop)
      begin
        return finish(socket, request, commands.size)
      rescue ConnectionError
        # The server has closed it meanwhile, and got nothing of this.
      end
    end
    finish(connect, request, commands.size)
  end

  def connect
    socket = TCPSocket.new(@host, @port, timeout: @timeout)
    @setup.each do |words|
      socket.write(encode(words))
      reply = read_reply(socket)
      raise reply if reply.is_a?(ReplyError)
    end
    socket
  end

  def finish(socket, request, count)
    is_whole = false
    begin
      begin
        socket.write(request)
        first = read_reply(socket)
      rescue IOError => error
        raise ConnectionError, "Redis at #{@host}:#{@port}: #{error.message}"
      end
      replies = [first]
      (count - 1).times { replies << read_reply(socket) }
      is_whole = true
      replies
    ensure
      is_whole && @idle.size < IDLE_MAX ? @idle << socket : socket.close
    end
  end

  def encode(words)
    text = "*#{words.size}\r\n"
    words.each do |word|
      word = word.to_s
      text += "$#{word.bytesize}\r\n#{word}\r\n"
    end
    text
  end

  # RESP2: a reply is a line, a text of a length, or an array of replies.
  def read_reply(socket, depth = 0)
    raise ReplyError, "a reply is too deep" if depth > 16

    line = socket.gets
    raise EOFError, "the connection was closed" unless line && line.end_with?("\r\n")

    rest = line[1, line.size - 3]
    case line[0]
    when "+" then rest
    when "-" then ReplyError.new(rest)
    when ":" then rest.to_i
    when "$"
      size = rest.to_i
      return nil if size < 0

      bytes = socket.read(size + 2)
      raise EOFError, "the connection was closed" unless bytes && bytes.bytesize == size + 2

      bytes.byteslice(0, size)
    when "*"
      size = rest.to_i
      return nil if size < 0

      items = []
      size.times { items << read_reply(socket, depth + 1) }
      items
    else
      raise ReplyError, "the server does not speak the protocol of Redis"
    end
  end
end
