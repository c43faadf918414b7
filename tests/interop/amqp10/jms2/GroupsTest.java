import static org.junit.Assert.assertEquals;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import java.util.ArrayList;
import java.util.List;
import org.junit.Test;

/** Groups of messages: one consumer at a time has one, and hands it over without overlap. */
public class GroupsTest extends BrokerTest {
    private static final String ONE_AT_A_TIME = "jms.prefetchPolicy.all=1";

    private final JMSContext sender = context();
    private final Queue queue = queue(sender);

    private void send(String group, String... bodies) {
        JMSProducer producer = sender.createProducer().setProperty("JMSXGroupID", group);
        for (String body : bodies) {
            producer.send(queue, body);
        }
    }

    private void sendLast(String group, String body) {
        JMSProducer producer = sender.createProducer();
        producer.setProperty("JMSXGroupID", group).setProperty("JMSXGroupSeq", -1).send(queue, body);
    }

    @Test
    public void eachGroupHasOneConsumer() throws Exception {
        JMSConsumer first = context().createConsumer(queue);
        JMSConsumer second = context().createConsumer(queue);
        for (int number = 0; number < 20; number++) {
            send("group-" + number % 2, "" + number);
        }
        for (JMSConsumer consumer : List.of(first, second)) {
            Message message = next(consumer);
            int number = Integer.parseInt(message.getBody(String.class));
            List<String> expected = new ArrayList<>();
            for (int after = number + 2; after < 20; after += 2) {
                expected.add("" + after);
            }
            expect(consumer, expected.toArray(String[]::new));
            expectNothing(consumer);
        }
    }

    @Test
    public void aGroupIsHandedOverOnceAllOfItIsSettled() {
        JMSContext transacted = context(JMSContext.SESSION_TRANSACTED, ONE_AT_A_TIME);
        JMSConsumer owner = transacted.createConsumer(queue);
        send("g", "1", "2", "3");
        expect(owner, "1", "2");
        JMSConsumer other = context().createConsumer(queue);
        owner.close();
        expectNothing(other);
        transacted.commit();
        expect(other, "3");
        send("g", "4");
        expect(other, "4");
    }

    @Test
    public void aGroupOfAClosedConnectionComesAgainInItsOrder() {
        JMSContext client = context(JMSContext.CLIENT_ACKNOWLEDGE);
        JMSConsumer owner = client.createConsumer(queue);
        send("g", "1", "2", "3");
        expect(owner, "1", "2");
        JMSConsumer other = context().createConsumer(queue);
        expectNothing(other);
        client.close();
        expect(other, "1", "2", "3");
    }

    @Test
    public void theLastMessageOfAGroupFreesIt() {
        JMSContext client = context(JMSContext.CLIENT_ACKNOWLEDGE, ONE_AT_A_TIME);
        JMSConsumer owner = client.createConsumer(queue);
        send("g", "1");
        sendLast("g", "2");
        expect(owner, "1", "2");
        JMSConsumer other = context().createConsumer(queue);
        send("g", "3");
        expectNothing(other);
        client.acknowledge();
        // Whoever it comes to has the group then.
        assertEquals(List.of("3"), all(other, owner));
    }

    @Test
    public void consumersWithSelectorsShareNoGroup() {
        JMSConsumer some = context().createConsumer(queue, "JMSXGroupSeq = -1");
        JMSConsumer others = context().createConsumer(queue, "JMSXGroupSeq IS NULL");
        send("g", "1");
        sendLast("h", "2");
        send("h", "3");
        expect(others, "1");
        expect(some, "2");
        expect(others, "3");
        sendLast("g", "4");
        expectNothing(some);
    }
}
