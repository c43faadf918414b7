//! Writes HTML and SVG elements. All foreign text is escaped here, so it cannot become an element.
//! The output is well-formed XML: every element is closed, every value quoted.

use std::fmt::{self, Display, Write};

/// Attributes of an element.
pub(crate) type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// A buffer of written elements.
#[derive(Debug, Default, Clone)]
pub(crate) struct Markup {
    text: String,
}

impl Markup {
    /// Creates an empty buffer.
    pub(crate) fn new() -> Markup {
        Markup::default()
    }

    /// Begins an element; `close` ends it.
    pub(crate) fn open(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.tag(tag, attributes, ">");
    }

    /// Ends an element.
    pub(crate) fn close(&mut self, tag: &str) {
        self.put(format_args!("</{tag}>"));
    }

    /// Writes an element without content.
    pub(crate) fn empty(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.tag(tag, attributes, "/>");
    }

    /// Writes an element that contains text.
    pub(crate) fn element(&mut self, tag: &str, attributes: Attributes<'_>, text: &str) {
        self.open(tag, attributes);
        self.text(text);
        self.close(tag);
    }

    /// Writes escaped text.
    pub(crate) fn text(&mut self, text: &str) {
        self.put(format_args!("{}", Escaped(text)));
    }

    /// Appends other elements.
    pub(crate) fn append(&mut self, other: &Markup) {
        self.text.push_str(&other.text);
    }

    /// Writes a style sheet, script or declaration of our own without escaping it.
    pub(crate) fn own(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// The written text.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn tag(&mut self, tag: &str, attributes: Attributes<'_>, end: &str) {
        self.put(format_args!("<{tag}"));
        for (name, value) in attributes {
            self.put(format_args!(" {name}=\"{}\"", Escaped(&value.to_string())));
        }
        self.text.push_str(end);
    }

    fn put(&mut self, what: fmt::Arguments<'_>) {
        self.text.write_fmt(what).expect("a string takes everything that displays itself without error");
    }
}

/// A coordinate of a drawing, rounded to a tenth.
pub(crate) fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// Text in which characters special to HTML are escaped and those invalid in XML replaced.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                _ if is_hidden(character) => f.write_char('\u{fffd}')?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// Foreign text in which characters unsafe for a terminal are replaced.
pub(crate) fn plain_line(text: &str) -> String {
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

/// Whether a character is a control character or changes the direction of text, and so could hide other text.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_stays_text() {
        for (text, expected) in [
            ("plain", "plain"),
            ("<script>alert('x')</script>", "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"),
            ("a\" onload=\"b", "a&quot; onload=&quot;b"),
            ("&amp;", "&amp;amp;"),
            ("a\0\u{1b}[2Jb\u{202e}c", "a\u{fffd}\u{fffd}[2Jb\u{fffd}c"),
        ] {
            let mut markup = Markup::new();
            markup.element("p", &[("title", &text)], text);
            assert_eq!(markup.into_text(), format!("<p title=\"{expected}\">{expected}</p>"));
        }
    }

    #[test]
    fn places_are_short() {
        for (value, expected) in [(1.0, "1"), (1.25, "1.2"), (-0.01, "0"), (100.06, "100.1")] {
            assert_eq!(px(value), expected);
        }
    }
}
