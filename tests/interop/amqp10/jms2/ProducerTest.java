import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.ResourceAllocationRuntimeException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.Test;

/** JMSProducer: properties, headers, delays, priorities, times to live and sending without waiting. */
public class ProducerTest extends BrokerTest {
    private final JMSContext context = context();
    private final Queue queue = queue(context);

    /** Collects what became of messages, in the order in which that was told. */
    private static final class Completions implements CompletionListener {
        final BlockingQueue<Object> told = new LinkedBlockingQueue<>();

        @Override
        public void onCompletion(Message message) {
            try {
                told.add(message.getBody(String.class));
            } catch (Exception error) {
                told.add(error);
            }
        }

        @Override
        public void onException(Message message, Exception error) {
            told.add(error);
        }

        List<Object> take(int count) throws InterruptedException {
            List<Object> taken = new ArrayList<>();
            while (taken.size() < count) {
                Object next = told.poll(DEADLINE_MS, TimeUnit.MILLISECONDS);
                assertNotNull("too little was told", next);
                taken.add(next);
            }
            return taken;
        }
    }

    @Test
    public void propertiesKeepTheirTypes() throws Exception {
        Map<String, Object> properties = Map.of(
                "boolean", true, "byte", (byte) -1, "short", (short) -2, "int", -3, "long", Long.MIN_VALUE,
                "float", 0.25f, "double", 0.1, "string", "text", "empty", "");
        JMSProducer producer = context.createProducer();
        properties.forEach(producer::setProperty);
        producer.send(queue, "m");
        Message message = next(context.createConsumer(queue));
        for (String name : properties.keySet()) {
            assertEquals(name, properties.get(name), message.getObjectProperty(name));
        }
        List<Object> names = new ArrayList<>();
        for (Enumeration<?> all = message.getPropertyNames(); all.hasMoreElements(); ) {
            names.add(all.nextElement());
        }
        names.removeIf(name -> name.toString().startsWith("JMSX"));
        assertEquals(properties.keySet(), Set.copyOf(names));
    }

    @Test
    public void headersArrive() throws Exception {
        Queue replies = context.createQueue("replies");
        context.createProducer().setJMSType("type").setJMSCorrelationID("c-1").setJMSReplyTo(replies).setPriority(7)
                .setDeliveryMode(DeliveryMode.NON_PERSISTENT).send(queue, "m");
        Message message = next(context.createConsumer(queue));
        assertEquals("type", message.getJMSType());
        assertEquals("c-1", message.getJMSCorrelationID());
        assertEquals(replies, message.getJMSReplyTo());
        assertEquals(queue, message.getJMSDestination());
        assertEquals(7, message.getJMSPriority());
        assertEquals(DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
        assertTrue(message.getJMSMessageID().startsWith("ID:"));
        assertTrue(message.getJMSTimestamp() > 0);
        assertEquals(0, message.getJMSExpiration());
    }

    @Test
    public void bytesAreACorrelationId() throws Exception {
        byte[] id = "c".getBytes(StandardCharsets.UTF_8);
        context.createProducer().setJMSCorrelationIDAsBytes(id).setJMSReplyTo(context.createTopic("t")).send(queue, "m");
        Message message = next(context.createConsumer(queue));
        assertArrayEquals(id, message.getJMSCorrelationIDAsBytes());
        assertEquals(context.createTopic("t"), message.getJMSReplyTo());
    }

    @Test
    public void groupsAndUsersAreNamed() throws Exception {
        JMSContext named = context(JMSContext.AUTO_ACKNOWLEDGE, "jms.populateJMSXUserID=true");
        named.createProducer().setProperty("JMSXGroupID", "g").setProperty("JMSXGroupSeq", 3).send(queue, "m");
        Message message = next(context.createConsumer(queue));
        assertEquals("g", message.getStringProperty("JMSXGroupID"));
        assertEquals(3, message.getIntProperty("JMSXGroupSeq"));
        assertEquals("guest", message.getStringProperty("JMSXUserID"));
    }

    @Test
    public void aDelayedMessageComesLater() throws Exception {
        long delay = 600;
        JMSConsumer consumer = context.createConsumer(queue);
        context.createProducer().setDeliveryDelay(delay).send(queue, "delayed");
        context.createProducer().send(queue, "at once");
        expect(consumer, "at once");
        Message message = next(consumer);
        assertEquals("delayed", message.getBody(String.class));
        assertTrue(message.getJMSDeliveryTime() >= message.getJMSTimestamp() + delay);
        assertTrue(System.currentTimeMillis() >= message.getJMSDeliveryTime());
    }

    @Test
    public void aDelayWorksInATransactionAndOnATopic() {
        JMSContext transacted = context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = context.createConsumer(context.createTopic(queue.toString()));
        transacted.createProducer().setDeliveryDelay(300).send(context.createTopic(queue.toString()), "delayed");
        transacted.createProducer().send(context.createTopic(queue.toString()), "at once");
        transacted.commit();
        expect(consumer, "at once", "delayed");
    }

    @Test
    public void tenPrioritiesAreTold() {
        for (int priority : new int[] {3, 9, 0, 5, 1, 8, 2, 7, 4, 6, 9, 0}) {
            context.createProducer().setPriority(priority).send(queue, "" + priority);
        }
        expect(context.createConsumer(queue), "9", "9", "8", "7", "6", "5", "4", "3", "2", "1", "0", "0");
    }

    @Test
    public void anExpiredMessageDoesNotCome() throws Exception {
        context.createProducer().setTimeToLive(1).send(queue, "expired");
        context.createProducer().setTimeToLive(600_000).send(queue, "fresh");
        long sent = System.currentTimeMillis();
        while (System.currentTimeMillis() <= sent + 1) {
            Thread.onSpinWait();
        }
        // The client would leave out an expired message too.
        JMSContext trusting = context(JMSContext.AUTO_ACKNOWLEDGE, "jms.localMessageExpiry=false");
        JMSConsumer consumer = trusting.createConsumer(queue);
        Message message = next(consumer);
        assertEquals("fresh", message.getBody(String.class));
        assertTrue(message.getJMSExpiration() >= message.getJMSTimestamp() + 600_000);
        expectNothing(consumer);
    }

    @Test
    public void completionsComeInTheOrderOfSending() throws Exception {
        Completions completions = new Completions();
        JMSProducer producer = context.createProducer().setAsync(completions);
        List<Object> sent = IntStream.range(0, 1000).mapToObj(Integer::toString).collect(Collectors.toList());
        sent.forEach(body -> producer.send(queue, (String) body));
        assertEquals(sent, completions.take(sent.size()));
        assertEquals(sent, all(context.createConsumer(queue)));
    }

    @Test
    public void aCloseWaitsForCompletions() throws Exception {
        Completions completions = new Completions();
        JMSContext closing = context();
        JMSProducer producer = closing.createProducer().setAsync(completions);
        for (int number = 0; number < 100; number++) {
            producer.send(queue, "" + number);
        }
        closing.close();
        assertEquals(100, completions.told.size());
    }

    /** The queue `full` takes one message and refuses more. */
    @Test
    public void aRefusalIsTold() throws Exception {
        Queue full = context.createQueue("full");
        Completions completions = new Completions();
        JMSProducer producer = context.createProducer();
        producer.send(full, "the only one");
        assertThrows(ResourceAllocationRuntimeException.class, () -> producer.send(full, "too much"));
        producer.setAsync(completions).send(full, "too much");
        assertEquals(ResourceAllocationException.class, completions.take(1).get(0).getClass());
        expect(context.createConsumer(full), "the only one");
        producer.send(full, "room again");
        assertEquals("room again", completions.take(1).get(0));
    }

    @Test
    public void aProducerWithoutDestinationSendsAnywhere() {
        Queue other = queue(context);
        JMSProducer producer = context.createProducer();
        producer.send(queue, "1").send(other, "2").send(queue, "3");
        expect(context.createConsumer(queue), "1", "3");
        expect(context.createConsumer(other), "2");
    }

    @Test
    public void identifiersAndTimestampsCanBeLeftOut() throws Exception {
        context.createProducer().setDisableMessageID(true).setDisableMessageTimestamp(true).send(queue, "m");
        Message message = next(context.createConsumer(queue));
        assertNull(message.getJMSMessageID());
        assertEquals(0, message.getJMSTimestamp());
    }
}
