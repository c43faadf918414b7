//! The certificate that a client showed, as far as a user can be found by it.

/// A client's certificate, whose chain and validity were verified when the connection began.
///
/// Each text is what the certificate says, undone of its encoding and nothing else: no case is folded, no part is cut
/// out. A field that is there more than once names nobody (SECURITY AUTH-11), so all of its values are kept.
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
    /// The name of the user that it is for, where the operator chose a field that names one and it is there once.
    pub user: Option<String>,
}
