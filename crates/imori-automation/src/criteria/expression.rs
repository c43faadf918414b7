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
