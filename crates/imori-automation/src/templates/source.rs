//! The text of a template, changed where the engine would read it otherwise than Jinja.

use super::rewriting::rewritten;

/// The source with Jinja's ends of line, with the one that Jinja keeps after `{% raw %}`, and with what
/// [`rewritten`] changes.
pub(super) fn normalized(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some((before, opened)) = next_tag(rest) {
        out.push_str(before);
        rest = match opened {
            opened if opened.starts_with("{#") => passed(&mut out, opened, "#}"),
            opened if raw_tag_bytes(opened).is_some() => passed_raw(&mut out, opened),
            opened => passed_code(&mut out, opened),
        };
    }
    out.push_str(rest);
    out
}

/// What stands before the next tag, and the rest from the tag on.
fn next_tag(source: &str) -> Option<(&str, &str)> {
    let at = ["{%", "{{", "{#"].iter().filter_map(|tag| source.find(tag)).min()?;
    Some((source.get(..at)?, source.get(at..)?))
}

/// Passes a tag on as it is, and gives what follows its end.
fn passed<'a>(out: &mut String, opened: &'a str, end: &str) -> &'a str {
    let bytes = opened.find(end).map_or(opened.len(), |at| at + end.len());
    let (tag, after) = opened.split_at_checked(bytes).unwrap_or((opened, ""));
    out.push_str(tag);
    after
}

/// Passes a raw block on up to its last tag. The engine drops its first end of line, so that a second one takes its
/// place.
fn passed_raw<'a>(out: &mut String, opened: &'a str) -> &'a str {
    let bytes = raw_tag_bytes(opened).unwrap_or(0);
    let (tag, inside) = opened.split_at_checked(bytes).unwrap_or((opened, ""));
    out.push_str(tag);
    if !tag.ends_with("-%}") && inside.starts_with('\n') {
        out.push('\n');
    }
    passed(out, inside, "endraw")
}

/// Passes an expression or a statement on.
fn passed_code<'a>(out: &mut String, opened: &'a str) -> &'a str {
    let end = if opened.starts_with("{{") { "}}" } else { "%}" };
    match rewritten(opened, end) {
        Some((code, bytes)) => {
            out.push_str(&code);
            opened.get(bytes..).unwrap_or_default()
        }
        None => {
            let (tag, after) = opened.split_at_checked(2).unwrap_or((opened, ""));
            out.push_str(tag);
            after
        }
    }
}

/// The bytes of a tag `{% raw %}`, if the text begins with one.
fn raw_tag_bytes(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("{%")?;
    let inside = inside.strip_prefix(['-', '+']).unwrap_or(inside);
    let inside = inside.trim_start().strip_prefix("raw")?.trim_start();
    let after = inside.strip_prefix("%}").or_else(|| inside.strip_prefix("-%}"))?;
    Some(text.len() - after.len())
}
