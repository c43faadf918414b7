//! Documents of executions: the next try of one, and the tasks of a workflow that run again.

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::TaskSelection;
use imori_engine::for_tests::{Execution, Origin, Rerun, RuleOrigin, Status};

#[test]
fn the_next_try_keeps_the_request_and_nothing_of_the_outcome() {
    let action: Map = [("ref", "p.a"), ("pack", "p"), ("runner_type", "noop")].into_iter().collect();
    let parameters: Map = [("x", 1)].into_iter().collect();
    let rule = RuleOrigin {
        rule: String::from("p.r"),
        rule_id: String::from("r1"),
        trigger: String::from("p.t"),
        trigger_type: String::from("p.t"),
        trigger_instance: String::from("i1"),
    };
    let origin = Origin { user: String::from("ann"), rule: Some(rule), ..Origin::default() };
    let at = Timestamp::from_seconds;
    let mut first = Execution::new("e1", &action, parameters.clone(), origin, at(1));
    first.end(Status::Failed, Value::from("no"), at(2));
    let retry: Map = [("retry_count", 1)].into_iter().collect();
    let next = first.again("e2", retry.clone(), Some(at(5)), at(3));
    assert_eq!((next.text("id"), next.text("status")), ("e2", "delayed"));
    assert_eq!((next.text("rule"), next.text("trigger_instance")), ("p.r", "i1"));
    assert_eq!(
        (next.map("parameters"), next.text("start_timestamp")),
        (Some(&parameters), &*at(3).to_string())
    );
    assert_eq!(next.text("delayed_until"), at(5).to_string());
    for key in ["result", "end_timestamp", "elapsed_seconds"] {
        assert!(!next.document().contains_key(key), "{key}");
    }
    let mut context = first.map("context").cloned().unwrap();
    context.insert("policies", [("retry", retry)].into_iter().collect::<Map>());
    assert_eq!(next.map("context"), Some(&context));
    let at_once = next.again("e3", Map::new(), None, at(6));
    assert_eq!(at_once.text("status"), "requested");
    assert!(!at_once.document().contains_key("delayed_until"));
}

#[test]
fn only_a_workflow_of_orquesta_with_tasks_in_its_context_runs_tasks_again() {
    for (runner, context, expected) in [
        ("orquesta", r#"{"re-run": {"ref": "e", "tasks": ["a", "b"], "reset": ["b"]}}"#, "e: a b!"),
        ("orquesta", r#"{"re-run": {"ref": "e", "tasks": ["a"]}}"#, "e: a"),
        ("orquesta", r#"{"re-run": {"tasks": ["a"]}}"#, ": a"),
        ("orquesta", r#"{"re-run": {"ref": "e", "tasks": []}}"#, "none"),
        ("orquesta", r#"{"re-run": {"ref": "e"}}"#, "none"),
        ("orquesta", r#"{"re-run": "e"}"#, "none"),
        ("orquesta", "{}", "none"),
        ("action-chain", r#"{"re-run": {"ref": "e", "tasks": ["a"]}}"#, "none"),
    ] {
        let action: Map = [("ref", "p.a"), ("runner_type", runner)].into_iter().collect();
        let context = Value::from_json(context.as_bytes()).unwrap().as_map().cloned().unwrap();
        let origin = Origin { context, ..Origin::default() };
        let execution = Execution::new("x", &action, Map::new(), origin, Timestamp::from_micros(0));
        let shown = Rerun::of(&execution).map_or(String::from("none"), |rerun| {
            let mark =
                |task: &TaskSelection| format!("{}{}", task.task, ["", "!"][usize::from(task.resets_items)]);
            let tasks: Vec<String> = rerun.tasks.iter().map(mark).collect();
            format!("{}: {}", rerun.execution, tasks.join(" "))
        });
        assert_eq!(shown, expected, "{runner}");
    }
}
