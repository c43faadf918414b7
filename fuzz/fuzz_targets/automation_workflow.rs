//! Any document is refused or runs a few steps, and its state survives JSON.

use imori_automation::orquesta::Workflow;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::{Answers, CallStatus, Command, Conductor, Step, WorkflowEvent};
use libfuzzer_sys::arbitrary::{Arbitrary as _, Unstructured};

use crate::planted::fail_if_planted;

/// The beginning of each workflow: with random keys alone, few would have tasks.
const HEAD: &str =
    "version: 1.0\nvars: [{x: 1}]\ntasks:\n  a:\n    action: core.noop\n    next:\n      - do: b\n  b:\n";

/// Events of one run.
const STEPS: usize = 16;

/// Runs one input: a document, and bytes that choose the events.
pub(crate) fn test_one_input(data: &[u8]) {
    let input = <(&str, Vec<u8>)>::arbitrary_take_rest(Unstructured::new(data));
    let Ok((text, choices)) = input else { return };
    let Ok(workflow) = Workflow::read(&format!("{HEAD}{text}")) else { return };
    let mut state: Option<Map> = None;
    let mut calls: Vec<String> = Vec::new();
    let mut event = WorkflowEvent::Started { parameters: Map::new(), context: Map::new() };
    for choice in choices.iter().chain(std::iter::repeat(&0)).take(STEPS) {
        let step = workflow.advance(state.as_ref(), &event, Timestamp::from_micros(0), &Answers::new());
        // An expression that only a host evaluates ends the run.
        let Step::Next(transition) = step else { return };
        for command in transition.commands {
            if let Command::Run(call) = command {
                assert!(!calls.contains(&call.id), "{} runs twice", call.id);
                calls.push(call.id);
            }
        }
        let json = Value::Map(transition.state).to_json();
        let stored = Value::from_json(json.as_bytes()).expect("a state is JSON");
        state = stored.as_map().cloned();
        fail_if_planted(transition.result.is_some());
        let at = usize::from(*choice);
        let call = calls.get(at % calls.len().max(1)).cloned();
        event = match (choice % 8, call) {
            (0, _) => WorkflowEvent::PauseRequested,
            (1, _) => WorkflowEvent::ResumeRequested,
            (2, _) if choice % 3 == 0 => WorkflowEvent::CancelRequested,
            (3, _) => WorkflowEvent::RerunRequested(Vec::new()),
            (4, Some(call)) => {
                WorkflowEvent::Changed { call, status: CallStatus::Failed, result: Value::Null }
            }
            (5, Some(call)) => {
                WorkflowEvent::Changed { call, status: CallStatus::Pending, result: Value::Null }
            }
            (_, Some(call)) => {
                WorkflowEvent::Changed { call, status: CallStatus::Succeeded, result: Value::from(text) }
            }
            (_, None) => WorkflowEvent::ResumeRequested,
        };
    }
}
