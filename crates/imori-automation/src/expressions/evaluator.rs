//! Texts with expressions: which language they are in, and their values.

use std::collections::BTreeSet;

use super::jinja::{self, JinjaFault};
use super::scope::Scope;
use super::yaql;
use super::yaql_values::Fault;
use crate::limits::{EXPRESSION_ROUNDS_MAX, VALUE_DEPTH_MAX, WORKFLOW_EXPRESSION_BYTES_MAX};
use crate::python::text_of;
use crate::value::{Map, Value};
use crate::workflows::{Answers, Question};

/// The language of the expressions in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// `{{ … }}` and `{% … %}`.
    Jinja,
    /// `<% … %>`.
    Yaql,
}

impl Language {
    /// The name in errors of the inspection.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Language::Jinja => "jinja",
            Language::Yaql => "yaql",
        }
    }

    fn error(self) -> &'static str {
        match self {
            Language::Jinja => "JinjaEvaluationException",
            Language::Yaql => "YaqlEvaluationException",
        }
    }

    /// The expressions of a text in this language, with their delimiters.
    pub(crate) fn expressions(self, text: &str) -> Vec<&str> {
        match self {
            Language::Jinja => enclosed(text, "{{", "}}"),
            Language::Yaql => enclosed(text, "<%", "%>"),
        }
    }

    /// The expression without its delimiters.
    pub(crate) fn inside(self, expression: &str) -> &str {
        match self {
            Language::Jinja => expression.trim_matches(['{', '}']).trim(),
            Language::Yaql => expression.trim_matches(['<', '%', '>']).trim(),
        }
    }
}

/// The languages that a text has expressions in.
pub(crate) fn languages(text: &str) -> Vec<Language> {
    let has_blocks = !enclosed(text, "{%", "%}").is_empty();
    let mut found = Vec::new();
    if has_blocks || !Language::Jinja.expressions(text).is_empty() {
        found.push(Language::Jinja);
    }
    if !Language::Yaql.expressions(text).is_empty() {
        found.push(Language::Yaql);
    }
    found
}

/// The shortest parts of a text, each on one line, between two delimiters.
pub(crate) fn enclosed<'a>(text: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for line in text.split('\n') {
        let mut rest = line;
        while let Some(from) = rest.find(start) {
            let opened = rest.get(from..).unwrap_or_default();
            let Some(to) = opened.get(start.len()..).and_then(|inside| inside.find(end)) else { break };
            let (expression, after) = opened.split_at(start.len() + to + end.len());
            found.push(expression);
            rest = after;
        }
    }
    found
}

/// Why a value cannot be evaluated now.
#[derive(Debug, Clone, PartialEq)]
pub enum EvaluationError {
    /// The caller has to evaluate an expression first.
    Asked,
    /// The expression fails: the class of the error and its message.
    Failed(String),
}

/// Evaluates values with the answers of earlier questions, and collects new questions.
pub struct Evaluator<'a> {
    answers: &'a Answers,
    asked: BTreeSet<String>,
    /// The expressions that the caller has to evaluate.
    pub questions: Vec<Question>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator without questions.
    pub fn new(answers: &'a Answers) -> Evaluator<'a> {
        Evaluator { answers, asked: BTreeSet::new(), questions: Vec::new() }
    }

    /// The value with all its expressions evaluated. `place` tells contexts apart within one event.
    ///
    /// # Errors
    /// An expression fails, or is left to the caller.
    pub fn value(&mut self, value: &Value, scope: &Scope, place: &str) -> Result<Value, EvaluationError> {
        self.nested(value, scope, place, 0)
    }

    fn nested(
        &mut self,
        value: &Value,
        scope: &Scope,
        place: &str,
        depth: usize,
    ) -> Result<Value, EvaluationError> {
        if depth > VALUE_DEPTH_MAX {
            return Err(EvaluationError::Failed("RecursionError: the value is nested too deep".to_owned()));
        }
        // All parts are evaluated, so that one call asks for all of them.
        match value {
            Value::String(text) => self.text(text, scope, place, 0),
            Value::List(items) => {
                let items: Vec<_> =
                    items.iter().map(|item| self.nested(item, scope, place, depth + 1)).collect();
                let items: Result<Vec<Value>, EvaluationError> = or_question(items).into_iter().collect();
                items.map(Value::List)
            }
            Value::Map(map) => {
                let entries: Vec<_> = map
                    .iter()
                    .map(|(key, value)| {
                        let name = self.text(key, scope, place, 0);
                        let value = self.nested(value, scope, place, depth + 1);
                        name.and_then(|name| value.map(|value| (text_of(&name), value)))
                    })
                    .collect();
                let entries: Result<Map, EvaluationError> = or_question(entries).into_iter().collect();
                entries.map(Value::Map)
            }
            other => Ok(other.clone()),
        }
    }

    fn text(
        &mut self,
        text: &str,
        scope: &Scope,
        place: &str,
        round: usize,
    ) -> Result<Value, EvaluationError> {
        let Some(language) = languages(text).first().copied() else { return Ok(Value::from(text)) };
        if text.len() > WORKFLOW_EXPRESSION_BYTES_MAX {
            let message =
                format!("a text with expressions has at most {WORKFLOW_EXPRESSION_BYTES_MAX} bytes");
            return Err(EvaluationError::Failed(format!("{}: {message}", language.error())));
        }
        match language {
            Language::Jinja if !enclosed(text, "{%", "%}").is_empty() => self.blocks(text, scope, place),
            language => self.inline(language, text, scope, place, round),
        }
    }

    /// A text with expressions between other text, or of one expression alone, which keeps the kind of its value.
    fn inline(
        &mut self,
        language: Language,
        text: &str,
        scope: &Scope,
        place: &str,
        round: usize,
    ) -> Result<Value, EvaluationError> {
        let expressions = language.expressions(text);
        let is_alone =
            expressions.len() == 1 && expressions.first().is_some_and(|one| one.len() == text.len());
        let mut output = text.to_owned();
        let values: Vec<_> = expressions
            .iter()
            .map(|expression| {
                let value = self.expression(language, expression, scope, place)?;
                // A value may have expressions of the same language again.
                match value {
                    Value::String(text)
                        if round < EXPRESSION_ROUNDS_MAX && languages(&text).contains(&language) =>
                    {
                        self.inline(language, &text, scope, place, round + 1)
                    }
                    value => Ok(value),
                }
            })
            .collect();
        for (expression, value) in expressions.iter().zip(or_question(values)) {
            let value = value?;
            if is_alone {
                return Ok(value);
            }
            output = output.replace(expression, &text_of(&value));
        }
        Ok(Value::String(output))
    }

    fn expression(
        &mut self,
        language: Language,
        expression: &str,
        scope: &Scope,
        place: &str,
    ) -> Result<Value, EvaluationError> {
        let inside = language.inside(expression);
        let failed = |message: String| {
            let message = format!("Unable to evaluate expression '{expression}'. {message}");
            Err(EvaluationError::Failed(format!("{}: {message}", language.error())))
        };
        match language {
            Language::Yaql => match yaql::evaluate(inside, scope) {
                Ok(value) => Ok(value),
                Err(Fault::Unsure) => self.ask(language, expression, scope, place),
                Err(Fault::NoKey(key)) => {
                    let message =
                        format!("Unable to resolve key '{key}' in expression '{expression}' from context.");
                    Err(EvaluationError::Failed(format!("{}: {message}", language.error())))
                }
                Err(Fault::Failed(message)) => failed(message),
            },
            Language::Jinja => match jinja::evaluate(inside, scope) {
                Ok(value) => Ok(value),
                Err(JinjaFault::Unsure) => self.ask(language, expression, scope, place),
                Err(JinjaFault::Undefined) => {
                    let message = format!("There are unresolved variables: {inside}");
                    Err(EvaluationError::Failed(format!("{}: {message}", language.error())))
                }
                Err(JinjaFault::Failed(message)) => failed(message),
            },
        }
    }

    /// A text with blocks of Jinja is one template.
    fn blocks(&mut self, text: &str, scope: &Scope, place: &str) -> Result<Value, EvaluationError> {
        match jinja::render(text, scope) {
            Ok(text) => Ok(Value::String(text)),
            Err(JinjaFault::Unsure | JinjaFault::Undefined) => self.ask(Language::Jinja, text, scope, place),
            Err(JinjaFault::Failed(message)) => {
                let message = format!("Unable to evaluate expression '{text}'. {message}");
                Err(EvaluationError::Failed(format!("JinjaEvaluationException: {message}")))
            }
        }
    }

    fn ask(
        &mut self,
        language: Language,
        expression: &str,
        scope: &Scope,
        place: &str,
    ) -> Result<Value, EvaluationError> {
        let id = format!("{place}: {expression}");
        match self.answers.get(&id) {
            Some(Ok(value)) => Ok(value.clone()),
            Some(Err(message)) => {
                let has_class = message.starts_with(language.error());
                let message = match has_class {
                    true => message.clone(),
                    false => format!(
                        "{}: Unable to evaluate expression '{expression}'. {message}",
                        language.error()
                    ),
                };
                Err(EvaluationError::Failed(message))
            }
            None => {
                if self.asked.insert(id.clone()) {
                    let expression = expression.to_owned();
                    self.questions.push(Question { id, expression, context: scope.data() });
                }
                Err(EvaluationError::Asked)
            }
        }
    }
}

/// The results, or one question in place of all: what fails is known only when all answers are there.
fn or_question<T>(results: Vec<Result<T, EvaluationError>>) -> Vec<Result<T, EvaluationError>> {
    let is_asked = |result: &Result<T, EvaluationError>| matches!(result, Err(EvaluationError::Asked));
    match results.iter().any(is_asked) {
        true => vec![Err(EvaluationError::Asked)],
        false => results,
    }
}
