import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSProducer;
import java.util.List;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Each receiver has a queue, and the sender chooses by the queue who gets a message. */
public final class OneQueueEach {
    public static void main(String[] arguments) {
        try (JMSContext context = new JmsConnectionFactory("guest", "guest", arguments[0]).createContext()) {
            JMSProducer producer = context.createProducer();
            for (String order : List.of("tokyo:1", "osaka:2", "tokyo:3", "nagoya:4", "osaka:5", "tokyo:6")) {
                String[] parts = order.split(":");
                producer.send(context.createQueue("orders." + parts[0]), "order " + parts[1]);
            }
            for (String office : List.of("tokyo", "osaka", "nagoya")) {
                JMSConsumer consumer = context.createConsumer(context.createQueue("orders." + office));
                for (String body; (body = consumer.receiveBody(String.class, 1000)) != null; ) {
                    System.out.println(office + " has " + body);
                }
            }
        }
    }
}
