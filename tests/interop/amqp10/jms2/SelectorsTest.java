import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;

import jakarta.jms.InvalidSelectorRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.Test;

/** Consumers with selectors, and browsers. */
public class SelectorsTest extends BrokerTest {
    private final JMSContext context = context();
    private final Queue queue = queue(context);

    private List<String> browse(QueueBrowser browser) throws Exception {
        List<String> bodies = new ArrayList<>();
        for (Enumeration<?> messages = browser.getEnumeration(); messages.hasMoreElements(); ) {
            bodies.add(((Message) messages.nextElement()).getBody(String.class));
        }
        return bodies;
    }

    private void sendFour() {
        context.createProducer().setJMSType("a").setPriority(9).setProperty("n", 1).setProperty("s", "x_1").send(queue, "1");
        context.createProducer().setJMSCorrelationID("c").setPriority(7).setProperty("n", 2.5).setProperty("s", "x21").send(queue, "2");
        context.createProducer().setPriority(3).setProperty("n", 30L).setProperty("b", true).send(queue, "3");
        context.createProducer().setPriority(1).setDeliveryMode(1).setProperty("s", "y'").send(queue, "4");
    }

    @Test
    public void selectorsChoose() throws Exception {
        Map<String, List<String>> rows = new LinkedHashMap<>();
        rows.put("JMSType = 'a'", List.of("1"));
        rows.put("JMSCorrelationID IN ('b', 'c')", List.of("2"));
        rows.put("JMSPriority > 6", List.of("1", "2"));
        rows.put("JMSDeliveryMode = 'NON_PERSISTENT'", List.of("4"));
        rows.put("n BETWEEN 1 AND 2.5", List.of("1", "2"));
        rows.put("n * 2 = 5", List.of("2"));
        rows.put("n IS NULL", List.of("4"));
        rows.put("NOT (n < 3)", List.of("3"));
        rows.put("s LIKE 'x!_%' ESCAPE '!'", List.of("1"));
        rows.put("s LIKE 'x_1'", List.of("1", "2"));
        rows.put("s = 'y'''", List.of("4"));
        rows.put("b", List.of("3"));
        rows.put("b OR JMSTimestamp > 0", List.of("1", "2", "3", "4"));
        rows.put("JMSXDeliveryCount > 1", List.of());
        sendFour();
        for (Map.Entry<String, List<String>> row : rows.entrySet()) {
            assertEquals(row.getKey(), row.getValue(), browse(context.createBrowser(queue, row.getKey())));
        }
    }

    @Test
    public void aConsumerLeavesWhatItDoesNotWant() {
        sendFour();
        JMSConsumer choosy = context.createConsumer(queue, "n > 2");
        expect(choosy, "2", "3");
        expectNothing(choosy);
        JMSConsumer other = context().createConsumer(queue);
        expect(other, "1", "4");
        context.createProducer().setProperty("n", 3).send(queue, "5");
        choosy.close();
        assertFalse(all(other).contains("1"));
    }

    @Test
    public void aTopicHasSelectorsToo() {
        JMSContext other = context();
        JMSConsumer even = context.createConsumer(context.createTopic(queue.toString()), "n = 2 OR n = 4");
        JMSConsumer all = other.createConsumer(context.createTopic(queue.toString()));
        for (int number = 1; number <= 4; number++) {
            context.createProducer().setProperty("n", number).send(context.createTopic(queue.toString()), "" + number);
        }
        expect(even, "2", "4");
        expectNothing(even);
        expect(all, "1", "2", "3", "4");
    }

    @Test
    public void aMessageIsFoundByItsId() throws Exception {
        sendFour();
        Message third = (Message) context.createBrowser(queue, "n = 30").getEnumeration().nextElement();
        JMSConsumer consumer = context.createConsumer(queue, "JMSMessageID = '" + third.getJMSMessageID() + "'");
        expect(consumer, "3");
        expectNothing(consumer);
    }

    @Test
    public void anInvalidSelectorIsRefused() {
        assertThrows(InvalidSelectorRuntimeException.class, () -> context.createConsumer(queue, "n >"));
        // The broker's own answer, where the client lets it through.
        JMSContext trusting = context(JMSContext.AUTO_ACKNOWLEDGE, "jms.validateSelector=false");
        assertThrows(RuntimeException.class, () -> trusting.createConsumer(queue, "n >"));
        context.createProducer().send(queue, "m");
        expect(trusting.createConsumer(queue), "m");
    }

    @Test
    public void aBrowserTakesNothing() throws Exception {
        sendFour();
        QueueBrowser browser = context.createBrowser(queue);
        for (int time = 0; time < 2; time++) {
            assertEquals(List.of("1", "2", "3", "4"), browse(browser));
        }
        assertEquals(List.of("1", "2", "3", "4"), all(context.createConsumer(queue)));
        assertEquals(List.of(), browse(browser));
    }

    @Test
    public void aBrowserSeesManyMessages() throws Exception {
        List<String> sent = new ArrayList<>();
        for (int number = 0; number < 3000; number++) {
            sent.add("" + number);
            context.createProducer().setDeliveryMode(1).send(queue, "" + number);
        }
        assertEquals(sent, browse(context.createBrowser(queue)));
    }
}
