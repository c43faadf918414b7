//! Deliveries by the ids that clients know.

use imori_amqp10::for_tests::number_of_id;

#[test]
fn ids_are_the_last_bits_of_numbers() {
    let far = (5 << 32) + 3;
    for (delivered, id, expected) in [
        (0, 0, None),
        (1, 0, Some(1)),
        (1, 1, None),
        (10, 3, Some(4)),
        (far, 2, Some(far)),
        (far, 3, None),
        (far, u32::MAX, Some(far - 3)),
        (2, u32::MAX, None),
    ] {
        assert_eq!(number_of_id(delivered, id), expected, "{id} of {delivered}");
    }
}
