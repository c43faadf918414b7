import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotNull;
import static org.junit.Assert.assertNull;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.junit.After;
import org.junit.Rule;
import org.junit.rules.Timeout;

/** Contexts of connections to the broker at the URL in the system property `broker`, closed after each test. */
public abstract class BrokerTest {
    static final int DEADLINE_MS = 100_000;
    private static final AtomicInteger NAMES = new AtomicInteger();

    @Rule public final Timeout hangs = Timeout.millis(3 * DEADLINE_MS);

    private final Deque<JMSContext> opened = new ArrayDeque<>();

    @After
    public void closeContexts() {
        while (!opened.isEmpty()) {
            opened.pop().close();
        }
    }

    static JmsConnectionFactory factory(String options) {
        String url = System.getProperty("broker") + (options.isEmpty() ? "" : "?" + options);
        return new JmsConnectionFactory("guest", "guest", url);
    }

    JMSContext context() {
        return context(JMSContext.AUTO_ACKNOWLEDGE, "");
    }

    JMSContext context(int mode) {
        return context(mode, "");
    }

    /** Opens a connection of its own, with options of Qpid JMS as its URL has them. */
    JMSContext context(int mode, String options) {
        JMSContext context = factory(options).createContext(mode);
        opened.push(context);
        return context;
    }

    JMSContext client(String id) {
        JMSContext context = context();
        context.setClientID(id);
        return context;
    }

    /** Opens a session of the connection of a context. */
    JMSContext sibling(JMSContext context, int mode) {
        JMSContext sibling = context.createContext(mode);
        opened.push(sibling);
        return sibling;
    }

    /** A name that no other test has. */
    static String fresh(String name) {
        return name + "-" + ProcessHandle.current().pid() + "-" + NAMES.incrementAndGet();
    }

    static Queue queue(JMSContext context) {
        return context.createQueue(fresh("queue"));
    }

    static Topic topic(JMSContext context) {
        return context.createTopic(fresh("topic"));
    }

    static Message next(JMSConsumer consumer) {
        Message message = consumer.receive(DEADLINE_MS);
        assertNotNull("nothing came", message);
        return message;
    }

    static void expect(JMSConsumer consumer, String... bodies) {
        for (String body : bodies) {
            assertEquals(body, consumer.receiveBody(String.class, DEADLINE_MS));
        }
    }

    /** Asks the broker for what it has; the client drains the credit of its link for that. */
    static void expectNothing(JMSConsumer consumer) {
        assertNull(consumer.receiveNoWait());
    }

    /** Takes all that the broker has for these consumers. */
    static List<String> all(JMSConsumer... consumers) {
        List<String> bodies = new ArrayList<>();
        for (JMSConsumer consumer : consumers) {
            for (String body; (body = consumer.receiveBodyNoWait(String.class)) != null; ) {
                bodies.add(body);
            }
        }
        return bodies;
    }

    static int deliveries(Message message) throws Exception {
        return message.getIntProperty("JMSXDeliveryCount");
    }
}
