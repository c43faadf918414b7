// Streams, buckets and object stores of NATS's Java client with a broker, one scenario a time.
//
//     java JetStreamDriver SCENARIO URL NAME
//
// A scenario ends well by returning and badly by throwing; waiting is always for an event.

import io.nats.client.Connection;
import io.nats.client.ConsumerContext;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.JetStreamSubscription;
import io.nats.client.KeyValue;
import io.nats.client.Message;
import io.nats.client.MessageConsumer;
import io.nats.client.MessageTtl;
import io.nats.client.Nats;
import io.nats.client.ObjectStore;
import io.nats.client.Options;
import io.nats.client.PublishOptions;
import io.nats.client.PurgeOptions;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.KeyValueConfiguration;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueOperation;
import io.nats.client.api.KeyValueWatcher;
import io.nats.client.api.ObjectInfo;
import io.nats.client.api.ObjectMeta;
import io.nats.client.api.ObjectStoreConfiguration;
import io.nats.client.api.OrderedConsumerConfiguration;
import io.nats.client.api.PublishAck;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.api.StreamInfo;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

public final class JetStreamDriver {
    private static final Duration DEADLINE = Duration.ofSeconds(100);

    private interface Scenario {
        void run() throws Exception;
    }

    private final String name;
    private final Connection connection;
    private final JetStream js;
    private final JetStreamManagement manager;
    private final Map<String, Scenario> scenarios = new HashMap<>();

    private JetStreamDriver(String url, String name) throws Exception {
        this.name = name;
        connection = Nats.connect(
                new Options.Builder().server(url).connectionTimeout(DEADLINE).noReconnect().build());
        js = connection.jetStream();
        manager = connection.jetStreamManagement();
        scenarios.put("create_and_delete", this::createAndDelete);
        scenarios.put("publish", this::publish);
        scenarios.put("consume", this::consume);
        scenarios.put("acknowledgements", this::acknowledgements);
        scenarios.put("ordered_consumer", this::orderedConsumer);
        scenarios.put("push_consumer", this::pushConsumer);
        scenarios.put("key_value", this::keyValue);
        scenarios.put("key_value_watch", this::keyValueWatch);
        scenarios.put("key_value_markers", this::keyValueMarkers);
        scenarios.put("object_store", this::objectStore);
    }

    public static void main(String[] arguments) throws Exception {
        new JetStreamDriver(arguments[1], arguments[2]).scenarios.get(arguments[0]).run();
        System.exit(0);
    }

    private StreamConfiguration.Builder configuration() {
        return StreamConfiguration.builder().name(name).subjects(name + ".>");
    }

    // Creates the stream with messages "0" to count - 1 in one subject.
    private void filled(int count) throws Exception {
        manager.addStream(configuration().build());
        for (int number = 0; number < count; number++) {
            js.publish(name + ".a", bytes("" + number));
        }
    }

    private ConsumerContext consumer() throws Exception {
        ConsumerConfiguration wanted =
                ConsumerConfiguration.builder().durable("reader").ackPolicy(AckPolicy.Explicit).build();
        return connection.getStreamContext(name).createOrUpdateConsumer(wanted);
    }

    private void createAndDelete() throws Exception {
        filled(10);
        StreamInfo updated = manager.updateStream(configuration().maxMessages(5).build());
        expect(updated.getConfiguration().getMaxMsgs(), 5L);
        expect(manager.getStreamInfo(name).getStreamState().getFirstSequence(), 6L);
        expect(manager.deleteMessage(name, 7), true);
        refused(10037, () -> manager.getMessage(name, 7));
        expect(text(manager.getMessage(name, 8).getData()), "7");
        expect(manager.purgeStream(name, PurgeOptions.builder().keep(1).build()).getPurged(), 3L);
        expect(manager.getStreamNames(name + ".x"), List.of(name));
        expect(manager.deleteStream(name), true);
        refused(10059, () -> manager.getStreamInfo(name));
    }

    private void publish() throws Exception {
        filled(0);
        PublishOptions identified = PublishOptions.builder().messageId("id").build();
        expect(js.publish(name + ".a", bytes("1"), identified).isDuplicate(), false);
        PublishAck again = js.publish(name + ".a", bytes("1"), identified);
        expect(again.isDuplicate(), true);
        expect(again.getSeqno(), 1L);
        PublishOptions wrong = PublishOptions.builder().expectedLastSequence(5).build();
        refused(10071, () -> js.publish(name + ".a", bytes("2"), wrong));
        PublishOptions right = PublishOptions.builder().expectedLastSequence(1).expectedLastMsgId("id").build();
        expect(js.publish(name + ".a", bytes("2"), right).getSeqno(), 2L);
    }

    private void consume() throws Exception {
        filled(200);
        BlockingQueue<String> came = new LinkedBlockingQueue<>();
        MessageConsumer consuming = consumer().consume(message -> {
            message.ack();
            came.add(text(message.getData()));
        });
        for (int number = 0; number < 200; number++) {
            expect(next(came), "" + number);
        }
        consuming.stop();
    }

    private void acknowledgements() throws Exception {
        filled(4);
        ConsumerContext reader = consumer();
        reader.next(DEADLINE).ackSync(DEADLINE);
        reader.next(DEADLINE).nak();
        Message again = reader.next(DEADLINE);
        expect(text(again.getData()), "1");
        expect(again.metaData().deliveredCount(), 2L);
        again.inProgress();
        again.ackSync(DEADLINE);
        reader.next(DEADLINE).term();
        reader.next(DEADLINE).nakWithDelay(50);
        Message delayed = reader.next(DEADLINE);
        expect(text(delayed.getData()), "3");
        delayed.ackSync(DEADLINE);
        expect(reader.getConsumerInfo().getNumAckPending(), 0L);
        expect(reader.getConsumerInfo().getAckFloor().getStreamSequence(), 4L);
    }

    private void orderedConsumer() throws Exception {
        filled(200);
        BlockingQueue<String> came = new LinkedBlockingQueue<>();
        MessageConsumer consuming = connection.getStreamContext(name)
                .createOrderedConsumer(new OrderedConsumerConfiguration())
                .consume(message -> came.add(text(message.getData())));
        for (int number = 0; number < 200; number++) {
            expect(next(came), "" + number);
        }
        consuming.stop();
    }

    private void pushConsumer() throws Exception {
        filled(100);
        JetStreamSubscription pushed = js.subscribe(name + ".a");
        for (int number = 0; number < 100; number++) {
            Message message = pushed.nextMessage(DEADLINE);
            expect(text(message.getData()), "" + number);
            message.ackSync(DEADLINE);
        }
        pushed.unsubscribe();
    }

    private KeyValue bucket(Duration marker) throws Exception {
        KeyValueConfiguration.Builder wanted = KeyValueConfiguration.builder().name(name).maxHistoryPerKey(5);
        if (marker != null) {
            wanted.limitMarker(marker);
        }
        connection.keyValueManagement().create(wanted.build());
        return connection.keyValue(name);
    }

    private void keyValue() throws Exception {
        KeyValue bucket = bucket(null);
        expect(bucket.create("key", bytes("1")), 1L);
        refused(10071, () -> bucket.create("key", bytes("x")));
        expect(bucket.update("key", bytes("2"), 1), 2L);
        refused(10071, () -> bucket.update("key", bytes("x"), 1));
        expect(bucket.get("key").getValueAsString(), "2");
        expect(bucket.get("key", 1).getValueAsString(), "1");
        expect(bucket.history("key").size(), 2);
        expect(bucket.keys(), List.of("key"));
        bucket.delete("key");
        expect(bucket.get("key"), null);
        expect(bucket.create("key", bytes("3")), 4L);
        bucket.purge("key");
        expect(bucket.history("key").size(), 1);
        connection.keyValueManagement().delete(name);
    }

    // Collects what a watcher tells.
    private static final class Changes implements KeyValueWatcher {
        private final BlockingQueue<KeyValueEntry> entries = new LinkedBlockingQueue<>();

        @Override
        public void watch(KeyValueEntry entry) {
            entries.add(entry);
        }

        @Override
        public void endOfData() {}

        private void expectNext(String key, KeyValueOperation operation) throws Exception {
            KeyValueEntry entry = next(entries);
            expect(entry.getKey(), key);
            expect(entry.getOperation(), operation);
        }
    }

    private void keyValueWatch() throws Exception {
        KeyValue bucket = bucket(null);
        bucket.put("a.x", "1");
        Changes changes = new Changes();
        bucket.watch("a.*", changes);
        changes.expectNext("a.x", KeyValueOperation.PUT);
        bucket.put("b.x", "2");
        bucket.put("a.y", "3");
        changes.expectNext("a.y", KeyValueOperation.PUT);
        bucket.delete("a.x");
        changes.expectNext("a.x", KeyValueOperation.DELETE);
    }

    private void keyValueMarkers() throws Exception {
        KeyValue bucket = bucket(Duration.ofSeconds(2));
        Changes changes = new Changes();
        bucket.watchAll(changes);
        bucket.create("short", bytes("1"), MessageTtl.seconds(1));
        changes.expectNext("short", KeyValueOperation.PUT);
        changes.expectNext("short", KeyValueOperation.PURGE);
    }

    private void objectStore() throws Exception {
        connection.objectStoreManagement().create(ObjectStoreConfiguration.builder(name).build());
        ObjectStore store = connection.objectStore(name);
        byte[] data = new byte[1 << 20];
        new Random(7).nextBytes(data);
        ObjectMeta meta = ObjectMeta.builder("large").chunkSize(65_536).build();
        ObjectInfo info = store.put(meta, new ByteArrayInputStream(data));
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(data);
        expect(info.getDigest(), "SHA-256=" + Base64.getUrlEncoder().encodeToString(digest));
        expect(info.getChunks(), 16L);
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        store.get("large", read);
        expect(Base64.getEncoder().encodeToString(read.toByteArray()), Base64.getEncoder().encodeToString(data));
        expect(store.addLink("link", info).isLink(), true);
        ByteArrayOutputStream linked = new ByteArrayOutputStream();
        store.get("link", linked);
        expect(linked.size(), data.length);
        expect(store.getList().size(), 2);
        expect(store.delete("large").isDeleted(), true);
        expect(store.getInfo("large"), null);
        expect(store.getList().size(), 1);
        connection.objectStoreManagement().delete(name);
    }

    private static <T> T next(BlockingQueue<T> came) throws InterruptedException {
        return Objects.requireNonNull(came.poll(DEADLINE.toSeconds(), TimeUnit.SECONDS), "nothing came");
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] body) {
        return new String(body, StandardCharsets.UTF_8);
    }

    private static void expect(Object came, Object wanted) {
        if (!Objects.equals(came, wanted)) {
            throw new AssertionError(came + " came, and not " + wanted);
        }
    }

    // Shows that a call is refused with JetStream's error code.
    private static void refused(int code, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (JetStreamApiException error) {
            expect(error.getApiErrorCode(), code);
            return;
        }
        throw new AssertionError("error " + code + " was expected");
    }
}
