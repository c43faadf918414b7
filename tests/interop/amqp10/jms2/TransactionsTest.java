import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.Test;

/** Transacted sessions. */
public class TransactionsTest extends BrokerTest {
    private final JMSContext sender = context();
    private final JMSContext client = context(JMSContext.SESSION_TRANSACTED);
    private final Queue source = queue(sender);
    private final Queue target = queue(sender);

    @Test
    public void commitMovesAMessage() {
        sender.createProducer().send(source, "m");
        JMSConsumer consumer = client.createConsumer(source);
        JMSConsumer receiver = context().createConsumer(target);
        client.createProducer().send(target, consumer.receiveBody(String.class, DEADLINE_MS));
        expectNothing(receiver);
        client.commit();
        expect(receiver, "m");
        client.close();
        expectNothing(context().createConsumer(source));
    }

    @Test
    public void rollbackLeavesEverythingAsItWas() throws Exception {
        for (String body : List.of("1", "2", "3")) {
            sender.createProducer().send(source, body);
        }
        JMSConsumer consumer = client.createConsumer(source);
        expect(consumer, "1", "2");
        client.createProducer().send(target, "never");
        client.rollback();
        for (String body : List.of("1", "2")) {
            Message again = next(consumer);
            assertEquals(body, again.getBody(String.class));
            assertTrue(again.getJMSRedelivered());
            assertEquals(2, deliveries(again));
        }
        expect(consumer, "3");
        client.commit();
        expectNothing(consumer);
        expectNothing(sender.createConsumer(target));
    }

    @Test
    public void eachRollbackCounts() throws Exception {
        sender.createProducer().send(source, "m");
        JMSConsumer consumer = client.createConsumer(source);
        for (int time = 1; time <= 5; time++) {
            assertEquals(time, deliveries(next(consumer)));
            client.rollback();
        }
        assertEquals(6, deliveries(next(consumer)));
        client.commit();
    }

    @Test
    public void aClosedContextRollsBack() {
        sender.createProducer().send(source, "m");
        expect(client.createConsumer(source), "m");
        client.createProducer().send(target, "never");
        client.close();
        expect(sender.createConsumer(source), "m");
        expectNothing(sender.createConsumer(target));
    }

    @Test
    public void aTransactionHasManyMessagesAndDestinations() {
        Topic topic = topic(sender);
        JMSConsumer subscriber = sender.createConsumer(topic);
        List<String> numbers = IntStream.range(0, 300).mapToObj(Integer::toString).collect(Collectors.toList());
        for (String number : numbers) {
            client.createProducer().send(target, number);
            client.createProducer().send(topic, number);
        }
        expectNothing(subscriber);
        client.commit();
        assertEquals(numbers, all(subscriber));
        assertEquals(numbers, all(sender.createConsumer(target)));
    }

    @Test
    public void transactionsFollowEachOther() {
        JMSConsumer receiver = sender.createConsumer(target);
        for (int number = 0; number < 20; number++) {
            client.createProducer().send(target, "" + number);
            if (number % 2 == 0) {
                client.commit();
                expect(receiver, "" + number);
            } else {
                client.rollback();
            }
        }
        expectNothing(receiver);
    }
}
