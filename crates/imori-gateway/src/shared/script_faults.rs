//! The latest faults of scripts, for operators.

use std::sync::Mutex;

use imori_core::time::Time;
use imori_server::ScriptFault;

use crate::limits::{FAULT_TEXT_BYTES_MAX, SCRIPT_FAULTS_MAX};
use crate::lock::lock;
use crate::request_context::Phase;
use crate::scripts::Outcome;

/// Faults of scripts: each kind once, with how often it came.
#[derive(Debug, Default)]
pub struct ScriptFaults(Mutex<Vec<ScriptFault>>);

impl ScriptFaults {
    /// Notes the outcome of a script, if it has failed.
    pub(crate) fn note_outcome(&self, now: Time, phase: Phase, outcome: &Outcome) {
        let (place, message) = match outcome {
            Outcome::Done(_) => return,
            Outcome::Failed(exception) => {
                let place = exception.backtrace.first().map_or("", String::as_str);
                (place, format!("{} ({})", exception.message, exception.class))
            }
            Outcome::TimedOut => ("", String::from("the request took longer than its scripts may")),
            Outcome::Lost => {
                ("", String::from("a script did not end in its time, and its VM was opened anew"))
            }
        };
        self.note(now, phase.name(), place, &message);
    }

    /// Notes a fault. The one that was longest ago makes place for a new kind.
    pub fn note(&self, now: Time, phase: &'static str, place: &str, message: &str) {
        let (place, message) = (shortened(place), shortened(message));
        let mut faults = lock(&self.0);
        let is_same = |fault: &&mut ScriptFault| {
            fault.phase == phase && fault.place == place && fault.message == message
        };
        if let Some(known) = faults.iter_mut().find(is_same) {
            known.count += 1;
            known.last = now;
            return;
        }
        if faults.len() >= SCRIPT_FAULTS_MAX
            && let Some((oldest, _)) = faults.iter().enumerate().min_by_key(|(_, fault)| fault.last)
        {
            faults.remove(oldest);
        }
        faults.push(ScriptFault { phase, place, message, count: 1, last: now });
    }

    /// The faults, the latest first.
    pub fn latest(&self) -> Vec<ScriptFault> {
        let mut faults = lock(&self.0).clone();
        faults.sort_by_key(|fault| std::cmp::Reverse(fault.last));
        faults
    }
}

/// The text, cut off with `…` if it is longer than the limit.
fn shortened(text: &str) -> String {
    match text.len() > FAULT_TEXT_BYTES_MAX {
        true => {
            let kept = text.floor_char_boundary(FAULT_TEXT_BYTES_MAX);
            format!("{}…", text.get(..kept).unwrap_or_default())
        }
        false => text.to_owned(),
    }
}
