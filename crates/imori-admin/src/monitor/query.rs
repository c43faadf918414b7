//! Query parameters, parsed as nats-server parses them.

/// The parameters in order; the first of a repeated one counts, and unknown ones are ignored.
#[derive(Debug, Default)]
pub(super) struct Parameters(pub(super) Vec<(String, String)>);

/// The requested part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

/// Page size if none is requested.
const LIMIT_DEFAULT: usize = 1024;

impl Page {
    /// The entries on this page.
    pub(super) fn of<T>(self, entries: &[T]) -> &[T] {
        let rest = entries.get(self.offset..).unwrap_or_default();
        rest.get(..self.limit).unwrap_or(rest)
    }
}

impl Parameters {
    /// The value, or an empty string.
    pub(super) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// A boolean in any form that Go parses; false if absent.
    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
            "" | "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
            other => Err(wrong(name, other, "`1` or `0`")),
        }
    }

    /// A whole number; 0 if absent.
    pub(super) fn integer(&self, name: &str) -> Result<i64, String> {
        match self.text(name) {
            "" => Ok(0),
            text => text.parse().map_err(|_| wrong(name, text, "a whole number")),
        }
    }

    /// A connection's number, if given.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, String> {
        match self.text(name) {
            "" => Ok(None),
            text => match text.parse() {
                Ok(0) => Ok(None),
                Ok(number) => Ok(Some(number)),
                Err(_) => Err(wrong(name, text, "a whole number that is not negative")),
            },
        }
    }

    /// `offset` and `limit`; an absent or invalid limit is the default, and `max` caps it.
    pub(super) fn page(&self, max: usize) -> Result<Page, String> {
        let offset = usize::try_from(self.integer("offset")?).unwrap_or(0);
        let limit = match usize::try_from(self.integer("limit")?) {
            Ok(0) | Err(_) => LIMIT_DEFAULT,
            Ok(limit) => limit.min(max),
        };
        Ok(Page { offset, limit })
    }
}

/// Error text for an invalid value.
pub(super) fn wrong(name: &str, value: &str, expected: &str) -> String {
    let value: String = value.chars().take(64).flat_map(char::escape_default).collect();
    format!("`{value}` is no value of `{name}`; expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(pairs: &[(&str, &str)]) -> Parameters {
        let owned = pairs.iter().map(|(name, value)| (String::from(*name), String::from(*value)));
        Parameters(owned.collect())
    }

    #[test]
    fn pages_are_read_as_nats_server_reads_them() {
        for (offset, limit, expected) in [
            ("", "", Some((0, 1024))),
            ("5", "2", Some((5, 2))),
            ("-1", "-1", Some((0, 1024))),
            ("0", "0", Some((0, 1024))),
            ("+3", "999999999", Some((3, 5000))),
            ("", "x", None),
            ("1.5", "", None),
            ("99999999999999999999", "", None),
        ] {
            let page = parameters(&[("offset", offset), ("limit", limit)]).page(5000);
            let found = page.ok().map(|page| (page.offset, page.limit));
            assert_eq!(found, expected, "offset={offset} limit={limit}");
        }
    }

    #[test]
    fn a_page_of_a_list_is_what_there_is_of_it() {
        for (offset, limit, expected) in
            [(0, 2, &[1, 2][..]), (1, 9, &[2, 3]), (3, 1, &[]), (9, 9, &[]), (usize::MAX, usize::MAX, &[])]
        {
            assert_eq!(Page { offset, limit }.of(&[1, 2, 3]), expected, "{offset} {limit}");
        }
    }

    #[test]
    fn values_are_read_or_refused() {
        let given = parameters(&[
            ("a", "true"),
            ("a", "0"),
            ("b", "yes"),
            ("c", "-7"),
            ("d", "18446744073709551615"),
        ]);
        assert_eq!(given.flag("a"), Ok(true), "the first counts");
        assert_eq!(given.flag("absent"), Ok(false));
        assert_eq!(given.flag("b").unwrap_err(), "`yes` is no value of `b`; expected `1` or `0`");
        assert_eq!((given.integer("c"), given.number("d")), (Ok(-7), Ok(Some(u64::MAX))));
        assert!(given.number("c").is_err() && given.integer("d").is_err());
        assert_eq!(given.number("absent"), Ok(None));
        assert!(
            wrong("a", &"\u{1b}".repeat(1000), "x").len() < 600,
            "a refusal quotes no more than a little"
        );
    }
}
