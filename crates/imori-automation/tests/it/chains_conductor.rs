//! Runs of action chains.

use std::sync::Arc;

use imori_automation::chains::{Chain, ChainConductor, ChainContext};
use imori_automation::ids::Id;
use imori_automation::limits::CHAIN_CALLS_MAX;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::{
    Answers, CallStatus, Command, Conductor, Step, Transition, WorkflowEvent, WorkflowStatus,
};

use crate::json;

/// Runs a chain whose calls end as `ends` says, by task, and returns the calls, the status and the result.
fn run(text: &str, ends: &[(&str, CallStatus, &str)]) -> (Vec<String>, WorkflowStatus, Value) {
    let chain = conductor(text);
    let mut transition = next(&chain, None, &started());
    let mut calls = Vec::new();
    while let Some(Command::Run(call)) = transition.commands.first().cloned() {
        calls.push(format!("{}:{}", call.task, Value::Map(call.parameters).to_json()));
        let (_, status, result) = ends.iter().find(|(task, ..)| *task == call.task).copied().unwrap();
        let result = json(result);
        transition =
            next(&chain, Some(&transition), &WorkflowEvent::Changed { call: call.id, status, result });
    }
    (calls, transition.status, transition.result.unwrap_or_default())
}

pub(crate) fn conductor(text: &str) -> ChainConductor {
    ChainConductor::new(Arc::new(Chain::parse(text).unwrap()), ChainContext::default())
}

pub(crate) fn started() -> WorkflowEvent {
    let parameters: Map = [("who", "you")].into_iter().collect();
    let st2: Map = [("action_execution_id", "5451c3ae00010203fcfdfeff")].into_iter().collect();
    WorkflowEvent::Started { parameters, context: [("st2", st2)].into_iter().collect() }
}

pub(crate) fn next(chain: &ChainConductor, before: Option<&Transition>, event: &WorkflowEvent) -> Transition {
    let now = Timestamp::from_seconds(1);
    match chain.advance(before.map(|before| &before.state), event, now, &Answers::new()) {
        Step::Next(transition) => transition,
        Step::Evaluate(questions) => panic!("{questions:?}"),
    }
}

fn end(status: CallStatus) -> WorkflowEvent {
    WorkflowEvent::Changed { call: String::from("1"), status, result: Value::Null }
}

const TWO: &str = "chain:\n- {name: a, ref: p.x, on-success: b, on-failure: c}\n- {name: b, ref: p.x}\n- {name: c, ref: p.x}\n";

#[test]
fn tasks_read_parameters_results_and_what_was_published() {
    let text = r#"
vars: {greeting: "hello {{ who }}"}
chain:
- name: a
  ref: core.local
  params: {cmd: "{{ greeting }}", n: 3}
  publish: {out: "{{ a.stdout }}"}
  on-success: b
- name: b
  ref: core.local
  parameters: {cmd: "{{ out }}{{ a.code }}{{ __results.a.code }}"}
"#;
    let ends =
        [("a", CallStatus::Succeeded, r#"{"stdout":"x","code":7}"#), ("b", CallStatus::Succeeded, "null")];
    let (calls, status, result) = run(text, &ends);
    assert_eq!(calls, [r#"a:{"cmd":"hello you","n":3}"#, r#"b:{"cmd":"x77"}"#]);
    assert_eq!(status, WorkflowStatus::Succeeded);
    assert_eq!(result.get("published").unwrap().to_json(), r#"{"out":"x"}"#);
    let task = result.get("tasks").and_then(|tasks| tasks.as_list()?.first()).unwrap();
    let id = Id::call("5451c3ae00010203fcfdfeff".parse().unwrap(), "1").to_string();
    assert_eq!(task.get("execution_id").and_then(Value::as_str), Some(id.as_str()));
    assert_eq!(task.get("state").and_then(Value::as_str), Some("succeeded"));
}

#[test]
fn the_end_of_a_task_chooses_the_next() {
    let rows = [
        (CallStatus::Succeeded, CallStatus::Succeeded, vec!["a:{}", "b:{}"], WorkflowStatus::Succeeded),
        (CallStatus::Failed, CallStatus::Succeeded, vec!["a:{}", "c:{}"], WorkflowStatus::Succeeded),
        (CallStatus::TimedOut, CallStatus::Failed, vec!["a:{}", "c:{}"], WorkflowStatus::Failed),
        (CallStatus::Failed, CallStatus::TimedOut, vec!["a:{}", "c:{}"], WorkflowStatus::TimedOut),
        (CallStatus::TimedOut, CallStatus::Succeeded, vec!["a:{}", "c:{}"], WorkflowStatus::Succeeded),
        (CallStatus::Canceled, CallStatus::Failed, vec!["a:{}"], WorkflowStatus::Canceled),
    ];
    for (first, second, expected, end) in rows {
        let ends = [("a", first, "{}"), ("b", second, "{}"), ("c", second, "{}")];
        let (calls, status, _) = run(TWO, &ends);
        assert_eq!((calls, status), (expected.into_iter().map(str::to_owned).collect(), end), "{first:?}");
    }
}

#[test]
fn a_template_that_fails_ends_the_chain_with_its_reason() {
    for (text, reason) in [
        ("vars: {a: '{{ no.x }}'}\nchain: [{name: a, ref: p.x}]", "Failed initializing ``vars`` in chain."),
        ("chain: [{name: a, ref: p.x, params: {p: '{{ no.x }}'}}]", "action parameter \"p\" in task \"a\""),
        ("chain: [{name: a, ref: p.x, publish: {p: '{{ no.x }}'}}]", "publish parameter \"p\" in task \"a\""),
    ] {
        let (_, status, result) = run(text, &[("a", CallStatus::Succeeded, "{}")]);
        let error = result.get("error").and_then(Value::as_str).unwrap();
        assert!(status == WorkflowStatus::Failed && error.contains(reason), "{error}");
    }
}

#[test]
fn an_event_of_another_call_or_a_repeated_one_changes_nothing() {
    let chain = conductor(TWO);
    let first = next(&chain, None, &started());
    let other =
        WorkflowEvent::Changed { call: String::from("9"), status: CallStatus::Failed, result: Value::Null };
    let unchanged = next(&chain, Some(&first), &other);
    assert_eq!((unchanged.state, unchanged.commands), (first.state.clone(), vec![]));
    let second = next(&chain, Some(&first), &end(CallStatus::Succeeded));
    let again = next(&chain, Some(&second), &end(CallStatus::Succeeded));
    assert_eq!((again.state, again.commands), (second.state, vec![]));
}

#[test]
fn a_paused_chain_ends_its_task_and_waits() {
    let chain = conductor(TWO);
    let first = next(&chain, None, &started());
    let pausing = next(&chain, Some(&first), &WorkflowEvent::PauseRequested);
    assert_eq!(pausing.status, WorkflowStatus::Pausing);
    assert_eq!(pausing.commands, [Command::Pause(String::from("1"))]);
    let paused = next(&chain, Some(&pausing), &end(CallStatus::Succeeded));
    assert_eq!((paused.status, paused.commands.len()), (WorkflowStatus::Paused, 0));
    let resumed = next(&chain, Some(&paused), &WorkflowEvent::ResumeRequested);
    assert_eq!((resumed.status, resumed.commands.len()), (WorkflowStatus::Running, 1));
}

#[test]
fn a_pending_task_pauses_the_chain_until_it_ends() {
    let chain = conductor(TWO);
    let first = next(&chain, None, &started());
    let paused = next(&chain, Some(&first), &end(CallStatus::Pending));
    assert_eq!(paused.status, WorkflowStatus::Paused);
    let running = next(&chain, Some(&paused), &end(CallStatus::Succeeded));
    assert_eq!((running.status, running.commands.len()), (WorkflowStatus::Running, 1));
}

#[test]
fn a_canceled_chain_waits_for_the_end_of_its_task() {
    let chain = conductor(TWO);
    let first = next(&chain, None, &started());
    let canceling = next(&chain, Some(&first), &WorkflowEvent::CancelRequested);
    assert_eq!(canceling.status, WorkflowStatus::Canceling);
    assert_eq!(canceling.commands, [Command::Cancel(String::from("1"))]);
    assert_eq!(next(&chain, Some(&canceling), &end(CallStatus::Succeeded)).status, WorkflowStatus::Canceled);
}

#[test]
fn a_loop_has_an_end() {
    let (calls, status, result) =
        run("chain: [{name: a, ref: p.x, on-success: a}]", &[("a", CallStatus::Succeeded, "1")]);
    assert_eq!((calls.len(), status), (CHAIN_CALLS_MAX as usize, WorkflowStatus::Failed));
    let error = result.get("error").and_then(Value::as_str).unwrap();
    assert_eq!(error, "the chain has run 1000 tasks; end its loop");
}
