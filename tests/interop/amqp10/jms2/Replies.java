import jakarta.jms.Destination;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.TemporaryQueue;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * One end of a request and its reply, for tests whose other end is not JMS.
 *
 * <pre>
 * java Replies ask|answer URL queue|topic NAME
 * </pre>
 *
 * One that asks sends a hundred numbers, and each reply has to be one more. One that answers says that it is ready.
 */
public final class Replies {
    private static final int REQUESTS = 100;
    private static final int DEADLINE_MS = 100_000;

    public static void main(String[] arguments) throws Exception {
        try (JMSContext context = new JmsConnectionFactory("guest", "guest", arguments[1]).createContext()) {
            Destination requests = arguments[2].equals("queue")
                    ? context.createQueue(arguments[3])
                    : context.createTopic(arguments[3]);
            if (arguments[0].equals("ask")) {
                ask(context, requests);
            } else {
                answer(context, requests);
            }
        }
    }

    private static void ask(JMSContext context, Destination requests) throws JMSException {
        TemporaryQueue replies = context.createTemporaryQueue();
        JMSConsumer consumer = context.createConsumer(replies);
        for (int number = 0; number < REQUESTS; number++) {
            context.createProducer().setJMSReplyTo(replies).setJMSCorrelationID("c-" + number).send(requests, "" + number);
            Message reply = consumer.receive(DEADLINE_MS);
            expect("" + (number + 1), text(reply));
            expect("c-" + number, reply.getJMSCorrelationID());
        }
    }

    private static void answer(JMSContext context, Destination requests) throws Exception {
        JMSConsumer consumer = context.createConsumer(requests);
        System.out.println("ready");
        while (true) {
            Message request = consumer.receive();
            context.createProducer()
                    .setJMSCorrelationID(request.getJMSCorrelationID())
                    .send(request.getJMSReplyTo(), "" + (Integer.parseInt(text(request)) + 1));
        }
    }

    /** The text of a message, which is bytes where another protocol says nothing of its kind. */
    private static String text(Message message) throws JMSException {
        if (message.isBodyAssignableTo(byte[].class)) {
            return new String(message.getBody(byte[].class));
        }
        return message.getBody(String.class);
    }

    private static void expect(String wanted, String came) {
        if (!wanted.equals(came)) {
            throw new AssertionError(came + " came, and not " + wanted);
        }
    }
}
