//! The progress of workflows. A child's end, the transition of its workflow and the executions that follow are one
//! transaction, so that a crash loses none of them and repeats none.

use std::collections::VecDeque;
use std::sync::Arc;

use imori_automation::chains::ChainContext;
use imori_automation::ids::Id;
use imori_automation::orquesta::Workflow;
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::{
    Answers, Command, Conductor, Step, Transition, WorkflowEvent, WorkflowStatus,
};
use tracing::error;

use super::batch::{Batch, News, Order};
use super::children::child_id;
use super::conductors::{conductor, is_workflow};
use super::refusal::Refusal;
use super::reruns::Rerun;
use crate::engine::{Engine, OwnEvent, rule_of};
use crate::executions::{Active, Execution, Run, Status};
use crate::limits::{EXECUTIONS_LOADED, QUESTION_ROUNDS_MAX, WORKFLOW_DEPTH_MAX, WORKFLOWS_NESTED_MAX};
use crate::parameters::RegisteredActions;
use crate::registry::ACTION_TYPE;
use crate::store::{
    Committed, Condition, EXECUTIONS, NOTIFICATIONS, Parts, Query, SNAPSHOTS, StoreError, WORKFLOWS,
};

impl Engine {
    /// Starts the workflow of an execution, or runs tasks of an earlier one again, if its context asks for that.
    ///
    /// # Errors
    /// The definition is wrong or cannot be read, tasks cannot run again, workflows are nested too deep, or the store
    /// refuses.
    pub(crate) async fn start_workflow(
        self: &Arc<Self>,
        execution: Execution,
        run: &Run,
    ) -> Result<(), Refusal> {
        let runner = execution.text("runner").to_owned();
        let refused = |reason: String| Refusal::new(&runner, &reason);
        let parent = match execution.text("parent") {
            "" => None,
            parent => self.store.get(&WORKFLOWS, parent).await.map_err(|error| refused(error.to_string()))?,
        };
        let of_parent = |key: &str| parent.as_ref().and_then(|parent| parent.get(key));
        let depth = of_parent("depth").and_then(Value::as_int).map_or(0, |depth| depth + 1);
        let root = of_parent("root").and_then(Value::as_str).unwrap_or(execution.text("id")).to_owned();
        if depth >= WORKFLOW_DEPTH_MAX {
            return Err(refused(format!(
                "workflows are nested {WORKFLOW_DEPTH_MAX} deep; end their recursion"
            )));
        }
        if !self.workflows.join(&root, execution.text("id")) {
            return Err(refused(format!(
                "more than {WORKFLOWS_NESTED_MAX} workflows within `{root}` have not ended; end their recursion, or set \
                 `concurrency`"
            )));
        }
        let id = execution.text("id").to_owned();
        let begun = self.begin_workflow(execution, run, depth, root.clone()).await;
        if begun.is_err() {
            self.workflows.leave(&root, &id);
        }
        begun
    }

    /// Starts a workflow that is so deep below the outermost one, which is `root`.
    async fn begin_workflow(
        self: &Arc<Self>,
        execution: Execution,
        run: &Run,
        depth: i64,
        root: String,
    ) -> Result<(), Refusal> {
        let runner = execution.text("runner").to_owned();
        let refused = |reason: String| Refusal::new(&runner, &reason);
        if let Some(rerun) = Rerun::of(&execution) {
            return self.rerun_workflow(execution, &rerun, depth, root).await.map_err(refused);
        }
        let text = self.entry_point_text(&run.action).map_err(refused)?;
        let conductor = match runner.as_str() {
            "orquesta" => self.inspected(&text)?,
            _ => self.conductor(&execution, &runner, &text).map_err(refused)?,
        };
        let definition = Id::derived(0, &[b"workflow", runner.as_bytes(), text.as_bytes()]).to_string();
        let mut batch = Batch::default();
        let snapshot: Map = [("id", definition.as_str()), ("text", &text)].into_iter().collect();
        batch.transaction.keep(&SNAPSHOTS, snapshot);
        let id = execution.text("id").to_owned();
        let mut st2 = Map::new();
        st2.insert("action_execution_id", id.as_str());
        st2.insert("user", run.user());
        st2.insert("action", execution.text("action"));
        st2.insert("pack", execution.text("pack"));
        st2.insert("runner", runner.as_str());
        let mut context = Map::new();
        context.insert("st2", st2);
        let mut above = execution.map("context").cloned().unwrap_or_default();
        above.insert("execution_id", id.as_str());
        context.insert("parent", above);
        context.insert("runner_parameters", run.runner_parameters.clone());
        let active = Active { execution, conductor, state: None, definition, depth, root };
        let event = WorkflowEvent::Started { parameters: run.parameters.clone(), context };
        self.lead(active, event, batch).await.map_err(|error| refused(error.to_string()))
    }

    /// The conductor of a workflow of orquesta that is about to start.
    fn inspected(&self, text: &str) -> Result<Arc<dyn Conductor>, Refusal> {
        match Workflow::read_with(text, &RegisteredActions(self.registry())) {
            Ok(workflow) => Ok(Arc::new(workflow)),
            Err(problems) => Err(Refusal::of_problems(&problems)),
        }
    }

    /// Leads a workflow from its first event on.
    ///
    /// # Errors
    /// The store refuses.
    pub(super) async fn lead(
        self: &Arc<Self>,
        mut active: Active,
        event: WorkflowEvent,
        mut batch: Batch,
    ) -> Result<(), StoreError> {
        let id = active.execution.text("id").to_owned();
        batch.require(&id, &[Status::Requested, Status::Delayed]);
        active.execution.note(Status::Running, self.now());
        *self.workflows.slot(&id).lock().await = Some(active);
        self.settle(batch, Some(News { workflow: id, event })).await.map(drop)
    }

    /// The conductor of an execution's workflow.
    pub(super) fn conductor(
        self: &Arc<Self>,
        execution: &Execution,
        runner: &str,
        text: &str,
    ) -> Result<Arc<dyn Conductor>, String> {
        let context = execution.map("context").cloned().unwrap_or_default();
        let user = context.get("user").and_then(Value::as_str).unwrap_or(self.user()).to_owned();
        let action: Map = [("pack", execution.text("pack"))].into_iter().collect();
        let given = self.parameter_context(&action, &user, context);
        let context =
            ChainContext { datastore: given.datastore, decrypt: given.decrypt, config: given.config };
        conductor(runner, text, context)
    }

    /// Stores a batch with the transitions that follow from an event of a workflow, up to the outermost workflow.
    ///
    /// # Errors
    /// The store refuses; nothing has changed.
    pub(crate) async fn settle(
        self: &Arc<Self>,
        mut batch: Batch,
        mut news: Option<News>,
    ) -> Result<Committed, StoreError> {
        // Expressions of workflows read the datastore.
        self.store.reachable().await?;
        // Locks are taken from a child to its parent, never the other way.
        let mut guards = Vec::new();
        while let Some(News { workflow, event }) = news.take() {
            let mut guard = self.workflows.slot(&workflow).lock_owned().await;
            if guard.is_none() {
                *guard = self.load_workflow(&workflow).await?;
            }
            match guard.as_mut() {
                Some(active) => news = self.advance_workflow(active, event, &mut batch).await,
                None => self.workflows.forget(&workflow),
            }
            guards.push((workflow, guard));
        }
        let notifications = self.add_what_follows(&mut batch);
        if self.registry().triggers.contains_key(ACTION_TYPE) {
            batch.note_ends();
        }
        let Batch { transaction, created, changed, orders, .. } = batch;
        let committed = self.store.commit(transaction).await;
        if !matches!(committed, Ok(Committed::Done)) {
            // What is in memory is ahead of the store; the next event reads it again.
            guards.iter_mut().for_each(|(_, guard)| **guard = None);
            return committed;
        }
        // An execution leaves its place before the next try of it asks for one.
        for execution in changed.iter().filter(|execution| Status::is_final(execution.text("status"))) {
            self.free(execution.text("action"), execution.text("id"));
        }
        for execution in created {
            if let Some((rule, id)) = rule_of(execution.document()) {
                self.rule_memory().started(rule, id);
            }
            self.tell("st2.execution__create", execution.document());
            self.schedule(execution);
        }
        let mut reports = Vec::new();
        for execution in changed {
            self.tell("st2.execution__update", execution.document());
            if Status::is_final(execution.text("status")) {
                self.queue.tell(execution.text("id"), execution.document());
                if let Some((rule, id)) = rule_of(execution.document()) {
                    self.rule_memory().ended(rule, id);
                }
                reports.push(OwnEvent::ActionEnded(execution.text("id").to_owned()));
            }
        }
        reports.extend(notifications.into_iter().map(OwnEvent::Notified));
        for (workflow, guard) in &guards {
            if guard.as_ref().is_none_or(|active| Status::is_final(active.execution.text("status"))) {
                self.workflows.forget(workflow);
                if let Some(active) = guard.as_ref() {
                    self.workflows.leave(&active.root, workflow);
                }
            }
        }
        drop(guards);
        orders.into_iter().for_each(|order| self.carry_out(order));
        for report in reports {
            self.report(report).await;
        }
        Ok(Committed::Done)
    }

    /// Adds the retries and notifications of the executions that end with a batch. Returns the notifications.
    fn add_what_follows(&self, batch: &mut Batch) -> Vec<Map> {
        let mut notifications = Vec::new();
        for ended in batch.changed.iter().filter(|execution| Status::is_final(execution.text("status"))) {
            if let Some(retry) = self.retry_of(ended) {
                batch.transaction.keep(&EXECUTIONS, retry.document().clone());
                batch.created.push(retry);
            }
            if let Some(notification) = self.notification_of(ended) {
                batch.transaction.put(&NOTIFICATIONS, notification.clone());
                notifications.push(notification);
            }
        }
        notifications
    }

    /// Tells the workflow of an execution of an event.
    pub(crate) async fn tell_workflow(
        self: &Arc<Self>,
        id: &str,
        event: WorkflowEvent,
    ) -> Result<(), StoreError> {
        let is_resume = matches!(event, WorkflowEvent::ResumeRequested);
        let news = News { workflow: id.to_owned(), event };
        self.settle(Batch::default(), Some(news)).await?;
        if is_resume {
            self.resume_children(id).await?;
        }
        Ok(())
    }

    /// Resumes the workflows below one, of which it may not know yet that they pause.
    async fn resume_children(self: &Arc<Self>, id: &str) -> Result<(), StoreError> {
        let children = Query::all(&EXECUTIONS, EXECUTIONS_LOADED)
            .with(Condition::Equal("parent", id.into()))
            .with(Condition::Absent("end_timestamp"))
            .reading(Parts::Only(Vec::new()));
        for child in self.store.find(children).await?.documents {
            let text = |key: &str| child.get(key).and_then(Value::as_str).unwrap_or_default();
            if is_workflow(text("runner")) && text("status") != "requested" {
                self.carry_out(Order::Resume(text("id").to_owned()));
            }
        }
        Ok(())
    }

    /// The transitions that follow from an event. Returns the event of the workflow above, if there is one.
    async fn advance_workflow(
        self: &Arc<Self>,
        active: &mut Active,
        event: WorkflowEvent,
        batch: &mut Batch,
    ) -> Option<News> {
        if matches!(event, WorkflowEvent::Started { .. }) != active.state.is_none() {
            return None;
        }
        let is_start = matches!(event, WorkflowEvent::Started { .. } | WorkflowEvent::RerunRequested(_));
        let (has_ended, now) = (Status::is_final(active.execution.text("status")), self.now());
        let id = active.execution.text("id").to_owned();
        let mut events = VecDeque::from([event]);
        let mut last: Option<(WorkflowStatus, Option<Value>)> = None;
        while let Some(event) = events.pop_front() {
            let transition = self.conduct(active, &event, now).await;
            active.state = Some(transition.state);
            for command in transition.commands {
                match command {
                    Command::Run(call) => events.extend(self.add_child(active, &call, batch, now)),
                    Command::Cancel(call) => batch.orders.push(Order::Cancel(child_id(&id, &call))),
                    Command::Pause(call) => batch.orders.push(Order::Pause(child_id(&id, &call))),
                    Command::Resume(call) => batch.orders.push(Order::Resume(child_id(&id, &call))),
                }
            }
            last = Some((transition.status, transition.result));
        }
        let (status, result) = last?;
        let (before, status) = (active.execution.text("status").to_owned(), word(status));
        let is_over = Status::is_final(status.as_str());
        match is_over && !active.conductor.can_rerun() {
            true => batch.transaction.delete(&WORKFLOWS, &id),
            false => batch.transaction.put(&WORKFLOWS, stored(active)),
        }
        // An action may end after its workflow has failed: that changes where a re-run goes on, and not the result.
        if has_ended {
            return None;
        }
        if is_over {
            active.execution.end(status, result.unwrap_or_default(), now);
        } else if before != status.as_str() {
            active.execution.note(status, now);
        } else if !is_start {
            return None;
        }
        batch.change(active.execution.clone());
        if is_start && status == Status::Running {
            return None;
        }
        News::of(active.execution.document())
    }

    /// The transition that follows from an event, with the answers of Python to the conductor's questions.
    async fn conduct(self: &Arc<Self>, active: &Active, event: &WorkflowEvent, now: Timestamp) -> Transition {
        let user = active.execution.map("context").and_then(|context| context.get("user")?.as_str());
        let mut answers = Answers::new();
        for _ in 0..QUESTION_ROUNDS_MAX {
            match active.conductor.advance(active.state.as_ref(), event, now, &answers) {
                Step::Next(transition) => return transition,
                Step::Evaluate(questions) => {
                    answers.extend(self.evaluate(&questions, user.unwrap_or(self.user())).await);
                }
            }
        }
        let reason = format!("the workflow asks for expressions more than {QUESTION_ROUNDS_MAX} times");
        let result: Map = [("error", reason)].into_iter().collect();
        Transition {
            state: active.state.clone().unwrap_or_default(),
            commands: Vec::new(),
            status: WorkflowStatus::Failed,
            result: Some(Value::Map(result)),
        }
    }

    /// Reads the last state of a workflow; `None` if the store has none.
    pub(super) async fn load_workflow(self: &Arc<Self>, id: &str) -> Result<Option<Active>, StoreError> {
        let Some(stored) = self.store.get(&WORKFLOWS, id).await? else { return Ok(None) };
        let Some(document) = self.store.get(&EXECUTIONS, id).await? else { return Ok(None) };
        let definition = stored.get("definition").and_then(Value::as_str).unwrap_or_default().to_owned();
        let text = self.store.get(&SNAPSHOTS, &definition).await?;
        let text = text.and_then(|snapshot| snapshot.get("text")?.as_str().map(str::to_owned));
        let execution = Execution::stored(document);
        let runner = execution.text("runner").to_owned();
        match self.conductor(&execution, &runner, &text.unwrap_or_default()) {
            Ok(conductor) => Ok(Some(Active {
                execution,
                conductor,
                state: stored.get("state").and_then(Value::as_map).cloned(),
                definition,
                depth: stored.get("depth").and_then(Value::as_int).unwrap_or_default(),
                root: stored.get("root").and_then(Value::as_str).unwrap_or(id).to_owned(),
            })),
            Err(reason) => {
                error!(execution = id, reason, "a workflow cannot be led on");
                Ok(None)
            }
        }
    }

    fn carry_out(self: &Arc<Self>, order: Order) {
        let engine = Arc::clone(self);
        self.runtime.spawn(async move {
            let (id, done) = match order {
                Order::Cancel(id) => {
                    engine.cancel(&id).await;
                    (id, Ok(()))
                }
                Order::Pause(id) => {
                    let done = engine.tell_workflow(&id, WorkflowEvent::PauseRequested).await;
                    (id, done)
                }
                Order::Resume(id) => {
                    let done = engine.tell_workflow(&id, WorkflowEvent::ResumeRequested).await;
                    (id, done)
                }
            };
            if let Err(error) = done {
                error!(execution = id, %error, "a request to a workflow's child is lost");
            }
        });
    }

    /// Takes up a workflow that an earlier engine led: the ends of its children that it has not seen, and the requests
    /// to them that may be lost.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) async fn resume_workflow(self: &Arc<Self>, execution: &Execution) -> Result<(), StoreError> {
        let id = execution.text("id");
        let children = Query::all(&EXECUTIONS, EXECUTIONS_LOADED).with(Condition::Equal("parent", id.into()));
        for child in self.store.find(children).await?.documents {
            let text = |key: &str| child.get(key).and_then(Value::as_str).unwrap_or_default();
            if Status::is_final(text("status")) {
                if let Some(news) = News::of(&child) {
                    self.settle(Batch::default(), Some(news)).await?;
                }
            } else if execution.text("status") == "canceling" {
                self.carry_out(Order::Cancel(text("id").to_owned()));
            } else if execution.text("status") == "pausing" && is_workflow(text("runner")) {
                self.carry_out(Order::Pause(text("id").to_owned()));
            }
        }
        Ok(())
    }
}

/// The document of a workflow's state.
fn stored(active: &Active) -> Map {
    let mut document = Map::new();
    document.insert("id", active.execution.text("id"));
    document.insert("definition", active.definition.as_str());
    document.insert("depth", active.depth);
    document.insert("root", active.root.as_str());
    document.insert("state", active.state.clone().unwrap_or_default());
    document
}

fn word(status: WorkflowStatus) -> Status {
    match status {
        WorkflowStatus::Running => Status::Running,
        WorkflowStatus::Pausing => Status::Pausing,
        WorkflowStatus::Paused => Status::Paused,
        WorkflowStatus::Canceling => Status::Canceling,
        WorkflowStatus::Canceled => Status::Canceled,
        WorkflowStatus::Succeeded => Status::Succeeded,
        WorkflowStatus::Failed => Status::Failed,
        WorkflowStatus::TimedOut => Status::TimedOut,
    }
}
