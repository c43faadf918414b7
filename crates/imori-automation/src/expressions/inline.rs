//! Parameters within a text, as in `core.local cmd="date" timeout=10`.

use std::sync::LazyLock;

use regex::Regex;

use crate::value::Value;

/// `name=value`: a value in brackets, quotes or apostrophes, a number, a word of JSON, or an expression.
static PARAMETER: LazyLock<Regex> = LazyLock::new(|| {
    let value = r#"\[.*\]\s*|"[^"]*"\s*|'[^']*'\s*|[-]?\d*\.\d+|[-]?\d+|(?i:true)|(?i:false)|null|\{\{.*?\}\}|<%.*?%>"#;
    Regex::new(&format!(r"(\w+)=({value})")).expect("the pattern is fixed")
});

/// The parameters of a text in order.
pub fn inline_parameters(text: &str) -> Vec<(String, Value)> {
    let found = PARAMETER.captures_iter(text);
    found
        .filter_map(|groups| {
            let name = groups.get(1)?.as_str().to_owned();
            Some((name, value(groups.get(2)?.as_str().trim())))
        })
        .collect()
}

/// The value of a parameter: JSON where it is that.
fn value(written: &str) -> Value {
    let is_quoted = has_pair(written, '"') || has_pair(written, '\'');
    let bare = stripped(stripped(written, '"'), '\'');
    let is_object = bare.starts_with('{') && bare.ends_with('}');
    if is_quoted && !is_object && !bare.is_empty() {
        return Value::from(bare);
    }
    let lower = bare.to_ascii_lowercase();
    let json = if matches!(lower.as_str(), "true" | "false") { lower.as_str() } else { bare };
    Value::from_json(json.as_bytes()).unwrap_or_else(|_| Value::from(bare))
}

fn has_pair(text: &str, quote: char) -> bool {
    text.matches(quote).count() > 1
}

fn stripped(text: &str, quote: char) -> &str {
    let text = text.strip_prefix(quote).unwrap_or(text);
    text.strip_suffix(quote).unwrap_or(text)
}
