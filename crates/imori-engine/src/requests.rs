//! Requests of executions: the action is found, its parameters are rendered and checked, and the execution is stored.

use std::fmt;
use std::sync::Arc;

use imori_automation::ids::Id;
use imori_automation::value::{Map, Value};

use crate::engine::Engine;
use crate::executions::{Execution, Origin, Status};
use crate::store::{EXECUTIONS, StoreError, Transaction};

/// Why an execution cannot be requested.
#[derive(Debug)]
pub enum RequestError {
    /// There is no such action.
    UnknownAction(String),
    /// The action is disabled.
    Disabled(String),
    /// The parameters are wrong.
    Parameters(String),
    /// The store refused.
    Store(StoreError),
}

impl Engine {
    /// Requests an execution; it is on disk when this returns, and runs as soon as there is room.
    pub(crate) async fn request(
        self: &Arc<Self>,
        action: &str,
        parameters: Map,
        origin: Origin,
    ) -> Result<Execution, RequestError> {
        let id = self.new_id().to_string();
        let execution = match self.draft(&id, action, &parameters, origin.clone(), &[]) {
            Ok(execution) => execution,
            Err(DraftError::Refused(error)) => return Err(error),
            Err(DraftError::Failed(reason, execution)) => {
                let mut transaction = Transaction::new();
                transaction.put(&EXECUTIONS, execution.document().clone());
                self.store.commit(transaction).await.map_err(RequestError::Store)?;
                return Err(RequestError::Parameters(reason));
            }
        };
        let mut transaction = Transaction::new();
        transaction.put(&EXECUTIONS, execution.document().clone());
        self.store.commit(transaction).await.map_err(RequestError::Store)?;
        self.tell("st2.execution__create", execution.document());
        self.schedule(execution.clone());
        Ok(execution)
    }

    /// An execution with rendered and checked parameters, not yet stored. `contexts` are further names that templates
    /// can read.
    pub(crate) fn draft(
        self: &Arc<Self>,
        id: &str,
        action_ref: &str,
        parameters: &Map,
        origin: Origin,
        contexts: &[(&str, Value)],
    ) -> Result<Execution, DraftError> {
        let registry = self.registry();
        let unknown = || DraftError::Refused(RequestError::UnknownAction(action_ref.to_owned()));
        let action = registry.actions.get(action_ref).ok_or_else(unknown)?;
        if action.get("enabled") == Some(&Value::Bool(false)) {
            return Err(DraftError::Refused(RequestError::Disabled(action_ref.to_owned())));
        }
        let (now, user) = (self.now(), origin.user.clone());
        match self.live_parameters(action, (parameters, &origin.literals), &user, contexts) {
            Ok(rendered) => match self.check_parameters(action, &rendered) {
                Ok(()) => Ok(Execution::new(id, action, rendered, origin, now)),
                Err(reason) => Err(DraftError::Refused(RequestError::Parameters(reason))),
            },
            Err(reason) => {
                let mut given = origin.literals.clone();
                parameters.iter().for_each(|(name, value)| drop(given.insert(name, value.clone())));
                let mut execution = Execution::new(id, action, given, origin, now);
                let result: Map = [("error", reason.as_str())].into_iter().collect();
                execution.end(Status::Failed, Value::Map(result), now);
                Err(DraftError::Failed(reason, execution))
            }
        }
    }

    /// A new id.
    pub(crate) fn new_id(&self) -> Id {
        let mut random = [0; 8];
        // Without randomness, the time and a counter still make ids that differ.
        if getrandom::fill(&mut random).is_err() {
            random = self.count().to_be_bytes();
        }
        Id::new(u32::try_from(self.now().seconds()).unwrap_or(u32::MAX), random)
    }
}

/// Why an execution cannot be drafted.
#[derive(Debug)]
pub(crate) enum DraftError {
    /// The request is refused.
    Refused(RequestError),
    /// The parameters cannot be rendered; the execution is kept as failed, as in StackStorm.
    Failed(String, Execution),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::UnknownAction(action) => write!(f, "Action \"{action}\" doesn't exist"),
            RequestError::Disabled(action) => write!(f, "Action \"{action}\" is disabled"),
            RequestError::Parameters(reason) => f.write_str(reason),
            RequestError::Store(error) => error.fmt(f),
        }
    }
}
