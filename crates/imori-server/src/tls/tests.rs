//! Verification of TLS files, and certificates that name users.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertificateParams, DistinguishedName, DnType, DnValue, KeyPair, SanType, date_time_ymd};
use tempfile::TempDir;

use super::identity::certificate;
use super::*;
use crate::config::{ClientCertificates, Tls, UserFrom};

/// A folder with a certificate and its key.
struct Pair {
    folder: TempDir,
}

impl Pair {
    fn new() -> Pair {
        let pair = Pair { folder: tempfile::tempdir().unwrap() };
        pair.write(&CertificateParams::new(vec![String::from("localhost")]).unwrap());
        pair
    }

    fn write(&self, params: &CertificateParams) {
        let key = KeyPair::generate().unwrap();
        fs::write(self.path("cert.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        fs::write(self.path("key.pem"), key.serialize_pem()).unwrap();
        self.key_mode(0o600);
    }

    fn key_mode(&self, mode: u32) {
        fs::set_permissions(self.path("key.pem"), Permissions::from_mode(mode)).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn tls(&self) -> Tls {
        Tls {
            certificate: (&*self.path("cert.pem")).into(),
            key: (&*self.path("key.pem")).into(),
            ..Tls::default()
        }
    }

    fn start(&self) -> Result<TlsAcceptor, TlsError> {
        TlsAcceptor::start(TlsFiles::of(&self.tls()).expect("both are named"))
    }

    fn error(&self) -> String {
        self.start().expect_err("it cannot be used").to_string()
    }
}

/// SECURITY OPS-03.
#[test]
fn a_key_that_others_can_read_is_refused() {
    let pair = Pair::new();
    for (mode, is_taken) in [
        (0o600, true),
        (0o400, true),
        (0o640, true),
        (0o644, false),
        (0o660, false),
        (0o604, false),
        (0o602, false),
    ] {
        pair.key_mode(mode);
        assert_eq!(pair.start().is_ok(), is_taken, "{mode:o}");
    }
    pair.key_mode(0o644);
    let error = pair.error();
    assert!(error.contains("`tls.key`") && error.contains("chmod 600"), "{error}");
}

/// SECURITY OPS-04.
#[test]
fn files_that_cannot_be_used_are_named_with_the_reason() {
    let until = |year| {
        let mut params = CertificateParams::new(vec![String::from("localhost")]).unwrap();
        (params.not_before, params.not_after) = (date_time_ymd(year - 1, 1, 1), date_time_ymd(year, 1, 1));
        params
    };
    let pair = Pair::new();
    pair.write(&until(2020));
    assert!(pair.error().contains("has expired"), "{}", pair.error());
    pair.write(&until(4000));
    assert!(pair.error().contains("is not valid yet"), "{}", pair.error());
    let other = Pair::new();
    let pair = Pair::new();
    fs::copy(other.path("cert.pem"), pair.path("cert.pem")).unwrap();
    assert!(pair.error().contains("cannot be used"), "the key of another certificate: {}", pair.error());
    for (text, reason) in [("", "holds no certificate"), ("-----BEGIN CERTIFICATE-----\n%%%", "is not PEM")] {
        fs::write(pair.path("cert.pem"), text).unwrap();
        assert!(pair.error().contains(reason), "{text:?}: {}", pair.error());
    }
    fs::remove_file(pair.path("cert.pem")).unwrap();
    assert!(pair.error().contains("cannot be read"), "{}", pair.error());
    let pair = Pair::new();
    fs::write(pair.path("key.pem"), "no key").unwrap();
    assert!(pair.error().contains("holds no private key"), "{}", pair.error());
    let mut tls = Pair::new().tls();
    tls.client_certificates = ClientCertificates::Asked;
    tls.client_ca = (&*PathBuf::from("/nonexistent/ca.pem")).into();
    let error = TlsAcceptor::start(TlsFiles::of(&tls).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("`tls."), "{error}");
}

/// SECURITY OPS-04.
#[test]
fn a_bad_renewal_leaves_the_certificate_in_force() {
    let pair = Pair::new();
    let acceptor = pair.start().unwrap();
    let files = || TlsFiles::of(&pair.tls()).unwrap();
    let first = acceptor.config();
    fs::write(pair.path("cert.pem"), "broken").unwrap();
    acceptor
        .read(files())
        .map(|renewal| acceptor.install(renewal))
        .inspect_err(|error| acceptor.refuse(error))
        .ok();
    assert!(acceptor.is_renewal_refused() && Arc::ptr_eq(&first, &acceptor.config()));
    pair.write(&CertificateParams::new(vec![String::from("localhost")]).unwrap());
    acceptor
        .read(files())
        .map(|renewal| acceptor.install(renewal))
        .inspect_err(|error| acceptor.refuse(error))
        .ok();
    assert!(!acceptor.is_renewal_refused() && !Arc::ptr_eq(&first, &acceptor.config()));
}

fn der(names: &[(DnType, DnValue)], alternatives: Vec<SanType>) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in names {
        params.distinguished_name.push(kind.clone(), value.clone());
    }
    params.subject_alt_names = alternatives;
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

fn utf8(text: &str) -> DnValue {
    DnValue::Utf8String(text.to_owned())
}

/// SECURITY AUTH-11: a field is taken literally, or names no user.
#[test]
fn one_field_of_a_certificate_names_a_user() {
    let name = || DnType::CommonName;
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let email = |name: &str| SanType::Rfc822Name(name.try_into().unwrap());
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    for (der, field, user) in [
        (der(&[(name(), utf8("orders"))], vec![]), UserFrom::CommonName, Some("orders")),
        (der(&[(name(), utf8("Orders"))], vec![]), UserFrom::CommonName, Some("Orders")),
        (der(&[(name(), utf8(" orders "))], vec![]), UserFrom::CommonName, Some(" orders ")),
        (der(&[(name(), utf8("admin,CN=orders"))], vec![]), UserFrom::CommonName, Some("admin,CN=orders")),
        (der(&[(name(), utf8("admin\0orders"))], vec![]), UserFrom::CommonName, Some("admin\0orders")),
        (
            der(&[(name(), DnValue::PrintableString("orders".try_into().unwrap()))], vec![]),
            UserFrom::CommonName,
            Some("orders"),
        ),
        (der(&[(name(), utf8("orders"))], vec![]), UserFrom::Nothing, None),
        (der(&[(name(), utf8("orders"))], vec![]), UserFrom::Dns, None),
        (der(&[(name(), utf8(""))], vec![]), UserFrom::CommonName, None),
        (der(&[], vec![]), UserFrom::Subject, None),
        (der(&[(name(), utf8("a"))], vec![dns("b")]), UserFrom::Dns, Some("b")),
        (der(&[(name(), utf8("a"))], vec![dns("b"), dns("c")]), UserFrom::Dns, None),
        (der(&[(name(), utf8("a"))], vec![dns("b"), dns("b")]), UserFrom::Dns, None),
        (der(&[(name(), utf8("a"))], vec![email("b@x"), dns("c")]), UserFrom::Email, Some("b@x")),
        (der(&[(name(), utf8("a"))], vec![uri("spiffe://x/b")]), UserFrom::Uri, Some("spiffe://x/b")),
        (der(&[(name(), utf8("a"))], vec![uri("spiffe://x/b")]), UserFrom::Email, None),
        (
            der(&[(DnType::OrganizationName, utf8("Example")), (name(), utf8("orders"))], vec![]),
            UserFrom::Subject,
            Some("CN=orders,O=Example"),
        ),
        (der(&[(name(), utf8("a,O=b"))], vec![]), UserFrom::Subject, Some("CN=a\\,O=b")),
        (b"no certificate".to_vec(), UserFrom::CommonName, None),
        (vec![], UserFrom::Subject, None),
    ] {
        let read = certificate(&der, field);
        assert_eq!(read.user.as_deref(), user, "{field:?} of {read:?}");
    }
}
