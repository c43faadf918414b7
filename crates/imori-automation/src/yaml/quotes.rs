//! Lines of quoted scalars that begin left of their block.
//!
//! YAML asks for an indentation there, PyYAML does not, and packs rely on that. Blanks at the beginning of such a line
//! are no part of the scalar, so that more of them change nothing.

use crate::limits::YAML_BYTES_MAX;

/// Indents the lines of the quoted scalar that begins at this character of the text. `None` if there is no such scalar,
/// it ends on its line, or the text would exceed its limit.
pub fn indented(text: &str, quote_at: usize, indent: usize) -> Option<String> {
    let begin = text.char_indices().nth(quote_at).map(|(at, _)| at)?;
    let (before, scalar) = text.split_at_checked(begin)?;
    let len = quoted_len(scalar)?;
    let (scalar, after) = scalar.split_at_checked(len)?;
    let lines = scalar.bytes().filter(|byte| *byte == b'\n').count();
    if lines == 0 || lines.saturating_mul(indent).saturating_add(text.len()) > YAML_BYTES_MAX {
        return None;
    }
    let blanks = " ".repeat(indent);
    Some([before, &scalar.replace('\n', &format!("\n{blanks}")), after].concat())
}

/// Bytes of a quoted scalar with its quotes.
fn quoted_len(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        let is_escape = match character {
            '\\' => quote == '"',
            '\'' if quote == '\'' => characters.peek().is_some_and(|(_, next)| *next == '\''),
            _ => false,
        };
        if is_escape {
            characters.next();
        } else if character == quote {
            return Some(at + 1);
        }
    }
    None
}
