//! Loads the configuration file, TOML, keeping the location of every key for error messages.

use std::fs;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::loading::Loading;
use super::problem::{Location, Problem};
use super::value::reading;

/// Loads the file at `path`.
pub(super) fn load(path: &Path, loading: &mut Loading) {
    match fs::read_to_string(path) {
        Ok(text) => File { path, text: &text }.load(loading),
        Err(error) => loading.report(Problem::unreadable(path, &error)),
    }
}

struct File<'a> {
    path: &'a Path,
    text: &'a str,
}

impl File<'_> {
    fn load(&self, loading: &mut Loading) {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        if !errors.is_empty() {
            for error in errors {
                loading
                    .report(Problem::syntax(&self.location(error.span().unwrap_or(0..0)), error.message()));
            }
            return;
        }
        for (name, value) in in_order(table.get_ref()) {
            let location = self.location(name.span());
            let section = name.get_ref().as_ref();
            match value.get_ref() {
                DeValue::Table(keys) => self.load_section(&location, section, keys, loading),
                _ => loading.report(Problem::not_in_a_section(&location, section)),
            }
        }
    }

    fn load_section(&self, location: &Location, section: &str, keys: &DeTable<'_>, loading: &mut Loading) {
        if !loading.has_section(section) {
            loading.report(Problem::unknown_section(location, section));
            return;
        }
        for (key, value) in in_order(keys) {
            let shown = self.text.get(value.span()).unwrap_or_default();
            let reading = [reading(value.get_ref())];
            loading.set(&self.location(key.span()), section, key.get_ref(), &reading, shown);
        }
    }

    fn location(&self, span: Range<usize>) -> Location {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Location::File {
            path: self.path.to_path_buf(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
        }
    }
}

type Entry<'a, 'i> = (&'a Spanned<toml::de::DeString<'i>>, &'a Spanned<DeValue<'i>>);

/// The entries in file order; the table itself sorts them by name.
fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<Entry<'a, 'i>> {
    let mut entries: Vec<Entry<'a, 'i>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}
