//! The tables of the definitions, and reports of their damage.

use std::fmt;

use crate::limits::REPORTED_RANGES_MAX;

/// The number of tables.
pub(crate) const TABLES: usize = Table::ALL.len();

/// A table of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Vhosts.
    Vhosts,
    /// Exchanges.
    Exchanges,
    /// Queues.
    Queues,
    /// Bindings from a pattern to a target.
    Bindings,
    /// The store's own notes.
    Meta,
    /// Operators' objects: users, permissions, policies, limits.
    Objects,
}

impl Table {
    /// All tables.
    pub const ALL: [Table; 6] =
        [Table::Vhosts, Table::Exchanges, Table::Queues, Table::Bindings, Table::Meta, Table::Objects];

    /// The name of the table in the file and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Vhosts => "vhosts",
            Table::Exchanges => "exchanges",
            Table::Queues => "queues",
            Table::Bindings => "bindings",
            Table::Meta => "meta",
            Table::Objects => "objects",
        }
    }
}

/// The damage of a definitions file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionsDamage {
    /// The reason why everything is lost: the file is missing or unreadable.
    pub all: Option<String>,
    /// Damaged pages, as reported by redb.
    pub pages: Option<String>,
    /// Rows with a value or key that does not verify, by the stored key.
    pub rows: Vec<(Table, Vec<u8>)>,
    /// The number of rows that are missing without a trace.
    pub missing: Vec<(Table, u64)>,
}

impl DefinitionsDamage {
    /// Whether there is no damage.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == DefinitionsDamage::default()
    }

    /// Whether rows are lost. Damaged pages alone may have held none.
    #[must_use]
    pub fn has_lost_rows(&self) -> bool {
        self.all.is_some() || !self.rows.is_empty() || !self.missing.is_empty()
    }

    /// Whether users, permissions or policies may be lost: their rows, the vhosts that they refer
    /// to by number, or the notes that would tell of the loss.
    #[must_use]
    pub fn has_lost_objects(&self) -> bool {
        let is_of_objects = |table: Table| matches!(table, Table::Objects | Table::Vhosts | Table::Meta);
        let mut tables =
            self.rows.iter().map(|(table, _)| table).chain(self.missing.iter().map(|(table, _)| table));
        self.all.is_some() || tables.any(|table| is_of_objects(*table))
    }
}

impl fmt::Display for DefinitionsDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() {
            return f.write_str("no damage in the definitions");
        }
        if let Some(why) = &self.all {
            return write!(f, "damage in the definitions: {why}; all that stood in them is lost");
        }
        let pages = self.pages.as_deref().unwrap_or("rows do not verify");
        write!(f, "damage in the definitions: {pages}")?;
        for (table, key) in self.rows.iter().take(REPORTED_RANGES_MAX) {
            write!(
                f,
                "\nin `{}` the row `{}` does not verify and is lost",
                table.name(),
                key.escape_ascii()
            )?;
        }
        if let Some(more) = self.rows.len().checked_sub(REPORTED_RANGES_MAX).filter(|more| *more > 0) {
            write!(f, "\nand {more} more rows")?;
        }
        for (table, count) in &self.missing {
            write!(f, "\nin `{}` rows gone without a trace: {count}", table.name())?;
        }
        match self.has_lost_rows() {
            true => Ok(()),
            false => f.write_str("\nno row is lost"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_with_what_is_lost_and_how_much_more() {
        let rows = |count: usize| -> Vec<(Table, Vec<u8>)> {
            (0..count).map(|number| (Table::Queues, vec![b'a', number as u8])).collect()
        };
        let none = DefinitionsDamage::default;
        let max = REPORTED_RANGES_MAX;
        // The damage; the first line of its report, the number of lines, and the last line.
        for (damage, first, lines, last) in [
            (none(), "no damage in the definitions", 1, "no damage in the definitions"),
            (
                DefinitionsDamage { all: Some("it is empty".to_owned()), ..none() },
                "damage in the definitions: it is empty; all that stood in them is lost",
                1,
                "damage in the definitions: it is empty; all that stood in them is lost",
            ),
            (
                DefinitionsDamage { pages: Some("a page".to_owned()), ..none() },
                "damage in the definitions: a page",
                2,
                "no row is lost",
            ),
            (
                DefinitionsDamage { rows: rows(1), ..none() },
                "damage in the definitions: rows do not verify",
                2,
                r"in `queues` the row `a\x00` does not verify and is lost",
            ),
            (
                DefinitionsDamage { missing: vec![(Table::Bindings, 3)], ..none() },
                "damage in the definitions: rows do not verify",
                2,
                "in `bindings` rows gone without a trace: 3",
            ),
            (
                DefinitionsDamage { rows: rows(max + 1), ..none() },
                "damage in the definitions: rows do not verify",
                max + 2,
                "and 1 more rows",
            ),
        ] {
            let text = damage.to_string();
            let found = (text.lines().next(), text.lines().count(), text.lines().last());
            assert_eq!(found, (Some(first), lines, Some(last)), "{text}");
        }
        let full = DefinitionsDamage { rows: rows(max), ..none() }.to_string();
        assert!(full.lines().count() == max + 1 && !full.contains("more rows"), "{full}");
    }
}
