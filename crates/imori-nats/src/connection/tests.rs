use super::*;

/// SECURITY LIM-11: compares the whole state machine with `table.txt`.
#[test]
fn every_state_knows_every_operation() {
    use Kind::{Connect, Nothing, Ping, Pong, Publish, Subscribe, Unsubscribe};
    let states = [State::Greeting, State::Open, State::Parking, State::Closed];
    let mut table = row("", &states.map(|state| format!("{state:?}")));
    for kind in [Connect, Publish, Subscribe, Unsubscribe, Ping, Pong, Nothing] {
        table += &row(&format!("{kind:?}"), &states.map(|state| format!("{:?}", action(state, kind))));
    }
    assert_eq!(table, include_str!("table.txt"), "the state machine has changed");
}

fn row(name: &str, cells: &[String; 4]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:14}")).collect();
    format!("{}\n", format!("{name:12}{}", cells.concat()).trim_end())
}
