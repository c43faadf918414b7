//! Help: the commands that aliases describe.

use super::alias::Alias;
use crate::python::python_regex;

/// A command that help shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpString<'a, K> {
    /// The name under which the alias was given.
    pub key: K,
    /// The command.
    pub display: &'a str,
}

/// The part of the commands to show.
#[derive(Debug, Clone, Copy, Default)]
pub struct HelpPage<'a> {
    /// A regular expression that commands contain; empty for all.
    pub filter: &'a str,
    /// The number of commands; 0 for all.
    pub limit: usize,
    /// The number of commands to leave out first.
    pub offset: usize,
}

/// The commands of these aliases on a page, and how many there are without the page.
///
/// # Errors
/// The filter is no regular expression.
pub fn help_strings<'a, K: Clone>(
    aliases: impl Iterator<Item = (K, &'a Alias)>,
    page: HelpPage<'_>,
) -> Result<(Vec<HelpString<'a, K>>, usize), String> {
    let filter = python_regex(page.filter, true)?;
    let (mut shown, mut count) = (Vec::new(), 0);
    for (key, alias) in aliases {
        // Several representations share one display.
        let mut last = None;
        for form in alias.forms() {
            let Some(display) = form.display.as_deref().filter(|display| !display.is_empty()) else {
                continue;
            };
            if last == Some(display) || !filter.is_match(display).unwrap_or(false) {
                continue;
            }
            last = Some(display);
            if count >= page.offset && (page.limit == 0 || count - page.offset < page.limit) {
                shown.push(HelpString { key: key.clone(), display });
            }
            count += 1;
        }
    }
    Ok((shown, count))
}
