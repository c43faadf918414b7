import static org.junit.Assert.assertArrayEquals;
import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.Test;

/** Bodies of each kind and of many sizes. */
public class MessagesTest extends BrokerTest {
    private static final int MEBIBYTE = 1 << 20;

    private final JMSContext context = context();
    private final Queue queue = queue(context);
    private final JMSConsumer consumer = context.createConsumer(queue);

    @Test
    public void textComesBack() throws Exception {
        for (String text : new String[] {"", "text", "Größe 大きさ 🐟", null}) {
            context.createProducer().send(queue, context.createTextMessage(text));
            TextMessage message = (TextMessage) next(consumer);
            assertEquals(text, message.getText());
            assertEquals(text, message.getBody(String.class));
            assertTrue(message.isBodyAssignableTo(String.class));
        }
    }

    @Test
    public void bytesComeBack() throws Exception {
        BytesMessage sent = context.createBytesMessage();
        sent.writeInt(-5);
        sent.writeUTF("text");
        sent.writeDouble(0.5);
        context.createProducer().send(queue, sent);
        BytesMessage message = (BytesMessage) next(consumer);
        assertEquals(-5, message.readInt());
        assertEquals("text", message.readUTF());
        assertEquals(0.5, message.readDouble(), 0);
        assertThrows(MessageNotWriteableException.class, () -> message.writeByte((byte) 1));
        assertFalse(message.isBodyAssignableTo(String.class));
    }

    @Test
    public void mapsComeBack() throws Exception {
        MapMessage sent = context.createMapMessage();
        sent.setByte("byte", (byte) 1);
        sent.setLong("long", Long.MAX_VALUE);
        sent.setChar("char", 'ö');
        sent.setBytes("bytes", new byte[] {1, 2});
        sent.setString("string", "text");
        context.createProducer().send(queue, sent);
        MapMessage message = (MapMessage) next(consumer);
        assertEquals(1, message.getByte("byte"));
        assertEquals(Long.MAX_VALUE, message.getLong("long"));
        assertEquals('ö', message.getChar("char"));
        assertArrayEquals(new byte[] {1, 2}, message.getBytes("bytes"));
        assertEquals("text", message.getBody(Map.class).get("string"));
        assertNull(message.getObject("absent"));
    }

    @Test
    public void streamsComeBack() throws Exception {
        StreamMessage sent = context.createStreamMessage();
        sent.writeShort((short) 7);
        sent.writeString("text");
        sent.writeObject(null);
        sent.writeFloat(0.25f);
        context.createProducer().send(queue, sent);
        StreamMessage message = (StreamMessage) next(consumer);
        assertEquals(7, message.readShort());
        assertEquals("text", message.readString());
        assertNull(message.readObject());
        assertEquals(0.25f, message.readFloat(), 0);
        assertThrows(MessageFormatException.class, () -> message.getBody(List.class));
    }

    @Test
    public void objectsComeBack() throws Exception {
        ArrayList<Integer> object = new ArrayList<>(List.of(1, 2, 3));
        context.createProducer().send(queue, object);
        Message message = next(consumer);
        assertEquals(object, ((ObjectMessage) message).getObject());
        assertEquals(object, message.getBody(ArrayList.class));
    }

    @Test
    public void aMessageNeedsNoBody() throws Exception {
        context.createProducer().setProperty("n", 1).send(queue, context.createMessage());
        Message message = next(consumer);
        assertEquals(1, message.getIntProperty("n"));
        assertNull(message.getBody(String.class));
    }

    @Test
    public void receiveBodyOfAnotherKindLeavesTheMessage() {
        context.createProducer().send(queue, "text");
        assertThrows(jakarta.jms.MessageFormatRuntimeException.class, () -> consumer.receiveBody(Map.class, DEADLINE_MS));
        expect(consumer, "text");
    }

    @Test
    public void everySizeComesBack() throws Exception {
        Random random = new Random(1);
        for (int size : new int[] {1, 511, 65_535, 65_536, 131_072, MEBIBYTE, 20 * MEBIBYTE}) {
            byte[] body = new byte[size];
            random.nextBytes(body);
            context.createProducer().send(queue, body);
            assertArrayEquals(body, consumer.receiveBody(byte[].class, DEADLINE_MS));
        }
    }

    @Test
    public void largeMessagesGoThroughSmallFrames() throws Exception {
        JMSContext small = context(JMSContext.AUTO_ACKNOWLEDGE, "amqp.maxFrameSize=512");
        JMSConsumer receiver = small.createConsumer(queue(small));
        Queue other = queue(small);
        byte[] body = new byte[MEBIBYTE];
        new Random(2).nextBytes(body);
        small.createProducer().send(other, body);
        assertArrayEquals(body, small.createConsumer(other).receiveBody(byte[].class, DEADLINE_MS));
        expectNothing(receiver);
    }

    @Test
    public void largeMessagesAreInterleavedWithSmallOnes() throws Exception {
        Queue small = queue(context);
        JMSConsumer ofSmall = sibling(context, JMSContext.AUTO_ACKNOWLEDGE).createConsumer(small);
        byte[] body = new byte[4 * MEBIBYTE];
        for (int number = 0; number < 4; number++) {
            context.createProducer().send(queue, body);
            context.createProducer().send(small, "" + number);
        }
        expect(ofSmall, "0", "1", "2", "3");
        for (int number = 0; number < 4; number++) {
            assertArrayEquals(body, consumer.receiveBody(byte[].class, DEADLINE_MS));
        }
    }
}
