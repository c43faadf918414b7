//! Tasks that are ready: their parameters, their items, and the calls that the caller is to make.

use std::time::Duration;

use super::execution::{Execution, NeedsAnswers, Origin};
use super::state::{Item, Staged};
use super::statuses::TaskStatus;
use crate::definitions::{Items, Task};
use crate::expressions::Scope;
use crate::limits::{WORKFLOW_DELAY_SECONDS_MAX, WORKFLOW_ITEMS_MAX, WORKFLOW_RUNS_MAX, WORKFLOW_STEPS_MAX};
use crate::value::{Map, Value};
use crate::workflows::{Call, Command, WorkflowStatus};

/// A task that is ready, with its parameters.
struct Planned {
    task: String,
    route: u32,
    delay: i64,
    /// Only the first items that run at once are delayed.
    delayed_items: Option<usize>,
    calls: Vec<PlannedCall>,
    /// The length of the list of a task with items.
    items: Option<usize>,
}

struct PlannedCall {
    item: Option<usize>,
    action: String,
    parameters: Map,
}

/// A plan, nothing to do now, or the message of an error.
type Plan = Result<Option<Planned>, String>;

/// The identifier of a call.
pub(super) fn call_id(task: &str, run: usize, tally: i64, item: Option<usize>) -> String {
    match item {
        Some(item) => format!("{task}/{run}/{tally}/{item}"),
        None => format!("{task}/{run}/{tally}"),
    }
}

impl Execution<'_> {
    /// Starts all tasks that are ready, and those that follow tasks without a call.
    pub(super) fn schedule(&mut self) -> Result<(), NeedsAnswers> {
        loop {
            let planned = self.plan_all()?;
            if planned.is_empty() {
                return Ok(());
            }
            if self.steps > WORKFLOW_STEPS_MAX || self.state.runs.len() > WORKFLOW_RUNS_MAX {
                let message = match self.steps > WORKFLOW_STEPS_MAX {
                    true => {
                        format!("more than {WORKFLOW_STEPS_MAX} tasks follow each other without an action")
                    }
                    false => format!("the workflow has more than {WORKFLOW_RUNS_MAX} runs of tasks"),
                };
                let message = format!("WorkflowLimitError: {message}; end its cycle");
                self.log(&message, Origin::default());
                self.fail();
                return Ok(());
            }
            let mut ended = Vec::new();
            for planned in planned {
                let ends_at_once = planned.calls.is_empty();
                let run = self.begin(planned)?;
                ended.extend(run.filter(|_| ends_at_once));
            }
            for run in ended {
                self.update(run, TaskStatus::Succeeded, None, &Value::Null)?;
            }
        }
    }

    /// Begins the tasks that are ready, and none that follows them: the position of each run, and of the newest one then.
    pub(super) fn begin_ready(&mut self) -> Result<Vec<(usize, usize)>, NeedsAnswers> {
        let mut begun = Vec::new();
        for planned in self.plan_all()? {
            let run = self.begin(planned)?;
            let newest = self.state.runs.len().saturating_sub(1);
            begun.extend(run.map(|run| (run, newest)));
        }
        Ok(begun)
    }

    /// The tasks that start now, by name and route. An error in one of them fails the workflow, and none starts.
    fn plan_all(&mut self) -> Result<Vec<Planned>, NeedsAnswers> {
        let is_running = self.state.status == WorkflowStatus::Running;
        let is_failed = self.state.status == WorkflowStatus::Failed;
        let ready = self.state.staged.iter().filter(|staged| staged.is_runnable());
        let ready: Vec<Staged> =
            ready.filter(|staged| is_running || (is_failed && staged.runs_on_fail)).cloned().collect();
        let mut planned = Vec::new();
        let mut is_asked = false;
        let mut has_failed = false;
        for staged in ready {
            match self.plan(&staged) {
                Err(NeedsAnswers) => is_asked = true,
                Ok(Ok(plan)) => planned.extend(plan),
                Ok(Err(message)) => {
                    has_failed = true;
                    self.log(&message, Origin { task: Some((&staged.task, staged.route)), transition: None });
                }
            }
        }
        if is_asked {
            return Err(NeedsAnswers);
        }
        if has_failed {
            self.fail();
            for staged in &mut self.state.staged {
                staged.runs_on_fail = false;
            }
            return Ok(Vec::new());
        }
        planned.sort_by(|a, b| (&a.task, a.route).cmp(&(&b.task, b.route)));
        Ok(planned)
    }

    fn plan(&mut self, staged: &Staged) -> Result<Plan, NeedsAnswers> {
        let definition = self.definition;
        let no_task = Task::default();
        let task = definition.tasks.get(&staged.task).unwrap_or(&no_task);
        let scope = self.scope(staged.context, &staged.task, staged.route, None);
        let place = format!("{}/{}/{}", staged.task, staged.route, self.state.runs.len());
        let calls = match &task.items {
            Some(items) => self.items(staged, task, items, &scope, &place)?,
            None => {
                self.call(task, &scope, &place, None)?.map(|call| (call.into_iter().collect(), None, None))
            }
        };
        let delay = match staged.retry_delay {
            Some(delay) => Ok(delay),
            None => self.delay(task, &scope, &place)?,
        };
        let (calls, items, concurrency) = match calls {
            Ok(calls) => calls,
            Err(message) => return Ok(Err(message)),
        };
        let delay = match delay {
            Ok(delay) => delay,
            Err(message) => return Ok(Err(message)),
        };
        // A list whose items all run or wait has nothing to start.
        if calls.is_empty() && items.is_some_and(|items| items > 0) {
            return Ok(Ok(None));
        }
        let (task, route) = (staged.task.clone(), staged.route);
        Ok(Ok(Some(Planned { task, route, delay, delayed_items: concurrency, calls, items })))
    }

    fn delay(
        &mut self,
        task: &Task,
        scope: &Scope,
        place: &str,
    ) -> Result<Result<i64, String>, NeedsAnswers> {
        let Some(delay) = &task.delay else { return Ok(Ok(0)) };
        Ok(match self.evaluate(delay, scope, &format!("{place} delay"))? {
            Ok(Value::Int(delay)) if (0..=WORKFLOW_DELAY_SECONDS_MAX).contains(&delay) => Ok(delay),
            Ok(Value::Int(_)) => {
                Err(format!("ValueError: a task is delayed by 0 to {WORKFLOW_DELAY_SECONDS_MAX} seconds"))
            }
            Ok(_) => Err("TypeError: The value of task delay is not type of integer.".to_owned()),
            Err(message) => Err(message),
        })
    }

    /// The call of a task or of one item; none for a task without an action.
    fn call(
        &mut self,
        task: &Task,
        scope: &Scope,
        place: &str,
        item: Option<usize>,
    ) -> Result<Result<Option<PlannedCall>, String>, NeedsAnswers> {
        let Some(action) = &task.action else { return Ok(Ok(None)) };
        let action = self.evaluate(&Value::from(action.as_str()), scope, &format!("{place} action"));
        let input = self.evaluate(&task.input, scope, &format!("{place} input"));
        let action = match action? {
            Ok(Value::String(action)) => action,
            Ok(_) => return Ok(Err("TypeError: the name of an action is a text".to_owned())),
            Err(message) => return Ok(Err(message)),
        };
        let parameters = match input? {
            Ok(Value::Map(parameters)) => parameters,
            Ok(Value::Null) => Map::new(),
            Ok(_) => return Ok(Err("TypeError: the input of an action is an object".to_owned())),
            Err(message) => return Ok(Err(message)),
        };
        Ok(Ok(Some(PlannedCall { item, action, parameters })))
    }

    /// The calls of the items that start now, the length of the list, and how many run at once.
    #[expect(clippy::type_complexity, reason = "the parts of one plan, taken apart by its only caller")]
    fn items(
        &mut self,
        staged: &Staged,
        task: &Task,
        items: &Items,
        scope: &Scope,
        place: &str,
    ) -> Result<Result<(Vec<PlannedCall>, Option<usize>, Option<usize>), String>, NeedsAnswers> {
        let known = staged.items.as_deref().unwrap_or_default();
        // A list whose items all run or have ended is not evaluated again.
        if !known.is_empty() && known.iter().all(|item| item.status.is_some()) {
            return Ok(Ok((Vec::new(), Some(known.len()), None)));
        }
        let list = self.evaluate(&items.list, scope, &format!("{place} with.items"))?;
        let list = match list {
            Ok(Value::List(list)) => list,
            Ok(_) => {
                let written = items.list.as_str().unwrap_or_default();
                return Ok(Err(format!("TypeError: The value of \"{written}\" is not type of list.")));
            }
            Err(message) => return Ok(Err(message)),
        };
        if list.len() > WORKFLOW_ITEMS_MAX {
            return Ok(Err(format!("WorkflowLimitError: a list has at most {WORKFLOW_ITEMS_MAX} items")));
        }
        let concurrency = match &items.concurrency {
            None => None,
            Some(value) => match self.evaluate(value, scope, &format!("{place} with.concurrency"))? {
                Ok(Value::Null) => None,
                Ok(Value::Int(number)) => Some(usize::try_from(number).unwrap_or(0).max(1)),
                Ok(_) => return Ok(Err("TypeError: the concurrency of items is an integer".to_owned())),
                Err(message) => return Ok(Err(message)),
            },
        };
        let status = |at: usize| known.get(at).and_then(|item| item.status);
        let active = (0..list.len()).filter(|at| status(*at).is_some_and(TaskStatus::is_active)).count();
        let free = concurrency.map_or(usize::MAX, |most| most.saturating_sub(active));
        let waiting: Vec<usize> = (0..list.len()).filter(|at| status(*at).is_none()).take(free).collect();
        let mut calls = Vec::new();
        let mut is_asked = false;
        for at in waiting {
            let item = named(&items.names, list.get(at).cloned().unwrap_or_default());
            let scope = scope.of_item(item);
            match self.call(task, &scope, &format!("{place} item {at}"), Some(at)) {
                Err(NeedsAnswers) => is_asked = true,
                Ok(Ok(call)) => calls.extend(call),
                Ok(Err(message)) => return Ok(Err(message)),
            }
        }
        if is_asked {
            return Err(NeedsAnswers);
        }
        Ok(Ok((calls, Some(list.len()), concurrency)))
    }

    /// Begins a run, or goes on with it, and asks for its calls.
    fn begin(&mut self, planned: Planned) -> Result<Option<usize>, NeedsAnswers> {
        let Planned { task, route, delay, delayed_items, calls, items } = planned;
        if let (Some(len), Some(staged)) = (items, self.state.staged_mut(&task, route)) {
            let known = staged.items.get_or_insert_default();
            known.resize(len, Item::default());
            for call in &calls {
                if let Some(item) = call.item.and_then(|at| known.get_mut(at)) {
                    item.status = Some(TaskStatus::Running);
                }
            }
        }
        let is_open = |run: usize| {
            let status = self.state.runs.get(run).and_then(|run| run.status);
            !status.is_some_and(TaskStatus::is_completed)
        };
        let known = self.state.latest(&task, route).filter(|run| is_open(*run));
        let run = match (known, self.state.staged(&task, route).cloned()) {
            (Some(run), _) => run,
            (None, Some(staged)) => self.add_run(&staged)?,
            (None, None) => return Ok(None),
        };
        if items.is_none() {
            self.state.unstage(&task, route);
        }
        // A join of some branches that runs already is not asked for again by the others.
        let status = self.state.runs.get(run).and_then(|run| run.status);
        if items.is_none() && status.is_some_and(|status| status != TaskStatus::Retrying) {
            return Ok(None);
        }
        self.run_again(run);
        let tally = self.state.runs.get(run).and_then(|run| run.retry).map_or(0, |retry| retry.tally);
        let delay = u64::try_from(delay).unwrap_or(0);
        for call in calls {
            let is_delayed = call.item.zip(delayed_items).is_none_or(|(item, most)| item < most);
            self.commands.push(Command::Run(Call {
                id: call_id(&task, run, tally, call.item),
                task: task.clone(),
                route,
                item: call.item.and_then(|item| u32::try_from(item).ok()),
                action: call.action,
                parameters: call.parameters,
                delay: Duration::from_secs(if is_delayed { delay } else { 0 }),
            }));
        }
        Ok(Some(run))
    }
}

/// An item by the names before `in`.
fn named(names: &[String], item: Value) -> Value {
    match item {
        Value::List(values) if !names.is_empty() => Value::Map(names.iter().cloned().zip(values).collect()),
        item => match names {
            [name] => Value::Map([(name.clone(), item)].into_iter().collect()),
            _ => item,
        },
    }
}
