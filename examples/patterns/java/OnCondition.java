import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Topic;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Subscribers name a condition, and get the messages that fulfil it. */
public final class OnCondition {
    public static void main(String[] arguments) {
        try (JMSContext context = new JmsConnectionFactory("guest", "guest", arguments[0]).createContext()) {
            Topic trades = context.createTopic("trades");
            Map<String, JMSConsumer> consumers = new LinkedHashMap<>();
            for (String condition : new String[] {"price > 1000", "symbol IN ('A', 'C')", "symbol LIKE 'B%' AND volume < 50"}) {
                consumers.put(condition, context.createConsumer(trades, condition));
            }
            send(context, trades, "A", 900, 10);
            send(context, trades, "B", 1200, 10);
            send(context, trades, "C", 1500, 90);
            send(context, trades, "BB", 100, 60);
            consumers.forEach((condition, consumer) -> {
                for (String body; (body = consumer.receiveBody(String.class, 1000)) != null; ) {
                    System.out.println(condition + ": " + body);
                }
            });
        }
    }

    private static void send(JMSContext context, Topic trades, String symbol, int price, int volume) {
        context.createProducer()
                .setProperty("symbol", symbol)
                .setProperty("price", price)
                .setProperty("volume", volume)
                .send(trades, volume + " of " + symbol + " at " + price);
    }
}
