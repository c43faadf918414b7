//! An execution led in rounds, as rehearsals do: all ready tasks begin, and each of them ends before the next ones begin.

use super::execution::{Execution, NeedsAnswers};
use super::state::{Item, State};
use super::statuses::{TaskStatus, is_final, workflow_name};
use super::workflow::Workflow;
use crate::expressions::Evaluator;
use crate::value::{Map, Value};
use crate::workflows::{Answers, CallStatus, WorkflowStatus};

/// An execution that is led in rounds.
pub(crate) struct Round<'a> {
    workflow: &'a Workflow,
    answers: &'a Answers,
    state: State,
}

/// A task of a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BegunTask {
    /// The task's name.
    pub(crate) task: String,
    /// Its route.
    pub(crate) route: u32,
    /// Whether it has items, of which one ends in each round.
    pub(crate) has_items: bool,
    /// The position of the newest run when this task began.
    pub(crate) sequence: usize,
    run: usize,
}

/// The end of a task, or of one of its items.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskEnd {
    /// The status of its action.
    pub(crate) status: CallStatus,
    /// The position of the item.
    pub(crate) item: Option<usize>,
    /// The result of its action.
    pub(crate) result: Value,
}

/// An expression that Rust cannot evaluate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unevaluated(pub(crate) String);

impl<'a> Round<'a> {
    /// An execution with these parameters, of which no task has begun.
    ///
    /// # Errors
    /// A default value is an expression that has no answer.
    pub(crate) fn start(
        workflow: &'a Workflow,
        parameters: &Map,
        answers: &'a Answers,
    ) -> Result<Round<'a>, Unevaluated> {
        let mut round = Round { workflow, answers, state: State::new() };
        round.step(|execution| execution.prepare(parameters, &context()))?;
        Ok(round)
    }

    /// Begins all tasks that are ready, by name and route.
    ///
    /// # Errors
    /// A parameter of a task is an expression that has no answer.
    pub(crate) fn begin(&mut self) -> Result<Vec<BegunTask>, Unevaluated> {
        let runs = self.step(|execution| execution.begin_ready())?;
        let mut begun: Vec<BegunTask> = Vec::new();
        for (run, newest) in runs {
            let Some(found) = self.state.runs.get(run) else { continue };
            let has_items =
                self.workflow.definition.tasks.get(&found.task).is_some_and(|task| task.items.is_some());
            let (task, route) = (found.task.clone(), found.route);
            // An item begins with its end, so that those without one stay to be begun.
            if let Some(staged) = self.state.staged_mut(&task, route) {
                let items = staged.items.iter_mut().flatten();
                items
                    .filter(|item| item.status == Some(TaskStatus::Running))
                    .for_each(|item| item.status = None);
            }
            begun.push(BegunTask { task, route, has_items, sequence: newest, run });
        }
        Ok(begun)
    }

    /// Ends a task of the round, or one of its items.
    ///
    /// # Errors
    /// An expression of a transition has no answer.
    pub(crate) fn end(&mut self, task: &BegunTask, end: &TaskEnd) -> Result<(), Unevaluated> {
        self.step(|execution| execution.update(task.run, end.status.into(), end.item, &end.result))
    }

    /// Renders the output of an execution that has ended.
    ///
    /// # Errors
    /// An expression of the output has no answer.
    pub(crate) fn finish(&mut self) -> Result<(), Unevaluated> {
        match is_final(self.state.status) {
            true => self.step(|execution| execution.finish().map(drop)),
            false => Ok(()),
        }
    }

    /// The number of items of a task that has begun.
    pub(crate) fn item_count(&self, task: &BegunTask) -> usize {
        self.items(task).len()
    }

    /// The position of the first item of a task that has no outcome yet.
    pub(crate) fn open_item(&self, task: &BegunTask) -> Option<usize> {
        self.items(task).iter().position(|item| item.status.is_none())
    }

    fn items(&self, task: &BegunTask) -> &[Item] {
        let staged = self.state.staged(&task.task, task.route);
        staged.and_then(|staged| staged.items.as_deref()).unwrap_or_default()
    }

    /// The status of the execution.
    pub(crate) fn status(&self) -> &'static str {
        workflow_name(self.state.status)
    }

    /// Whether the execution has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.state.status == WorkflowStatus::Failed
    }

    /// The tasks and commands that have begun, each with its route, in order.
    pub(crate) fn sequence(&self) -> Vec<(&str, u32)> {
        self.state.runs.iter().map(|run| (run.task.as_str(), run.route)).collect()
    }

    /// The tasks at the ends of branches, each with its route.
    pub(crate) fn terminal_tasks(&self) -> Vec<(&str, u32)> {
        let ends = self.state.runs.iter().filter(|run| run.is_terminal);
        ends.map(|run| (run.task.as_str(), run.route)).collect()
    }

    /// The transitions that lead to each route.
    pub(crate) fn routes(&self) -> &[Vec<String>] {
        &self.state.routes
    }

    /// The errors so far.
    pub(crate) fn errors(&self) -> &[Map] {
        &self.state.errors
    }

    /// The output of an execution that has ended, if it has one.
    pub(crate) fn output(&self) -> Option<&Map> {
        self.state.output.as_ref()
    }

    /// Changes the execution by a step. One that needs an answer ends it: there is no state to go on from.
    fn step<T>(
        &mut self,
        step: impl FnOnce(&mut Execution<'_>) -> Result<T, NeedsAnswers>,
    ) -> Result<T, Unevaluated> {
        let mut execution = Execution {
            definition: &self.workflow.definition,
            graph: &self.workflow.graph,
            state: std::mem::replace(&mut self.state, State::new()),
            evaluator: Evaluator::new(self.answers),
            commands: Vec::new(),
            steps: 0,
        };
        match step(&mut execution) {
            Ok(value) => {
                self.state = execution.state;
                Ok(value)
            }
            Err(NeedsAnswers) => {
                let question = execution.evaluator.questions.into_iter().next();
                Err(Unevaluated(question.map(|question| question.expression).unwrap_or_default()))
            }
        }
    }
}

/// The names that an execution has beside its variables.
fn context() -> Map {
    let st2: Map =
        [("action_execution_id", "000000000000000000000000"), ("user", "stanley")].into_iter().collect();
    [("st2", st2), ("parent", Map::new())].into_iter().collect()
}
