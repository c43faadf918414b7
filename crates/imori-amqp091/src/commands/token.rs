//! Generates names for queues and consumers, and defines the name of direct reply-to.

/// The pseudo-queue that refers to the inbox of a channel: RabbitMQ's direct reply-to.
pub(crate) const DIRECT_REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// Appends 128 random bits to a prefix, in the alphabet of RFC 4648, section 5.
pub fn named(prefix: &str, secret: [u8; 16]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut name = String::from(prefix);
    let (mut bits, mut len) = (0_u32, 0);
    let mut push = |bits: u32| {
        let digit = DIGITS.get(bits as usize & 63).copied().unwrap_or_default();
        name.push(char::from(digit));
    };
    for byte in secret {
        bits = (bits << 8 | u32::from(byte)) & 0xffff;
        len += 8;
        while len >= 6 {
            len -= 6;
            push(bits >> len);
        }
    }
    push(bits << (6 - len));
    name
}
