import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;

import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.Test;

/** Durable, shared and shared durable subscriptions, with and without client id. */
public class SubscriptionsTest extends BrokerTest {
    private final JMSContext sender = context();
    private final Topic topic = topic(sender);

    private void send(String... bodies) {
        for (String body : bodies) {
            sender.createProducer().send(topic, body);
        }
    }

    @Test
    public void durableSubscriptionGetsWhatItMissed() {
        String id = fresh("client");
        JMSContext client = client(id);
        client.createDurableConsumer(topic, "s").close();
        send("1", "2");
        client.close();
        send("3");
        JMSConsumer consumer = client(id).createDurableConsumer(topic, "s");
        expect(consumer, "1", "2", "3");
        expectNothing(consumer);
    }

    @Test
    public void unsubscribeEndsADurableSubscription() {
        JMSContext client = client(fresh("client"));
        client.createDurableConsumer(topic, "s").close();
        send("1");
        client.unsubscribe("s");
        JMSConsumer consumer = client.createDurableConsumer(topic, "s");
        expectNothing(consumer);
        send("2");
        expect(consumer, "2");
    }

    @Test
    public void unsubscribeOfNoneOrOneInUseIsRefused() {
        JMSContext client = client(fresh("client"));
        assertThrows(InvalidDestinationRuntimeException.class, () -> client.unsubscribe("absent"));
        JMSConsumer consumer = client.createDurableConsumer(topic, "s");
        assertThrows(JMSRuntimeException.class, () -> client.unsubscribe("s"));
        send("1");
        expect(consumer, "1");
    }

    @Test
    public void anotherSelectorReplacesADurableSubscription() {
        JMSContext client = client(fresh("client"));
        client.createDurableConsumer(topic, "s", "n = 1", false).close();
        sender.createProducer().setProperty("n", 1).send(topic, "before");
        JMSConsumer consumer = client.createDurableConsumer(topic, "s", "n = 2", false);
        sender.createProducer().setProperty("n", 1).send(topic, "unwanted");
        sender.createProducer().setProperty("n", 2).send(topic, "wanted");
        expect(consumer, "wanted");
        expectNothing(consumer);
    }

    @Test
    public void anEqualSelectorKeepsADurableSubscription() {
        JMSContext client = client(fresh("client"));
        client.createDurableConsumer(topic, "s", "n = 1", false).close();
        sender.createProducer().setProperty("n", 1).send(topic, "kept");
        expect(client.createDurableConsumer(topic, "s", "n = 1", false), "kept");
    }

    @Test
    public void anotherTopicReplacesADurableSubscription() {
        JMSContext client = client(fresh("client"));
        client.createDurableConsumer(topic, "s").close();
        send("of the first");
        Topic other = topic(client);
        JMSConsumer consumer = client.createDurableConsumer(other, "s");
        send("of the first");
        sender.createProducer().send(other, "of the second");
        expect(consumer, "of the second");
        expectNothing(consumer);
    }

    @Test
    public void noLocalLeavesOwnMessagesOut() {
        JMSContext client = client(fresh("client"));
        JMSConsumer live = client.createConsumer(topic, null, true);
        JMSConsumer durable = client.createDurableConsumer(topic, "s", null, true);
        client.createProducer().send(topic, "own");
        send("other");
        for (JMSConsumer consumer : List.of(live, durable)) {
            expect(consumer, "other");
            expectNothing(consumer);
        }
    }

    @Test
    public void noLocalHoldsWhileADurableSubscriptionIsClosed() {
        String id = fresh("client");
        JMSContext client = client(id);
        client.createDurableConsumer(topic, "s", "n = 1", true).close();
        client.createProducer().setProperty("n", 1).send(topic, "own");
        client.close();
        sender.createProducer().setProperty("n", 1).send(topic, "other");
        JMSConsumer consumer = client(id).createDurableConsumer(topic, "s", "n = 1", true);
        expect(consumer, "other");
        expectNothing(consumer);
    }

    @Test
    public void aDurableSubscriptionHasOneConsumer() {
        JMSContext client = client(fresh("client"));
        JMSConsumer consumer = client.createDurableConsumer(topic, "s");
        assertThrows(JMSRuntimeException.class, () -> client.createDurableConsumer(topic, "s"));
        send("1");
        expect(consumer, "1");
    }

    @Test
    public void aDurableSubscriptionNeedsAClientId() {
        JMSContext client = context();
        assertThrows(IllegalStateRuntimeException.class, () -> client.createDurableConsumer(topic, "s"));
    }

    /** Sends to consumers of one shared subscription: each message goes to one, and each consumer has some. */
    private void expectShared(JMSConsumer... consumers) {
        List<String> sent = IntStream.range(0, 40).mapToObj(number -> "m" + number).collect(Collectors.toList());
        send(sent.toArray(new String[0]));
        List<String> received = new ArrayList<>();
        for (JMSConsumer consumer : consumers) {
            List<String> had = all(consumer);
            assertFalse("a consumer got nothing", had.isEmpty());
            received.addAll(had);
        }
        received.sort((one, other) -> sent.indexOf(one) - sent.indexOf(other));
        assertEquals(sent, received);
    }

    @Test
    public void sharedConsumersOfTwoConnectionsShare() {
        expectShared(context().createSharedConsumer(topic, "shared"), context().createSharedConsumer(topic, "shared"));
    }

    @Test
    public void sharedConsumersOfOneClientShare() {
        JMSContext client = client(fresh("client"));
        JMSContext sibling = sibling(client, JMSContext.AUTO_ACKNOWLEDGE);
        expectShared(client.createSharedConsumer(topic, "s"), sibling.createSharedConsumer(topic, "s"));
    }

    @Test
    public void sharedDurableConsumersOfTwoConnectionsShare() {
        String name = fresh("shared");
        JMSContext one = context();
        expectShared(one.createSharedDurableConsumer(topic, name), context().createSharedDurableConsumer(topic, name));
    }

    @Test
    public void sharedDurableConsumersOfOneClientShare() {
        JMSContext client = client(fresh("client"));
        JMSContext sibling = sibling(client, JMSContext.AUTO_ACKNOWLEDGE);
        expectShared(client.createSharedDurableConsumer(topic, "s"), sibling.createSharedDurableConsumer(topic, "s"));
    }

    @Test
    public void aSharedSubscriptionEndsWithItsLastConsumer() {
        String name = fresh("shared");
        JMSConsumer one = context().createSharedConsumer(topic, name);
        JMSConsumer other = context().createSharedConsumer(topic, name);
        one.close();
        send("1");
        expect(other, "1");
        other.close();
        send("2");
        JMSConsumer later = context().createSharedConsumer(topic, name);
        expectNothing(later);
        send("3");
        expect(later, "3");
    }

    @Test
    public void aSharedDurableSubscriptionOutlastsItsConsumers() {
        String name = fresh("shared");
        JMSContext context = context();
        context.createSharedDurableConsumer(topic, name).close();
        send("1", "2");
        context.close();
        JMSContext later = context();
        JMSConsumer consumer = later.createSharedDurableConsumer(topic, name);
        expect(consumer, "1", "2");
        consumer.close();
        send("3");
        later.unsubscribe(name);
        expectNothing(later.createSharedDurableConsumer(topic, name));
    }

    @Test
    public void aSharedDurableSubscriptionOfAClientIsItsOwn() {
        String name = fresh("shared");
        JMSContext client = client(fresh("client"));
        client.createSharedDurableConsumer(topic, name).close();
        JMSContext anonymous = context();
        JMSConsumer global = anonymous.createSharedDurableConsumer(topic, name);
        send("1");
        expect(global, "1");
        expect(client.createSharedDurableConsumer(topic, name), "1");
    }

    @Test
    public void sharedAgainstUnsharedIsAnError() {
        JMSContext client = client(fresh("client"));
        client.createDurableConsumer(topic, "unshared").close();
        assertThrows(JMSRuntimeException.class, () -> client.createSharedDurableConsumer(topic, "unshared"));
        client.createSharedDurableConsumer(topic, "shared").close();
        assertThrows(JMSRuntimeException.class, () -> client.createDurableConsumer(topic, "shared"));
    }

    @Test
    public void anotherSelectorIsRefusedWhileOthersShare() {
        String name = fresh("shared");
        JMSConsumer one = context().createSharedDurableConsumer(topic, name, "n = 1");
        assertThrows(JMSRuntimeException.class, () -> context().createSharedDurableConsumer(topic, name, "n = 2"));
        sender.createProducer().setProperty("n", 1).send(topic, "wanted");
        expect(one, "wanted");
    }

    @Test
    public void anotherSelectorReplacesAnUnusedSharedSubscription() {
        String name = fresh("shared");
        context().createSharedDurableConsumer(topic, name, "n = 1").close();
        sender.createProducer().setProperty("n", 1).send(topic, "before");
        JMSConsumer consumer = context().createSharedDurableConsumer(topic, name, "n = 2");
        sender.createProducer().setProperty("n", 2).send(topic, "wanted");
        expect(consumer, "wanted");
        expectNothing(consumer);
    }

    @Test
    public void everyUnsharedConsumerGetsEachMessage() {
        JMSConsumer one = context().createConsumer(topic);
        JMSConsumer other = context().createConsumer(topic);
        send("1", "2");
        expect(one, "1", "2");
        expect(other, "1", "2");
    }
}
