//! The tables of the definitions, and what is damaged in them, for people.

use std::fmt;

use crate::limits::REPORTED_RANGES_MAX;

/// How many tables there are.
pub(crate) const TABLES: usize = Table::ALL.len();

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// Namespaces.
    Vhosts,
    /// Named routing tables.
    Exchanges,
    /// Queues.
    Queues,
    /// From a pattern to a target.
    Bindings,
    /// What the owner of the store notes beside them.
    Meta,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 5] =
        [Table::Vhosts, Table::Exchanges, Table::Queues, Table::Bindings, Table::Meta];

    /// What it is called in the file and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Table::Vhosts => "vhosts",
            Table::Exchanges => "exchanges",
            Table::Queues => "queues",
            Table::Bindings => "bindings",
            Table::Meta => "meta",
        }
    }
}

/// What does not verify.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DefinitionsDamage {
    /// There is no file though there was one, or nothing can be read from it; why.
    pub all: Option<String>,
    /// Pages do not verify; what redb says of them.
    pub pages: Option<String>,
    /// Rows of which the value or the key does not verify, by what stands for the key.
    pub rows: Vec<(Table, Vec<u8>)>,
    /// How many rows are gone without a trace.
    pub missing: Vec<(Table, u64)>,
}

impl DefinitionsDamage {
    /// Tells whether there is none.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == DefinitionsDamage::default()
    }

    /// Tells whether a row is lost, and not only the place of one that is gone anyway.
    #[must_use]
    pub fn has_lost_rows(&self) -> bool {
        self.all.is_some() || !self.rows.is_empty() || !self.missing.is_empty()
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
        // What is damaged; the first line of it, how many lines it has, and the last.
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
