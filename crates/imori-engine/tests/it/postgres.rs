//! The address of a store on a PostgreSQL server, and how the server keeps values.

use std::path::Path;

use imori_engine::ServerAddress;
use imori_engine::for_tests::{Field, decode, encode};

#[test]
fn a_server_elsewhere_is_asked_for_tls() {
    for (text, has_tls) in [
        ("postgres://imori:secret@localhost/imori", false),
        ("postgresql://imori:secret@127.0.0.1:5433/imori", false),
        ("postgres://imori@%2Frun%2Fpostgresql/imori", false),
        ("postgres://imori:secret@localhost/imori?sslmode=require", true),
        ("postgres://imori:secret@db.example/imori", true),
        ("postgres://imori:secret@localhost,db.example/imori", true),
        ("postgres://imori:secret@db.example/imori?sslmode=disable", false),
    ] {
        let address = ServerAddress::parse(text, None).unwrap();
        let shown = format!("{address:?}");
        assert!(shown.contains(&format!("has_tls: {has_tls}")), "{text}: {shown}");
        assert!(!shown.contains("secret"), "{shown}");
    }
}

#[test]
fn a_wrong_address_is_explained_without_its_password() {
    for (text, problem) in [
        ("mysql://imori:secret@localhost/imori", "begins with `postgres://`"),
        ("postgres:///imori?user=imori", "names no host"),
        ("postgres://localhost/imori", "names no user"),
        ("postgres://imori:secret@localhost:port/imori", "port"),
        ("postgres://imori:secret@localhost/imori?sslmode=verify-full", "sslmode"),
        ("postgres://imori:secret@localhost/imori?colour=red", "colour"),
    ] {
        let error = ServerAddress::parse(text, None).unwrap_err();
        assert!(error.contains(problem) && !error.contains("secret"), "{text}: {error}");
    }
    let missing = ServerAddress::parse("postgres://imori@db.example/imori", Some(Path::new("/no/ca.pem")));
    assert!(missing.unwrap_err().starts_with("`/no/ca.pem`: "));
}

#[test]
fn kept_values_compare_as_values_do() {
    let values = [
        Field::Real(f64::NEG_INFINITY),
        Field::Int(i64::MIN),
        Field::Real(-1.5),
        Field::Int(-1),
        Field::Int(0),
        Field::Real(f64::MIN_POSITIVE),
        Field::Int(1),
        Field::Real(1.5),
        Field::Int(2),
        Field::Int(10),
        Field::Int((1 << 53) - 1),
        Field::Int(1 << 53),
        Field::Int((1 << 53) + 1),
        Field::Int(i64::MAX - 1),
        Field::Int(i64::MAX),
        Field::Real(9_223_372_036_854_775_808.0),
        Field::Real(f64::INFINITY),
        Field::Text(""),
        Field::Text("\0"),
        Field::Text("\0a"),
        Field::Text("\u{1}"),
        Field::Text("\u{1}\0"),
        Field::Text("\u{1}\u{1}"),
        Field::Text("\u{2}"),
        Field::Text("1"),
        Field::Text("A"),
        Field::Text("a"),
        Field::Text("a\0"),
        Field::Text("a\u{1}"),
        Field::Text("aa"),
        Field::Text("ä"),
    ];
    for pair in values.windows(2) {
        let kept: Vec<_> = pair.iter().map(|field| encode(*field).unwrap()).collect();
        assert!(kept[0].as_bytes() < kept[1].as_bytes(), "{pair:?}: {kept:?}");
    }
    for field in values {
        if let Field::Text(text) = field {
            assert_eq!(decode(&encode(field).unwrap()), text);
        }
    }
}

#[test]
fn equal_numbers_are_kept_alike() {
    assert_eq!(encode(Field::Int(1)), encode(Field::Real(1.0)));
    assert_eq!(encode(Field::Int(0)), encode(Field::Real(-0.0)));
    assert_eq!(encode(Field::Real(f64::NAN)), None);
}
