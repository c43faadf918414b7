//! Secrets and what they sign.

use imori_automation::times::Timestamp;
use imori_automation::webhooks::{Algorithm, Encoding, HmacScheme, Scheme, Secret, Signed};

use crate::webhooks_signature::verify;

#[test]
fn signature_is_the_hmac_of_the_joined_parts() {
    // RFC 4231, test case 2; SHA-1 from RFC 2202.
    let rows = [
        (Algorithm::Sha1, "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
        (Algorithm::Sha256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            Algorithm::Sha384,
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            Algorithm::Sha512,
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fd\
             caeab1a34d4a6b4b636e070a38bce737",
        ),
    ];
    for (algorithm, signature) in rows {
        let joined = vec![Signed::Text("what do ya want ".to_owned()), Signed::Body];
        let alone = vec![Signed::Body];
        assert!(is_accepted("Jefe", algorithm, joined.clone(), "for nothing?", signature));
        assert!(!is_accepted("Jefe", algorithm, joined, "for nothing!", signature));
        assert!(!is_accepted(
            "Jefe",
            algorithm,
            alone.clone(),
            "what do ya want for nothing?",
            &signature[2..]
        ));
        assert!(!is_accepted("jefe", algorithm, alone, "what do ya want for nothing?", signature));
    }
}

/// Whether a request with this body and signature, of the parts in `signed`, is accepted.
fn is_accepted(secret: &str, algorithm: Algorithm, signed: Vec<Signed>, body: &str, signature: &str) -> bool {
    let header = "X-Signature".to_owned();
    let prefix = String::new();
    let encoding = Encoding::Hex;
    let scheme = Scheme::Hmac(HmacScheme { header, algorithm, encoding, prefix, timestamp: None, signed });
    let headers = [("x-signature", signature)].into_iter().collect();
    verify(&scheme, &[Secret::new(secret)], &headers, body.as_bytes(), Timestamp::from_seconds(0)).is_ok()
}

#[test]
fn secret_is_only_itself_and_is_not_shown() {
    let secret = Secret::new("token");
    let scheme = Scheme::Token { header: "X-Token".to_owned(), prefix: String::new() };
    let is = |token: &str| {
        let headers = [("x-token", token)].into_iter().collect();
        verify(&scheme, std::slice::from_ref(&secret), &headers, b"", Timestamp::from_seconds(0)).is_ok()
    };
    assert!(is("token"));
    for other in ["", "toke", "tokens", "Token"] {
        assert!(!is(other), "{other}");
    }
    assert_eq!(format!("{secret:?}"), "Secret(…)");
}
