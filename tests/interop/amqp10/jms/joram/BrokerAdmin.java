import java.util.Hashtable;
import javax.naming.InitialContext;
import javax.naming.NameNotFoundException;
import javax.naming.NamingException;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.jms.JmsQueue;
import org.apache.qpid.jms.JmsTopic;
import org.objectweb.jtests.jms.admin.Admin;

/**
 * The objects that the Joram tests look up: connection factories for the broker at the URL in the system property
 * `broker`, and destinations that the broker makes when they are attached to.
 */
public final class BrokerAdmin implements Admin {
    private static final Hashtable<String, Object> OBJECTS = new Hashtable<>();
    private static int made;

    /** A context without a provider: only what the tests have made is in it. */
    private static final class Objects extends InitialContext {
        Objects() throws NamingException {
            super(true);
        }

        @Override
        public Object lookup(String name) throws NamingException {
            Object found = OBJECTS.get(name);
            if (found == null) {
                throw new NameNotFoundException(name);
            }
            return found;
        }

        @Override
        public void close() {}
    }

    /** Each test has destinations of its own, so that none reads what another has left. */
    private static synchronized String fresh(String name) {
        made += 1;
        return name + "-" + ProcessHandle.current().pid() + "-" + made;
    }

    private static void put(String name) {
        OBJECTS.put(name, new JmsConnectionFactory("guest", "guest", System.getProperty("broker")));
    }

    @Override public String getName() { return "the broker under test"; }
    @Override public javax.naming.Context createContext() throws NamingException { return new Objects(); }
    @Override public void createConnectionFactory(String name) { put(name); }
    @Override public void createQueueConnectionFactory(String name) { put(name); }
    @Override public void createTopicConnectionFactory(String name) { put(name); }
    @Override public void createQueue(String name) { OBJECTS.put(name, new JmsQueue(fresh(name))); }
    @Override public void createTopic(String name) { OBJECTS.put(name, new JmsTopic(fresh(name))); }
    @Override public void deleteQueue(String name) { OBJECTS.remove(name); }
    @Override public void deleteTopic(String name) { OBJECTS.remove(name); }
    @Override public void deleteConnectionFactory(String name) { OBJECTS.remove(name); }
    @Override public void deleteQueueConnectionFactory(String name) { OBJECTS.remove(name); }
    @Override public void deleteTopicConnectionFactory(String name) { OBJECTS.remove(name); }
    @Override public void startServer() {}
    @Override public void stopServer() {}
    @Override public void start() {}
    @Override public void stop() {}
}
