//! Regular expressions of Python's `re`: in linear time, but for those with look-around or back-references.

use regex::{Regex, RegexBuilder};

use super::outcome::cut;
use super::translation::{Flags, Translation};
use crate::limits::{EXPRESSION_BACKTRACKS_MAX, EXPRESSION_BYTES_MAX, EXPRESSION_SIZE_BYTES_MAX};

/// A compiled expression.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    /// One without forms that need backtracking.
    Linear {
        regex: Regex,
        /// Whether `$` occurs, which in Python also matches before a newline at the end.
        has_dollar: bool,
    },
    /// One that goes back, as often as its limit allows.
    Backtracking(Box<fancy_regex::Regex>),
}

impl Expression {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Python would refuse it; it has a form without equivalent; or it is too large.
    pub(super) fn compile(pattern: &str, flags: Flags) -> Result<Expression, String> {
        if pattern.len() > EXPRESSION_BYTES_MAX {
            return Err(format!(
                "the regular expression is longer than {EXPRESSION_BYTES_MAX} bytes; shorten it"
            ));
        }
        let shown = |why: String| format!("regular expression `{}`: {why}", cut(pattern));
        let mut translation = Translation::new(pattern, flags, false);
        translation.run().map_err(shown)?;
        let needs_backtracking = translation.needs_backtracking;
        if needs_backtracking {
            translation = Translation::new(pattern, flags, true);
            translation.run().map_err(shown)?;
        }
        let Translation { out, has_dollar, flags: whole, .. } = translation;
        let (begin, end) = if flags.is_anchored { (r"\A(?:", ")") } else { ("", "") };
        let source = format!("{begin}{out}{end}");
        if needs_backtracking {
            return fancy_regex::RegexBuilder::new(&source)
                .case_insensitive(whole.ignores_case)
                .backtrack_limit(EXPRESSION_BACKTRACKS_MAX)
                .delegate_size_limit(EXPRESSION_SIZE_BYTES_MAX)
                .delegate_dfa_size_limit(EXPRESSION_SIZE_BYTES_MAX)
                .build()
                .map(|regex| Expression::Backtracking(Box::new(regex)))
                .map_err(|error| shown(error.to_string()));
        }
        let regex = RegexBuilder::new(&source)
            .case_insensitive(whole.ignores_case)
            .size_limit(EXPRESSION_SIZE_BYTES_MAX)
            .build()
            .map_err(|error| shown(reason(&error)))?;
        Ok(Expression::Linear { regex, has_dollar })
    }

    /// Whether it matches, somewhere or at the beginning.
    ///
    /// # Errors
    /// It goes back too often.
    pub(super) fn is_match(&self, text: &str) -> Result<bool, String> {
        match self {
            Expression::Linear { regex, has_dollar } => Ok(regex.is_match(text)
                || *has_dollar && text.strip_suffix('\n').is_some_and(|text| regex.is_match(text))),
            Expression::Backtracking(regex) => regex.is_match(text).map_err(|_| {
                "the regular expression takes too many steps on this text; simplify it".to_owned()
            }),
        }
    }
}

fn reason(error: &regex::Error) -> String {
    match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("it takes more than {limit} bytes of memory; use fewer repetitions")
        }
        // The last line tells the reason; those before it show the translated expression.
        other => {
            other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::EXPRESSION_DEPTH_MAX;

    #[test]
    fn expressions_search_as_in_python() {
        let rows = [
            ("b", "abc", true),
            ("^b", "abc", false),
            ("c$", "abc\n", true),
            ("c$", "abc\n\n", false),
            (r"c\Z", "abc\n", false),
            ("(?m)^b$", "a\nb\nc", true),
            ("a.c", "a\nc", false),
            ("(?s)a.c", "a\nc", true),
            ("(?i)ABC", "abc", true),
            ("(?i:A)b", "aB", false),
            ("(?x) a b # c\n d", "abd", true),
            (r"\d+\s\w", "12 x", true),
            (r"\s", "\x1c", true),
            (r"[\S]", "\x1c", false),
            ("[]a]+", "]", true),
            ("[^]a]", "]", false),
            ("[a-c-]", "-", true),
            ("[a&&b]", "&", true),
            ("[[:alpha:]]", ":]", true),
            (r"[\b]", "\x08", true),
            ("a{,2}b", "b", true),
            ("a{x", "a{x", true),
            ("{}", "{}", true),
            ("a{2}", "aa", true),
            (r"\x41\u00e4\101\0", "AäA\0", true),
            ("(?P<n>a)(b)?", "a", true),
            ("a(?#comment)b", "ab", true),
            (r"\b\.\-\/", "a.-/", true),
            ("a|", "x", true),
            ("(a$|b)c", "bc", true),
            (r"(a$|b)\s", "a\n", true),
            (r"(\n|$)*\Z", "\n", true),
            (r"a$\Z", "a\n", false),
            ("^(?!a)", "b", true),
            ("^(?!a)", "a", false),
            ("(?<=a)b$", "ab\n", true),
            (r"(a|b)\1", "abb", true),
            (r"(a|b)\1", "ab", false),
            (r"(?P<n>a)x(?P=n)\Z", "axa", true),
            ("a*+a", "aaa", false),
            ("(?>a*)b", "aab", true),
        ];
        for (pattern, text, is_match) in rows {
            let expression =
                Expression::compile(pattern, Flags::default()).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(expression.is_match(text), Ok(is_match), "{pattern} {text:?}");
        }
    }

    #[test]
    fn what_has_no_equivalent_is_refused_by_name() {
        let rows = [
            (r"\1(a)", r"back-reference `\1` has no group"),
            (r"(a\1)", r"back-reference `\1` stands within its group"),
            ("(?P=n)(?P<n>a)", "back-reference `(?P=n)` has no group"),
            ("(a)?(?(1)b|c)", "conditional group"),
            ("a{2}+", "possessive quantifier `{2}+`"),
            ("a**", "repeats a repetition"),
            ("*a", "nothing to repeat"),
            ("^*", "nothing to repeat"),
            ("a|*", "nothing to repeat"),
            ("(", "does not end"),
            (")", "has no `(`"),
            ("[a", "set does not end"),
            ("[b-a]", "no range"),
            (r"[a-\d]", "no range"),
            (r"\q", r"escape `\q` is unknown"),
            (r"\x4", r"escape `\x4` is no character"),
            ("\\", "ends with"),
            ("a(?i)", "do not stand at the beginning"),
            ("(?L)a", "flag `L`"),
            ("(?P<1>a)", "no name of a group"),
            ("a{3,2}", "wrong order"),
            ("((a{100}){100}){100}", "bytes of memory"),
        ];
        for (pattern, part) in rows {
            let error = Expression::compile(pattern, Flags::default()).expect_err(pattern);
            assert!(error.contains(part), "{pattern}: {error}");
        }
        let slow = Expression::compile(r"(a*)*b\1$", Flags::default()).unwrap();
        assert!(slow.is_match(&"a".repeat(10_000)).is_err());
        assert!(Expression::compile(&"(".repeat(EXPRESSION_DEPTH_MAX + 1), Flags::default()).is_err());
        assert!(Expression::compile(&"a".repeat(EXPRESSION_BYTES_MAX + 1), Flags::default()).is_err());
    }
}
