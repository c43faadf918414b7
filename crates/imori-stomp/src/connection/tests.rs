//! Compares the state machine with the table in `table.txt`.

use super::*;

const STATES: [State; 5] = [State::Greeting, State::Open, State::Parking, State::Leaving, State::Closed];

/// SECURITY LIM-11: every pair of state and command has an answer.
#[test]
fn every_command_has_an_answer_in_every_state() {
    let mut table = row("", &STATES.map(|state| format!("{state:?}")));
    for command in Command::ALL {
        table += &row(command.as_str(), &STATES.map(|state| format!("{:?}", action(state, command))));
    }
    assert_eq!(table, include_str!("table.txt"), "the state machine has changed");
}

fn row(name: &str, cells: &[String; 5]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:20}")).collect();
    format!("{}\n", format!("{name:13}{}", cells.concat()).trim_end())
}
