//! Generated names.

use imori_amqp091::for_tests::named;

#[test]
fn a_name_has_all_bits_of_its_secret() {
    assert_eq!(named("amq.gen-", [0; 16]), "amq.gen-AAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(named("", [0xff; 16]), "_____________________w");
    assert_eq!(named("", *b"0123456789abcdef"), "MDEyMzQ1Njc4OWFiY2RlZg");
}
