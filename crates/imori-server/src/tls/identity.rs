//! Reads from certificates the texts that identify users.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use imori_core::certificate::Certificate;
use x509_cert::der::asn1::{Ia5StringRef, PrintableStringRef, TeletexStringRef, Utf8StringRef};
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::der::{Any, Decode as _};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::config::UserFrom;

/// RFC 4519, 2.3: `commonName`.
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Reads the names in a verified DER certificate, and the user named by the configured field.
pub(super) fn certificate(der: &[u8], user_from: UserFrom) -> Certificate {
    let mut certificate = Certificate::default();
    // A certificate that cannot be parsed names no user.
    let Ok(read) = x509_cert::Certificate::from_der(der) else {
        return certificate;
    };
    let fields = &read.tbs_certificate;
    certificate.subject = fields.subject.to_string();
    let attributes = fields.subject.0.iter().flat_map(|rdn| rdn.0.iter());
    certificate.common_names = attributes
        .filter(|attribute| attribute.oid == COMMON_NAME)
        .map(|attribute| text(&attribute.value).unwrap_or_default())
        .collect();
    if let Ok(Some((_, SubjectAltName(names)))) = fields.get::<SubjectAltName>() {
        for name in names {
            match name {
                GeneralName::DnsName(name) => certificate.dns_names.push(name.to_string()),
                GeneralName::Rfc822Name(name) => certificate.emails.push(name.to_string()),
                GeneralName::UniformResourceIdentifier(name) => certificate.uris.push(name.to_string()),
                _ => {}
            }
        }
    }
    certificate.user = user(&certificate, user_from);
    certificate
}

/// The value of the configured field. A field that is empty or occurs twice names no user (SECURITY AUTH-11).
fn user(certificate: &Certificate, user_from: UserFrom) -> Option<String> {
    let values = match user_from {
        UserFrom::Nothing => return None,
        UserFrom::Subject => std::slice::from_ref(&certificate.subject),
        UserFrom::CommonName => &certificate.common_names,
        UserFrom::Dns => &certificate.dns_names,
        UserFrom::Email => &certificate.emails,
        UserFrom::Uri => &certificate.uris,
    };
    match values {
        [only] if !only.is_empty() => Some(only.clone()),
        _ => None,
    }
}

/// The end of a DER certificate's validity; `None` if it cannot be parsed.
pub(super) fn valid_until(der: &[u8]) -> Option<SystemTime> {
    let read = x509_cert::Certificate::from_der(der).ok()?;
    Some(UNIX_EPOCH + read.tbs_certificate.validity.not_after.to_unix_duration())
}

/// The start of a DER certificate's validity; `None` if it cannot be parsed.
pub(super) fn valid_from(der: &[u8]) -> Option<SystemTime> {
    let read = x509_cert::Certificate::from_der(der).ok()?;
    let since: Duration = read.tbs_certificate.validity.not_before.to_unix_duration();
    Some(UNIX_EPOCH + since)
}

fn text(value: &Any) -> Option<String> {
    let text = Utf8StringRef::try_from(value).map(|text| text.as_str().to_owned());
    let text = text.or_else(|_| PrintableStringRef::try_from(value).map(|text| text.as_str().to_owned()));
    let text = text.or_else(|_| Ia5StringRef::try_from(value).map(|text| text.as_str().to_owned()));
    text.or_else(|_| TeletexStringRef::try_from(value).map(|text| text.as_str().to_owned())).ok()
}
