//! The certificate of a client, reduced to the fields that can identify a user.

/// A client certificate with a chain and validity that were verified during the handshake.
///
/// Texts are decoded but otherwise unchanged: no case folding, no shortening. All values of a
/// repeated field are kept, because a field that occurs more than once identifies no user (SECURITY
/// AUTH-11).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Certificate {
    /// The whole subject, as RFC 4514 writes it: most specific part first.
    pub subject: String,
    /// Every common name of the subject.
    pub common_names: Vec<String>,
    /// RFC 5280, 4.2.1.6: every `dNSName`.
    pub dns_names: Vec<String>,
    /// RFC 5280, 4.2.1.6: every `rfc822Name`.
    pub emails: Vec<String>,
    /// RFC 5280, 4.2.1.6: every `uniformResourceIdentifier`.
    pub uris: Vec<String>,
    /// The user named by the field that the operator chose, if it occurs exactly once.
    pub user: Option<String>,
}
