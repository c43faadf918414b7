# A TCP connection in Ruby's words; whatever it waits for, other requests go on.

class TCPSocket
  # Milliseconds for one read or write.
  attr_accessor :timeout

  def self.open(host, port, timeout: 5000)
    socket = new(host, port, timeout: timeout)
    return socket unless block_given?

    begin
      yield socket
    ensure
      socket.close
    end
  end

  def initialize(host, port, timeout: 5000)
    @timeout = timeout
    @socket = Imori::Sockets.connect(host.to_s, port)
  end

  def write(*texts)
    @socket.write(@timeout, texts.join)
  end
  alias_method :print, :write

  def <<(text)
    write(text.to_s)
    self
  end
  alias_method :send, :write

  def puts(*texts)
    write(texts.map { |text| text.to_s.end_with?("\n") ? text.to_s : "#{text}\n" }.join)
    nil
  end

  def flush
    self
  end

  # A line with its line feed; nil at the end.
  def gets
    line = @socket.read_line(@timeout)
    line.empty? ? nil : line
  end

  # So many bytes, or fewer at the end; without a number, all up to the end.
  def read(count = nil)
    unless count
      all = ""
      while (part = recv(65536)) && !part.empty?
        all += part
      end
      return all
    end
    bytes = @socket.read_exactly(@timeout, count)
    bytes.empty? && count > 0 ? nil : bytes
  end

  # What has arrived, up to so many bytes; empty at the end.
  def recv(count, _flags = 0)
    @socket.read_some(@timeout, count)
  end

  def readpartial(count)
    bytes = recv(count)
    raise EOFError, "the server has closed the connection" if bytes.empty? && count > 0

    bytes
  end

  def close
    @socket.close
  end

  def closed?
    @socket.closed?
  end
end
