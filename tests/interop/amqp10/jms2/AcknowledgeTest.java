import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** Acknowledgements in each mode, recover, and what is delivered again. */
public class AcknowledgeTest extends BrokerTest {
    /** A mode of Qpid JMS, beside those of JMS. */
    private static final int INDIVIDUAL_ACKNOWLEDGE = 101;

    private final JMSContext sender = context();
    private final Queue queue = queue(sender);

    private void send(int count) {
        for (int number = 1; number <= count; number++) {
            sender.createProducer().send(queue, "" + number);
        }
    }

    @Test
    public void acknowledgeIsForAllThatTheSessionHad() throws Exception {
        send(3);
        JMSContext client = context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = client.createConsumer(queue);
        next(consumer);
        next(consumer).acknowledge();
        next(consumer);
        client.close();
        JMSConsumer later = context().createConsumer(queue);
        expect(later, "3");
        expectNothing(later);
    }

    @Test
    public void unacknowledgedMessagesComeAgainInTheirOrder() throws Exception {
        send(4);
        JMSContext client = context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = client.createConsumer(queue);
        expect(consumer, "1", "2");
        client.close();
        expect(context().createConsumer(queue), "1", "2", "3", "4");
    }

    @Test
    public void recoverDeliversAgainInOrder() throws Exception {
        send(3);
        JMSContext client = context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer consumer = client.createConsumer(queue);
        assertEquals(1, deliveries(next(consumer)));
        assertFalse(next(consumer).getJMSRedelivered());
        client.recover();
        for (String body : List.of("1", "2")) {
            Message again = next(consumer);
            assertEquals(body, again.getBody(String.class));
            assertEquals(2, deliveries(again));
            assertTrue(again.getJMSRedelivered());
        }
        Message third = next(consumer);
        assertEquals(1, deliveries(third));
        third.acknowledge();
        client.close();
        expectNothing(context().createConsumer(queue));
    }

    @Test
    public void individualAcknowledgeIsForOneMessage() throws Exception {
        send(3);
        JMSContext client = context(INDIVIDUAL_ACKNOWLEDGE);
        JMSConsumer consumer = client.createConsumer(queue);
        next(consumer);
        next(consumer).acknowledge();
        next(consumer);
        client.close();
        JMSConsumer later = context().createConsumer(queue);
        expect(later, "1", "3");
        expectNothing(later);
    }

    @Test
    public void duplicatesAreAcknowledgedInTime() {
        send(50);
        JMSContext client = context(JMSContext.DUPS_OK_ACKNOWLEDGE);
        assertEquals(50, all(client.createConsumer(queue)).size());
        client.close();
        expectNothing(context().createConsumer(queue));
    }

    @Test
    public void aListenerThatFailsGetsTheMessageAgain() throws Exception {
        send(2);
        BlockingQueue<String> came = new LinkedBlockingQueue<>();
        Set<String> failed = new HashSet<>();
        JMSContext client = context();
        client.createConsumer(queue).setMessageListener(message -> {
            String body;
            try {
                body = message.getBody(String.class);
            } catch (JMSException error) {
                throw new AssertionError(error);
            }
            came.add(body);
            if (failed.add(body)) {
                throw new IllegalStateException("as planned");
            }
        });
        List<String> all = new ArrayList<>();
        while (all.size() < 4) {
            all.add(came.poll(DEADLINE_MS, TimeUnit.MILLISECONDS));
        }
        all.sort(null);
        assertEquals(List.of("1", "1", "2", "2"), all);
        client.close();
        expectNothing(context().createConsumer(queue));
    }

    @Test
    public void aMessageThatFailedTooOftenIsGivenUp() throws Exception {
        send(2);
        String policy = "jms.redeliveryPolicy.maxRedeliveries=1&jms.redeliveryPolicy.outcome=REJECTED";
        JMSContext client = context(JMSContext.SESSION_TRANSACTED, policy);
        JMSConsumer consumer = client.createConsumer(queue);
        for (int time = 1; time <= 2; time++) {
            Message message = next(consumer);
            assertEquals("1", message.getBody(String.class));
            assertEquals(time, deliveries(message));
            client.rollback();
        }
        expect(consumer, "2");
        client.commit();
        expectNothing(consumer);
    }
}
