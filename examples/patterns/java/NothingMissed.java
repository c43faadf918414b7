import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.Topic;
import org.apache.qpid.jms.JmsConnectionFactory;

/** All subscribers get each message; one that was down gets what it has missed. */
public final class NothingMissed {
    public static void main(String[] arguments) {
        JmsConnectionFactory factory = new JmsConnectionFactory("guest", "guest", arguments[0]);
        try (JMSContext context = factory.createContext(); JMSContext branch = factory.createContext()) {
            Topic rates = context.createTopic("rates");
            branch.setClientID("branch");
            JMSConsumer live = context.createConsumer(rates);
            JMSConsumer durable = branch.createDurableConsumer(rates, "rates-of-branch");
            context.createProducer().send(rates, "rate 1");
            print("head office", live);
            print("branch", durable);
            durable.close();
            System.out.println("the branch is down");
            for (int number = 2; number <= 4; number++) {
                context.createProducer().send(rates, "rate " + number);
                print("head office", live);
            }
            System.out.println("the branch is back");
            durable = branch.createDurableConsumer(rates, "rates-of-branch");
            for (int number = 2; number <= 4; number++) {
                print("branch", durable);
            }
            durable.close();
            branch.unsubscribe("rates-of-branch");
        }
    }

    private static void print(String who, JMSConsumer consumer) {
        System.out.println(who + " has " + consumer.receiveBody(String.class, 10_000));
    }
}
