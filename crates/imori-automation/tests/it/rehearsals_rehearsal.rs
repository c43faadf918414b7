//! Rehearsals of workflows.

use imori_automation::rehearsals::{Location, Rehearsal, RehearsalError};

const SEQUENTIAL: &str = "
version: 1.0
input: [name]
vars: [{greeting: null}]
output: [{greeting: <% ctx().greeting %>}]
tasks:
  first:
    action: core.echo message=<% ctx().name %>
    next:
      - when: <% succeeded() %>
        publish: greeting=<% result() %>
        do: second
      - when: <% failed() %>
        do: [clean, fail]
  second:
    action: core.echo
    input: {message: hi}
    next:
      - publish: [{greeting: '<% ctx().greeting %>, <% result() %>'}]
        do: last
  last: {}
  clean: {action: core.noop}
";

const BRANCHES: &str = "
vars: [{all: null}]
output: [{all: <% ctx().all %>}]
tasks:
  a: {action: core.noop, next: [{do: [c, s]}]}
  b: {action: core.noop, next: [{do: s}]}
  c: {action: core.noop, retry: {count: 2}}
  s: {with: '<% [1, 2] %>', action: core.echo message=<% item() %>, next: [{publish: all=<% result() %>, do: noop}]}
";

/// The errors of a rehearsal of a workflow, one a line: the file, the line and the message.
fn told(workflow: &str, rehearsal: &str) -> String {
    let files = [("r.json", "{\"x\": 1}"), ("r.yaml", "x: 2"), ("r.txt", "text"), ("wrong.json", "{")];
    let files = files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect();
    let errors = match Rehearsal::read(rehearsal) {
        Ok(rehearsal) => rehearsal.run(workflow, &files),
        Err(errors) => errors,
    };
    let line = |error: &RehearsalError| match error.location {
        Location::Rehearsal(position) => format!("rehearsal {}: {}", position.line, error.message),
        Location::Workflow(position) => format!("workflow {}: {}", position.line, error.message),
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check(rows: &[(&str, &str, &str)]) {
    for (workflow, rehearsal, expected) in rows {
        let expected: Vec<&str> = expected.lines().map(str::trim).collect();
        assert_eq!(told(workflow, rehearsal), expected.join("\n"), "{rehearsal}");
    }
}

#[test]
fn what_happens_is_compared_with_what_is_expected() {
    check(&[
        (
            SEQUENTIAL,
            "workflow: w\ninputs: {name: Ann}\nexpected_task_sequence: [first, second, last]
mock_action_executions: [{task_id: first, result: Hello}, {task_id: second, result: Ann}]
expected_output: {greeting: 'Hello, Ann'}\nexpected_term_tasks: [last]\nexpected_routes: [[]]",
            "",
        ),
        (
            SEQUENTIAL,
            "workflow: w\nexpected_task_sequence: [first, fail, clean]\nexpected_workflow_status: failed
mock_action_executions: [{task_id: first, status: failed, result: 3}]
expected_errors:
- {type: error, message: Execution failed. See result for details., task_id: first, result: 3}
- {type: error, message: Execution failed. See result for details., task_id: fail}",
            "",
        ),
        (
            SEQUENTIAL,
            "workflow: w\nexpected_task_sequence: [first, last]\nexpected_output: {greeting: x}
expected_errors: [{message: m}]\nexpected_workflow_status: canceled\nexpected_routes: [[], [a]]\nexpected_term_tasks: [first]",
            "rehearsal 2: the sequence of tasks is [first, second, last], and not [first, last]
             rehearsal 6: the list of routes is [[]], and not [[], [\"a\"]]
             rehearsal 5: the status of the workflow is `succeeded`, and not `canceled`
             rehearsal 4: the list of errors is [], and not [{\"message\":\"m\"}]
             rehearsal 3: the output is {\"greeting\":\"None, None\"}, and not {\"greeting\":\"x\"}
             rehearsal 7: the list of tasks at the ends of branches is [last], and not [first]",
        ),
        // An action that times out, with no task that follows: the error says why the workflow failed.
        (
            "tasks: {a: {action: core.noop}}",
            "workflow: w\nexpected_task_sequence: [a]\nmock_action_executions: [{task_id: a, status: failed}]",
            "rehearsal 1: the status of the workflow is `failed` with the errors [{\"type\":\"error\",\"message\":\"Execution failed. See result for details.\",\"task_id\":\"a\"}], and not `succeeded`",
        ),
    ]);
}

#[test]
fn tasks_begin_in_rounds_and_items_end_one_in_each() {
    check(&[
        (
            BRANCHES,
            "workflow: w\nexpected_task_sequence: [a, b, c, s__r1, s__r2, noop__r1, noop__r2]\nexpected_routes: [[], [a__t0], [b__t0]]
mock_action_executions:
- {task_id: s, item_id: 1, result: two}
- {task_id: s, item_id: 1, seq_id: 4, result: other}
- {task_id: c, status: failed, num_iter: 2}
expected_output: {all: [null, other]}",
            "",
        ),
        (
            BRANCHES,
            "workflow: w\nexpected_task_sequence: [a, b, c, s__r1, s__r2, noop__r1, noop__r2]\nexpected_routes: [[], [a__t0], [b__t0]]\nexpected_workflow_status: failed
mock_action_executions: [{task_id: c, status: failed, num_iter: 3}]",
            "",
        ),
        (
            "tasks: {a: {with: '<% [] %>', action: core.noop, next: [{do: b}]}, b: {}}",
            "workflow: w\nexpected_task_sequence: [a, b]",
            "",
        ),
        (
            "tasks: {a: {next: [{do: b}]}, b: {next: [{do: c}]}, c: {next: [{do: b}]}}",
            "workflow: w\nexpected_task_sequence: [a]",
            "rehearsal 2: the workflow has more than 1000 runs of tasks; end its cycle",
        ),
    ]);
}

#[test]
fn results_come_from_files() {
    let yaml =
        "output: [{a: <% ctx().a %>}]\ntasks: {a: {action: core.noop, next: [{publish: a=<% result() %>}]}}";
    let rehearsal = |path: &str, output: &str| {
        format!(
            "workflow: w\nexpected_task_sequence: [a, continue]\nexpected_output: {{a: {output}}}\nmock_action_executions: [{{task_id: a, result_path: {path}}}]"
        )
    };
    for (path, output, expected) in [
        ("r.json", "{x: 1}", ""),
        ("r.yaml", "{x: 2}", ""),
        ("r.txt", "text", ""),
        ("none", "", "rehearsal 4: `none` was not read"),
    ] {
        check(&[(yaml, &rehearsal(path, output), expected)]);
    }
    assert!(told(yaml, &rehearsal("wrong.json", "")).starts_with("rehearsal 4: `wrong.json`: "));
    let read = Rehearsal::read(&rehearsal("r.json", "")).unwrap();
    let files: Vec<(&str, usize)> =
        read.result_files().map(|(path, position)| (path, position.line)).collect();
    assert_eq!((read.workflow().0, files), ("w", vec![("r.json", 4)]));
}

#[test]
fn errors_of_the_workflow_are_expected_or_told() {
    let wrong =
        "tasks:\n  a:\n    action: core.echo message=<% ctx().who %>\n    next:\n      - do: nowhere\n";
    check(&[
        (
            wrong,
            "workflow: w\nexpected_task_sequence: []",
            "workflow 3: Variable \"who\" is referenced before assignment.
             workflow 5: The task \"nowhere\" is not defined.",
        ),
        (
            wrong,
            "workflow: w
expected_inspection_errors:
  context:
    - {type: yaql, expression: <% ctx().who %>, message: Variable \"who\" is referenced before assignment.}
  semantics:
    - {message: The task \"nowhere\" is not defined., spec_path: 'tasks.a.next[0].do'}",
            "",
        ),
        (
            wrong,
            "workflow: w\nexpected_inspection_errors:\n  semantics: [{message: other}]",
            "rehearsal 3: the list of semantics errors is [{\"message\":\"The task \\\"nowhere\\\" is not defined.\",\"spec_path\":\"tasks.a.next[0].do\",\"schema_path\":\"properties.tasks.patternProperties.^\\\\w+$.properties.next.items.properties.do\"}], and not [{\"message\":\"other\"}]
             rehearsal 2: the list of context errors is [{\"message\":\"Variable \\\"who\\\" is referenced before assignment.\",\"spec_path\":\"tasks.a.input\",\"schema_path\":\"properties.tasks.patternProperties.^\\\\w+$.properties.input\",\"expression\":\"<% ctx().who %>\",\"type\":\"yaql\"}], and not []",
        ),
        (
            "vars: [{l: [1]}]\ntasks:\n  a:\n    action: core.echo message=<% ctx().l.orderBy($) %>\n",
            "workflow: w\nexpected_task_sequence: []",
            "workflow 4: expression `<% ctx().l.orderBy($) %>` is evaluated by Python in an execution, which a rehearsal does not start; use a simpler form of it",
        ),
    ]);
}

#[test]
fn a_workflow_that_is_no_yaml_is_told() {
    let told = told("tasks: [", "workflow: w\nexpected_task_sequence: []");
    assert!(told.starts_with("workflow 1: ") && told.lines().count() == 1, "{told}");
}

#[test]
fn a_wrong_rehearsal_is_refused_at_its_place() {
    let items = "tasks: {a: {with: '<% [1] %>', action: core.noop}}";
    check(&[
        (items, "[]", "rehearsal 1: a rehearsal is an object; begin with `workflow: PATH`"),
        (items, "inputs: {}", "rehearsal 1: `workflow` is missing\nrehearsal 1: `expected_task_sequence` is missing"),
        (
            items,
            "workflow: w\nworkflow_state: {}",
            "rehearsal 2: `workflow_state` is the state of another engine; rehearse the workflow from its start",
        ),
        (
            items,
            "workflow: 5\ninput: {}\ninputs: []\nexpected_task_sequence: [1]\nexpected_workflow_status: done
mock_action_executions:
- {task: a}
- {task_id: a, status: done, num_iter: -1}
- 5\nexpected_routes: [a]",
            "rehearsal 2: key `input` is unknown; use one of workflow, inputs, expected_inspection_errors, expected_routes, expected_task_sequence, mock_action_executions, expected_term_tasks, expected_workflow_status, expected_errors, expected_output
             rehearsal 1: `workflow` is a JSON integer; write a text that is not empty
             rehearsal 3: `inputs` is a JSON array; write an object
             rehearsal 10: each route is a list of transitions such as `task1__t0`
             rehearsal 4: the name of a task is a text
             rehearsal 7: key `task` is unknown; use one of task_id, route, seq_id, item_id, iter_id, num_iter, status, result, result_path
             rehearsal 7: `task_id` is missing
             rehearsal 8: `done` is no status of an action; use one of running, pending, paused, succeeded, failed, abandoned, timeout, canceled
             rehearsal 8: `num_iter` is no whole number from 0 on
             rehearsal 9: the outcome of an action is an object with `task_id`
             rehearsal 5: `done` is no status of a workflow; use one of running, pausing, paused, canceling, canceled, succeeded, failed",
        ),
        (
            items,
            "workflow: w\nexpected_inspection_errors:\n  semantic: []\n  syntax: [5]",
            "rehearsal 3: `semantic` is no kind of errors; use one of syntax, semantics, expressions, context, contents
             rehearsal 4: each error is an object with a `message`, in a list",
        ),
        (
            items,
            "workflow: w\nexpected_task_sequence: [a]\nmock_action_executions:\n- task_id: a\n- task_id: b",
            "rehearsal 4: task `a` has items; add the `item_id` of one, from 0 on
             rehearsal 5: the workflow has no task `b`; its tasks are a",
        ),
        (
            items,
            "workflow: w\nexpected_task_sequence: [a]\nmock_action_executions:\n- task_id: a\n  item_id: 1",
            "rehearsal 5: task `a` has 1 items, the first of which is 0",
        ),
    ]);
}
