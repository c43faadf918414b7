//! The numbers of sessions and their deliveries.

use imori_amqp10::for_tests::{Session, channel_of, session_of};

#[test]
fn deliveries_are_numbered_on_beyond_32_bits() {
    let mut session = Session::default();
    let first = session.number(u32::MAX - 1);
    for (id, expected) in [(u32::MAX, 1), (0, 2), (1, 3), (u32::MAX, 1), (2, 4)] {
        assert_eq!(session.number(id) - first, expected, "{id}");
    }
    for channel in [0, 1, u16::MAX - 1] {
        assert_eq!(channel_of(session_of(channel)), channel);
    }
}
