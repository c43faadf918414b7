# Requests to routes of the gateway and to other servers.

class Nginx
  class Async
    class HTTP
      class Response
        attr_reader :status, :body

        # The headers are a Hash, or the text that `__headers` reads.
        def initialize(status, headers, body)
          @status = status
          @headers = headers
          @body = body
        end

        def headers
          @headers = HTTP.__headers(@headers) if @headers.is_a?(String)
          @headers
        end

        # A header by its name in any case.
        def [](name)
          wanted = name.to_s.downcase
          found = headers.find { |own, _| own.downcase == wanted }
          found && found[1]
        end

        def ok?
          @status >= 200 && @status < 300
        end

        def json
          JSON.parse(@body)
        end
      end

      class << self
        # A request to a route of the gateway by its path, or to another server by its URL.
        def sub_request(location, query = nil, method: "GET", headers: nil, body: nil, timeout: nil)
          query = Nginx::Utils.encode_parameters(query) if query.is_a?(Hash)
          Response.new(*__sub_request(location.to_s, query, method, headers, body, timeout))
        end

        # The answer to the last request of this script; nil before the first one.
        def last_response
          answer = __last
          answer && Response.new(*answer)
        end
      end
    end
  end
end

module Imori
  module HTTP
    Response = Nginx::Async::HTTP::Response

    class << self
      def request(method, url, body: nil, json: nil, query: nil, headers: nil, timeout: nil)
        headers = headers ? headers.dup : {}
        unless json.nil?
          body = JSON.generate(json)
          headers["Content-Type"] ||= "application/json"
        end
        if query
          query = Nginx::Utils.encode_parameters(query) if query.is_a?(Hash)
          url = "#{url}#{url.include?("?") ? "&" : "?"}#{query}"
        end
        Response.new(*__fetch(url.to_s, nil, method, headers, body, timeout))
      end

      def get(url, **options)
        request("GET", url, **options)
      end

      def head(url, **options)
        request("HEAD", url, **options)
      end

      def delete(url, **options)
        request("DELETE", url, **options)
      end

      def post(url, body = nil, **options)
        request("POST", url, body: body, **options)
      end

      def put(url, body = nil, **options)
        request("PUT", url, body: body, **options)
      end

      def patch(url, body = nil, **options)
        request("PATCH", url, body: body, **options)
      end
    end
  end
end

HTTP = Imori::HTTP

# The client of the gem mruby-httprequest.
class HttpRequest
  class Response
    def initialize(answer)
      @answer = answer
    end

    def code
      @answer.status
    end
    alias_method :status_code, :code

    def status
      "HTTP/1.1 #{@answer.status}"
    end

    def body
      @answer.body
    end

    def headers
      pairs = {}
      @answer.headers.each { |name, value| pairs[name.downcase] = value }
      pairs
    end

    def header
      @answer.headers.map { |name, value| "#{name}: #{value}" }.join("\r\n")
    end

    def [](name)
      case name.to_s
      when "body" then body
      when "code" then code
      when "status" then status
      when "header" then header
      else @answer[name]
      end
    end

    def content_type
      @answer["Content-Type"]
    end

    def content_length
      @answer.body.bytesize
    end

    def date
      @answer["Date"]
    end
  end

  def get(url, body = nil, headers = {})
    request("GET", url, body, headers)
  end

  def post(url, body = nil, headers = {})
    request("POST", url, body, headers)
  end

  def put(url, body = nil, headers = {})
    request("PUT", url, body, headers)
  end

  def delete(url, body = nil, headers = {})
    request("DELETE", url, body, headers)
  end

  def head(url, headers = {})
    request("HEAD", url, nil, headers)
  end

  private

  def request(method, url, body, headers)
    headers = headers ? headers.dup : {}
    if body.is_a?(Hash)
      body = encode_parameters(body)
      headers["Content-Type"] ||= "application/x-www-form-urlencoded"
    end
    Response.new(Imori::HTTP.request(method, url, body: body, headers: headers))
  end

  def encode_parameters(parameters)
    Nginx::Utils.encode_parameters(parameters)
  end
end
