//! The errors sent to a client, in the words of nats-server.

use std::borrow::Cow;

use imori_core::error::BrokerError;
use imori_core::name::Printable;
use imori_core::quota::QuotaReached;
use imori_core::room::Unavailable;
use imori_core::route::RouteError;

use crate::codec::error::DecodeError;

/// The reason why an operation was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ProtocolError {
    UnknownOperation,
    ControlLineTooLong,
    PayloadTooLong,
    /// Arguments or options that cannot be parsed. nats-server closes without an error here.
    Malformed,
    AuthorizationViolation,
    AuthenticationTimeout,
    StaleConnection,
    InvalidClientProtocol,
    NoRespondersNeedHeaders,
    HeadersNotSupported,
    InvalidSubject,
    InvalidPublishSubject,
    TooManySubscriptions,
    TooManyConnections(Box<QuotaReached>),
    /// The user may not publish to this subject.
    PublishViolation(Box<[u8]>),
    /// The user may not subscribe to this subject, or not in this group.
    SubscribeViolation(Box<[u8]>, Option<Box<[u8]>>),
    /// A message was lost because the queue of this subject does not exist.
    NoQueue(Box<[u8]>),
    /// A message was lost because the queue of this subject is full.
    QueueFull(Box<[u8]>),
    /// A message to this subject was refused because its vhost has reached its limit of bytes.
    VhostFull(Box<[u8]>),
    /// A message to this subject was refused because the journal takes none now.
    Unavailable(Box<[u8]>, Unavailable),
}

impl ProtocolError {
    /// Returns the text of the -ERR.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::UnknownOperation => "Unknown Protocol Operation",
            Self::ControlLineTooLong => "maximum control line exceeded",
            Self::PayloadTooLong => "Maximum Payload Violation",
            Self::Malformed => "Parser Error",
            Self::AuthorizationViolation => "Authorization Violation",
            Self::AuthenticationTimeout => "Authentication Timeout",
            Self::StaleConnection => "Stale Connection",
            Self::InvalidClientProtocol => "invalid client protocol",
            Self::NoRespondersNeedHeaders => "no responders requires headers support",
            Self::HeadersNotSupported => "message headers not supported",
            Self::InvalidSubject => "Invalid Subject",
            Self::InvalidPublishSubject => "Invalid Publish Subject",
            Self::TooManySubscriptions => "maximum subscriptions exceeded",
            Self::TooManyConnections(reached) => match **reached {
                // An account of NATS is a vhost.
                QuotaReached::VhostConnections { .. } => "maximum account active connections exceeded",
                _ => "maximum connections exceeded",
            },
            Self::PublishViolation(subject) => {
                return format!("Permissions Violation for Publish to \"{}\"", Printable(subject)).into();
            }
            // Clients ignore a permissions violation but close at an unknown error, so these texts
            // start as one.
            Self::NoQueue(subject) => {
                let violation = Self::PublishViolation(subject.clone());
                return format!("{}: there is no such queue", violation.text()).into();
            }
            Self::QueueFull(subject) => {
                let violation = Self::PublishViolation(subject.clone());
                return format!("{}: the queue is full", violation.text()).into();
            }
            Self::VhostFull(subject) => {
                let violation = Self::PublishViolation(subject.clone());
                return format!("{}: the account is at its `max-bytes`", violation.text()).into();
            }
            Self::Unavailable(subject, cause) => {
                let violation = Self::PublishViolation(subject.clone());
                let cause = match cause {
                    Unavailable::DiskFull => "the disk is nearly full",
                    Unavailable::NotLeader => "another node leads the journal",
                    Unavailable::NoQuorum => "too few nodes are there to keep it",
                };
                return format!("{}: {cause}", violation.text()).into();
            }
            Self::SubscribeViolation(subject, None) => {
                return format!("Permissions Violation for Subscription to \"{}\"", Printable(subject))
                    .into();
            }
            Self::SubscribeViolation(subject, Some(group)) => {
                let (subject, group) = (Printable(subject), Printable(group));
                let text = format!(
                    "Permissions Violation for Subscription to \"{subject}\" using queue \"{group}\""
                );
                return text.into();
            }
        })
    }

    /// The kind of the error, for the log.
    pub(crate) fn message(&self) -> &'static str {
        match self {
            Self::PublishViolation(_)
            | Self::SubscribeViolation(..)
            | Self::NoQueue(_)
            | Self::QueueFull(_)
            | Self::VhostFull(_)
            | Self::Unavailable(..) => "Permissions Violation",
            _ => match self.text() {
                Cow::Borrowed(text) => text,
                Cow::Owned(_) => "Error",
            },
        }
    }

    /// Whether the error ends the connection.
    pub(crate) fn is_last(&self) -> bool {
        !matches!(
            self,
            Self::InvalidSubject
                | Self::InvalidPublishSubject
                | Self::TooManySubscriptions
                | Self::PublishViolation(_)
                | Self::SubscribeViolation(..)
                | Self::NoQueue(_)
                | Self::QueueFull(_)
                | Self::VhostFull(_)
                | Self::Unavailable(..)
        )
    }

    /// Translates the broker's refusal of a publish.
    #[cold]
    pub(crate) fn of_publish(error: &BrokerError, subject: &[u8]) -> Self {
        match error {
            BrokerError::Route(RouteError::Pattern(_)) => Self::InvalidPublishSubject,
            BrokerError::Quota(_) => Self::VhostFull(subject.into()),
            BrokerError::Unavailable { cause, .. } => Self::Unavailable(subject.into(), *cause),
            _ => Self::PublishViolation(subject.into()),
        }
    }

    /// Translates the broker's refusal of a subscription.
    #[cold]
    pub(crate) fn of_subscribe(error: &BrokerError, subject: &[u8], group: Option<&[u8]>) -> Self {
        match error {
            BrokerError::Route(RouteError::Pattern(_)) => Self::InvalidSubject,
            BrokerError::Route(RouteError::Limit { .. }) => Self::TooManySubscriptions,
            _ => Self::SubscribeViolation(subject.into(), group.map(Into::into)),
        }
    }
}

impl From<&DecodeError> for ProtocolError {
    fn from(error: &DecodeError) -> Self {
        match error {
            DecodeError::UnknownOperation { .. } | DecodeError::PayloadNotTerminated { .. } => {
                Self::UnknownOperation
            }
            DecodeError::ControlLineTooLong { .. } => Self::ControlLineTooLong,
            DecodeError::PayloadTooLong { .. } => Self::PayloadTooLong,
            DecodeError::BadArguments { .. } => Self::Malformed,
        }
    }
}
