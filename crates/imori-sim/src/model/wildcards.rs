//! The wildcards of patterns, by their definition.

/// Whether a pattern in AMQP's syntax matches: `*` is one word, `#` any number.
pub fn is_match(pattern: &str, subject: &str) -> bool {
    fn words(pattern: &[&str], subject: &[&str]) -> bool {
        match (pattern.split_first(), subject.split_first()) {
            (None, None) => true,
            (Some((&"#", rest)), None) => words(rest, subject),
            (Some((&"#", rest)), Some((_, later))) => words(rest, subject) || words(pattern, later),
            (Some((word, rest)), Some((first, later))) => {
                (*word == "*" || word == first) && words(rest, later)
            }
            _ => false,
        }
    }
    let split = |text: &str| -> Vec<String> { text.split('.').map(String::from).collect() };
    let (pattern, subject) = (split(pattern), split(subject));
    let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
    let subject: Vec<&str> = subject.iter().map(String::as_str).collect();
    words(&pattern, &subject)
}
