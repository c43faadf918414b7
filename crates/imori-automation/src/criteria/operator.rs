//! The operators of criteria and their names.

use std::fmt;

/// An operator of StackStorm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of StackStorm")]
pub enum Operator {
    Equals,
    Nequals,
    Iequals,
    Contains,
    Icontains,
    Ncontains,
    Incontains,
    Startswith,
    Istartswith,
    Endswith,
    Iendswith,
    Lessthan,
    Greaterthan,
    Matchwildcard,
    Matchregex,
    Regex,
    Iregex,
    TimediffLt,
    TimediffGt,
    Exists,
    Nexists,
    Inside,
    Ninside,
    Search,
}

/// Each operator with its name, and its short name if there is one.
const NAMES: [(Operator, &str, Option<&str>); 24] = [
    (Operator::Equals, "equals", Some("eq")),
    (Operator::Nequals, "nequals", Some("neq")),
    (Operator::Iequals, "iequals", Some("ieq")),
    (Operator::Contains, "contains", None),
    (Operator::Icontains, "icontains", None),
    (Operator::Ncontains, "ncontains", None),
    (Operator::Incontains, "incontains", None),
    (Operator::Startswith, "startswith", None),
    (Operator::Istartswith, "istartswith", None),
    (Operator::Endswith, "endswith", None),
    (Operator::Iendswith, "iendswith", None),
    (Operator::Lessthan, "lessthan", Some("lt")),
    (Operator::Greaterthan, "greaterthan", Some("gt")),
    (Operator::Matchwildcard, "matchwildcard", None),
    (Operator::Matchregex, "matchregex", None),
    (Operator::Regex, "regex", None),
    (Operator::Iregex, "iregex", None),
    (Operator::TimediffLt, "timediff_lt", Some("td_lt")),
    (Operator::TimediffGt, "timediff_gt", Some("td_gt")),
    (Operator::Exists, "exists", None),
    (Operator::Nexists, "nexists", None),
    (Operator::Inside, "inside", Some("in")),
    (Operator::Ninside, "ninside", Some("nin")),
    (Operator::Search, "search", None),
];

impl Operator {
    /// The operator with this name or short name, in any case.
    ///
    /// # Errors
    /// There is none; the error names all.
    pub fn named(name: &str) -> Result<Operator, String> {
        let lower = name.to_lowercase();
        NAMES
            .iter()
            .find(|(_, long, short)| *long == lower || *short == Some(lower.as_str()))
            .map(|(operator, ..)| *operator)
            .ok_or_else(|| {
                let names: Vec<&str> = NAMES.iter().map(|(_, name, _)| *name).collect();
                format!("operator `{name}` is unknown; use one of {}", names.join(", "))
            })
    }

    /// Its long name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(operator, ..)| *operator == self).map_or("", |(_, name, _)| name)
    }

    /// Whether it looks at the value alone.
    pub(super) fn is_without_pattern(self) -> bool {
        matches!(self, Operator::Exists | Operator::Nexists)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
