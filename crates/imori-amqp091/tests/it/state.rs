//! The state machine of a connection.

use imori_amqp091::for_tests::{Kind, State, action};

/// SECURITY LIM-11: compares the whole state machine with `state.txt`.
#[test]
fn every_state_knows_every_frame() {
    use Kind::{Channel, Close, Content, Heartbeat, Open, OtherMethod, StartOk, TuneOk, UpdateSecret};
    let states = [
        State::Header,
        State::Starting,
        State::Tuning,
        State::Opening,
        State::Running,
        State::Leaving,
        State::Closed,
    ];
    let mut table = row("", &states.map(|state| format!("{state:?}")));
    for kind in [StartOk, TuneOk, Open, Close, UpdateSecret, OtherMethod, Heartbeat, Content, Channel] {
        table += &row(&format!("{kind:?}"), &states.map(|state| format!("{:?}", action(state, kind))));
    }
    assert_eq!(table, include_str!("state.txt"), "the state machine has changed:\n{table}");
}

fn row(name: &str, cells: &[String; 7]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:13}")).collect();
    format!("{}\n", format!("{name:13}{}", cells.concat()).trim_end())
}
