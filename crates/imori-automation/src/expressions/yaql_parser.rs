//! The tree of a YAQL expression, for the forms that this crate evaluates itself.

use super::yaql_tokens::{Token, TokenError, tokens};
use crate::limits::YAQL_DEPTH_MAX;
use crate::value::Value;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// A literal.
    Constant(Value),
    /// A bare word: a text, or the name of a key behind a dot.
    Word(String),
    /// A function with its arguments.
    Call(String, Vec<Argument>),
    /// `a.b` and `a.f()`.
    Dot(Box<Node>, Box<Node>),
    /// `a[b]`.
    Index(Box<Node>, Box<Node>),
    /// `[a, b]`.
    List(Vec<Node>),
    /// `{a => b}`.
    Map(Vec<(Node, Node)>),
    /// An operator before its operand.
    Unary(&'static str, Box<Node>),
    /// An operator between its operands.
    Binary(&'static str, Box<Node>, Box<Node>),
}

/// An argument of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// A value.
    Value(Node),
    /// `a => b`.
    Rule(Node, Node),
}

/// Reads an expression. `None` where it is left to YAQL, because its form is unknown here or no YAQL at all.
pub fn parse(source: &str) -> Option<Node> {
    let tokens = tokens(source).ok()?;
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0 };
    let node = parser.expression(LOOSEST)?;
    (parser.at == tokens.len()).then_some(node)
}

/// What YAQL certainly refuses in an expression. An expression without such an error may still be wrong.
pub fn syntax_error(source: &str) -> Option<String> {
    let tokens = match tokens(source) {
        Err(TokenError::Wrong(at)) => {
            let shown = source.get(at..).and_then(|rest| rest.chars().next()).unwrap_or(' ');
            return Some(format!("Lexical error: illegal character '{shown}' at position {at}"));
        }
        Err(TokenError::Unknown) => return None,
        Ok(tokens) => tokens,
    };
    let mut open = Vec::new();
    for token in &tokens {
        match token {
            Token::Call(_) | Token::Sign("(") => open.push(")"),
            Token::Sign("[") => open.push("]"),
            Token::Sign("{") => open.push("}"),
            Token::Sign(sign @ (")" | "]" | "}")) if open.pop() != Some(sign) => {
                return Some(format!("Parse error: unexpected '{sign}' in expression '{source}'"));
            }
            _ => {}
        }
    }
    let is_cut = match tokens.last() {
        None => false,
        Some(Token::Sign(sign)) => !matches!(*sign, ")" | "]" | "}"),
        Some(_) => false,
    };
    if is_cut || !open.is_empty() {
        return Some("Parse error: unexpected end of statement".to_owned());
    }
    None.or_else(|| two_operands(&tokens, source))
}

/// Two values without an operator between them.
fn two_operands(tokens: &[Token], source: &str) -> Option<String> {
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    for (before, after) in pairs {
        let ends = matches!(before, Token::Constant(_) | Token::Word(_) | Token::Sign(")" | "]" | "}"));
        let text = match after {
            Token::Constant(value) => value.as_str().map_or_else(|| value.to_json(), str::to_owned),
            Token::Word(name) => name.clone(),
            Token::Call(name) => name.clone(),
            Token::Sign(_) => continue,
        };
        if ends {
            return Some(format!("Parse error: unexpected '{text}' in expression '{source}'"));
        }
    }
    None
}

/// How tightly operators bind, the tightest first: YAQL's table of operators.
fn precedence(sign: &str) -> Option<u8> {
    Some(match sign {
        "." => 1,
        "[" => 2,
        "*" | "/" | "mod" => 5,
        "+" | "-" => 6,
        ">" | "<" | ">=" | "<=" | "!=" | "=" | "in" => 7,
        "and" => 9,
        "or" => 10,
        _ => return None,
    })
}

const LOOSEST: u8 = 11;
const SIGNED: u8 = 3;
const NOT: u8 = 8;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// An expression whose operators bind more tightly than `loosest`.
    fn expression(&mut self, loosest: u8) -> Option<Node> {
        self.depth += 1;
        if self.depth > YAQL_DEPTH_MAX {
            return None;
        }
        let mut left = self.operand()?;
        // Chains of operators make deep trees, which are kept on the stack as well.
        let mut links = 0;
        while let Some(Token::Sign(sign)) = self.tokens.get(self.at) {
            let Some(level) = precedence(sign).filter(|level| *level < loosest) else { break };
            links += 1;
            if links > YAQL_DEPTH_MAX {
                return None;
            }
            self.at += 1;
            left = match *sign {
                "[" => {
                    let index = self.expression(LOOSEST)?;
                    self.sign("]")?;
                    Node::Index(Box::new(left), Box::new(index))
                }
                "." => match self.expression(level)? {
                    right @ (Node::Word(_) | Node::Call(..)) => Node::Dot(Box::new(left), Box::new(right)),
                    _ => return None,
                },
                sign => Node::Binary(sign, Box::new(left), Box::new(self.expression(level)?)),
            };
        }
        self.depth -= 1;
        Some(left)
    }

    fn operand(&mut self) -> Option<Node> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        match token {
            Token::Constant(value) => Some(Node::Constant(value.clone())),
            Token::Word(word) => Some(Node::Word(word.clone())),
            Token::Call(name) => Some(Node::Call(name.clone(), self.arguments(")")?)),
            Token::Sign("(") => {
                let node = self.expression(LOOSEST)?;
                self.sign(")")?;
                // Parentheses make a text of a word, so that it is no key behind a dot.
                Some(match node {
                    Node::Word(word) => Node::Constant(Value::String(word)),
                    node => node,
                })
            }
            Token::Sign("[") => {
                let items = self.arguments("]")?.into_iter().map(|argument| match argument {
                    Argument::Value(node) => Some(node),
                    Argument::Rule(..) => None,
                });
                Some(Node::List(items.collect::<Option<_>>()?))
            }
            Token::Sign("{") => {
                let entries = self.arguments("}")?.into_iter().map(|argument| match argument {
                    Argument::Rule(key, value) => Some((key, value)),
                    Argument::Value(_) => None,
                });
                Some(Node::Map(entries.collect::<Option<_>>()?))
            }
            Token::Sign(sign @ ("-" | "+")) => Some(Node::Unary(sign, Box::new(self.expression(SIGNED)?))),
            Token::Sign("not") => Some(Node::Unary("not", Box::new(self.expression(NOT)?))),
            Token::Sign(_) => None,
        }
    }

    fn arguments(&mut self, end: &'static str) -> Option<Vec<Argument>> {
        let mut arguments = Vec::new();
        if self.tokens.get(self.at) == Some(&Token::Sign(end)) {
            self.at += 1;
            return Some(arguments);
        }
        loop {
            let node = self.expression(LOOSEST)?;
            arguments.push(match self.tokens.get(self.at) {
                Some(Token::Sign("=>")) => {
                    self.at += 1;
                    Argument::Rule(node, self.expression(LOOSEST)?)
                }
                _ => Argument::Value(node),
            });
            match self.tokens.get(self.at) {
                Some(Token::Sign(",")) => self.at += 1,
                _ => return self.sign(end).map(|()| arguments),
            }
        }
    }

    fn sign(&mut self, sign: &'static str) -> Option<()> {
        let is_next = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(is_next);
        is_next.then_some(())
    }
}
