// Conversations of RabbitMQ's Java client with a broker, one a scenario.
//
//     java Driver SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import com.rabbitmq.client.AMQP.BasicProperties;
import com.rabbitmq.client.CancelCallback;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Method;
import com.rabbitmq.client.ShutdownSignalException;
import com.rabbitmq.client.AMQP;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public final class Driver {
    private static final int DEADLINE_S = 100;
    private static final BasicProperties PERSISTENT =
            new BasicProperties.Builder().deliveryMode(2).build();

    private interface Scenario {
        void run() throws Exception;
    }

    private final String url;
    private final String name;
    private final Map<String, Scenario> scenarios = new HashMap<>();

    private Driver(String url, String name) {
        this.url = url;
        this.name = name;
        scenarios.put("confirms", this::confirms);
        scenarios.put("mandatory_return", this::mandatoryReturn);
        scenarios.put("prefetch_and_requeue", this::prefetchAndRequeue);
        scenarios.put("direct_reply_to", this::directReplyTo);
        scenarios.put("transactions", this::transactions);
        scenarios.put("dead_letters", this::deadLetters);
        scenarios.put("headers", this::headers);
        scenarios.put("exclusive_queue", this::exclusiveQueue);
        scenarios.put("large_body", this::largeBody);
        scenarios.put("cancelled", this::cancelled);
        scenarios.put("restart", this::restart);
    }

    public static void main(String[] arguments) throws Exception {
        new Driver(arguments[1], arguments[2]).scenarios.get(arguments[0]).run();
        System.exit(0);
    }

    // Opens a channel on a connection of its own.
    private Channel channel() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(url);
        factory.setNetworkRecoveryInterval(200);
        return factory.newConnection().createChannel();
    }

    private void declare(Channel channel, String queue, Map<String, Object> arguments) throws IOException {
        channel.queueDeclare(queue, false, false, false, arguments);
    }

    private static void publish(Channel channel, String queue, BasicProperties properties, byte[] body)
            throws IOException {
        channel.basicPublish("", queue, properties, body);
    }

    private static BlockingQueue<Delivery> consume(Channel channel, String queue, boolean autoAck)
            throws IOException {
        BlockingQueue<Delivery> arrived = new LinkedBlockingQueue<>();
        channel.basicConsume(queue, autoAck, (tag, message) -> arrived.add(message), tag -> { });
        return arrived;
    }

    private static <T> T next(BlockingQueue<T> arrived) throws InterruptedException {
        return Objects.requireNonNull(arrived.poll(DEADLINE_S, TimeUnit.SECONDS), "nothing came");
    }

    private static int ready(Channel channel, String queue) throws IOException {
        return channel.queueDeclarePassive(queue).getMessageCount();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(Delivery message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    private static void expect(Object came, Object wanted) {
        if (!Objects.equals(came, wanted)) {
            throw new AssertionError(came + " came, and not " + wanted);
        }
    }

    // Gives the code of the error with which the broker ends a channel.
    private static int refused(Callable<?> act) throws Exception {
        try {
            act.call();
        } catch (IOException error) {
            Method reason = ((ShutdownSignalException) error.getCause()).getReason();
            return ((AMQP.Channel.Close) reason).getReplyCode();
        }
        throw new AssertionError("it was not refused");
    }

    private void confirms() throws Exception {
        Channel channel = channel();
        channel.exchangeDeclare(name, "topic", true);
        channel.queueDeclare(name, true, false, false, null);
        channel.queueBind(name, name, "number.*");
        channel.confirmSelect();
        for (int number = 0; number < 100; number++) {
            channel.basicPublish(name, "number." + number, PERSISTENT, bytes("" + number));
        }
        channel.waitForConfirmsOrDie();
        BlockingQueue<Delivery> arrived = consume(channel, name, false);
        for (int number = 0; number < 100; number++) {
            Delivery message = next(arrived);
            expect(text(message), "" + number);
            expect(message.getEnvelope().isRedeliver(), false);
            channel.basicAck(message.getEnvelope().getDeliveryTag(), false);
        }
        expect(ready(channel, name), 0);
    }

    private void mandatoryReturn() throws Exception {
        Channel channel = channel();
        channel.confirmSelect();
        BlockingQueue<List<Object>> returned = new LinkedBlockingQueue<>();
        channel.addReturnListener(back -> returned.add(
                List.of(back.getReplyCode(), back.getReplyText(), new String(back.getBody(), StandardCharsets.UTF_8))));
        channel.basicPublish("", name, true, null, bytes("back"));
        channel.waitForConfirmsOrDie();
        expect(next(returned), List.of(312, "NO_ROUTE", "back"));
    }

    private void prefetchAndRequeue() throws Exception {
        Channel channel = channel();
        channel.basicQos(2);
        declare(channel, name, null);
        for (int number = 0; number < 4; number++) {
            publish(channel, name, null, bytes("" + number));
        }
        BlockingQueue<Delivery> arrived = consume(channel, name, false);
        Delivery first = next(arrived);
        Delivery second = next(arrived);
        expect(ready(channel, name), 2);
        channel.basicNack(first.getEnvelope().getDeliveryTag(), false, true);
        Delivery again = next(arrived);
        expect(text(again), "0");
        expect(again.getEnvelope().isRedeliver(), true);
        channel.basicAck(second.getEnvelope().getDeliveryTag(), false);
        channel.basicAck(again.getEnvelope().getDeliveryTag(), false);
        expect(text(next(arrived)), "2");
        expect(text(next(arrived)), "3");
    }

    private void directReplyTo() throws Exception {
        Channel requester = channel();
        Channel responder = channel();
        declare(responder, name, null);
        responder.basicConsume(name, true, (tag, request) -> {
            BasicProperties asked = request.getProperties();
            BasicProperties answer = new BasicProperties.Builder().correlationId(asked.getCorrelationId()).build();
            publish(responder, asked.getReplyTo(), answer, bytes(text(request) + text(request)));
        }, tag -> { });
        BlockingQueue<Delivery> replies = consume(requester, "amq.rabbitmq.reply-to", true);
        for (int number = 0; number < 10; number++) {
            BasicProperties request = new BasicProperties.Builder()
                    .replyTo("amq.rabbitmq.reply-to").correlationId("" + number).build();
            publish(requester, name, request, bytes("" + number));
            Delivery reply = next(replies);
            expect(text(reply), "" + number + number);
            expect(reply.getProperties().getCorrelationId(), "" + number);
        }
    }

    private void transactions() throws Exception {
        Channel channel = channel();
        Channel reader = channel();
        declare(channel, name, null);
        channel.txSelect();
        publish(channel, name, null, bytes("dropped"));
        channel.txRollback();
        publish(channel, name, null, bytes("kept"));
        expect(ready(reader, name), 0);
        channel.txCommit();
        expect(ready(reader, name), 1);
    }

    private void deadLetters() throws Exception {
        Channel channel = channel();
        String dead = name + ".dead";
        declare(channel, dead, null);
        declare(channel, name, Map.of(
                "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead, "x-max-length", 10));
        publish(channel, name, null, bytes("bad"));
        channel.basicReject(next(consume(channel, name, false)).getEnvelope().getDeliveryTag(), false);
        Map<String, Object> headers = next(consume(channel, dead, true)).getProperties().getHeaders();
        Map<?, ?> death = (Map<?, ?>) ((List<?>) headers.get("x-death")).get(0);
        expect(death.get("queue").toString(), name);
        expect(death.get("reason").toString(), "rejected");
        expect(death.get("count"), 1L);
        expect(death.get("exchange").toString(), "");
        expect(death.get("routing-keys").toString(), "[" + name + "]");
        expect(headers.get("x-first-death-queue").toString(), name);
    }

    private void headers() throws Exception {
        Channel channel = channel();
        declare(channel, name, null);
        Map<String, Object> sent = new HashMap<>();
        sent.put("true", true);
        sent.put("byte", (byte) -5);
        sent.put("short", (short) -5);
        sent.put("int", -5);
        sent.put("long", 1L << 40);
        sent.put("float", 2.5f);
        sent.put("double", 2.5);
        sent.put("decimal", new BigDecimal("1.25"));
        sent.put("time", new Date(1714979289000L));
        sent.put("nothing", null);
        sent.put("table", Map.of("a", Map.of("b", List.of(1, 2L))));
        sent.put("list", Arrays.asList(1, true, null));
        Map<String, Object> all = new HashMap<>(sent);
        all.put("text", "é");
        all.put("bytes", new byte[] {0, -1});
        publish(channel, name, new BasicProperties.Builder().headers(all).build(), new byte[0]);
        Map<String, Object> came = new HashMap<>(next(consume(channel, name, true)).getProperties().getHeaders());
        expect(came.remove("text").toString(), "é");
        expect(Arrays.toString((byte[]) came.remove("bytes")), "[0, -1]");
        expect(came, sent);
    }

    private void exclusiveQueue() throws Exception {
        Channel owner = channel();
        Channel other = channel();
        owner.queueDeclare(name, false, true, false, null);
        expect(refused(() -> other.queueDeclarePassive(name)), 405);
        String auto = name + ".auto";
        owner.queueDeclare(auto, false, false, true, null);
        owner.basicCancel(owner.basicConsume(auto, true, (tag, message) -> { }, tag -> { }));
        expect(refused(() -> owner.queueDeclarePassive(auto)), 404);
    }

    private void largeBody() throws Exception {
        Channel channel = channel();
        declare(channel, name, null);
        byte[] body = new byte[1_000_000];
        for (int at = 0; at < body.length; at++) {
            body[at] = (byte) (at % 251);
        }
        publish(channel, name, null, body);
        expect(Arrays.equals(next(consume(channel, name, true)).getBody(), body), true);
    }

    private void cancelled() throws Exception {
        Channel channel = channel();
        declare(channel, name, null);
        BlockingQueue<String> cancels = new LinkedBlockingQueue<>();
        CancelCallback cancel = cancels::add;
        String tag = channel.basicConsume(name, true, (consumer, message) -> { }, cancel);
        channel().queueDelete(name);
        expect(next(cancels), tag);
    }

    private void restart() throws Exception {
        Channel channel = channel();
        channel.queueDeclare(name, true, false, false, null);
        channel.confirmSelect();
        BlockingQueue<Delivery> arrived = consume(channel, name, false);
        publish(channel, name, PERSISTENT, bytes("before"));
        channel.waitForConfirmsOrDie();
        next(arrived);
        System.out.println("ready");
        Delivery again = next(arrived);
        expect(text(again), "before");
        expect(again.getEnvelope().isRedeliver(), true);
        channel.basicAck(again.getEnvelope().getDeliveryTag(), false);
        publish(channel, name, null, bytes("after"));
        expect(text(next(arrived)), "after");
    }
}
