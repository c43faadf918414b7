//! The routes as TOML that people read and go on editing.

use std::fmt::Write as _;

use super::draft::{Action, Draft, Matcher, Route, Script, Source};
use super::problem::Note;
use super::syntax::one_line;

/// Writes a draft.
pub(super) fn write(draft: &Draft, file: &str) -> String {
    let mut text = Text(String::new());
    text.line(&format!("# Routes imported from `{}`.", one_line(file)));
    let addresses: Vec<String> = draft.listeners.iter().map(|address| quoted(address)).collect();
    if !addresses.is_empty() {
        text.line(&format!("# Addresses for `listeners.http`: {}.", addresses.join(", ")));
    }
    text.notes(&draft.notes);
    if !draft.scripts.is_empty() {
        text.line("\n[scripts]");
        for (key, script) in &draft.scripts {
            text.line(&format!("# line {}", script.line));
            text.pair(key, &script_value(script));
        }
    }
    for route in &draft.routes {
        text.route(route);
    }
    text.0
}

struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn pair(&mut self, key: &str, value: &str) {
        self.line(&format!("{key} = {value}"));
    }

    fn notes(&mut self, notes: &[Note]) {
        for note in notes {
            self.line(&format!("# line {}: {}", note.line, note.text));
        }
    }

    fn route(&mut self, route: &Route) {
        self.line(&format!("\n# line {}: {}", route.line, route.title));
        self.notes(&route.notes);
        self.line("[[route]]");
        match &route.matcher {
            Matcher::Path(path) => self.pair("path", &quoted(path)),
            Matcher::Prefix { text, is_before_regex } => {
                self.pair("prefix", &quoted(text));
                if *is_before_regex {
                    self.pair("before_regex", "true");
                }
            }
            Matcher::Regex(regex) => self.pair("regex", &quoted(regex)),
        }
        if !route.hosts.is_empty() {
            self.pair("hosts", &list(&route.hosts));
        }
        if !route.ports.is_empty() {
            let ports: Vec<String> = route.ports.iter().map(u16::to_string).collect();
            self.pair("ports", &format!("[{}]", ports.join(", ")));
        }
        if route.is_internal {
            self.pair("internal", "true");
        }
        if let Some(bytes) = route.body_bytes {
            self.pair("limits", &format!("{{ body_bytes = {bytes} }}"));
        }
        if !route.variables.is_empty() {
            self.pair("variables", &table(&route.variables));
        }
        for (key, script) in &route.phases {
            self.pair(key, &script_value(script));
        }
        match &route.action {
            Action::Content(script) => self.pair("content", &script_value(script)),
            Action::Proxy { .. } | Action::Files { .. } | Action::Return { .. } => {}
        }
        for (variable, script) in &route.sets {
            self.line("[[route.set]]");
            self.pair("variable", &quoted(variable));
            match &script.source {
                Source::Code(code) => self.pair("code", &code_value(code)),
                Source::File(path) => self.pair("file", &quoted(path)),
            }
        }
        self.action(&route.action);
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Content(_) => {}
            Action::Proxy { to, timeout_ms, headers } => {
                self.line("[route.proxy]");
                self.pair("to", &quoted(to));
                if let Some(timeout_ms) = timeout_ms {
                    self.pair("timeout_ms", &timeout_ms.to_string());
                }
                self.headers(headers);
            }
            Action::Files { root, is_alias, index } => {
                self.line("[route.files]");
                self.pair("root", &quoted(root));
                if *is_alias {
                    self.pair("strip", "true");
                }
                if !index.is_empty() {
                    self.pair("index", &list(index));
                }
            }
            Action::Return { status, location, body, headers } => {
                self.line("[route.return]");
                self.pair("status", &status.to_string());
                if let Some(location) = location {
                    self.pair("location", &quoted(location));
                }
                if let Some(body) = body {
                    self.pair("body", &quoted(body));
                }
                self.headers(headers);
            }
        }
    }

    fn headers(&mut self, headers: &[(String, String)]) {
        if !headers.is_empty() {
            self.pair("headers", &table(headers));
        }
    }
}

fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

fn table(pairs: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        pairs.iter().map(|(key, value)| format!("{} = {}", key_text(key), quoted(value))).collect();
    format!("{{ {} }}", pairs.join(", "))
}

fn key_text(key: &str) -> String {
    let is_bare = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare { String::from(key) } else { quoted(key) }
}

fn script_value(script: &Script) -> String {
    match &script.source {
        Source::Code(code) => format!("{{ code = {} }}", code_value(code)),
        Source::File(path) => format!("{{ file = {} }}", quoted(path)),
    }
}

/// Ruby as a string that gives it back byte by byte: as it is between `'''` if it has several lines.
fn code_value(code: &str) -> String {
    if !code.contains('\n') {
        return quoted(code);
    }
    // TOML, String: a newline right after the opening delimiter is not part of the string.
    let is_literal = !code.contains("'''") && !code.ends_with('\'') && !code.contains(is_special);
    match is_literal {
        true => format!("'''\n{code}'''"),
        false => format!("\"\"\"\n{}\"\"\"", escaped(code, true)),
    }
}

/// A string on one line: between `'` where that avoids escapes.
fn quoted(text: &str) -> String {
    let has_escapes = text.contains(['"', '\\']);
    let is_literal = has_escapes && !text.contains(['\'', '\n', '\t']) && !text.contains(is_special);
    match is_literal {
        true => format!("'{text}'"),
        false => format!("\"{}\"", escaped(text, false)),
    }
}

/// Characters that TOML takes only as escapes, whatever the string.
fn is_special(char: char) -> bool {
    char.is_control() && !matches!(char, '\n' | '\t')
}

fn escaped(text: &str, keeps_lines: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '"' => escaped.push_str("\\\""),
            '\\' => escaped.push_str("\\\\"),
            '\n' if keeps_lines => escaped.push('\n'),
            '\t' if keeps_lines => escaped.push('\t'),
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            // Writing into a String does not fail.
            _ if char.is_control() => drop(write!(escaped, "\\u{:04X}", u32::from(char))),
            _ => escaped.push(char),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{code_value, quoted};

    fn read(value: &str) -> String {
        let table: toml::Table = format!("x = {{ code = {value} }}").parse().expect(value);
        table["x"]["code"].as_str().unwrap().to_owned()
    }

    #[test]
    fn strings_come_back() {
        let texts = [
            "",
            "plain",
            "it's",
            "say \"x\"",
            "^/\\d+$",
            "it's \\ \"both\"",
            "a\tb",
            "\u{0}\u{7f}\u{85}\r",
            "two\nlines",
            "\n  first line is empty\n",
            "''' in it\n",
            "ends with '\n'",
            "a\r\nb\\\n\"\"\"\n",
            "ü\n€",
        ];
        for text in texts {
            assert_eq!(read(&code_value(text)), text, "{text:?}");
            assert_eq!(read(&quoted(text)), text, "{text:?}");
        }
    }

    #[test]
    fn ruby_is_written_as_it_is() {
        assert_eq!(code_value("\n  a \"b\"\n"), "'''\n\n  a \"b\"\n'''");
        assert_eq!(quoted("^/\\d+$"), "'^/\\d+$'");
        assert_eq!(quoted("plain"), "\"plain\"");
    }
}
