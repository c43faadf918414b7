//! The state machine of a connection.

use imori_amqp10::for_tests::{Kind, State, action};

/// SECURITY LIM-11: compares the whole state machine with `state.txt`.
#[test]
fn every_state_knows_every_frame() {
    let states = [
        State::Header,
        State::LoggingIn,
        State::Challenged,
        State::LoggedIn,
        State::Opening,
        State::Running,
        State::Leaving,
        State::Closed,
    ];
    let kinds = [
        Kind::SaslHeader,
        Kind::AmqpHeader,
        Kind::SaslInit,
        Kind::SaslResponse,
        Kind::OtherSasl,
        Kind::Open,
        Kind::Close,
        Kind::Begin,
        Kind::Session,
        Kind::Empty,
    ];
    let mut table = row("", &states.map(|state| format!("{state:?}")));
    for kind in kinds {
        table += &row(&format!("{kind:?}"), &states.map(|state| format!("{:?}", action(state, kind))));
    }
    assert_eq!(table, include_str!("state.txt"), "the state machine has changed:\n{table}");
}

fn row(name: &str, cells: &[String; 8]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:12}")).collect();
    format!("{}\n", format!("{name:13}{}", cells.concat()).trim_end())
}
