# The `stomp` gem's own ways: 1.2 with acknowledgement, a transaction, its Client class.
#
#   ruby conversation.rb PORT NAME

require 'stomp'

def check(claim, holds)
  abort "not so: #{claim}" unless holds
end

def address(port, version)
  headers = version == '1.0' ? {} : { 'accept-version' => version, 'host' => '/' }
  host = { login: 'guest', passcode: 'guest', host: '127.0.0.1', port: port }
  { hosts: [host], connect_headers: headers, reliable: false }
end

def receipt(connection, id)
  frame = connection.receive
  check "the receipt #{id} comes", frame.command == 'RECEIPT' && frame.headers['receipt-id'] == id
end

def acknowledge(port, queue, version)
  connection = Stomp::Connection.new(address(port, version))
  check "#{version} is spoken", connection.protocol == version
  connection.subscribe(queue, { ack: 'client', receipt: 'subscribed' }, version)
  receipt(connection, 'subscribed')
  connection.publish(queue, "größe\0#{version}", 'user' => 'a:b')
  message = connection.receive
  check 'the body is whole', message.body.b == "größe\0#{version}".b
  check 'the header is unescaped', message.headers['user'] == 'a:b'
  id = version == '1.2' ? message.headers['ack'] : message.headers['message-id']
  connection.ack(id, subscription: version, receipt: 'acked')
  receipt(connection, 'acked')
  connection.disconnect(receipt: 'bye')
  check 'DISCONNECT is answered', connection.disconnect_receipt.headers['receipt-id'] == 'bye'
end

def transact(port, queue)
  connection = Stomp::Connection.new(address(port, '1.1'))
  connection.subscribe(queue, {}, 'transact')
  connection.begin('lost')
  connection.publish(queue, 'lost', transaction: 'lost')
  connection.abort('lost')
  connection.begin('kept')
  connection.publish(queue, 'kept', transaction: 'kept')
  connection.commit('kept')
  check 'only what was committed comes', connection.receive.body == 'kept'
  connection.begin('asked')
  connection.publish("#{queue}.elsewhere", 'asked', transaction: 'asked', receipt: 'asked', persistent: true)
  connection.publish("#{queue}.elsewhere", 'after', receipt: 'after')
  receipt(connection, 'after')
  connection.commit('asked')
  receipt(connection, 'asked')
  connection.disconnect
end

def be_refused(port)
  connection = Stomp::Connection.new(address(port, '1.1'))
  connection.publish('/queue/', '')
  frame = connection.receive
  check 'the title is that of RabbitMQ', frame.headers['message'] == 'Invalid destination'
end

def use_client_class(port, queue)
  client = Stomp::Client.new(address(port, '1.2'))
  replies = Queue.new
  client.subscribe(queue) { |message| replies << message.body }
  client.publish(queue, 'through the client class')
  check 'the callback is called', replies.pop == 'through the client class'
  client.close
end

port = ARGV[0].to_i
%w[1.1 1.2].each { |version| acknowledge(port, "/queue/#{ARGV[1]}.#{version}", version) }
transact(port, "/queue/#{ARGV[1]}.transact")
be_refused(port)
use_client_class(port, "/queue/#{ARGV[1]}.client")
