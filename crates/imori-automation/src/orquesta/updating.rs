//! A task whose status changes, and the transitions from a task that has ended.

use std::collections::BTreeMap;

use super::contexts::Context;
use super::execution::{Execution, Inbound, NeedsAnswers, Origin};
use super::state::{Item, RetryState, Run, Staged};
use super::statuses::{Siblings, TaskStatus, after_call, after_item};
use crate::definitions::{COMMANDS, Edge, Retry};
use crate::expressions::Scope;
use crate::limits::WORKFLOW_DELAY_SECONDS_MAX;
use crate::value::{Map, Value};
use crate::workflows::WorkflowStatus;

impl Execution<'_> {
    /// Changes a run after an event of its call, or of the call of one of its items.
    pub(super) fn update(
        &mut self,
        run: usize,
        event: TaskStatus,
        item: Option<usize>,
        result: &Value,
    ) -> Result<(), NeedsAnswers> {
        let Some(Run { task, route, status: old, .. }) = self.state.runs.get(run).cloned() else {
            return Ok(());
        };
        if event == TaskStatus::Failed {
            self.log_failure(&task, result);
        }
        // A list that has ended stays so, also if an item of it that waited ends now.
        if let (Some(at), true) = (item, old.is_some_and(TaskStatus::is_completed)) {
            if self.state.latest(&task, route) == Some(run) {
                self.set_item(&task, route, at, event, result);
            }
            return Ok(());
        }
        let new = match item {
            None => after_call(event),
            Some(at) => {
                self.set_item(&task, route, at, event, result);
                let others = self.siblings(&task, route, at);
                after_item(self.state.status, old.unwrap_or(TaskStatus::Running), event, others)
            }
        };
        self.set_status(run, new);
        if new.is_completed() && old != Some(new) {
            let result = self.completed(&task, route, new, result);
            let context = self.state.runs.get(run).map_or(0, |run| run.context);
            let scope = self.scope(context, &task, route, Some(result));
            if self.retries(run, &scope)? {
                self.note(run);
                return Ok(());
            }
            self.follow(run, &scope)?;
        } else {
            self.note(run);
        }
        self.end_branch(run);
        Ok(())
    }

    /// Changes a run of which a call begins.
    pub(super) fn run_again(&mut self, run: usize) {
        let status = self.state.runs.get(run).and_then(|run| run.status);
        if !matches!(status, Some(TaskStatus::Pausing | TaskStatus::Canceling)) {
            self.set_status(run, TaskStatus::Running);
        }
        self.note(run);
    }

    /// A run whose workflow has ended is the end of its branch.
    fn end_branch(&mut self, run: usize) {
        if super::statuses::is_final(self.state.status)
            && let Some(run) = self.state.runs.get_mut(run)
        {
            run.is_terminal = true;
        }
    }

    fn set_status(&mut self, run: usize, status: TaskStatus) {
        if let Some(run) = self.state.runs.get_mut(run) {
            run.status = Some(status);
        }
    }

    fn set_item(&mut self, task: &str, route: u32, at: usize, event: TaskStatus, result: &Value) {
        let items = self.state.staged_mut(task, route).and_then(|staged| staged.items.as_mut());
        if let Some(item) = items.and_then(|items| items.get_mut(at)) {
            let result = if event.is_completed() { result.clone() } else { Value::Null };
            *item = Item { status: Some(event), result };
        }
    }

    fn siblings(&self, task: &str, route: u32, at: usize) -> Siblings {
        let mut others = Siblings::default();
        let items = self.state.staged(task, route).and_then(|staged| staged.items.as_ref());
        let items = items.into_iter().flatten().enumerate().filter(|(other, _)| *other != at);
        for (_, item) in items {
            let is = |test: fn(TaskStatus) -> bool| item.status.is_some_and(test);
            others.has_active |= is(TaskStatus::is_active);
            others.has_waiting |= is(TaskStatus::is_waiting);
            others.has_canceled |= is(|status| status == TaskStatus::Canceled);
            others.has_failed |= is(TaskStatus::is_abended);
            others.has_incomplete |= !is(TaskStatus::is_completed);
        }
        others
    }

    /// Takes a task that has ended from those about to run, and gives its result: that of all items for a list.
    fn completed(&mut self, task: &str, route: u32, status: TaskStatus, result: &Value) -> Value {
        let has_items = self.definition.tasks.get(task).is_some_and(|task| task.items.is_some());
        if !has_items {
            self.state.unstage(task, route);
            return result.clone();
        }
        let items = self.state.staged(task, route).and_then(|staged| staged.items.as_ref());
        let results = items.into_iter().flatten().map(|item| item.result.clone()).collect();
        // Items that failed may run again.
        match self.state.staged_mut(task, route).filter(|_| status != TaskStatus::Succeeded) {
            Some(staged) => staged.is_completed = true,
            None => self.state.unstage(task, route),
        }
        Value::List(results)
    }

    /// Stages a run again if it is to be retried.
    fn retries(&mut self, at: usize, scope: &Scope) -> Result<bool, NeedsAnswers> {
        let Some(run) = self.state.runs.get(at).cloned() else { return Ok(false) };
        let is_active = matches!(
            self.state.status,
            WorkflowStatus::Running | WorkflowStatus::Pausing | WorkflowStatus::Canceling
        );
        let is_canceled = run.status == Some(TaskStatus::Canceled);
        let Some(retry) = run.retry.filter(|retry| retry.tally < retry.count && is_active && !is_canceled)
        else {
            return Ok(false);
        };
        let condition = self.graph.retry(&run.task).and_then(|retry| retry.when.clone());
        let holds = match condition {
            None => run.status.is_some_and(TaskStatus::is_abended),
            Some(condition) => {
                let place = format!("{}/{at} retry.when {}", run.task, retry.tally);
                match self.evaluate(&Value::String(condition), scope, &place)? {
                    Ok(value) => value.is_truthy(),
                    Err(message) => {
                        let origin = Origin { task: Some((&run.task, run.route)), transition: None };
                        self.log(&message, origin);
                        self.fail();
                        false
                    }
                }
            }
        };
        if !holds {
            return Ok(false);
        }
        self.set_status(at, TaskStatus::Retrying);
        if let Some(run) = self.state.runs.get_mut(at) {
            run.retry = Some(RetryState { tally: retry.tally + 1, ..retry });
        }
        self.state.unstage(&run.task, run.route);
        self.state.staged.push(Staged {
            task: run.task,
            route: run.route,
            context: run.context,
            prev: run.prev,
            is_ready: true,
            retry_delay: Some(retry.delay),
            items: None,
            is_completed: false,
            runs_on_fail: false,
        });
        Ok(true)
    }

    /// Follows the transitions of a run that has ended.
    fn follow(&mut self, at: usize, scope: &Scope) -> Result<(), NeedsAnswers> {
        let Some(Run { task, route, .. }) = self.state.runs.get(at).cloned() else { return Ok(()) };
        let graph = self.graph;
        let edges: Vec<&Edge> = graph.next(&task).collect();
        if let Some(run) = self.state.runs.get_mut(at) {
            run.is_terminal |= edges.is_empty();
            run.next.clear();
        }
        let conditions = self.conditions(at, &edges, scope)?;
        let mut published: BTreeMap<usize, usize> = BTreeMap::new();
        let mut commands = Vec::new();
        let mut staged = Vec::new();
        for (edge, holds) in edges.iter().zip(conditions) {
            let id = edge.id();
            let origin = Origin { task: Some((&task, route)), transition: Some(&id) };
            let holds = match holds {
                Ok(holds) => holds,
                Err(message) => {
                    self.log(&message, origin);
                    self.fail();
                    continue;
                }
            };
            if let Some(run) = self.state.runs.get_mut(at) {
                run.next.push((id.clone(), holds));
            }
            if !holds {
                continue;
            }
            // All tasks of one `do` have the same context.
            let context = match published.get(&edge.position) {
                Some(context) => *context,
                None => match self.publish(at, edge, scope)? {
                    Ok(context) => context,
                    Err(messages) => {
                        for message in messages {
                            self.log(&message, origin);
                        }
                        self.fail();
                        continue;
                    }
                },
            };
            published.insert(edge.position, context);
            let next_route = self.stage(at, edge, context);
            let is_ready = self.inbound(&edge.to, route) == Inbound::Satisfied;
            if let Some(next) = self.state.staged_mut(&edge.to, next_route) {
                next.is_ready = is_ready;
            }
            match COMMANDS.contains(&edge.to.as_str()) {
                true => commands.push((edge.to.clone(), next_route)),
                false if is_ready => staged.push((edge.to.clone(), next_route)),
                false => {}
            }
        }
        // Tasks beside the command `fail` clean up, and run although the workflow fails.
        if commands.iter().any(|(command, _)| command == "fail") {
            for (task, route) in staged {
                if let Some(staged) = self.state.staged_mut(&task, route) {
                    staged.runs_on_fail = true;
                }
            }
        }
        self.note(at);
        for (command, route) in commands {
            self.command(&command, route)?;
        }
        Ok(())
    }

    /// Whether the conditions of transitions hold, or the messages of their errors.
    fn conditions(
        &mut self,
        at: usize,
        edges: &[&Edge],
        scope: &Scope,
    ) -> Result<Vec<Result<bool, String>>, NeedsAnswers> {
        let mut conditions = Vec::new();
        let mut is_asked = false;
        for edge in edges {
            let Some(when) = edge.when.clone() else {
                conditions.push(Ok(true));
                continue;
            };
            let place = format!("{}/{at} next[{}].when", edge.from, edge.position);
            match self.evaluate(&Value::String(when), scope, &place) {
                Ok(result) => conditions.push(result.map(|value| value.is_truthy())),
                Err(NeedsAnswers) => is_asked = true,
            }
        }
        if is_asked { Err(NeedsAnswers) } else { Ok(conditions) }
    }

    /// The context after a transition, or the messages of errors.
    fn publish(
        &mut self,
        at: usize,
        edge: &Edge,
        scope: &Scope,
    ) -> Result<Result<usize, Vec<String>>, NeedsAnswers> {
        let parent = self.state.runs.get(at).map_or(0, |run| run.context);
        let definition = self.definition;
        let next = definition.tasks.get(&edge.from).and_then(|task| task.next.get(edge.position));
        let Some(next) = next.filter(|next| !next.publish.is_empty()) else { return Ok(Ok(parent)) };
        let mut scope = scope.clone();
        let mut published = Map::new();
        let mut errors = Vec::new();
        for (index, (name, value)) in next.publish.iter().enumerate() {
            let place = format!("{}/{at} next[{}].publish[{index}]", edge.from, edge.position);
            match self.evaluate(value, &scope, &place)? {
                Ok(value) => {
                    scope.set(name, value.clone());
                    published.insert(name.as_str(), value);
                }
                Err(message) => errors.push(message),
            }
        }
        if !errors.is_empty() {
            return Ok(Err(errors));
        }
        self.state.contexts.push(Context::Change { parent, published });
        Ok(Ok(self.state.contexts.len() - 1))
    }

    /// Stages the task of a transition, or adds to what is staged, and gives its route.
    fn stage(&mut self, at: usize, edge: &Edge, context: usize) -> u32 {
        let before = self.state.runs.get(at).map_or(0, |run| run.route);
        let route = self.route(edge, before);
        let contexts = &mut self.state.contexts;
        let staged =
            self.state.staged.iter_mut().find(|staged| staged.route == route && staged.task == edge.to);
        match staged {
            Some(staged) => {
                contexts.push(Context::Join { left: staged.context, right: context });
                staged.context = contexts.len() - 1;
                match staged.prev.iter_mut().find(|(origin, _)| *origin == edge.origin()) {
                    Some((_, run)) => *run = at,
                    None => staged.prev.push((edge.origin(), at)),
                }
                // A list that has ended runs anew; one that runs goes on.
                if staged.is_completed {
                    staged.items = None;
                    staged.is_completed = false;
                }
            }
            None => self.state.staged.push(Staged {
                task: edge.to.clone(),
                route,
                context,
                prev: vec![(edge.origin(), at)],
                is_ready: false,
                retry_delay: None,
                items: None,
                is_completed: false,
                runs_on_fail: false,
            }),
        }
        route
    }

    /// The route of the task that a transition leads to.
    fn route(&mut self, edge: &Edge, before: u32) -> u32 {
        if !self.graph.makes_routes(&edge.to) {
            return before;
        }
        let old = usize::try_from(before).ok().and_then(|before| self.state.routes.get(before));
        let mut steps = old.cloned().unwrap_or_default();
        let step = edge.origin();
        if steps.contains(&step) {
            return before;
        }
        steps.push(step);
        self.state.routes.push(steps);
        u32::try_from(self.state.routes.len() - 1).unwrap_or(u32::MAX)
    }

    /// Carries out a command of the engine, which is a task that ends at once.
    fn command(&mut self, command: &str, route: u32) -> Result<(), NeedsAnswers> {
        let Some(staged) = self.state.staged(command, route).cloned() else { return Ok(()) };
        let run = self.add_run(&staged)?;
        self.state.unstage(command, route);
        let status = if command == "fail" { TaskStatus::Failed } else { TaskStatus::Succeeded };
        self.update(run, status, None, &Value::Null)
    }

    /// Adds a run of a staged task.
    pub(super) fn add_run(&mut self, staged: &Staged) -> Result<usize, NeedsAnswers> {
        let at = self.state.runs.len();
        let graph = self.graph;
        let retry = match graph.retry(&staged.task) {
            Some(retry) => Some(self.retry_state(at, staged, retry)?),
            None => None,
        };
        self.steps += 1;
        self.state.runs.push(Run {
            task: staged.task.clone(),
            route: staged.route,
            context: staged.context,
            prev: staged.prev.clone(),
            next: Vec::new(),
            status: None,
            is_terminal: false,
            retry,
        });
        Ok(at)
    }

    fn retry_state(&mut self, at: usize, staged: &Staged, retry: &Retry) -> Result<RetryState, NeedsAnswers> {
        let mut scope = self.scope(staged.context, &staged.task, staged.route, None);
        scope.task = None;
        let mut number = |name: &str, value: Option<&Value>| -> Result<i64, NeedsAnswers> {
            let Some(value) = value else { return Ok(0) };
            let place = format!("{}/{at} retry.{name}", staged.task);
            let message = match self.evaluate(value, &scope, &place)? {
                Ok(Value::Int(number)) if (0..=WORKFLOW_DELAY_SECONDS_MAX).contains(&number) => {
                    return Ok(number);
                }
                Ok(_) => {
                    format!("ValueError: The retry {name} for task \"{}\" is not an integer.", staged.task)
                }
                Err(message) => message,
            };
            self.log(&message, Origin { task: Some((&staged.task, staged.route)), transition: None });
            self.fail();
            Ok(0)
        };
        let count = number("count", Some(&retry.count))?;
        let delay = number("delay", retry.delay.as_ref())?;
        Ok(RetryState { count, delay, tally: 0 })
    }
}
