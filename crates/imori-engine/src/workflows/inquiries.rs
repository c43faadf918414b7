//! Inquiries: executions that wait for an answer.

use std::sync::Arc;
use std::time::Duration;

use imori_automation::parameters::{Defaults, Schema};
use imori_automation::times::Timestamp;
use imori_automation::value::{Map, Value};
use tracing::error;

use super::batch::{Batch, News};
use crate::engine::{Engine, OwnEvent};
use crate::executions::{Execution, Run, Status};
use crate::store::{Committed, StoreError};

/// Why an answer is refused.
#[derive(Debug)]
pub(crate) enum AnswerError {
    /// The user may not answer.
    Forbidden(String),
    /// The answer is wrong, or comes too late.
    Wrong(String),
    /// The store refused.
    Store(StoreError),
}

impl Engine {
    /// Lets an inquiry wait for its answer.
    ///
    /// # Errors
    /// The store refuses.
    pub(crate) async fn ask(self: &Arc<Self>, mut execution: Execution, run: &Run) -> Result<(), StoreError> {
        let mut result = Map::new();
        for key in ["schema", "roles", "users", "route", "ttl"] {
            result.insert(key, run.runner_parameters.get(key).cloned().unwrap_or_default());
        }
        let mut batch = Batch::default();
        let id = execution.text("id").to_owned();
        batch.require(&id, &[Status::Requested, Status::Delayed]);
        execution.set("result", result);
        execution.note(Status::Pending, self.now());
        let news = News::of(execution.document());
        batch.change(execution.clone());
        if self.settle(batch, news).await? == Committed::Done {
            self.await_answer(&execution).await;
        }
        Ok(())
    }

    /// Reports an inquiry that waits, and ends it once its time is over. An inquiry that is reported again, by the next
    /// engine, is one event.
    pub(crate) async fn await_answer(self: &Arc<Self>, execution: &Execution) {
        let mut payload = Map::new();
        payload.insert("id", execution.text("id"));
        let route = execution.map("result").and_then(|result| result.get("route").cloned());
        payload.insert("route", route.unwrap_or_default());
        self.report(OwnEvent::Asked(payload)).await;
        self.expire_later(execution);
    }

    /// Ends an inquiry once its time is over.
    fn expire_later(self: &Arc<Self>, execution: &Execution) {
        let minutes = execution.map("result").and_then(|result| result.get("ttl")?.as_number());
        let Some(minutes) = minutes.filter(|minutes| *minutes > 0.0) else { return };
        let start = execution.text("start_timestamp").parse().unwrap_or_else(|_| self.now());
        let due = start.plus_micros((minutes * 60e6) as i64).unwrap_or(Timestamp::MAX);
        let left = Duration::from_micros(u64::try_from(due.micros() - self.now().micros()).unwrap_or(0));
        let (engine, mut execution) = (Arc::clone(self), execution.clone());
        self.runtime.spawn(async move {
            tokio::time::sleep(left).await;
            let mut batch = Batch::default();
            batch.require(execution.text("id"), &[Status::Pending]);
            let result = execution.map("result").cloned().unwrap_or_default();
            execution.end(Status::TimedOut, Value::Map(result), engine.now());
            let news = News::of(execution.document());
            batch.change(execution);
            if let Err(error) = engine.settle(batch, news).await {
                error!(%error, "an inquiry whose time is over waits for a start");
            }
        });
    }

    /// Answers an inquiry.
    ///
    /// # Errors
    /// The answer is wrong or late, its user may not answer, or the store refuses.
    pub(crate) async fn answer(
        self: &Arc<Self>,
        mut inquiry: Execution,
        response: Value,
        user: &str,
    ) -> Result<(), AnswerError> {
        let id = inquiry.text("id").to_owned();
        let mut result = inquiry.map("result").cloned().unwrap_or_default();
        let names = |key: &str| result.get(key).and_then(Value::as_list).unwrap_or_default().to_vec();
        let (users, roles) = (names("users"), names("roles"));
        // There are no roles here, so that nobody has one.
        if !roles.is_empty() || !(users.is_empty() || users.contains(&Value::from(user))) {
            let reason = format!(
                "Requesting user \"{user}\" does not have permission to respond to inquiry \"{id}\"."
            );
            return Err(AnswerError::Forbidden(reason));
        }
        let schema = result.get("schema").cloned().unwrap_or_default();
        let wrong = |error: imori_automation::parameters::ParameterError| {
            AnswerError::Wrong(format!(
                "Response for inquiry \"{id}\" did not pass schema validation. {error}"
            ))
        };
        let schema = Schema::compile(&schema).map_err(&wrong)?;
        schema.validate(&response, Defaults::AssignedOrNone).map_err(&wrong)?;
        result.insert("response", response);
        let mut batch = Batch::default();
        batch.require(&id, &[Status::Pending]);
        inquiry.end(Status::Succeeded, Value::Map(result), self.now());
        let news = News::of(inquiry.document());
        batch.change(inquiry);
        match self.settle(batch, news).await.map_err(AnswerError::Store)? {
            Committed::Done => Ok(()),
            Committed::Void => {
                Err(AnswerError::Wrong(format!("Inquiry \"{id}\" has already been responded to")))
            }
        }
    }
}
