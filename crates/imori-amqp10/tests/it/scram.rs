//! The messages of SCRAM.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use imori_amqp10::for_tests::ScramLogin;
use imori_core::login::{Credentials, SCRAM_BYTES, ScramParameters};

fn parameters(_: &[u8]) -> Option<ScramParameters> {
    Some(ScramParameters { salt: Box::from(*b"salt"), iterations: 4096 })
}

fn begun(message: &str) -> Result<ScramLogin, &'static str> {
    ScramLogin::begin(message.as_bytes(), [0; 16], parameters)
}

const NONCE: &str = "r=abcAAAAAAAAAAAAAAAAAAAAAA==";

fn proof() -> String {
    BASE64_STANDARD.encode([7; SCRAM_BYTES])
}

#[test]
fn the_messages_of_both_sides_are_what_is_signed() {
    let login = begun("n,,n=us=2Cer=3D,r=abc,x=y").unwrap();
    assert_eq!(login.challenge(), format!("{NONCE},s=c2FsdA==,i=4096").as_bytes());
    let last = format!("c=biws,{NONCE},x=z");
    let credentials = login.finish(format!("{last},p={}", proof()).as_bytes()).unwrap();
    let messages = format!("n=us=2Cer=3D,r=abc,x=y,{NONCE},s=c2FsdA==,i=4096,{last}");
    let expected = Credentials::Scram {
        user: Box::from(*b"us,er="),
        messages: messages.into_bytes().into(),
        proof: [7; SCRAM_BYTES],
    };
    assert!(credentials == expected);
}

/// SECURITY AUTH-09: refuses channel binding, another user's rights, and mandatory extensions.
#[test]
fn first_messages_that_cannot_be_kept_are_refused() {
    for message in
        ["n,,n=ann,r=abc", "y,,n=ann,r=abc", "n,a=ann,n=ann,r=abc", "n,,n=ann,r=abc,new=1", "n,,n=\u{e9},r=!"]
    {
        assert!(begun(message).is_ok(), "{message}");
    }
    for message in [
        "",
        "n",
        "n,",
        "n,,",
        "n,,n=ann",
        "n,,n=,r=abc",
        "n,,n=ann,r=",
        "n,,n=ann,r=a c",
        "n,,n=an=n,r=abc",
        "n,,n=an=2c,r=abc",
        "n,,n=ann=,r=abc",
        "n,,m=new,n=ann,r=abc",
        "n,,r=abc,n=ann",
        "n,a=bob,n=ann,r=abc",
        "n,b=ann,n=ann,r=abc",
        "p=tls-unique,,n=ann,r=abc",
        "x,,n=ann,r=abc",
    ] {
        assert!(begun(message).is_err(), "{message}");
    }
    assert!(ScramLogin::begin(b"n,,n=\xff,r=abc", [0; 16], parameters).is_err());
    assert!(ScramLogin::begin(b"n,,n=ann,r=abc", [0; 16], |_| None).is_err());
}

#[test]
fn last_messages_that_answer_something_else_are_refused() {
    let login = begun("n,,n=ann,r=abc").unwrap();
    let proof = proof();
    for (message, is_taken) in [
        (format!("c=biws,{NONCE},p={proof}"), true),
        (String::new(), false),
        (format!("c=biws,{NONCE}"), false),
        (format!("c=biws,{NONCE},p="), false),
        (format!("c=biws,{NONCE},p={proof}="), false),
        (format!("c=biws,{NONCE},p=AAAA"), false),
        (format!("c=biws,{NONCE}A,p={proof}"), false),
        (format!("c=biws,r=abc,p={proof}"), false),
        (format!("c=eSws,{NONCE},p={proof}"), false),
        (format!("{NONCE},p={proof}"), false),
        (format!("c=biws,{NONCE},p={proof},x=y"), false),
    ] {
        assert_eq!(login.finish(message.as_bytes()).is_ok(), is_taken, "{message}");
    }
}
