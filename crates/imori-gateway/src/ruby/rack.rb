# Rack: `run app` calls the app with the environment of the request, and answers with what it returns.

module Rack
  # The log as Rack's applications know it.
  class Logger
    {
      emerg: Nginx::LOG_EMERG, fatal: Nginx::LOG_EMERG, alert: Nginx::LOG_ALERT, crit: Nginx::LOG_CRIT,
      error: Nginx::LOG_ERR, warn: Nginx::LOG_WARN, notice: Nginx::LOG_NOTICE, info: Nginx::LOG_INFO,
      debug: Nginx::LOG_DEBUG
    }.each do |name, level|
      define_method(name) do |message = nil, &block|
        message = block.call if message.nil? && block
        Nginx.log(level, message)
      end
    end
  end

  # The body, which is read from the client when the app first asks for it.
  class Input
    def initialize
      @at = 0
    end

    def read(count = nil, _buffer = nil)
      left = text.bytesize - @at
      return count && count > 0 ? nil : "" if left <= 0

      bytes = text.byteslice(@at, count || left)
      @at += bytes.bytesize
      bytes
    end

    def gets
      left = read
      return nil if left.nil? || left.empty?

      line, = left.split("\n", 2)
      line = "#{line}\n" if line.bytesize < left.bytesize
      @at -= left.bytesize - line.bytesize
      line
    end

    def each
      while (line = gets)
        yield line
      end
    end

    def rewind
      @at = 0
    end

    def size
      text.bytesize
    end

    private

    def text
      @text ||= Nginx::Request.new.body.to_s
    end
  end

  class << self
    def environment
      request = Nginx::Request.new
      connection = Nginx::Connection.new
      environment = {
        "REQUEST_METHOD" => request.method,
        "SCRIPT_NAME" => "",
        "PATH_INFO" => request.uri,
        "REQUEST_URI" => request.unparsed_uri,
        "QUERY_STRING" => request.args || "",
        "SERVER_NAME" => request.hostname,
        "SERVER_ADDR" => connection.local_ip,
        "SERVER_PORT" => connection.local_port,
        "SERVER_PROTOCOL" => request.protocol,
        "REMOTE_ADDR" => connection.remote_ip,
        "REMOTE_PORT" => connection.remote_port,
        "rack.url_scheme" => request.scheme,
        "rack.multithread" => false,
        "rack.multiprocess" => true,
        "rack.run_once" => false,
        "rack.hijack?" => false,
        "rack.logger" => Logger.new,
        "rack.input" => Input.new,
        "server.name" => server_name,
        "server.version" => Nginx.server_version
      }
      request.headers_in.all.each do |name, value|
        key = name.upcase.tr("-", "_")
        value = value.join(", ") if value.is_a?(Array)
        environment["HTTP_#{key}"] = value
        environment[key] = value if key == "CONTENT_TYPE" || key == "CONTENT_LENGTH"
      end
      environment
    end

    def respond(response)
      return if response.nil?

      status, headers, body = response
      out = Nginx::Headers_out.new
      case headers
      when Hash
        headers.each { |name, value| out[name] = value.is_a?(String) ? value.split("\n") : value }
      when Array
        headers.each do |pair|
          raise TypeError, "a header is an Array of name and value" unless pair.is_a?(Array) && pair.size == 2

          before = out[pair[0]]
          out[pair[0]] = before ? [before, pair[1]].flatten : pair[1]
        end
      else
        raise TypeError, "headers are a Hash, or an Array of pairs"
      end
      raise TypeError, "a body answers to each" unless body.respond_to?(:each)

      body.each { |part| Nginx.rputs(part) }
      body.close if body.respond_to?(:close)
      Nginx.return(status.to_i) if status
    end
  end
end

module Kernel
  def run(app)
    Rack.respond(app.call(Rack.environment))
  end
end
