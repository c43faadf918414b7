# RPC as RPCBench does it, with the `stomp` gem as Debian ships it.
#
#   ruby rpc_bench.rb server PORT COUNT   answers COUNT requests
#   ruby rpc_bench.rb client PORT COUNT   writes COUNT requests, and only then reads the replies
#
# The client subscribes to nothing: the gem's Connection#receive returns whatever frame is next.

require 'stomp'

REQUESTS = '/queue/rpc-bench'
INBOX = '/temp-queue/rpc-bench'

def serve(connection, count)
  connection.subscribe(REQUESTS)
  count.times do
    request = connection.receive
    connection.publish(request.headers['reply-to'], (request.body.to_i + 1).to_s)
  end
end

def call(connection, count)
  count.times { |number| connection.publish(REQUESTS, number.to_s, 'reply-to' => INBOX) }
  count.times do |number|
    reply = connection.receive
    expected = (number + 1).to_s
    abort "expected MESSAGE #{expected}, got #{reply.inspect}" unless
      reply && reply.command == 'MESSAGE' && reply.body == expected
  end
end

role, port, count = ARGV
connection = Stomp::Connection.new('guest', 'guest', '127.0.0.1', port.to_i)
abort "connected with #{connection.protocol}, not 1.0" unless connection.protocol == '1.0'
role == 'server' ? serve(connection, count.to_i) : call(connection, count.to_i)
connection.disconnect
