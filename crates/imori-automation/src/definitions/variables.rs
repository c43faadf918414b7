//! Variables that a workflow reads, and where they are set.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::LazyLock;

use regex::Regex;

use super::definition::{COMMANDS, Definition, Next, Task};
use super::graph::starts;
use super::problem::Problem;
use super::syntax::TASK;
use crate::expressions::{Language, languages};
use crate::value::Value;

/// Names that StackStorm sets beside the variables of a workflow.
const GIVEN: &[&str] = &["st2", "parent"];

type Names = BTreeSet<String>;

/// All reads of variables that are not set before.
pub(crate) fn check(definition: &Definition) -> Vec<Problem> {
    let mut check = Check { problems: Vec::new() };
    let mut names: Names = GIVEN.iter().map(|name| (*name).to_owned()).collect();
    check.list("input", "properties.input", &definition.input, &mut names);
    check.list("vars", "properties.vars", &definition.vars, &mut names);
    check.tasks(definition, &mut names);
    check.list("output", "properties.output", &definition.output, &mut names);
    check.problems
}

struct Check {
    problems: Vec<Problem>,
}

impl Check {
    /// Values that are set one after the other.
    fn list(&mut self, spec: &str, schema: &str, values: &[(String, Value)], names: &mut Names) {
        for (at, (name, value)) in values.iter().enumerate() {
            self.read(value, &format!("{spec}[{at}]"), schema, names);
            names.insert(name.clone());
        }
    }

    /// The tasks in the order in which they are reached. All that they publish is known to the output.
    fn tasks(&mut self, definition: &Definition, names: &mut Names) {
        let mut open: VecDeque<(String, Option<Names>)> =
            starts(definition).into_iter().map(|name| (name, Some(names.clone()))).collect();
        let mut joined: BTreeMap<String, Names> = BTreeMap::new();
        let mut reached: BTreeMap<String, Names> = BTreeMap::new();
        let mut done: BTreeSet<String> = BTreeSet::new();
        while let Some((name, known)) = open.pop_front() {
            done.insert(name.clone());
            let Some(task) = definition.tasks.get(&name) else { continue };
            let known = known.unwrap_or_else(|| joined.get(&name).cloned().unwrap_or_default());
            self.task(&name, task, &known);
            names.extend(known.iter().cloned());
            for (at, next) in task.next.iter().enumerate() {
                let mut after = known.clone();
                self.next(&name, at, next, &mut after);
                names.extend(after.iter().cloned());
                for target in next.tasks.iter().filter(|target| !COMMANDS.contains(&target.as_str())) {
                    let Some(task) = definition.tasks.get(target).filter(|_| !done.contains(target)) else {
                        continue;
                    };
                    if task.join.is_some() {
                        joined.entry(target.clone()).or_default().extend(after.iter().cloned());
                        open.push_back((target.clone(), None));
                    } else if reached.get(target) != Some(&after) {
                        reached.insert(target.clone(), after.clone());
                        open.push_back((target.clone(), Some(after.clone())));
                    }
                }
            }
        }
    }

    fn task(&mut self, name: &str, task: &Task, known: &Names) {
        let items = task.items.as_ref();
        let action = task.action.as_deref().map(Value::from);
        let parts = [
            ("delay", "delay", task.delay.as_ref()),
            ("with.items", "with.properties.items", items.map(|items| &items.list)),
            (
                "with.concurrency",
                "with.properties.concurrency",
                items.and_then(|items| items.concurrency.as_ref()),
            ),
            ("action", "action", action.as_ref()),
            ("input", "input", Some(&task.input)),
        ];
        for (spec, schema, value) in parts {
            if let Some(value) = value {
                let schema = format!("{TASK}.properties.{schema}");
                self.read(value, &format!("tasks.{name}.{spec}"), &schema, known);
            }
        }
    }

    fn next(&mut self, name: &str, at: usize, next: &Next, known: &mut Names) {
        let spec = format!("tasks.{name}.next[{at}]");
        let schema = format!("{TASK}.properties.next.items.properties");
        if let Some(when) = &next.when {
            self.read(&Value::from(when.as_str()), &format!("{spec}.when"), &format!("{schema}.when"), known);
        }
        self.list(&format!("{spec}.publish"), &format!("{schema}.publish"), &next.publish, known);
    }

    fn read(&mut self, value: &Value, spec: &str, schema: &str, known: &Names) {
        let mut reads = BTreeSet::new();
        collect(value, &mut reads);
        for (name, language, text) in reads {
            let mut add = |message: String| {
                let mut problem = Problem::new("context", message, spec, schema);
                problem.language = Some(language);
                problem.expression = Some(text.clone());
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            };
            if name.starts_with("__") {
                add(format!(
                    "Variable \"{name}\" that is prefixed with double underscores is considered a private variable and cannot be referenced."
                ));
            }
            if !known.contains(&name) {
                add(format!("Variable \"{name}\" is referenced before assignment."));
            }
        }
    }
}

/// A use of variables: `ctx(…)` and the characters of a path behind it.
static USE: LazyLock<Regex> = LazyLock::new(|| {
    let path = r#"[\]\[a-zA-Z0-9_'".()]*"#;
    Regex::new(&format!(r#"\bctx\(['"]?{path}['"]?\)\.?{path}"#)).expect("the pattern is fixed")
});

/// The names that such a use may begin with.
static NAMES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let patterns = [
        r"\bctx\(\)\.([a-zA-Z0-9_]+)(?:[^a-zA-Z0-9_(]|$)",
        r"\bctx\(([a-zA-Z0-9_-]+)\)",
        r"\bctx\('([a-zA-Z0-9_-]+)'\)",
        r#"\bctx\("([a-zA-Z0-9_-]+)"\)"#,
    ];
    patterns.iter().map(|pattern| Regex::new(pattern).expect("the pattern is fixed")).collect()
});

/// Collects the variables that a value reads, each with its language and the text it stands in.
fn collect(value: &Value, reads: &mut BTreeSet<(String, &'static str, String)>) {
    match value {
        Value::String(text) => {
            for language in languages(text) {
                for expression in language.expressions(text) {
                    read_names(language, language.inside(expression), text, reads);
                }
            }
        }
        Value::List(items) => items.iter().for_each(|item| collect(item, reads)),
        Value::Map(map) => {
            for (key, value) in map.iter() {
                collect(&Value::from(key), reads);
                collect(value, reads);
            }
        }
        _ => {}
    }
}

fn read_names(
    language: Language,
    inside: &str,
    text: &str,
    reads: &mut BTreeSet<(String, &'static str, String)>,
) {
    for used in USE.find_iter(inside) {
        for pattern in NAMES.iter() {
            let name = pattern.captures(used.as_str()).and_then(|groups| groups.get(1));
            if let Some(name) = name {
                reads.insert((name.as_str().to_owned(), language.name(), text.to_owned()));
            }
        }
    }
}
