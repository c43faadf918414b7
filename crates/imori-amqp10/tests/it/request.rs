//! The paths of management requests.

use imori_amqp10::for_tests::{decoded, encoded};

#[test]
fn names_of_any_bytes_stand_in_a_path() {
    for text in ["plain", "a/b c%", "ü\u{1f980}", "src=e;key=k"] {
        let path = encoded(text.as_bytes());
        assert!(!path.contains(['/', ' ', ';', '=']), "{path}");
        assert_eq!(decoded(&path).as_deref(), Some(text));
    }
    for bad in ["%", "%1", "%gg", "%ff"] {
        assert_eq!(decoded(bad), None, "{bad}");
    }
}
