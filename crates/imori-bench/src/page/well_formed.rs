//! Checks that a page is well-formed: every element closed, every value quoted, everything escaped.

/// Elements with raw text, in which markup is not parsed.
const RAW: [&str; 2] = ["style", "script"];

/// Panics at the first fault, showing its position.
pub(crate) fn check(text: &str) {
    let mut rest = text;
    let mut open: Vec<String> = Vec::new();
    while let Some(at) = rest.find('<') {
        check_text(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find('>').unwrap_or_else(|| panic!("a tag does not end: {}", start(rest)));
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if tag.starts_with('?') || tag.starts_with("!doctype") {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "before {}", start(rest));
            continue;
        }
        let name: String = tag.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
        assert!(!name.is_empty(), "no name in `{tag}`");
        check_attributes(tag[name.len()..].trim_end_matches('/'), tag);
        if tag.ends_with('/') {
            continue;
        }
        if RAW.contains(&name.as_str()) {
            let close = format!("</{name}>");
            let end = rest.find(&close).unwrap_or_else(|| panic!("`{name}` does not end"));
            rest = &rest[end + close.len()..];
            continue;
        }
        open.push(name);
    }
    check_text(rest);
    assert!(open.is_empty(), "{open:?} are not closed");
}

fn check_text(text: &str) {
    for (at, _) in text.match_indices('&') {
        let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
        assert!(known.iter().any(|name| text[at..].starts_with(name)), "a raw `&`: {}", start(&text[at..]));
    }
    assert!(!text.contains('>'), "a raw `>`: {}", start(text));
}

fn check_attributes(mut text: &str, tag: &str) {
    while !text.trim().is_empty() {
        let (name, rest) =
            text.split_once("=\"").unwrap_or_else(|| panic!("a value without quotes in `{tag}`"));
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-:".contains(c);
        assert!(name.starts_with(' ') && name.trim().chars().all(is_name), "`{name}` in `{tag}`");
        assert!(!name.trim().starts_with("on"), "an event handler in `{tag}`");
        let (value, rest) = rest.split_once('"').unwrap_or_else(|| panic!("a value does not end in `{tag}`"));
        check_text(value);
        text = rest;
    }
}

fn start(text: &str) -> String {
    text.chars().take(80).collect()
}
