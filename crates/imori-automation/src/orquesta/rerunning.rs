//! Tasks of an ended workflow that run again.

use std::collections::{BTreeMap, BTreeSet};

use super::execution::{Execution, NeedsAnswers};
use super::state::{Item, Staged};
use super::statuses::{TaskStatus, is_final};
use crate::value::Value;
use crate::workflows::{TaskSelection, WorkflowStatus};

impl Execution<'_> {
    /// Why tasks cannot run again; `None` if they can. A call that still runs would report its end to the execution that
    /// made it, so that a run which goes on from here would wait for it for ever.
    pub(super) fn rerun_refusal(&self, selected: &[TaskSelection]) -> Option<String> {
        if !is_final(self.state.status) {
            return Some("Unable to rerun workflow because it is not in a completed state.".to_owned());
        }
        let has_run = |name: &str| self.is_task(name) && self.state.runs.iter().any(|run| run.task == name);
        let unknown: Vec<&str> =
            selected.iter().map(|selection| selection.task.as_str()).filter(|name| !has_run(name)).collect();
        if !unknown.is_empty() {
            let tasks = self.state.runs.iter().map(|run| run.task.as_str()).filter(|name| self.is_task(name));
            let tasks = Vec::from_iter(tasks.collect::<BTreeSet<_>>()).join(", ");
            let unknown = unknown.join(",");
            return Some(format!(
                "Unable to rerun workflow because one or more tasks is not found: {unknown}; tasks that have run: {tasks}"
            ));
        }
        let open: BTreeSet<String> = self
            .open_calls()
            .into_iter()
            .map(|(call, _)| call.split('/').next().unwrap_or_default().to_owned())
            .collect();
        if !open.is_empty() {
            let open = Vec::from_iter(open).join(", ");
            return Some(format!(
                "Unable to rerun workflow because actions of it have not ended: {open}; wait for them, or cancel them"
            ));
        }
        if self.candidates(selected).is_empty() {
            let reason =
                "Unable to rerun workflow because no task failed at the end of a branch; name the tasks";
            return Some(reason.to_owned());
        }
        None
    }

    /// Runs tasks again; without tasks, those that failed at the end of a branch.
    pub(super) fn rerun(&mut self, selected: &[TaskSelection]) -> Result<(), NeedsAnswers> {
        let mut candidates = self.candidates(selected);
        candidates.sort_by_key(|at| self.state.runs.get(*at).map(|run| (run.task.clone(), run.route)));
        for at in candidates {
            let task = self.state.runs.get(at).map(|run| run.task.clone()).unwrap_or_default();
            let resets_items =
                selected.iter().any(|selection| selection.task == task && selection.resets_items);
            self.run_anew(at, resets_items)?;
        }
        for run in self.state.runs.iter_mut().filter(|run| run.next.iter().any(|(_, holds)| *holds)) {
            run.is_terminal = false;
        }
        self.state.output = None;
        self.state.is_paused_by_user = false;
        self.state.status = WorkflowStatus::Running;
        self.schedule()
    }

    /// The runs to repeat.
    fn candidates(&self, selected: &[TaskSelection]) -> Vec<usize> {
        if selected.is_empty() {
            let failed = self.state.runs.iter().enumerate().filter(|(_, run)| {
                run.is_terminal && run.status.is_some_and(TaskStatus::is_abended) && self.is_task(&run.task)
            });
            let mut latest = BTreeMap::new();
            for (at, run) in failed {
                latest.insert((run.task.as_str(), run.route), at);
            }
            return latest.into_values().collect();
        }
        let mut branches: Vec<(usize, BTreeSet<usize>)> = Vec::new();
        for selection in selected {
            let runs = self.state.latest_runs().filter(|(_, run)| run.task == selection.task);
            let new = runs.map(|(at, _)| at).filter(|at| !branches.iter().any(|(known, _)| known == at));
            let new: Vec<_> = new.map(|at| (at, self.branch(at))).collect();
            branches.extend(new);
        }
        // A task that follows another one of the selection runs again by itself.
        let is_kept = |branch: &BTreeSet<usize>| {
            branches.len() == 1 || branches.iter().any(|(_, other)| !branch.is_subset(other))
        };
        branches.iter().filter(|(_, branch)| is_kept(branch)).map(|(at, _)| *at).collect()
    }

    /// A run and all runs that followed it.
    fn branch(&self, start: usize) -> BTreeSet<usize> {
        let mut branch = BTreeSet::from([start]);
        // A run stands after the runs that led to it.
        for (at, run) in self.state.runs.iter().enumerate().skip(start) {
            if run.prev.iter().any(|(_, before)| branch.contains(before)) {
                branch.insert(at);
            }
        }
        branch
    }

    fn run_anew(&mut self, at: usize, resets_items: bool) -> Result<(), NeedsAnswers> {
        for run in self.branch(at) {
            if let Some(run) = self.state.runs.get_mut(run) {
                run.is_terminal = false;
            }
        }
        let Some(run) = self.state.runs.get(at).cloned() else { return Ok(()) };
        self.state.errors.retain(|error| error.get("task_id").and_then(Value::as_str) != Some(&run.task));
        let known = self.state.staged(&run.task, run.route).and_then(|staged| staged.items.clone());
        let is_done = |item: &Item| item.status == Some(TaskStatus::Succeeded);
        // A list whose items have all succeeded runs whole, as one does that succeeded itself.
        let kept = known.filter(|items| !resets_items && !items.iter().all(is_done));
        let items = kept.map(|items| {
            items.into_iter().map(|item| if is_done(&item) { item } else { Item::default() }).collect()
        });
        self.state.staged.retain(|staged| staged.route != run.route || staged.task != run.task);
        let staged = Staged {
            task: run.task,
            route: run.route,
            context: run.context,
            prev: run.prev,
            is_ready: true,
            retry_delay: None,
            items,
            is_completed: false,
            runs_on_fail: false,
        };
        self.add_run(&staged)?;
        self.state.staged.push(staged);
        Ok(())
    }
}
