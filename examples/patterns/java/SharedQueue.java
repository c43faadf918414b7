import jakarta.jms.JMSContext;
import jakarta.jms.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.qpid.jms.JmsConnectionFactory;

/** Several receivers share the work of one queue: each message goes to one of them. */
public final class SharedQueue {
    private static final int MESSAGES = 1000;
    private static final int WORKERS = 3;

    public static void main(String[] arguments) throws InterruptedException {
        // A small prefetch, so that no worker takes the work of the others in advance.
        String url = arguments[0] + (arguments[0].contains("?") ? "&" : "?") + "jms.prefetchPolicy.all=5";
        JmsConnectionFactory factory = new JmsConnectionFactory("guest", "guest", url);
        Set<String> done = ConcurrentHashMap.newKeySet();
        AtomicInteger busy = new AtomicInteger();
        CountDownLatch left = new CountDownLatch(MESSAGES);
        try (JMSContext context = factory.createContext()) {
            Queue queue = context.createQueue("work");
            JMSContext[] workers = new JMSContext[WORKERS];
            for (int number = 0; number < WORKERS; number++) {
                workers[number] = factory.createContext();
                AtomicInteger had = new AtomicInteger();
                workers[number].createConsumer(queue).setMessageListener(message -> {
                    try {
                        done.add(message.getBody(String.class));
                    } catch (jakarta.jms.JMSException error) {
                        throw new IllegalStateException(error);
                    }
                    if (had.getAndIncrement() == 0) {
                        busy.incrementAndGet();
                    }
                    left.countDown();
                });
            }
            for (int number = 0; number < MESSAGES; number++) {
                context.createProducer().send(queue, "job " + number);
            }
            boolean isDone = left.await(60, TimeUnit.SECONDS);
            for (JMSContext worker : workers) {
                worker.close();
            }
            System.out.println(done.size() + " jobs are done" + (isDone ? "" : ", and some were lost"));
            System.out.println(busy.get() + " workers had some of them");
        }
    }
}
