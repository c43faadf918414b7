import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Load of one JMS program: messages through a queue, or calls with replies to temporary queues.
 *
 * <p>Prints "begin" when it begins to count and "end" when it is done, each of which bench/jms.py hears, then a line of
 * JSON: operations, seconds, p50_ms and p99_ms.
 */
public final class JmsLoad {
    private static final int COUNTED_MAX = 1 << 20;
    private static final String QUEUE = "jms-load";

    /** The connection of those that send, or ask. */
    private final Connection connection;
    /** The connection of those that receive, or answer. */
    private final Connection other;
    private final int size;
    private final Semaphore window;
    private final AtomicBoolean over = new AtomicBoolean();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    /** What each thread counts of its own. */
    private final List<Counter> counters = new ArrayList<>();

    /** Operations of one thread, and the times of the first of them. */
    private final class Counter {
        private volatile boolean counts;
        private volatile long operations;
        private final long[] nanos = new long[COUNTED_MAX];
        private int timed;

        Counter() {
            counters.add(this);
        }

        /** Counts one that took so long; without a time, negative. */
        void add(long took) {
            if (!counts) {
                return;
            }
            operations += 1;
            if (took >= 0 && timed < nanos.length) {
                nanos[timed++] = took;
            }
        }
    }

    private JmsLoad(Connection connection, Connection other, int size, int window) {
        this.connection = connection;
        this.other = other;
        this.size = size;
        this.window = new Semaphore(window);
    }

    /** Arguments: URL, scenario, bytes of a body, requesters, messages on their way, seconds of warm-up and of load. */
    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory = new JmsConnectionFactory(arguments[0]);
        try (Connection connection = factory.createConnection("guest", "guest");
                Connection other = factory.createConnection("guest", "guest")) {
            int size = Integer.parseInt(arguments[2]);
            JmsLoad load = new JmsLoad(connection, other, size, Integer.parseInt(arguments[4]));
            connection.setExceptionListener(load::fail);
            other.setExceptionListener(load::fail);
            List<Thread> threads = load.begin(arguments[1], Integer.parseInt(arguments[3]));
            other.start();
            connection.start();
            threads.forEach(Thread::start);
            load.measure(Double.parseDouble(arguments[5]), Double.parseDouble(arguments[6]));
        }
        // Threads that wait for an answer end with the process.
        System.exit(0);
    }

    private List<Thread> begin(String scenario, int requesters) throws JMSException {
        switch (scenario) {
            case "queue":
                return List.of(flow(DeliveryMode.NON_PERSISTENT, false));
            case "durable":
                return List.of(flow(DeliveryMode.PERSISTENT, false));
            case "durable-async":
                return List.of(flow(DeliveryMode.PERSISTENT, true));
            case "rpc":
                respond();
                List<Thread> threads = new ArrayList<>();
                for (int index = 0; index < requesters; index++) {
                    threads.add(request());
                }
                return threads;
            default:
                throw new IllegalArgumentException("no scenario `" + scenario + "`");
        }
    }

    /** A consumer that counts, and a thread that sends as fast as the window allows; durable ones count when confirmed. */
    private Thread flow(int mode, boolean async) throws JMSException {
        boolean durable = mode == DeliveryMode.PERSISTENT;
        Counter counter = new Counter();
        Session receiving = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Queue queue = receiving.createQueue(QUEUE);
        receiving
                .createConsumer(queue)
                .setMessageListener(
                        message -> {
                            check(message);
                            if (!durable) {
                                counter.add(-1);
                                window.release();
                            }
                        });
        Session sending = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = sending.createProducer(queue);
        producer.setDeliveryMode(mode);
        byte[] body = new byte[size];
        return new Thread(
                () -> {
                    while (!over.get()) {
                        try {
                            window.acquire();
                            BytesMessage message = sending.createBytesMessage();
                            message.writeBytes(body);
                            long from = System.nanoTime();
                            if (async) {
                                producer.send(message, confirmed(counter, from));
                            } else {
                                producer.send(message);
                                if (durable) {
                                    counter.add(System.nanoTime() - from);
                                    window.release();
                                }
                            }
                        } catch (JMSException | InterruptedException error) {
                            fail(error);
                        }
                    }
                });
    }

    private CompletionListener confirmed(Counter counter, long from) {
        return new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                counter.add(System.nanoTime() - from);
                window.release();
            }

            @Override
            public void onException(Message message, Exception error) {
                fail(error);
            }
        };
    }

    private void respond() throws JMSException {
        Session session = other.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = session.createProducer(null);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        session.createConsumer(session.createQueue(QUEUE))
                .setMessageListener(
                        request -> {
                            try {
                                BytesMessage reply = session.createBytesMessage();
                                reply.writeBytes(request.getBody(byte[].class));
                                reply.setJMSCorrelationID(request.getJMSCorrelationID());
                                producer.send(request.getJMSReplyTo(), reply);
                            } catch (JMSException error) {
                                fail(error);
                            }
                        });
    }

    /** A thread with one call in flight. */
    private Thread request() throws JMSException {
        Counter counter = new Counter();
        Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        MessageProducer producer = session.createProducer(session.createQueue(QUEUE));
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        byte[] body = new byte[size];
        return new Thread(
                () -> {
                    for (long number = 0; !over.get(); number++) {
                        try {
                            BytesMessage request = session.createBytesMessage();
                            request.writeBytes(body);
                            String correlation = Long.toString(number);
                            request.setJMSCorrelationID(correlation);
                            request.setJMSReplyTo(replies);
                            long from = System.nanoTime();
                            producer.send(request);
                            Message reply = consumer.receive(10_000);
                            if (reply == null || !correlation.equals(reply.getJMSCorrelationID())) {
                                throw new JMSException("no reply, or another call's, to " + correlation);
                            }
                            check(reply);
                            counter.add(System.nanoTime() - from);
                        } catch (JMSException error) {
                            fail(error);
                        }
                    }
                });
    }

    private void check(Message message) {
        try {
            if (((BytesMessage) message).getBodyLength() != size) {
                fail(new JMSException("a body has another length"));
            }
        } catch (JMSException error) {
            fail(error);
        }
    }

    /** The end of the load: the first failure says why. */
    private void fail(Throwable error) {
        if (!over.get()) {
            failure.compareAndSet(null, error);
            over.set(true);
        }
    }

    private void measure(double warmup, double seconds) throws Exception {
        pause(warmup);
        System.out.println("begin");
        long from = System.nanoTime();
        counters.forEach(counter -> counter.counts = true);
        pause(seconds);
        counters.forEach(counter -> counter.counts = false);
        double took = (System.nanoTime() - from) / 1e9;
        System.out.println("end");
        over.set(true);
        if (failure.get() != null) {
            throw new IllegalStateException("the load broke off", failure.get());
        }
        long operations = counters.stream().mapToLong(counter -> counter.operations).sum();
        long[] nanos =
                counters.stream().flatMapToLong(counter -> Arrays.stream(counter.nanos, 0, counter.timed)).toArray();
        Arrays.sort(nanos);
        System.out.printf(
                "{\"operations\": %d, \"seconds\": %.3f, \"p50_ms\": %.4f, \"p99_ms\": %.4f}%n",
                operations, took, at(nanos, 0.50), at(nanos, 0.99));
    }

    private void pause(double seconds) throws InterruptedException {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while (!over.get() && System.nanoTime() < end) {
            Thread.sleep(10);
        }
    }

    /** Milliseconds below which this share of the sorted times lies; zero without any. */
    private static double at(long[] sorted, double share) {
        return sorted.length == 0 ? 0 : sorted[(int) (share * (sorted.length - 1))] / 1e6;
    }
}
