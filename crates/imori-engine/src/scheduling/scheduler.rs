//! Runs requested executions. Each change of an execution is on disk before the next step: a start after a crash finds
//! what waits, what runs and what cannot be known.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use imori_automation::workflows::WorkflowEvent;
use tokio::sync::watch;
use tracing::{error, info, warn};

use crate::engine::Engine;
use crate::executions::{Canceling, Execution, Run, Status};
use crate::limits::EXECUTIONS_LOADED;
use crate::process::boot_id;
use crate::runners::{Outcome, find_again, is_instant, run};
use crate::store::{Committed, Condition, EXECUTIONS, Query, StoreError, Transaction};
use crate::workflows::{Batch, News, is_workflow};

impl Engine {
    /// Takes a stored, requested execution.
    pub(crate) fn schedule(self: &Arc<Self>, execution: Execution) {
        let Ok(due) = execution.text("delayed_until").parse::<Timestamp>() else {
            return self.admit(execution);
        };
        let left = Duration::from_micros(u64::try_from(due.micros() - self.now().micros()).unwrap_or(0));
        let engine = Arc::clone(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(left).await;
            engine.admit(execution);
        });
    }

    /// Cancels an execution, and with a workflow its children. Returns false if it has ended.
    pub(crate) async fn cancel(self: &Arc<Self>, id: &str) -> bool {
        match self.queue.cancel(id) {
            Canceling::Unknown => self.cancel_stored(id).await,
            Canceling::Told => true,
            Canceling::Taken(execution) => {
                let outcome = Outcome { status: Status::Canceled, result: Value::Map(Map::new()) };
                self.finish(execution, outcome).await;
                true
            }
        }
    }

    /// Cancels an execution that is no action which waits or runs: a workflow, an inquiry, or one that is delayed.
    async fn cancel_stored(self: &Arc<Self>, id: &str) -> bool {
        let stored = self.store.get(&EXECUTIONS, id).await.ok().flatten();
        let Some(execution) = stored.map(Execution::stored) else { return false };
        if Status::is_final(execution.text("status")) {
            return false;
        }
        if is_workflow(execution.text("runner"))
            && !matches!(execution.text("status"), "requested" | "delayed")
        {
            return match self.tell_workflow(id, WorkflowEvent::CancelRequested).await {
                Ok(()) => true,
                Err(error) => {
                    error!(execution = id, %error, "a workflow is not canceled");
                    false
                }
            };
        }
        self.finish(execution, Outcome { status: Status::Canceled, result: Value::Map(Map::new()) }).await;
        true
    }

    /// Lets executions run, once what the last engine left has been read.
    pub(crate) fn let_run(self: &Arc<Self>) {
        self.queue.open();
        self.advance();
    }

    /// Starts waiting executions while there is room.
    pub(super) fn advance(self: &Arc<Self>) {
        while let Some((execution, canceled)) = self.queue.next() {
            let engine = Arc::clone(self);
            self.runtime.spawn(async move {
                let (id, action) = (execution.text("id").to_owned(), execution.text("action").to_owned());
                let may_go_on =
                    is_workflow(execution.text("runner")) || execution.text("runner") == "inquirer";
                engine.begin(&execution);
                engine.execute(execution, canceled).await;
                engine.queue.remove(&id);
                match may_go_on {
                    true => engine.free_if_ended(&action, &id).await,
                    false => engine.free(&action, &id),
                }
                engine.advance();
            });
        }
    }

    async fn execute(self: &Arc<Self>, mut execution: Execution, canceled: watch::Receiver<bool>) {
        // Configurations read the datastore.
        if let Err(error) = self.store.reachable().await {
            return error!(execution = execution.text("id"), %error, "an execution waits for a start");
        }
        let prepared = match self.prepare(&execution, canceled) {
            Ok(prepared) => prepared,
            Err(reason) => {
                self.finish(execution, Outcome::failed(reason)).await;
                return;
            }
        };
        if is_workflow(execution.text("runner")) || execution.text("runner") == "inquirer" {
            return self.start_waiting(execution, &prepared).await;
        }
        if !is_instant(execution.text("runner")) {
            execution.run(boot_id(), self.now());
            let mut transaction = Transaction::new();
            let requested = vec![Status::Requested.as_str().into(), Status::Delayed.as_str().into()];
            transaction.require(&EXECUTIONS, execution.text("id"), "status", requested);
            transaction.put(&EXECUTIONS, execution.document().clone());
            match self.store.commit(transaction).await {
                Ok(Committed::Done) => {}
                // It was ended while it waited.
                Ok(Committed::Void) => return,
                Err(error) => {
                    return error!(execution = execution.text("id"), %error, "an execution waits for a start");
                }
            }
            self.tell("st2.execution__update", execution.document());
        }
        let outcome = run(self, &prepared).await;
        if self.finish(execution, outcome).await {
            remove_files(&prepared);
        }
    }

    /// Starts an execution that holds no place among those that run: a workflow or an inquiry.
    async fn start_waiting(self: &Arc<Self>, execution: Execution, prepared: &Run) {
        let id = execution.text("id").to_owned();
        if is_workflow(execution.text("runner")) {
            if let Err(refusal) = self.start_workflow(execution.clone(), prepared).await {
                let outcome = Outcome { status: Status::Failed, result: refusal.into_result() };
                self.finish(execution, outcome).await;
                return;
            }
        } else if let Err(error) = self.ask(execution, prepared).await {
            return error!(execution = id, %error, "an inquiry waits for a start");
        }
        // A user may have canceled it while it started; a later one finds it in the store.
        self.queue.remove(&id);
        if *prepared.canceled.borrow() {
            self.cancel_stored(&id).await;
        }
    }

    /// Stores the end of an execution, and tells who waits for it. Returns false if the store refuses: the files of the
    /// action are all that the next engine has of its end.
    pub(super) async fn finish(self: &Arc<Self>, mut execution: Execution, outcome: Outcome) -> bool {
        let id = execution.text("id").to_owned();
        execution.end(outcome.status, outcome.result, self.now());
        let mut batch = Batch::default();
        batch.require(
            &id,
            &[Status::Requested, Status::Delayed, Status::Running, Status::Canceling, Status::Pending],
        );
        let news = News::of(execution.document());
        batch.change(execution);
        let settled = self.settle(batch, news).await;
        if let Err(error) = &settled {
            error!(execution = id, %error, "the end of an execution is not stored");
        }
        settled.is_ok()
    }

    /// Takes up what the last engine left: executions that waited, and those that ran.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn resume(self: &Arc<Self>) -> Result<(), StoreError> {
        let open = |status: Status| {
            let status = Condition::Equal("status", status.as_str().into());
            Query::all(&EXECUTIONS, EXECUTIONS_LOADED).with(status).by("start_timestamp", false)
        };
        let running = self.store.find(open(Status::Running)).await?.documents;
        self.sweep_runs(&running);
        let mut waiting = self.store.find(open(Status::Requested)).await?.documents;
        waiting.extend(self.store.find(open(Status::Delayed)).await?.documents);
        if !running.is_empty() || !waiting.is_empty() {
            info!(
                running = running.len(),
                waiting = waiting.len(),
                "executions of the last run are taken up"
            );
        }
        for document in self.store.find(open(Status::Pending)).await?.documents {
            self.await_answer(&Execution::stored(document)).await;
        }
        let mut workflows = Vec::new();
        for status in [Status::Pausing, Status::Paused, Status::Canceling] {
            workflows
                .extend(self.store.find(open(status)).await?.documents.into_iter().map(Execution::stored));
        }
        for document in running {
            let execution = Execution::stored(document);
            if is_workflow(execution.text("runner")) {
                workflows.push(execution);
                continue;
            }
            let canceled = self.queue.adopt(execution.text("id"));
            let engine = Arc::clone(self);
            self.runtime.spawn(async move {
                let id = execution.text("id").to_owned();
                engine.take_over(execution, canceled).await;
                engine.queue.remove(&id);
                engine.advance();
            });
        }
        for workflow in workflows.iter().filter(|execution| is_workflow(execution.text("runner"))) {
            self.resume_workflow(workflow).await?;
        }
        waiting.into_iter().for_each(|document| self.schedule(Execution::stored(document)));
        Ok(())
    }

    /// Removes files of executions that have ended: the last engine died before it could.
    fn sweep_runs(&self, running: &[Map]) {
        let ids: BTreeSet<&str> =
            running.iter().filter_map(|document| document.get("id")?.as_str()).collect();
        let entries = fs::read_dir(self.options.folder.join("runs")).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| !entry.file_name().to_str().is_some_and(|id| ids.contains(id))) {
            remove_folder(&entry.path());
        }
    }

    /// Ends an execution that the last engine ran.
    async fn take_over(self: &Arc<Self>, execution: Execution, canceled: watch::Receiver<bool>) {
        let is_same_boot = execution.text("boot") == boot_id();
        let prepared = match self.prepare(&execution, canceled) {
            Ok(prepared) => prepared,
            Err(reason) => {
                let outcome = Outcome { status: Status::Abandoned, ..Outcome::failed(reason) };
                self.finish(execution, outcome).await;
                return;
            }
        };
        let outcome = match find_again(&prepared, is_same_boot).await {
            Some(outcome) => outcome,
            None => run(self, &prepared).await,
        };
        if outcome.status == Status::Abandoned {
            let id = execution.text("id");
            warn!(execution = id, "an execution is abandoned: what became of its action cannot be told");
        }
        if self.finish(execution, outcome).await {
            remove_files(&prepared);
        }
    }
}

fn remove_files(run: &Run) {
    remove_folder(&run.folder);
}

fn remove_folder(folder: &Path) {
    match fs::remove_dir_all(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => warn!(folder = %folder.display(), %error, "files of an execution are left behind"),
    }
}
