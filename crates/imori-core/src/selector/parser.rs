//! Parses the words of a selector into a program, one at a time.
//!
//! ```text
//!          NOT + - (                  AND OR = <> < <= > >= + - * / BETWEEN
//!          ┌──────┐                 ┌───────────────────────────────────────┐
//!          ▼      │                 ▼                                       │
//! start ─► a value is expected ─► name, literal ─► an operator is expected ─┴─► end
//!                                                  ▲                     │
//!                                                  └─────────────────────┘
//!                                                  ) IN (…) LIKE '…' IS NULL
//! ```

use super::compare::Comparison;
use super::error::SelectorError;
use super::field_name::FieldName;
use super::like::Like;
use super::number::{Arithmetic, Number};
use super::program::{Constant, Program, Step};
use super::reduce::{Kind, Pending, Precedence, Reducer, place};
use super::token::{Keyword, Literal, Symbol, Token, Tokens};
use crate::limits::SELECTOR_WORDS_MAX;

/// A word and the byte at which it begins; `None` at the end.
type Word<'t> = Option<(usize, Token<'t>)>;

/// Parses a selector.
///
/// # Errors
/// The first fault and its position.
pub(super) fn parse(text: &str) -> Result<Program, SelectorError> {
    let mut parser = Parser { tokens: Tokens::new(text), words: 0, reducer: Reducer::new(text), text };
    while !parser.value()? || parser.operator()? {}
    parser.end()
}

struct Parser<'t> {
    text: &'t str,
    tokens: Tokens<'t>,
    words: usize,
    reducer: Reducer<'t>,
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Result<Word<'t>, SelectorError> {
        let word = self.tokens.next()?;
        self.words += 1;
        if let Some((at, _)) = &word
            && self.words > SELECTOR_WORDS_MAX
        {
            return Err(self.error(*at, format!("has too many words; use at most {SELECTOR_WORDS_MAX}")));
        }
        Ok(word)
    }

    fn error(&self, at: usize, problem: impl Into<String>) -> SelectorError {
        SelectorError::at(self.text, at, problem)
    }

    /// The error for a word other than the expected one.
    fn unexpected(&self, word: &Word<'t>, expected: &str) -> SelectorError {
        match word {
            Some((at, _)) => {
                self.error(*at, format!("{expected} is expected, not {}", self.tokens.shown(*at)))
            }
            None => self.error(self.text.len(), format!("{expected} is expected, but the selector ends")),
        }
    }

    /// Reads a value or a prefix of one; returns whether it was a value.
    fn value(&mut self) -> Result<bool, SelectorError> {
        let word = self.next()?;
        let Some((at, token)) = &word else { return Err(self.unexpected(&word, "a value")) };
        let at = *at;
        match token {
            Token::Keyword(Keyword::Not) => {
                if self.reducer.top().is_some_and(|top| top.precedence() > Precedence::Not) {
                    return Err(self.error(at, "NOT cannot stand within a comparison; put it in parentheses"));
                }
                self.reducer.push(Pending::Not, at)?;
            }
            Token::Symbol(Symbol::Plus) => self.reducer.push(Pending::Plus, at)?,
            Token::Symbol(Symbol::Minus) => self.reducer.push(Pending::Negate, at)?,
            Token::Symbol(Symbol::Open) => self.reducer.push(Pending::Open, at)?,
            Token::Name(name) => {
                let field = FieldName::of(name).map_err(|why| {
                    self.error(at, format!("{} cannot be selected by; {why}", self.tokens.shown(at)))
                })?;
                let number = place(self.reducer.program.fields.len());
                self.reducer.program.fields.push(field);
                self.reducer.operand(Step::Field(number), Kind::Any, at)?;
                return Ok(true);
            }
            Token::Literal(literal) => {
                let number = self.number(*literal, at)?;
                self.reducer.constant(Constant::Number(number), at)?;
                return Ok(true);
            }
            Token::Text(text) => {
                self.reducer.constant(Constant::Text(Box::from(text.as_bytes())), at)?;
                return Ok(true);
            }
            Token::Keyword(keyword @ (Keyword::True | Keyword::False)) => {
                self.reducer.constant(Constant::Bool(*keyword == Keyword::True), at)?;
                return Ok(true);
            }
            Token::Keyword(Keyword::Null) => {
                return Err(self.error(at, "NULL is no value; write `IS NULL` behind a name"));
            }
            Token::Keyword(_) | Token::Symbol(_) => return Err(self.unexpected(&word, "a value")),
        }
        Ok(false)
    }

    /// The number with its sign applied, so that the least `i64` can be written.
    fn number(&mut self, literal: Literal, at: usize) -> Result<Number, SelectorError> {
        let is_negative = self.reducer.top() == Some(Pending::Negate);
        if is_negative {
            self.reducer.pop();
        }
        match literal {
            Literal::Approximate(number) => Ok(Number::Float(if is_negative { -number } else { number })),
            Literal::Exact(number) => {
                let signed =
                    if is_negative { 0_i64.checked_sub_unsigned(number) } else { i64::try_from(number).ok() };
                let shown = || self.tokens.shown(at);
                signed.map(Number::Int).ok_or_else(|| {
                    self.error(at, format!("{} is out of range; the largest number is {}", shown(), i64::MAX))
                })
            }
        }
    }

    /// Reads operators up to one that needs a value on its right; returns false at the end.
    fn operator(&mut self) -> Result<bool, SelectorError> {
        loop {
            let word = self.next()?;
            let Some((at, token)) = &word else { return Ok(false) };
            let at = *at;
            match token {
                Token::Symbol(Symbol::Close) => {
                    self.reducer.reduce(Precedence::Or)?;
                    if self.reducer.pop().is_none() {
                        return Err(self.error(at, "no parenthesis is open; remove `)`"));
                    }
                }
                Token::Symbol(symbol) => {
                    let Some(pending) = binary(*symbol) else {
                        return Err(self.unexpected(&word, "an operator"));
                    };
                    self.reducer.reduce(pending.precedence())?;
                    self.reducer.push(pending, at)?;
                    return Ok(true);
                }
                Token::Keyword(Keyword::And) => {
                    self.and(at)?;
                    return Ok(true);
                }
                Token::Keyword(Keyword::Or) => {
                    self.reducer.join(false, at)?;
                    return Ok(true);
                }
                Token::Keyword(Keyword::Is) => self.is_null()?,
                Token::Keyword(Keyword::Not) => {
                    if self.test(true, None)? {
                        return Ok(true);
                    }
                }
                Token::Keyword(Keyword::Between | Keyword::In | Keyword::Like) => {
                    if self.test(false, Some(word))? {
                        return Ok(true);
                    }
                }
                _ => return Err(self.unexpected(&word, "an operator")),
            }
        }
    }

    /// Reads an AND, which joins two conditions or belongs to a BETWEEN.
    fn and(&mut self, at: usize) -> Result<(), SelectorError> {
        self.reducer.reduce(Precedence::Sum)?;
        match self.reducer.top() {
            Some(Pending::BetweenLow { is_not }) => {
                let start = self.reducer.pop().map_or(at, |(_, start)| start);
                self.reducer.push(Pending::BetweenHigh { is_not }, start)
            }
            _ => self.reducer.join(true, at),
        }
    }

    /// Reads NULL or NOT NULL behind IS.
    fn is_null(&mut self) -> Result<(), SelectorError> {
        self.reducer.reduce(Precedence::Equality)?;
        let mut word = self.next()?;
        let is_not = matches!(word, Some((_, Token::Keyword(Keyword::Not))));
        if is_not {
            word = self.next()?;
        }
        match word {
            Some((_, Token::Keyword(Keyword::Null))) => {
                self.reducer.condition(Step::IsNull { is_not }, Kind::Any)
            }
            _ => Err(self.unexpected(&word, "NULL")),
        }
    }

    /// Reads BETWEEN, IN or LIKE, and the operands of the last two; returns whether a value must
    /// follow.
    fn test(&mut self, is_not: bool, word: Option<Word<'t>>) -> Result<bool, SelectorError> {
        let word = word.map_or_else(|| self.next(), Ok)?;
        self.reducer.reduce(Precedence::Relation)?;
        match &word {
            Some((at, Token::Keyword(Keyword::Between))) => {
                self.reducer.push(Pending::BetweenLow { is_not }, *at)?;
                return Ok(true);
            }
            Some((_, Token::Keyword(Keyword::In))) => {
                let list = self.list()?;
                let number = place(self.reducer.program.lists.len());
                self.reducer.program.lists.push(list);
                self.reducer.condition(Step::In { list: number, is_not }, Kind::Text)?;
            }
            Some((_, Token::Keyword(Keyword::Like))) => self.like(is_not)?,
            _ => return Err(self.unexpected(&word, "BETWEEN, IN or LIKE")),
        }
        Ok(false)
    }

    /// Reads the list of texts behind IN.
    fn list(&mut self) -> Result<Vec<Box<[u8]>>, SelectorError> {
        let word = self.next()?;
        if !matches!(word, Some((_, Token::Symbol(Symbol::Open)))) {
            return Err(self.unexpected(&word, "`(`"));
        }
        let mut list = Vec::new();
        loop {
            let word = self.next()?;
            let Some((_, Token::Text(text))) = &word else {
                return Err(self.unexpected(&word, "a text in single quotes"));
            };
            list.push(Box::from(text.as_bytes()));
            let word = self.next()?;
            match word {
                Some((_, Token::Symbol(Symbol::Comma))) => {}
                Some((_, Token::Symbol(Symbol::Close))) => break,
                _ => return Err(self.unexpected(&word, "`,` or `)`")),
            }
        }
        list.sort_unstable();
        Ok(list)
    }

    /// Reads the pattern behind LIKE, and an optional ESCAPE.
    fn like(&mut self, is_not: bool) -> Result<(), SelectorError> {
        let word = self.next()?;
        let Some((at, Token::Text(pattern))) = &word else {
            return Err(self.unexpected(&word, "a text in single quotes"));
        };
        let mut ahead = self.tokens.clone();
        let mut escape = None;
        if matches!(ahead.next(), Ok(Some((_, Token::Keyword(Keyword::Escape))))) {
            self.next()?;
            let word = self.next()?;
            let one = match &word {
                Some((_, Token::Text(text))) => only_character(text),
                _ => None,
            };
            escape = Some(one.ok_or_else(|| self.unexpected(&word, "one character in single quotes"))?);
        }
        let like = Like::new(pattern, escape).map_err(|problem| self.error(*at, problem))?;
        let number = place(self.reducer.program.patterns.len());
        self.reducer.program.patterns.push(like);
        self.reducer.condition(Step::Like { pattern: number, is_not }, Kind::Text)
    }

    fn end(mut self) -> Result<Program, SelectorError> {
        self.reducer.reduce(Precedence::Open)?;
        self.reducer.take(Kind::Condition)?;
        Ok(self.reducer.program)
    }
}

fn binary(symbol: Symbol) -> Option<Pending> {
    Some(match symbol {
        Symbol::Equal => Pending::Compare(Comparison::Equal),
        Symbol::NotEqual => Pending::Compare(Comparison::NotEqual),
        Symbol::Less => Pending::Compare(Comparison::Less),
        Symbol::LessOrEqual => Pending::Compare(Comparison::LessOrEqual),
        Symbol::Greater => Pending::Compare(Comparison::Greater),
        Symbol::GreaterOrEqual => Pending::Compare(Comparison::GreaterOrEqual),
        Symbol::Plus => Pending::Calculate(Arithmetic::Add),
        Symbol::Minus => Pending::Calculate(Arithmetic::Subtract),
        Symbol::Times => Pending::Calculate(Arithmetic::Multiply),
        Symbol::Divide => Pending::Calculate(Arithmetic::Divide),
        Symbol::Open | Symbol::Close | Symbol::Comma => return None,
    })
}

fn only_character(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next()?;
    characters.next().is_none().then_some(first)
}
