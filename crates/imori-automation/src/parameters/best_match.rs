//! Which of several problems is told, as Python's `jsonschema` chooses it.

use std::cmp::Ordering;
use std::fmt;

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// The position in a list.
    Index(usize),
    /// The key of an object.
    Key(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Index(at) => at.fmt(f),
            Step::Key(key) => key.fmt(f),
        }
    }
}

/// A violation of a schema.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    /// From the value of the keyword that collected it, or from the whole.
    pub(super) path: Vec<Step>,
    pub(super) text: String,
    /// Whether the keyword is `anyOf` or `oneOf`, whose problems tell little.
    pub(super) is_weak: bool,
    /// Whether the value has at least the type of the schema.
    pub(super) matches_type: bool,
    /// The problems of the schemas of an `anyOf` or `oneOf`.
    pub(super) causes: Vec<Problem>,
}

/// The problem that is told: the one of the outermost value, but of alternatives the innermost.
pub(super) fn best_match(problems: Vec<Problem>) -> Option<Problem> {
    let mut problems = problems.into_iter();
    let mut best = problems.next()?;
    for problem in problems {
        // Of equal ones the first is told.
        if relevance(&problem, &best) == Ordering::Greater {
            best = problem;
        }
    }
    loop {
        let mut causes = best.causes.iter().enumerate();
        let Some((mut least_at, mut least)) = causes.next() else { return Some(best) };
        for (at, cause) in causes {
            if relevance(cause, least) == Ordering::Less {
                (least_at, least) = (at, cause);
            }
        }
        let is_shared = best
            .causes
            .iter()
            .enumerate()
            .any(|(at, cause)| at != least_at && relevance(cause, least) == Ordering::Equal);
        if is_shared {
            return Some(best);
        }
        best = best.causes.swap_remove(least_at);
    }
}

fn relevance(a: &Problem, b: &Problem) -> Ordering {
    b.path
        .len()
        .cmp(&a.path.len())
        .then_with(|| a.path.cmp(&b.path))
        .then_with(|| b.is_weak.cmp(&a.is_weak))
        .then_with(|| b.matches_type.cmp(&a.matches_type))
}
