//! The errors of a definition.

use imori_automation::orquesta::{Actions, Problem, Workflow};
use imori_automation::value::Map;
use imori_automation::yaml;

use crate::map;

const TASK: &str = "properties.tasks.patternProperties.^\\w+$";
const NEXT: &str = "properties.tasks.patternProperties.^\\w+$.properties.next.items";

/// `core.noop`, which takes anything but needs nothing, and `core.echo`.
struct Registered;

impl Actions for Registered {
    fn parameters(&self, reference: &str) -> Option<Map> {
        let parameters = match reference {
            "core.noop" => r#"{"x": {}, "y": {"required": true, "default": null}}"#,
            "core.echo" => r#"{"message": {"required": true}, "to": {"required": true}}"#,
            _ => return None,
        };
        Some(map(parameters))
    }
}

fn inspect(yaml: &str, actions: Option<&dyn Actions>) -> Vec<Problem> {
    Workflow::of(&yaml::load(yaml).unwrap(), actions).err().unwrap_or_default()
}

/// The errors, one a line: kind, message, path in the document and path in the schema.
fn found(yaml: &str) -> String {
    let problems = inspect(yaml, Some(&Registered));
    let lines = problems.iter().map(|problem| {
        let path = |path: &Option<String>| path.clone().unwrap_or_else(|| "-".to_owned());
        let schema = path(&problem.schema_path).replace(NEXT, "NEXT").replace(TASK, "TASK");
        format!("{} | {} | {} | {schema}", problem.kind, problem.message, path(&problem.spec_path))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn all_errors_of_a_document_are_found() {
    let rows = [
        ("tasks: {a: {action: core.noop}}", ""),
        (
            "{version: 2.0, description: '', foo: 1, tasks: {}}",
            "syntax | Additional properties are not allowed ('foo' was unexpected) | - | additionalProperties
             syntax | '' should be non-empty | description | properties.description.minLength
             syntax | {} should be non-empty | tasks | properties.tasks.minProperties
             syntax | 2.0 is not one of ['1.0', 1.0] | version | properties.version.enum",
        ),
        ("[]", "syntax | [] is not of type 'object' | - | type"),
        ("{}", "syntax | 'tasks' is a required property | - | required"),
        ("tasks: [a]", "syntax | ['a'] is not of type 'object' | tasks | properties.tasks.type"),
        (
            "tasks: {a: 5, b-c: {}, noop: {}}",
            "semantic | The task name \"noop\" is reserved with special function. | tasks.noop | TASK
             syntax | the task name `b-c` has other characters than letters, digits and `_` | tasks.b-c | TASK
             syntax | 5 is not of type 'object' | tasks.a | TASK.type",
        ),
        (
            "{input: [{x: 1, y: 2}], vars: [x, x], tasks: {a: {join: some, delay: -1, input: {}, next: {do: b}}}}",
            "syntax | {'x': 1, 'y': 2} is not valid under any of the given schemas | input[0] | properties.input.items.oneOf
             syntax | -1 is not valid under any of the given schemas | tasks.a.delay | TASK.properties.delay.oneOf
             syntax | {} is not valid under any of the given schemas | tasks.a.input | TASK.properties.input.oneOf
             syntax | 'some' is not valid under any of the given schemas | tasks.a.join | TASK.properties.join.oneOf
             syntax | {'do': 'b'} is not of type 'array' | tasks.a.next | TASK.properties.next.type
             syntax | 'x' is not valid under any of the given schemas | vars[0] | properties.vars.items.oneOf
             syntax | 'x' is not valid under any of the given schemas | vars[1] | properties.vars.items.oneOf
             syntax | ['x', 'x'] has non-unique elements | vars | properties.vars.uniqueItems",
        ),
        (
            "tasks: {a: {next: [{do: [b, b], foo: 1}, {do: 'b, nowhere'}]}, b: {with: {items: 5, concurrency: -1}, retry: {delay: 1}}}",
            "semantic | The task \"nowhere\" is not defined. | tasks.a.next[1].do | NEXT.properties.do
             syntax | Additional properties are not allowed ('foo' was unexpected) | tasks.a.next[0] | NEXT.additionalProperties
             syntax | ['b', 'b'] is not valid under any of the given schemas | tasks.a.next[0].do | NEXT.properties.do.oneOf
             syntax | 'count' is a required property | tasks.b.retry | TASK.properties.retry.required
             syntax | -1 is not valid under any of the given schemas | tasks.b.with.concurrency | TASK.properties.with.properties.concurrency.oneOf
             syntax | 5 is not of type 'string' | tasks.b.with.items | TASK.properties.with.properties.items.type",
        ),
        (
            "tasks: {a: {next: [{do: b}]}, b: {next: [{do: a}]}}",
            "semantic | Unable to identify any tasks to start the workflow. If the workflow has a loop, please add a task that serves as an entry point (or lead) into the loop. | tasks | properties.tasks",
        ),
        (
            "tasks: {a: {next: [{do: s}]}, b: {next: [{do: s}]}, s: {next: [{do: j}]}, c: {next: [{do: j}]}, j: {join: all, with: '<% [] %>'}}",
            "semantic | The action property is required for with items task. | tasks.j | TASK
             semantic | The join task \"j\" is unreachable. A join task is determined to be unreachable if there are nested forks from multi-referenced tasks that join on the said task. This is ambiguous to the workflow engine because it does not know at which level should the join occurs. | tasks.j | TASK",
        ),
        (
            "{input: [{x: 1}], tasks: {a: {action: 'core.noop x=<% ctx().q %>', with: \"<% ctx('r') %>\", next: [{when: '<% ctx().x = %>', publish: [{z: '<% ctx(\"w\") %>'}], do: b}]}, b: {input: '{{ ctx().z + ctx().y.get(1) }}'}}, output: [{p: '<% ctx().z %> <% ctx().m %>'}, {q: '<% ctx().p @ 1 %>'}, {r: '{{ 1 }} <% 1 %>'}]}",
            "context | Variable \"m\" is referenced before assignment. | output[0] | properties.output
             context | Variable \"q\" is referenced before assignment. | tasks.a.input | TASK.properties.input
             context | Variable \"y\" is referenced before assignment. | tasks.b.input | TASK.properties.input
             context | Variable \"w\" is referenced before assignment. | tasks.a.next[0].publish[0] | NEXT.properties.publish
             context | Variable \"r\" is referenced before assignment. | tasks.a.with.items | TASK.properties.with.properties.items
             expression | Lexical error: illegal character '@' at position 8 | output | properties.output
             expression | Expression with multiple types is not supported. | output | properties.output
             expression | Parse error: unexpected end of statement | tasks.a.next[0].when | NEXT.properties.when",
        ),
        (
            "{tasks: {a: {next: [{publish: [{b: 1}], do: j}]}, c: {next: [{do: d}]}, d: {next: [{publish: e=1, do: j}]}, j: {join: all, input: {x: <% ctx().b %>}}}, output: [{o: <% ctx(e) + ctx().st2.user %>}]}",
            "",
        ),
    ];
    for (yaml, expected) in rows {
        let expected: Vec<&str> = expected.lines().map(str::trim).collect();
        assert_eq!(found(yaml), expected.join("\n"), "{yaml}");
    }
}

#[test]
fn calls_of_actions_are_checked() {
    for (task, expected) in [
        ("{action: core.echo message=hi to=\"you\"}", "content | Action \"core.echo\" is missing required input \"message\". | tasks.a.input | TASK.properties.input"),
        ("{action: core.echo, input: '<% dict() %>'}", ""),
        ("{action: <% ctx(st2).action %>}", ""),
        ("{action: core.noop, input: {x: 1}}", ""),
        ("{}", ""),
        ("{action: noop}", "content | The action reference \"noop\" is not formatted correctly. | tasks.a.action | TASK.properties.action"),
        ("{action: std.noop}", "content | The action \"std.noop\" is not registered in the database. | tasks.a.action | TASK.properties.action"),
        (
            "{action: core.echo, input: {wat: 1, message: hi}}",
            "content | Action \"core.echo\" is missing required input \"to\". | tasks.a.input | TASK.properties.input
             content | Action \"core.echo\" has unexpected input \"wat\". | tasks.a.input.wat | TASK.properties.input.patternProperties.^\\w+$",
        ),
    ] {
        let expected: Vec<&str> = expected.lines().map(str::trim).collect();
        assert_eq!(found(&format!("tasks: {{a: {task}}}")), expected.join("\n"), "{task}");
    }
}

#[test]
fn a_wrong_template_is_found() {
    let problems = inspect("tasks: {a: {action: 'core.echo message={{ 1 + }}'}}", None);
    let kinds: Vec<_> = problems.iter().map(|problem| (problem.kind, problem.language)).collect();
    assert_eq!(kinds, [("expression", Some("jinja"))]);
}

#[test]
fn a_workflow_has_a_largest_size() {
    let tasks: String = (0..1_001).map(|at| format!("  t{at}: {{action: core.noop}}\n")).collect();
    let problems = found(&format!("tasks:\n{tasks}"));
    assert!(problems.starts_with("semantic | the workflow has more than 1000 tasks"), "{problems}");
}
