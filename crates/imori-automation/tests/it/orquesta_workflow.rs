//! Conversations with workflows: events, and below each the commands and the status that follow.
//!
//! `start PARAMETERS`, `STATUS CALL RESULT`, `pause`, `resume`, `cancel` and `rerun TASKS` are events; a `!` behind a
//! task resets its items. `> …` is a command, `? …` a question, whose answer `! …` is given next, and `= …` the status
//! with the result.

use std::time::Duration;

use imori_automation::orquesta::Workflow;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::{
    Answers, Call, CallStatus, Command, Conductor, Step, TaskSelection, WorkflowEvent, WorkflowStatus,
};

/// The conversations: a workflow, a line of dashes, and a script.
const CONVERSATIONS: &[(&str, &str)] = &[
    ("cancel", include_str!("../workflows/cancel.talk")),
    ("continue", include_str!("../workflows/continue.talk")),
    ("continue_and_noop", include_str!("../workflows/continue_and_noop.talk")),
    ("cycle", include_str!("../workflows/cycle.talk")),
    ("endless_cycle", include_str!("../workflows/endless_cycle.talk")),
    ("errors", include_str!("../workflows/errors.talk")),
    ("errors_jinja", include_str!("../workflows/errors_jinja.talk")),
    ("failure", include_str!("../workflows/failure.talk")),
    ("input_error", include_str!("../workflows/input_error.talk")),
    ("inquiry", include_str!("../workflows/inquiry.talk")),
    ("items", include_str!("../workflows/items.talk")),
    ("items_cancel", include_str!("../workflows/items_cancel.talk")),
    ("items_concurrency", include_str!("../workflows/items_concurrency.talk")),
    ("items_pause", include_str!("../workflows/items_pause.talk")),
    ("items_rerun", include_str!("../workflows/items_rerun.talk")),
    ("join", include_str!("../workflows/join.talk")),
    ("output_error", include_str!("../workflows/output_error.talk")),
    ("pause", include_str!("../workflows/pause.talk")),
    ("questions", include_str!("../workflows/questions.talk")),
    ("remediation", include_str!("../workflows/remediation.talk")),
    ("render_error", include_str!("../workflows/render_error.talk")),
    ("rerun", include_str!("../workflows/rerun.talk")),
    ("retry", include_str!("../workflows/retry.talk")),
    ("retry_items", include_str!("../workflows/retry_items.talk")),
    ("sequential", include_str!("../workflows/sequential.talk")),
    ("split", include_str!("../workflows/split.talk")),
    ("splits_and_join", include_str!("../workflows/splits_and_join.talk")),
    ("timeout_and_cancel", include_str!("../workflows/timeout_and_cancel.talk")),
    ("unreachable_join", include_str!("../workflows/unreachable_join.talk")),
];

#[test]
fn conversations() {
    for (name, text) in CONVERSATIONS {
        let (yaml, script) = text.split_once("\n---\n").expect(name);
        check(name, yaml, script);
    }
}

/// Talks to a workflow, and writes what it says below each line.
fn talk(workflow: &Workflow, script: &str) -> String {
    let mut said = Vec::new();
    let mut state: Option<Map> = None;
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty()).peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(['>', '=', '?']) {
            continue;
        }
        said.push(line.to_owned());
        let event = event(line);
        let mut answers = Answers::new();
        let transition = loop {
            let questions = match step(workflow, state.as_ref(), &event, &answers) {
                Step::Next(transition) => break transition,
                Step::Evaluate(questions) => questions,
            };
            said.extend(questions.iter().map(|question| format!("? {}", question.expression)));
            while lines.peek().is_some_and(|line| line.starts_with('?')) {
                lines.next();
            }
            for question in questions {
                let line = lines
                    .next_if(|line| line.starts_with('!'))
                    .unwrap_or_else(|| panic!("no answer to {question:?}:\n{}", said.join("\n")));
                said.push(line.to_owned());
                let answer = match line.strip_prefix("!! ") {
                    Some(message) => Err(message.to_owned()),
                    None => Ok(json(line.trim_start_matches('!'))),
                };
                assert!(answers.insert(question.id, answer).is_none(), "{line}");
            }
        };
        said.extend(transition.commands.iter().map(command_line));
        let result = transition.result.map(|result| format!(" {result}")).unwrap_or_default();
        said.push(format!("= {}{result}", format!("{:?}", transition.status).to_lowercase()));
        // The state is stored as JSON.
        let text = Value::Map(transition.state).to_json();
        let stored = Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
        // A repeated event changes nothing.
        if !matches!(event, WorkflowEvent::RerunRequested(_)) {
            match step(workflow, Some(&stored), &event, &answers) {
                Step::Next(again) => {
                    let is_retried = matches!(event, WorkflowEvent::ResumeRequested);
                    assert!(is_retried || again.commands.is_empty(), "{line}: {:?}", again.commands);
                    assert!(is_retried || again.state == stored, "{line}: {:?} {stored:?}", again.state);
                }
                Step::Evaluate(questions) => assert_eq!(questions, []),
            }
        }
        state = Some(stored);
    }
    said.join("\n")
}

fn step(workflow: &Workflow, state: Option<&Map>, event: &WorkflowEvent, answers: &Answers) -> Step {
    workflow.advance(state, event, Timestamp::from_micros(0), answers)
}

fn json(text: &str) -> Value {
    match text.trim() {
        "" => Value::Null,
        text => Value::from_json(text.as_bytes()).expect(text),
    }
}

fn event(line: &str) -> WorkflowEvent {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "start" => WorkflowEvent::Started {
            parameters: json(rest).as_map().cloned().unwrap_or_default(),
            context: json(r#"{"st2": {"user": "stanley"}}"#).as_map().unwrap().clone(),
        },
        "pause" => WorkflowEvent::PauseRequested,
        "resume" => WorkflowEvent::ResumeRequested,
        "cancel" => WorkflowEvent::CancelRequested,
        "rerun" => WorkflowEvent::RerunRequested(
            rest.split_whitespace()
                .map(|name| TaskSelection {
                    task: name.trim_end_matches('!').to_owned(),
                    resets_items: name.ends_with('!'),
                })
                .collect(),
        ),
        status => {
            let status = match status {
                "running" => CallStatus::Running,
                "pending" => CallStatus::Pending,
                "paused" => CallStatus::Paused,
                "succeeded" => CallStatus::Succeeded,
                "failed" => CallStatus::Failed,
                "timeout" => CallStatus::TimedOut,
                "canceled" => CallStatus::Canceled,
                other => panic!("no event: {other}"),
            };
            let (call, result) = rest.split_once(' ').unwrap_or((rest, ""));
            WorkflowEvent::Changed { call: call.to_owned(), status, result: json(result) }
        }
    }
}

fn command_line(command: &Command) -> String {
    match command {
        Command::Run(Call { id, action, parameters, delay, .. }) => {
            let parameters = Value::Map(parameters.clone());
            let delay = match delay {
                &Duration::ZERO => String::new(),
                delay => format!(" after {} s", delay.as_secs()),
            };
            format!("> run {id} {action} {parameters}{delay}")
        }
        Command::Cancel(call) => format!("> cancel {call}"),
        Command::Pause(call) => format!("> pause {call}"),
        Command::Resume(call) => format!("> resume {call}"),
    }
}

/// Checks that a workflow says what a script expects.
fn check(name: &str, yaml: &str, script: &str) {
    let workflow = Workflow::read(yaml).unwrap_or_else(|problems| panic!("{name}: {problems:#?}"));
    let expected: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = talk(&workflow, script);
    assert!(said == expected.join("\n"), "{name}:\n{said}");
}

/// Workflows for random events: branches, joins, lists, retries, cycles, routes and clean-up.
const MIXED: [&str; 3] = [
    "
vars: [{n: 0}]
tasks:
  a:
    action: core.noop
    retry: {count: 1, delay: 1}
    next: [{when: <% succeeded() %>, do: 'c, each'}, {when: <% failed() %>, do: [clean, fail]}]
  b: {action: core.noop, next: [{do: c}]}
  c: {join: all, action: core.noop, next: [{when: <% failed() %>, do: noop}]}
  clean: {action: core.noop}
  each:
    with: {items: '<% [1, 2, 3, 4] %>', concurrency: 2}
    action: core.noop
    next: [{when: <% completed() %>, publish: [{n: <% len(result()) %>}], do: end}]
  end: {}
output: [{n: <% ctx().n %>}]
",
    "
vars: [{n: 0}]
tasks:
  init: {next: [{do: work}]}
  work: {action: core.noop, next: [{when: <% succeeded() %>, publish: [{n: <% ctx().n + 1 %>}], do: check}]}
  check: {next: [{when: <% ctx().n < 3 %>, do: work}, {when: <% ctx().n >= 3 %>, do: x}]}
  x: {action: core.noop, next: [{do: 's, y'}]}
  y: {action: core.noop, next: [{do: s}]}
  s: {action: core.noop, next: [{do: j}, {do: k}]}
  k: {next: [{do: j}]}
  j: {join: all, with: '<% [1, 2] %>', action: core.noop, retry: {count: 2}}
",
    "
tasks:
  a: {action: core.noop, next: [{do: j}]}
  b: {action: core.noop, next: [{do: j}]}
  c: {action: core.noop, next: [{when: <% succeeded() %>, do: j}, {when: <% failed() %>, do: continue}]}
  j: {join: 2, action: core.noop, next: [{do: 'd, e'}]}
  d: {action: core.noop, delay: 3}
  e: {with: '<% [] %>', action: core.noop}
",
];

/// Plays random events, and checks what holds after each.
fn play(workflow: &Workflow, choices: &[(u8, u8)]) {
    let start = event(r#"start {"x": 1}"#);
    let mut state: Option<Map> = None;
    let mut asked: Vec<String> = Vec::new();
    let mut ended = std::collections::BTreeSet::new();
    for (what, which) in std::iter::once(&(0, 0)).chain(choices) {
        let call = asked.get(usize::from(*which) % asked.len().max(1)).cloned();
        let event = match (state.is_some(), what % 16, call) {
            (false, ..) => start.clone(),
            (_, 0, _) => WorkflowEvent::PauseRequested,
            (_, 1 | 2, _) => WorkflowEvent::ResumeRequested,
            (_, 3, _) if which % 4 == 0 => WorkflowEvent::CancelRequested,
            (_, 4, _) => WorkflowEvent::RerunRequested(Vec::new()),
            (_, 5, _) => {
                let task = ["a", "each", "j", "work", "unknown"][usize::from(*which) % 5].to_owned();
                WorkflowEvent::RerunRequested(vec![TaskSelection { task, resets_items: which % 2 == 0 }])
            }
            (_, what, Some(call)) => {
                let status = match what {
                    6 => CallStatus::Pending,
                    7 => CallStatus::Paused,
                    8 => CallStatus::Running,
                    9 | 10 => CallStatus::Failed,
                    11 if which % 4 == 0 => CallStatus::Canceled,
                    11 => CallStatus::TimedOut,
                    _ => CallStatus::Succeeded,
                };
                if !matches!(status, CallStatus::Pending | CallStatus::Paused | CallStatus::Running) {
                    ended.insert(call.clone());
                }
                WorkflowEvent::Changed { call, status, result: Value::Null }
            }
            (_, _, None) => continue,
        };
        let Step::Next(transition) = step(workflow, state.as_ref(), &event, &Answers::new()) else {
            panic!("a question after {event:?}");
        };
        for command in &transition.commands {
            match command {
                Command::Run(call) => {
                    assert!(!asked.contains(&call.id), "{} twice after {event:?}", call.id);
                    asked.push(call.id.clone());
                }
                Command::Cancel(call) | Command::Pause(call) | Command::Resume(call) => {
                    assert!(asked.contains(call) && !ended.contains(call), "{call} after {event:?}");
                }
            }
        }
        let is_final = matches!(
            transition.status,
            WorkflowStatus::Succeeded | WorkflowStatus::Failed | WorkflowStatus::Canceled
        );
        assert_eq!(is_final, transition.result.is_some(), "{event:?}");
        let is_open = asked.iter().any(|call| !ended.contains(call));
        let is_live = matches!(
            transition.status,
            WorkflowStatus::Running | WorkflowStatus::Pausing | WorkflowStatus::Canceling
        );
        assert!(!is_live || is_open, "stuck after {event:?}: {}", Value::Map(transition.state));
        let text = Value::Map(transition.state).to_json();
        let stored = Value::from_json(text.as_bytes()).unwrap().as_map().unwrap().clone();
        if matches!(event, WorkflowEvent::Changed { .. } | WorkflowEvent::Started { .. }) {
            let Step::Next(again) = step(workflow, Some(&stored), &event, &Answers::new()) else {
                panic!("a question after {event:?}");
            };
            assert_eq!((again.commands, &again.state), (Vec::new(), &stored), "{event:?}");
        }
        state = Some(stored);
    }
}

#[test]
fn items_that_end_after_their_canceled_task_keep_nothing_open() {
    let choices = [(3, 86), (60, 58), (67, 28), (28, 198), (38, 4), (76, 54), (9, 151)];
    play(&Workflow::read(MIXED[0].trim()).unwrap(), &choices);
}

#[test]
fn a_list_begins_no_item_in_a_workflow_that_is_paused_or_canceled() {
    for choices in [
        &[(1, 0), (57, 181), (12, 134), (107, 232), (44, 108), (12, 14)][..],
        &[(185, 1), (217, 188), (156, 92), (16, 0), (246, 46), (76, 77), (57, 183), (124, 184)],
    ] {
        play(&Workflow::read(MIXED[0].trim()).unwrap(), choices);
    }
}

#[test]
fn a_canceled_list_whose_items_have_all_succeeded_runs_again() {
    let choices = [
        (28, 188),
        (76, 43),
        (220, 14),
        (179, 4),
        (108, 29),
        (6, 152),
        (9, 157),
        (44, 206),
        (213, 91),
        (105, 90),
    ];
    play(&Workflow::read(MIXED[0].trim()).unwrap(), &choices);
}

proptest::proptest! {
    #[test]
    fn random_events_keep_a_workflow_consistent(
        which in 0_usize..3,
        choices in proptest::collection::vec((proptest::prelude::any::<u8>(), proptest::prelude::any::<u8>()), 0..60),
    ) {
        play(&Workflow::read(MIXED[which].trim()).unwrap(), &choices);
    }
}

#[test]
fn a_long_chain_keeps_a_small_state() {
    let mut yaml = "vars: [{n: 0}]\ntasks:\n".to_owned();
    for at in 0..100 {
        let next = format!(
            "next: [{{when: <% succeeded() %>, publish: [{{n: <% ctx().n + 1 %>}}], do: t{}}}]",
            at + 1
        );
        yaml.push_str(&format!("  t{at}: {{action: core.noop, {next}}}\n"));
    }
    yaml.push_str("  t100: {action: core.noop}\noutput: [{n: <% ctx().n %>}]\n");
    let workflow = Workflow::read(&yaml).unwrap();
    let mut state = None;
    let mut event = event("start");
    loop {
        let Step::Next(transition) = step(&workflow, state.as_ref(), &event, &Answers::new()) else {
            panic!("a question")
        };
        let text = Value::Map(transition.state.clone()).to_json();
        assert!(text.len() < 20_000, "{}", text.len());
        state = Some(transition.state);
        match (transition.result, transition.commands.as_slice()) {
            (Some(result), []) => return assert_eq!(result.to_json(), r#"{"output":{"n":100}}"#),
            (None, [Command::Run(call)]) => {
                event = WorkflowEvent::Changed {
                    call: call.id.clone(),
                    status: CallStatus::Succeeded,
                    result: json(r#"{"stdout": "a result that nothing publishes"}"#),
                };
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_state_that_cannot_be_read_fails_the_workflow() {
    let workflow = Workflow::read("tasks: {a: {action: core.noop}}").unwrap();
    for state in ["{}", r#"{"status": "odd"}"#, r#"{"status": "running", "runs": [1]}"#] {
        let state = json(state).as_map().cloned().unwrap();
        let Step::Next(transition) = step(&workflow, Some(&state), &event("resume"), &Answers::new()) else {
            panic!("a question")
        };
        assert_eq!(transition.status, WorkflowStatus::Failed);
        assert!(transition.result.is_some());
    }
}

#[test]
fn values_that_are_too_large_fail_the_workflow() {
    let yaml = "tasks: {a: {action: core.noop, next: [{publish: [{x: <% result() %>}], do: b}]}, b: {action: core.noop}}";
    let workflow = Workflow::read(yaml).unwrap();
    let Step::Next(first) = step(&workflow, None, &event("start"), &Answers::new()) else {
        panic!("a question")
    };
    let result = Value::from("x".repeat(imori_automation::limits::WORKFLOW_STATE_BYTES_MAX));
    let event = WorkflowEvent::Changed { call: "a/0/0".to_owned(), status: CallStatus::Succeeded, result };
    let Step::Next(second) = step(&workflow, Some(&first.state), &event, &Answers::new()) else {
        panic!("a question")
    };
    assert_eq!((second.status, second.commands), (WorkflowStatus::Failed, Vec::new()));
    assert!(Value::Map(second.state).to_json().len() < 1_000);
}
