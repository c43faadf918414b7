// Conversations of protonj2 with a broker, one a scenario.
//
//     java Driver SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import java.io.FileInputStream;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.URI;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.apache.qpid.protonj2.client.Client;
import org.apache.qpid.protonj2.client.ClientOptions;
import org.apache.qpid.protonj2.client.Connection;
import org.apache.qpid.protonj2.client.ConnectionOptions;
import org.apache.qpid.protonj2.client.Delivery;
import org.apache.qpid.protonj2.client.DeliveryMode;
import org.apache.qpid.protonj2.client.DistributionMode;
import org.apache.qpid.protonj2.client.DurabilityMode;
import org.apache.qpid.protonj2.client.ExpiryPolicy;
import org.apache.qpid.protonj2.client.Message;
import org.apache.qpid.protonj2.client.Receiver;
import org.apache.qpid.protonj2.client.ReceiverOptions;
import org.apache.qpid.protonj2.client.Sender;
import org.apache.qpid.protonj2.client.SenderOptions;
import org.apache.qpid.protonj2.client.Session;
import org.apache.qpid.protonj2.client.StreamSender;
import org.apache.qpid.protonj2.client.StreamSenderMessage;
import org.apache.qpid.protonj2.client.Tracker;
import org.apache.qpid.protonj2.client.exceptions.ClientLinkRemotelyClosedException;
import org.apache.qpid.protonj2.types.UnsignedLong;

public final class Driver {
    private static final int DEADLINE_S = 100;

    private interface Scenario {
        void run() throws Exception;
    }

    private final URI url;
    private final String name;
    private final Map<String, Scenario> scenarios = new HashMap<>();
    private final Client client;

    private Driver(String url, String name) {
        this.url = URI.create(url);
        this.name = name;
        this.client = Client.create(new ClientOptions().id(name));
        scenarios.put("settlement", this::settlement);
        scenarios.put("outcomes", this::outcomes);
        scenarios.put("refusal", this::refusal);
        scenarios.put("credit_and_drain", this::creditAndDrain);
        scenarios.put("large_message", this::largeMessage);
        scenarios.put("small_frames", this::smallFrames);
        scenarios.put("aborted_transfer", this::abortedTransfer);
        scenarios.put("dynamic_node", this::dynamicNode);
        scenarios.put("anonymous_relay", this::anonymousRelay);
        scenarios.put("selector", this::selector);
        scenarios.put("browse", this::browse);
        scenarios.put("durable_subscription", this::durableSubscription);
        scenarios.put("shared_subscription", this::sharedSubscription);
        scenarios.put("transaction", this::transaction);
        scenarios.put("delay", this::delay);
        scenarios.put("expiry", this::expiry);
        scenarios.put("priorities", this::priorities);
        scenarios.put("types", this::types);
        scenarios.put("idle_time_out", this::idleTimeOut);
        scenarios.put("not_found", this::notFound);
        scenarios.put("tls", this::tls);
        scenarios.put("scram", this::scram);
    }

    public static void main(String[] arguments) throws Exception {
        new Driver(arguments[1], arguments[2]).scenarios.get(arguments[0]).run();
        System.exit(0);
    }

    private Connection connect(ConnectionOptions options) throws Exception {
        String[] login = url.getUserInfo().split(":");
        options.user(login[0]).password(login[1]).openTimeout(DEADLINE_S, TimeUnit.SECONDS);
        return client.connect(url.getHost(), url.getPort(), options);
    }

    private Connection connect() throws Exception {
        return connect(new ConnectionOptions());
    }

    // Options of a receiver that settles, and asks for messages, only when it is told to.
    private static ReceiverOptions manual() {
        return new ReceiverOptions().autoAccept(false).autoSettle(false).creditWindow(0);
    }

    private static void send(Sender sender, Object body) throws Exception {
        sender.send(Message.create(body)).awaitAccepted(DEADLINE_S, TimeUnit.SECONDS);
    }

    private static Delivery next(Receiver receiver) throws Exception {
        return Objects.requireNonNull(receiver.receive(DEADLINE_S, TimeUnit.SECONDS), "nothing came");
    }

    private static Object body(Receiver receiver) throws Exception {
        return next(receiver).message().body();
    }

    // Asks the broker for all that it has.
    private static List<Object> rest(Receiver receiver) throws Exception {
        receiver.addCredit(100);
        receiver.drain().get(DEADLINE_S, TimeUnit.SECONDS);
        List<Object> bodies = new ArrayList<>();
        for (Delivery delivery; (delivery = receiver.tryReceive()) != null; ) {
            bodies.add(delivery.message().body());
            delivery.accept();
        }
        return bodies;
    }

    private static void expect(Object came, Object wanted) {
        if (!Objects.deepEquals(came, wanted)) {
            throw new AssertionError(came + " came, and not " + wanted);
        }
    }

    private static byte[] pattern(int size) {
        byte[] bytes = new byte[size];
        for (int index = 0; index < size; index++) {
            bytes[index] = (byte) (index % 251);
        }
        return bytes;
    }

    private void settlement() throws Exception {
        Connection connection = connect();
        Sender atMostOnce = connection.openSender(name, new SenderOptions().deliveryMode(DeliveryMode.AT_MOST_ONCE));
        Sender atLeastOnce = connection.openSender(name);
        expect(atMostOnce.send(Message.create("settled")).settled(), true);
        send(atLeastOnce, "unsettled");
        Receiver receiver = connection.openReceiver(name, manual());
        receiver.addCredit(2);
        for (String body : List.of("settled", "unsettled")) {
            Delivery delivery = next(receiver);
            expect(delivery.message().body(), body);
            expect(delivery.remoteSettled(), false);
            delivery.accept();
        }
        receiver.close();
        send(atLeastOnce, "for one who does not answer");
        Receiver forgetful =
                connection.openReceiver(name, new ReceiverOptions().deliveryMode(DeliveryMode.AT_MOST_ONCE));
        expect(next(forgetful).remoteSettled(), true);
        forgetful.close();
        expect(rest(connection.openReceiver(name, manual())), List.of());
    }

    private void outcomes() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        for (String body : List.of("released", "modified", "rejected")) {
            send(sender, body);
        }
        Receiver receiver = connection.openReceiver(name, manual());
        receiver.addCredit(3);
        next(receiver).release();
        next(receiver).modified(true, false);
        next(receiver).reject("amqp:not-allowed", "as planned");
        receiver.addCredit(2);
        for (String body : List.of("released", "modified")) {
            Delivery delivery = next(receiver);
            expect(delivery.message().body(), body);
            expect(delivery.message().deliveryCount(), body.equals("released") ? 0L : 1L);
            delivery.accept();
        }
        expect(rest(receiver), List.of());
    }

    private void refusal() throws Exception {
        Sender sender = connect().openSender(name);
        send(sender, "the only one");
        Tracker tracker = sender.send(Message.create("too much")).awaitSettlement(DEADLINE_S, TimeUnit.SECONDS);
        expect(tracker.remoteState().isRejected(), true);
    }

    private void creditAndDrain() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        for (int number = 1; number <= 5; number++) {
            send(sender, number);
        }
        Receiver receiver = connection.openReceiver(name, manual());
        receiver.addCredit(3);
        for (int number = 1; number <= 3; number++) {
            Delivery delivery = next(receiver);
            expect(delivery.message().body(), number);
            delivery.accept();
        }
        expect(receiver.tryReceive(), null);
        expect(rest(receiver), List.of(4, 5));
        send(sender, 6);
        expect(body(connection.openReceiver(name)), 6);
        expect(receiver.tryReceive(), null);
    }

    private void largeMessage() throws Exception {
        Connection connection = connect();
        byte[] body = pattern(3 << 20);
        send(connection.openSender(name), body);
        expect(body(connection.openReceiver(name)), body);
    }

    private void smallFrames() throws Exception {
        Connection connection = connect(new ConnectionOptions().maxFrameSize(512));
        byte[] body = pattern(200_000);
        send(connection.openSender(name), body);
        expect(body(connection.openReceiver(name)), body);
    }

    private void abortedTransfer() throws Exception {
        Connection connection = connect();
        StreamSender sender = connection.openStreamSender(name);
        StreamSenderMessage aborted = sender.beginMessage();
        OutputStream body = aborted.body();
        body.write(pattern(300_000));
        body.flush();
        aborted.abort();
        send(connection.openSender(name), "whole");
        expect(rest(connection.openReceiver(name, manual())), List.of("whole"));
    }

    private void dynamicNode() throws Exception {
        Connection asking = connect();
        Connection answering = connect();
        Receiver replies = asking.openDynamicReceiver();
        Receiver requests = answering.openReceiver(name);
        Message<String> request = Message.create("request");
        request.replyTo(replies.address()).messageId("id");
        asking.openSender(name).send(request);
        Message<String> received = next(requests).message();
        Message<String> reply = Message.create(received.body() + " answered");
        answering.openAnonymousSender().send(reply.to(received.replyTo()).correlationId(received.messageId()));
        Message<String> came = next(replies).message();
        expect(came.body(), "request answered");
        expect(came.correlationId(), "id");
    }

    private void anonymousRelay() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openAnonymousSender();
        for (String queue : List.of(name + ".a", name + ".b")) {
            sender.send(Message.create(queue).to(queue)).awaitAccepted(DEADLINE_S, TimeUnit.SECONDS);
        }
        expect(body(connection.openReceiver(name + ".b")), name + ".b");
        expect(body(connection.openReceiver(name + ".a")), name + ".a");
    }

    private void selector() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        for (int size : new int[] {5, 50, 500}) {
            for (String colour : List.of("red", "blue")) {
                Message<String> message = Message.create(colour + " " + size);
                message.property("size", size).property("colour", colour);
                sender.send(message).awaitAccepted();
            }
        }
        ReceiverOptions options = manual();
        options.sourceOptions().addFilter(
                "apache.org:selector-filter:string", UnsignedLong.valueOf(0x0000468C00000004L),
                "colour = 'red' AND size > 10");
        expect(rest(connection.openReceiver(name, options)), List.of("red 50", "red 500"));
        expect(rest(connection.openReceiver(name, manual())), List.of("red 5", "blue 5", "blue 50", "blue 500"));
    }

    private void browse() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        for (int number = 1; number <= 3; number++) {
            send(sender, number);
        }
        for (int time = 0; time < 2; time++) {
            ReceiverOptions options = manual();
            options.sourceOptions().distributionMode(DistributionMode.COPY);
            expect(rest(connection.openReceiver(name, options)), List.of(1, 2, 3));
        }
        expect(rest(connection.openReceiver(name, manual())), List.of(1, 2, 3));
    }

    private void durableSubscription() throws Exception {
        String topic = "topic://" + name;
        connect().openDurableReceiver(topic, "subscription").openFuture().get().detach();
        Connection connection = connect();
        Sender sender = connection.openSender(topic);
        send(sender, "missed");
        Receiver receiver = connect().openDurableReceiver(topic, "subscription");
        send(sender, "live");
        expect(body(receiver), "missed");
        expect(body(receiver), "live");
        receiver.close();
        send(sender, "for nobody");
        expect(rest(connect().openDurableReceiver(topic, "subscription", manual())), List.of());
    }

    private void sharedSubscription() throws Exception {
        String topic = "topic://" + name;
        Receiver[] receivers = new Receiver[2];
        for (int number = 0; number < 2; number++) {
            ReceiverOptions options = manual().linkName(name + "|" + number);
            options.sourceOptions().capabilities("shared", "global");
            options.sourceOptions().expiryPolicy(ExpiryPolicy.LINK_CLOSE).durabilityMode(DurabilityMode.NONE);
            receivers[number] = connect().openReceiver(topic, options);
            receivers[number].openFuture().get().addCredit(5);
        }
        Sender sender = connect().openSender(topic);
        List<Integer> sent = new ArrayList<>();
        List<Object> came = new ArrayList<>();
        for (int number = 0; number < 10; number++) {
            sent.add(number);
            send(sender, number);
        }
        for (int number = 0; number < 10; number++) {
            came.add(body(receivers[number % 2]));
        }
        came.sort((one, other) -> (Integer) one - (Integer) other);
        expect(came, sent);
    }

    private void transaction() throws Exception {
        Connection connection = connect();
        send(connection.openSender(name + ".in"), "m");
        Receiver outside = connection.openReceiver(name + ".out", manual());
        Session session = connection.openSession();
        Receiver receiver = session.openReceiver(name + ".in", manual());
        Sender sender = session.openSender(name + ".out");
        for (boolean commits : new boolean[] {false, true}) {
            session.beginTransaction();
            receiver.addCredit(1);
            Delivery delivery = next(receiver);
            expect(delivery.message().body(), "m");
            sender.send(Message.create("1")).settlementFuture().get(DEADLINE_S, TimeUnit.SECONDS);
            sender.send(Message.create("2")).settlementFuture().get(DEADLINE_S, TimeUnit.SECONDS);
            delivery.accept();
            expect(rest(outside), List.of());
            if (commits) {
                session.commitTransaction();
            } else {
                session.rollbackTransaction();
                // What was retired stays with its receiver, which gives it back by its end.
                receiver.close();
                receiver = session.openReceiver(name + ".in", manual());
            }
        }
        expect(rest(outside), List.of("1", "2"));
        expect(rest(connection.openReceiver(name + ".in", manual())), List.of());
    }

    private void delay() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        Message<String> delayed = Message.create("delayed");
        sender.send(delayed.annotation("x-opt-delivery-delay", 500L)).awaitAccepted();
        send(sender, "at once");
        Receiver receiver = connection.openReceiver(name);
        expect(body(receiver), "at once");
        expect(body(receiver), "delayed");
    }

    private void expiry() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        Message<String> expired = Message.create("expired");
        sender.send(expired.absoluteExpiryTime(1000)).awaitAccepted();
        Message<String> fresh = Message.create("fresh");
        sender.send(fresh.timeToLive(600_000)).awaitAccepted();
        expect(rest(connection.openReceiver(name, manual())), List.of("fresh"));
    }

    private void priorities() throws Exception {
        Connection connection = connect();
        Sender sender = connection.openSender(name);
        List<Integer> expected = new ArrayList<>();
        for (int priority = 0; priority <= 9; priority++) {
            expected.add(0, priority);
            Message<Integer> message = Message.create(priority);
            sender.send(message.priority((byte) priority)).awaitAccepted();
        }
        expect(rest(connection.openReceiver(name, manual())), expected);
    }

    private void types() throws Exception {
        Connection connection = connect();
        Map<String, Object> properties = new HashMap<>();
        properties.put("boolean", true);
        properties.put("int", -3);
        properties.put("long", Long.MIN_VALUE);
        properties.put("double", 0.1);
        properties.put("string", "Größe 🐟");
        properties.put("uuid", new UUID(1, 2));
        properties.put("null", null);
        List<Object> list = List.of(1, "two", Map.of("k", List.of(true)));
        Sender sender = connection.openSender(name);
        Receiver receiver = connection.openReceiver(name);
        for (Object body : new Object[] {"text", -7, UnsignedLong.MAX_VALUE, pattern(100), list, properties}) {
            Message<Object> message = Message.create();
            message.body(body);
            for (String key : properties.keySet()) {
                message.property(key, properties.get(key));
            }
            sender.send(message).awaitAccepted();
            Message<Object> came = next(receiver).message();
            expect(came.body(), body);
            for (String key : properties.keySet()) {
                expect(came.property(key), properties.get(key));
            }
        }
    }

    private void idleTimeOut() throws Exception {
        Connection connection = connect(new ConnectionOptions().idleTimeout(1, TimeUnit.SECONDS));
        Receiver receiver = connection.openReceiver(name);
        expect(receiver.receive(2500, TimeUnit.MILLISECONDS), null);
        send(connection.openSender(name), "m");
        expect(body(receiver), "m");
    }

    private void notFound() throws Exception {
        Session session = connect().openSession();
        try {
            session.openSender("/exchanges/" + name + "/key").openFuture().get();
            throw new AssertionError("it was not refused");
        } catch (java.util.concurrent.ExecutionException error) {
            ClientLinkRemotelyClosedException closed = (ClientLinkRemotelyClosedException) error.getCause();
            expect(closed.getErrorCondition().condition(), "amqp:not-found");
        }
        send(session.openSender(name), "m");
    }

    private void scram() throws Exception {
        ConnectionOptions options = new ConnectionOptions();
        options.saslOptions().addAllowedMechanism("SCRAM-SHA-256");
        Connection connection = connect(options);
        send(connection.openSender(name), "m");
        expect(body(connection.openReceiver(name)), "m");
    }

    private void tls() throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        try (InputStream file = new FileInputStream(System.getenv("SSL_CERT_FILE"))) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        ConnectionOptions options = new ConnectionOptions().sslEnabled(true);
        options.sslOptions().sslContextOverride(context);
        Connection connection = connect(options);
        send(connection.openSender(name), "m");
        expect(body(connection.openReceiver(name)), "m");
    }
}
