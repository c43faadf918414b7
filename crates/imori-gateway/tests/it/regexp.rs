//! Ruby's regular expressions.

use imori_gateway::for_tests::translate;

#[test]
fn escapes_of_ruby_are_translated() {
    for (source, expected) in [
        (r"\h+", "[0-9a-fA-F]+"),
        (r"a\\h", r"a\\h"),
        (r"\/x\.y", r"/x\.y"),
        (r"[\w-]\b", r"[[0-9A-Za-z_]-](?-u:\b)"),
        (r"x\Z", r"x(?:\n?\z)"),
        ("\\", "\\"),
        ("(?m-ix:a)(?<m>b)(?:c)", "(?s-ix:a)(?<m>b)(?:c)"),
        ("ä(?", "ä(?"),
    ] {
        assert_eq!(translate(source), expected, "{source}");
    }
}
