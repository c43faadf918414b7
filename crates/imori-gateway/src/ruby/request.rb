# The parts of the request's classes that are Ruby.

class Nginx
  class Request
    def var
      @var ||= Nginx::Var.new
    end

    def headers_in
      @headers_in ||= Nginx::Headers_in.new
    end

    def headers_out
      @headers_out ||= Nginx::Headers_out.new
    end

    def read_body
      get_body
      Nginx::OK
    end

    def uri_args
      Nginx::Utils.__pairs(args)
    end

    def uri_args=(pairs)
      raise ArgumentError, "uri_args is a Hash" unless pairs.is_a?(Hash)

      self.args = pairs.map { |name, value| "#{name}=#{value}" }.join("&")
    end

    def post_args
      Nginx::Utils.__pairs(body)
    end
  end

  class Headers_in
    def user_agent
      self["User-Agent"]
    end
  end

  class Var
    def respond_to_missing?(_name, _private = false)
      true
    end
  end

  class Server
    def add_listener(_options)
      raise NotImplementedError, "Nginx::Server#add_listener is not offered; name the addresses in `[listeners]`"
    end
  end

  class Upstream
    def initialize(name)
      @name = name.to_s
    end

    def server
      self.class.__server(@name)
    end

    def server=(server)
      self.class.__set_server(@name, server)
    end

    def keepalive_cache
      self.class.__keepalive(@name)
    end

    def keepalive_cache=(number)
      self.class.__set_keepalive(@name, number)
    end
  end

  class SSL
    def self.errlogger(level, message)
      Nginx.errlogger(level, message)
    end

    def self.log(level, message)
      Nginx.errlogger(level, message)
    end
  end

  class Utils
    class << self
      # The pairs of a query, as they were sent.
      def __pairs(query)
        pairs = {}
        query.to_s.split("&").each do |pair|
          name, value = pair.split("=", 2)
          pairs[name] = value.to_s if name
        end
        pairs
      end

      def encode_parameters(parameters, delimiter = "&", quote = nil)
        texts = if parameters.is_a?(Hash)
          parameters.map { |name, value| "#{escape(name)}=#{quote}#{escape(value)}#{quote}" }
        else
          parameters.map { |value| escape(value) }
        end
        delimiter ? texts.join(delimiter) : texts
      end

      # The pairs of a form or query, decoded.
      def decode_parameters(query)
        pairs = {}
        query.to_s.split("&").each do |pair|
          name, value = pair.split("=", 2)
          pairs[unescape(name)] = unescape(value.to_s) if name
        end
        pairs
      end

      def escape(text)
        __escape(text.to_s)
      end

      def unescape(text)
        __unescape(text.to_s)
      end
    end
  end
end
