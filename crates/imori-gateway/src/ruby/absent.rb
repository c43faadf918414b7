# Output and waiting in Ruby's words, and the names that scripts of other servers use and that are not offered here.

module Kernel
  # What would be printed is in the log.
  def puts(*texts)
    texts.each { |text| Nginx.log(Nginx::LOG_INFO, text) }
    nil
  end

  def print(*texts)
    Nginx.log(Nginx::LOG_INFO, texts.join)
    nil
  end

  def p(*values)
    values.each { |value| Nginx.log(Nginx::LOG_INFO, value.inspect) }
    values.size < 2 ? values[0] : values
  end

  # Seconds, as in Ruby; other requests go on meanwhile.
  def sleep(seconds)
    Nginx::Async.sleep(seconds * 1000)
    seconds.to_i
  end

  %w[require require_relative load eval system exec spawn fork exit exit! abort open gets trap `].each do |name|
    define_method(name) do |*|
      raise NotImplementedError, "`#{name}` is not offered to scripts"
    end
  end
end

class Object
  @__absent = {
    "File" => "read settings with Imori.secret, and serve files with the route's `files`",
    "Dir" => "serve files with the route's `files`",
    "IO" => "use TCPSocket or Imori::HTTP",
    "Process" => "scripts know no processes",
    "ENV" => "name environment variables in `[scripts.secrets]`, and use Imori.secret",
    "Uname" => "use Nginx::Var.new.hostname",
    "Vedis" => "use Cache, Imori::Shared or Redis",
    "LevelDB" => "use Cache, Imori::Shared or Redis",
    "Memcached" => "use Cache, Imori::Shared or Redis",
    "MySQL" => "use a service, with Imori.call",
    "Discount" => "convert Markdown in a service, with Imori.call",
    "Acme" => "certificates are configured",
    "AutoSSL" => "certificates are configured",
    "UDPSocket" => "use TCPSocket",
    "UNIXSocket" => "use TCPSocket",
    "TCPServer" => "routes are the way in",
    "Socket" => "use TCPSocket",
    "Thread" => "use Imori.parallel",
    "SimpleHttp" => "use HttpRequest or Imori::HTTP",
    "StringIO" => "use String",
    "Stream" => "it is for TCP and UDP, and routes are for HTTP",
    "GeoIP" => "use a service, with Imori.call",
    "Capability" => "scripts have no processes",
    "Cgroup" => "scripts have no processes",
    "ObjectSpace" => "scripts do not see the heap",
    "GC" => "the heap has a limit, `limits.heap_bytes`"
  }

  class << self
    def const_missing(name)
      advice = Object.__absent_advice(name.to_s)
      raise NotImplementedError, "#{self == Object ? "" : "#{self}::"}#{name} is not offered to scripts; #{advice}" if advice

      raise NameError, "uninitialized constant #{self == Object ? "" : "#{self}::"}#{name}"
    end

    def __absent_advice(name)
      @__absent[name]
    end
  end
end
