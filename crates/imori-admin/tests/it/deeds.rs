//! What an operator may ask about the rights of a user.

use imori_admin::for_tests::Deed;

#[test]
fn a_deed_takes_the_names_of_its_verb() {
    let read = |verb, names| Deed::read(verb, names).map_err(|error| error.to_string());
    assert_eq!(read("publish", (Some("q"), None, None)), Ok(Deed::Publish("", "q")));
    assert_eq!(read("publish", (None, Some("x"), None)), Ok(Deed::Publish("x", "")));
    assert_eq!(read("declare", (None, Some("x"), None)), Ok(Deed::DeclareExchange("x")));
    assert_eq!(read("enter", (None, None, None)), Ok(Deed::Enter));
    for (verb, names, told) in [
        ("consume", (None, Some("x"), None), "to consume takes `queue`"),
        ("declare", (Some("q"), Some("x"), None), "to declare takes `queue` or `exchange`"),
        ("subscribe", (None, Some("x"), None), "to subscribe takes `exchange` and `key`"),
        ("eat", (None, None, None), "`eat` is no verb"),
    ] {
        assert!(read(verb, names).unwrap_err().contains(told), "{verb}");
    }
}
