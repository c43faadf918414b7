import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertThrows;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import org.junit.Test;

/** Temporary queues and topics, and replies through them. */
public class TemporaryTest extends BrokerTest {
    private final JMSContext asking = context();
    private final JMSContext answering = context();

    /** Answers each message of a queue with its body in capitals. */
    private void answer(Queue requests) {
        JMSContext replying = sibling(answering, JMSContext.AUTO_ACKNOWLEDGE);
        answering.createConsumer(requests).setMessageListener(request -> {
            try {
                replying.createProducer().setJMSCorrelationID(request.getJMSMessageID())
                        .send(request.getJMSReplyTo(), request.getBody(String.class).toUpperCase());
            } catch (JMSException error) {
                throw new AssertionError(error);
            }
        });
    }

    @Test
    public void repliesComeThroughATemporaryQueue() throws Exception {
        Queue requests = queue(asking);
        answer(requests);
        TemporaryQueue replies = asking.createTemporaryQueue();
        JMSConsumer consumer = asking.createConsumer(replies);
        for (int number = 0; number < 200; number++) {
            TextMessage request = asking.createTextMessage("request " + number);
            asking.createProducer().setJMSReplyTo(replies).send(requests, request);
            Message reply = next(consumer);
            assertEquals("REQUEST " + number, reply.getBody(String.class));
            assertEquals(request.getJMSMessageID(), reply.getJMSCorrelationID());
        }
    }

    @Test
    public void eachReplyMayHaveAQueueOfItsOwn() throws Exception {
        Queue requests = queue(asking);
        answer(requests);
        for (int number = 0; number < 20; number++) {
            TemporaryQueue replies = asking.createTemporaryQueue();
            try (JMSConsumer consumer = asking.createConsumer(replies)) {
                asking.createProducer().setJMSReplyTo(replies).send(requests, "m");
                expect(consumer, "M");
            }
            replies.delete();
        }
    }

    @Test
    public void repliesWaitInATemporaryQueueForItsConsumer() throws Exception {
        TemporaryQueue replies = asking.createTemporaryQueue();
        for (String body : new String[] {"1", "2"}) {
            answering.createProducer().send(replies, body);
        }
        expect(asking.createConsumer(replies), "1", "2");
    }

    @Test
    public void aTemporaryQueueHasSelectorsAndBrowsers() throws Exception {
        TemporaryQueue replies = asking.createTemporaryQueue();
        for (int number = 1; number <= 3; number++) {
            answering.createProducer().setProperty("n", number).send(replies, "" + number);
        }
        assertEquals("1", ((TextMessage) asking.createBrowser(replies).getEnumeration().nextElement()).getText());
        expect(asking.createConsumer(replies, "n = 2"), "2");
        expect(asking.createConsumer(replies), "1", "3");
    }

    @Test
    public void aDeletedTemporaryQueueTakesNothing() throws Exception {
        TemporaryQueue replies = asking.createTemporaryQueue();
        answering.createProducer().send(replies, "1");
        replies.delete();
        assertThrows(JMSRuntimeException.class, () -> answering.createProducer().send(replies, "2"));
    }

    @Test
    public void aTemporaryQueueInUseIsNotDeleted() throws Exception {
        TemporaryQueue replies = asking.createTemporaryQueue();
        JMSConsumer consumer = asking.createConsumer(replies);
        assertThrows(JMSException.class, replies::delete);
        answering.createProducer().send(replies, "m");
        expect(consumer, "m");
    }

    @Test
    public void aTemporaryQueueEndsWithItsConnection() throws Exception {
        JMSContext gone = factory("").createContext();
        TemporaryQueue replies = gone.createTemporaryQueue();
        answering.createProducer().send(replies, "1");
        gone.close();
        assertThrows(JMSRuntimeException.class, () -> answering.createProducer().send(replies, "2"));
    }

    @Test
    public void nobodyElseConsumesFromATemporaryQueue() {
        TemporaryQueue replies = asking.createTemporaryQueue();
        assertThrows(JMSRuntimeException.class, () -> answering.createConsumer(replies));
    }

    @Test
    public void aTemporaryTopicHasManySubscribers() throws Exception {
        TemporaryTopic topic = asking.createTemporaryTopic();
        JMSConsumer one = asking.createConsumer(topic);
        JMSConsumer other = sibling(asking, JMSContext.AUTO_ACKNOWLEDGE).createConsumer(topic);
        answering.createProducer().send(topic, "m");
        expect(one, "m");
        expect(other, "m");
        one.close();
        other.close();
        topic.delete();
    }

    @Test
    public void aTemporaryDestinationIsPartOfATransaction() {
        TemporaryQueue replies = asking.createTemporaryQueue();
        JMSContext transacted = context(JMSContext.SESSION_TRANSACTED);
        JMSConsumer consumer = asking.createConsumer(replies);
        transacted.createProducer().send(replies, "never");
        transacted.rollback();
        transacted.createProducer().send(replies, "m");
        expectNothing(consumer);
        transacted.commit();
        expect(consumer, "m");
    }
}
