//! Rights by routing key: to a topic exchange by regular expression, as in RabbitMQ, and to
//! subjects of the exchange `amq.topic`, as in nats-server.

use std::sync::Arc;

use super::grants::{AllowDeny, SubjectGrants, TopicGrant};
use crate::expression::{Expression, ExpressionError};
use crate::limits::SUBJECT_GRANTS_MAX;
use crate::name::Name;
use crate::responses::Responses;
use crate::route::pattern::push_step;
use crate::route::{BindingKey, Pattern, PatternError, SubjectFilter, SubjectSet, Syntax};

/// The fault in an invalid grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GrantFault {
    /// A text is not a valid regular expression.
    Expression(ExpressionError),
    /// A text is not a valid subject pattern.
    Pattern(String, PatternError),
    /// There are more than this many.
    TooMany(usize),
    /// There are two for the same exchange.
    Twice,
}

impl From<ExpressionError> for GrantFault {
    fn from(error: ExpressionError) -> GrantFault {
        GrantFault::Expression(error)
    }
}

/// The variables in topic rights.
const USERNAME: &str = "{username}";
const VHOST: &str = "{vhost}";
const CLIENT_ID: &str = "{client_id}";

/// The right to routing keys of one exchange.
#[derive(Debug)]
pub(super) struct TopicRight {
    pub(super) exchange: Name,
    write: KeyExpression,
    read: KeyExpression,
}

/// An expression for routing keys.
#[derive(Debug, Clone)]
struct KeyExpression {
    /// The text with all variables but `{client_id}` replaced, if it contains that one.
    template: Option<Arc<str>>,
    /// `None` matches nothing: with the client's id inserted, the expression is too large.
    expression: Option<Expression>,
}

impl TopicRight {
    pub(super) fn new(grant: &TopicGrant, user: &Name, vhost: &Name) -> Result<TopicRight, ExpressionError> {
        Ok(TopicRight {
            exchange: grant.exchange.clone(),
            write: KeyExpression::new(&grant.write, user, vhost)?,
            read: KeyExpression::new(&grant.read, user, vhost)?,
        })
    }

    /// Whether the user may publish to this routing key.
    #[inline]
    pub(super) fn may_write(&self, key: &[u8]) -> bool {
        self.write.is_match(key)
    }

    /// Whether the user may publish to all routing keys.
    pub(super) fn may_write_all(&self) -> bool {
        matches!(self.write.expression, Some(Expression::All))
    }

    /// Whether the user may bind this key. Its text in AMQP's syntax is compared, as in RabbitMQ.
    pub(super) fn may_read(&self, key: &BindingKey) -> bool {
        match key.syntax {
            Syntax::Amqp | Syntax::Literal => self.read.is_match(key.text.as_bytes()),
            Syntax::Nats | Syntax::Mqtt => {
                // Binding refuses an invalid pattern with a better error.
                let Ok(pattern) = Pattern::parse(key.syntax, &key.text) else { return true };
                self.read.is_match(&amqp_text(key, &pattern))
            }
        }
    }

    /// Whether the right contains `{client_id}`.
    pub(super) fn names_client(&self) -> bool {
        self.write.template.is_some() || self.read.template.is_some()
    }

    /// The right with `{client_id}` replaced.
    pub(super) fn for_client(&self, client: &[u8]) -> TopicRight {
        TopicRight {
            exchange: self.exchange.clone(),
            write: self.write.for_client(client),
            read: self.read.for_client(client),
        }
    }
}

/// The pattern in AMQP's syntax. A final `>` of NATS becomes `#`, as rights for AMQP are written.
fn amqp_text(key: &BindingKey, pattern: &Pattern) -> Vec<u8> {
    let mut text = Vec::with_capacity(key.text.as_bytes().len());
    if let (Syntax::Nats, Some(begin)) = (key.syntax, key.text.as_bytes().strip_suffix(b">"))
        && (begin.is_empty() || begin.ends_with(b"."))
    {
        text.extend_from_slice(begin);
        text.push(b'#');
        return text;
    }
    for (at, step) in pattern.steps().into_iter().enumerate() {
        push_step(&mut text, step, at == 0);
    }
    text
}

impl KeyExpression {
    fn new(template: &str, user: &Name, vhost: &Name) -> Result<KeyExpression, ExpressionError> {
        // Check the text with words in place of variables, so that the position of a fault is
        // right.
        let as_words = [USERNAME, VHOST, CLIENT_ID].iter().fold(String::from(template), |text, variable| {
            text.replace(variable, &"x".repeat(variable.len()))
        });
        Expression::new(&as_words).map_err(|error| error.of(template))?;
        // SECURITY AUTH-04: the names are inserted as literal values.
        let text = template.replace(VHOST, &escaped(vhost.as_bytes()));
        let text = text.replace(USERNAME, &escaped(user.as_bytes()));
        let expression = Expression::compile(&text.replace(CLIENT_ID, &escaped(CLIENT_ID.as_bytes())));
        let expression = expression.map_err(|error| error.of(template))?;
        let template = text.contains(CLIENT_ID).then(|| text.into());
        Ok(KeyExpression { template, expression: Some(expression) })
    }

    #[inline]
    fn is_match(&self, key: &[u8]) -> bool {
        self.expression.as_ref().is_some_and(|expression| expression.is_match(key))
    }

    fn for_client(&self, client: &[u8]) -> KeyExpression {
        let Some(template) = &self.template else { return self.clone() };
        let expression = Expression::compile(&template.replace(CLIENT_ID, &escaped(client))).ok();
        KeyExpression { template: Some(Arc::clone(template)), expression }
    }
}

/// An expression that matches exactly this value.
fn escaped(value: &[u8]) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'_' => out.push(char::from(*byte)),
            // One byte in Unicode mode as well.
            _ => out.push_str(&format!("(?-u:\\x{byte:02x})")),
        }
    }
    out
}

/// The rights to subjects of the exchange `amq.topic`.
#[derive(Debug, Clone)]
pub(super) struct SubjectRights {
    publish: SubjectRule,
    subscribe: SubjectRule,
    pub(super) responses: Option<Responses>,
}

#[derive(Debug, Clone)]
struct SubjectRule {
    /// `None` allows all subjects.
    allow: Option<Arc<SubjectSet>>,
    deny: Arc<SubjectSet>,
}

impl SubjectRights {
    pub(super) fn new(grants: &SubjectGrants) -> Result<SubjectRights, (&'static str, GrantFault)> {
        let mut publish = SubjectRule::new(&grants.publish, ["`publish.allow`", "`publish.deny`"])?;
        // As in nats-server: the right to answer, without an allow list, permits no other
        // publishing.
        if grants.responses.is_some() && publish.allow.is_none() {
            publish.allow = Some(Arc::default());
        }
        let subscribe = SubjectRule::new(&grants.subscribe, ["`subscribe.allow`", "`subscribe.deny`"])?;
        Ok(SubjectRights { publish, subscribe, responses: grants.responses })
    }

    /// Whether the user may publish to this subject.
    #[inline]
    pub(super) fn may_publish(&self, subject: &[u8]) -> bool {
        self.publish.allow.as_ref().is_none_or(|allow| allow.allows(subject, None))
            && !self.publish.deny.denies(subject, None)
    }

    /// Whether the user may publish to all subjects.
    pub(super) fn may_publish_all(&self) -> bool {
        self.publish.allow.is_none() && self.publish.deny.is_empty()
    }

    /// Whether the user may subscribe to a pattern: it must be allowed as a whole and not be denied
    /// as a whole. With `keeps` no part may be denied, because messages are stored where no filter
    /// applies.
    pub(super) fn may_subscribe(&self, key: &BindingKey, group: Option<&[u8]>, keeps: bool) -> bool {
        let SubjectRule { allow, deny } = &self.subscribe;
        // Binding refuses an invalid pattern with a better error.
        let Ok(pattern) = Pattern::parse(key.syntax, &key.text) else { return true };
        let is_denied = match keeps {
            true => deny.denies_any_of(&pattern, group),
            false => deny.denies_all_of(&pattern, group),
        };
        !is_denied && allow.as_ref().is_none_or(|allow| allow.allows_all_of(&pattern, group))
    }

    /// The filter of a subscription, if any subject is denied (SECURITY AUTH-03).
    pub(super) fn filter(&self, key: &BindingKey, group: Option<&[u8]>) -> Option<SubjectFilter> {
        let deny = &self.subscribe.deny;
        if deny.is_empty() {
            return None;
        }
        let pattern = Pattern::parse(key.syntax, &key.text).ok()?;
        Some(SubjectFilter::new(deny, &pattern, group))
    }
}

impl SubjectRule {
    fn new(grants: &AllowDeny, names: [&'static str; 2]) -> Result<SubjectRule, (&'static str, GrantFault)> {
        let [allow, deny] = names;
        let set = |name, texts: &Vec<String>| {
            // SECURITY LIM-10.
            if texts.len() > SUBJECT_GRANTS_MAX {
                return Err((name, GrantFault::TooMany(SUBJECT_GRANTS_MAX)));
            }
            let set = SubjectSet::new(texts.iter().map(String::as_str));
            set.map(Arc::new).map_err(|(text, error)| (name, GrantFault::Pattern(String::from(text), error)))
        };
        let allowed = grants.allow.as_ref().map(|texts| set(allow, texts)).transpose()?;
        Ok(SubjectRule { allow: allowed, deny: set(deny, &grants.deny)? })
    }
}
