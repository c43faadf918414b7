// Programs that publish a first message to the queue `hello`, with the addresses of this broker.
// Each uses the client that most programs in its language use already.

import type { Listener } from "./api/types.ts";

export const LANGUAGES = [
  { id: "shell", label: "Shell" },
  { id: "ruby", label: "Ruby" },
  { id: "python", label: "Python" },
  { id: "go", label: "Go" },
  { id: "java", label: "Java" },
  { id: "node", label: "Node" },
  { id: "rust", label: "Rust" },
] as const;

export type SnippetLanguage = (typeof LANGUAGES)[number]["id"];

export type Snippet = {
  readonly protocol: string;
  readonly install: string;
  readonly file: string;
  /** Null if the broker does not listen for the protocol. */
  readonly program: string | null;
};

export type Place = { readonly host: string; readonly origin: string; readonly listeners: readonly Listener[] };

type Template = {
  readonly protocol: string;
  /** The listener's name in the overview; null for the address of this page. */
  readonly listener: "stomp" | "amqp" | "nats" | null;
  readonly install: string;
  readonly file: string;
  readonly program: (host: string, port: string, origin: string) => string;
};

export function snippetOf(language: SnippetLanguage, place: Place): Snippet {
  const template = TEMPLATES[language];
  const { protocol, install, file } = template;
  if (template.listener === null) return { protocol, install, file, program: template.program(place.host, "", place.origin) };
  const port = portOf(template.listener, place.listeners);
  return { protocol, install, file, program: port === null ? null : template.program(hostText(place.host), port, place.origin) };
}

/** The port of the first listener of a protocol without TLS; the programs do not know the broker's certificate. */
export function portOf(name: string, listeners: readonly Listener[]): string | null {
  const found = listeners.find((listener) => listener.name === name && !listener.tls);
  return found === undefined ? null : (/:(\d+)$/.exec(found.address)?.[1] ?? null);
}

function hostText(host: string): string {
  return host.includes(":") && !host.startsWith("[") ? `[${host}]` : host;
}

const TEMPLATES: Readonly<Record<SnippetLanguage, Template>> = {
  shell: {
    protocol: "HTTP",
    listener: null,
    install: "",
    file: "hello.sh",
    program: (_, __, origin) => `# Declare the queue, then publish to it.
curl -u USER:PASSWORD -X PUT -H 'Content-Type: application/json' \\
  -d '{"durable": true}' ${origin}/v1/queues/%2F/hello
curl -u USER:PASSWORD -H 'Content-Type: application/json' \\
  -d '{"payload": "Hello, newt!"}' ${origin}/v1/queues/%2F/hello/publish
`,
  },
  ruby: {
    protocol: "STOMP",
    listener: "stomp",
    install: "gem install stomp",
    file: "hello.rb",
    program: (host, port) => `require 'stomp'

broker = { login: 'USER', passcode: 'PASSWORD', host: '${host}', port: ${port} }
client = Stomp::Client.new(hosts: [broker], connect_headers: { 'accept-version' => '1.2', 'host' => '/' })
client.publish('/queue/hello', 'Hello, newt!', 'persistent' => 'true')
client.close
`,
  },
  python: {
    protocol: "AMQP 0-9-1",
    listener: "amqp",
    install: "pip install pika",
    file: "hello.py",
    program: (host, port) => `import pika

login = pika.PlainCredentials("USER", "PASSWORD")
connection = pika.BlockingConnection(pika.ConnectionParameters("${host}", ${port}, credentials=login))
channel = connection.channel()
channel.queue_declare("hello", durable=True)
channel.basic_publish(exchange="", routing_key="hello", body="Hello, newt!")
connection.close()
`,
  },
  go: {
    protocol: "AMQP 0-9-1",
    listener: "amqp",
    install: "go get github.com/rabbitmq/amqp091-go",
    file: "hello.go",
    program: (host, port) => `package main

import (
	"context"
	"log"

	amqp "github.com/rabbitmq/amqp091-go"
)

func main() {
	connection, err := amqp.Dial("amqp://USER:PASSWORD@${host}:${port}/")
	if err != nil {
		log.Fatal(err)
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		log.Fatal(err)
	}
	if _, err := channel.QueueDeclare("hello", true, false, false, false, nil); err != nil {
		log.Fatal(err)
	}
	message := amqp.Publishing{ContentType: "text/plain", Body: []byte("Hello, newt!")}
	if err := channel.PublishWithContext(context.Background(), "", "hello", false, false, message); err != nil {
		log.Fatal(err)
	}
}
`,
  },
  java: {
    protocol: "AMQP 0-9-1",
    listener: "amqp",
    install: "# Maven: com.rabbitmq:amqp-client:5.28.0",
    file: "Hello.java",
    program: (host, port) => `import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;

public class Hello {
    public static void main(String[] arguments) throws Exception {
        var factory = new ConnectionFactory();
        factory.setUri("amqp://USER:PASSWORD@${host}:${port}");
        try (Connection connection = factory.newConnection(); var channel = connection.createChannel()) {
            channel.queueDeclare("hello", true, false, false, null);
            channel.basicPublish("", "hello", null, "Hello, newt!".getBytes());
        }
    }
}
`,
  },
  node: {
    protocol: "AMQP 0-9-1",
    listener: "amqp",
    install: "npm install amqplib",
    file: "hello.mjs",
    program: (host, port) => `import amqp from "amqplib";

const connection = await amqp.connect("amqp://USER:PASSWORD@${host}:${port}");
const channel = await connection.createConfirmChannel();
await channel.assertQueue("hello", { durable: true });
channel.sendToQueue("hello", Buffer.from("Hello, newt!"));
await channel.waitForConfirms();
await connection.close();
`,
  },
  rust: {
    protocol: "AMQP 0-9-1",
    listener: "amqp",
    install: "cargo add lapin && cargo add tokio --features full",
    file: "main.rs",
    program: (host, port) => `use lapin::{options::*, types::FieldTable, BasicProperties, Connection, ConnectionProperties};

#[tokio::main]
async fn main() -> lapin::Result<()> {
    let address = "amqp://USER:PASSWORD@${host}:${port}/%2f";
    let connection = Connection::connect(address, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let durable = QueueDeclareOptions { durable: true, ..Default::default() };
    channel.queue_declare("hello".into(), durable, FieldTable::default()).await?;
    channel
        .basic_publish("".into(), "hello".into(), Default::default(), b"Hello, newt!", BasicProperties::default())
        .await?
        .await?;
    connection.close(200, "done".into()).await
}
`,
  },
};
