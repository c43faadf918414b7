//! Expressions of workflows that need Python: evaluated in an environment of their own, built when the first one comes.

use std::sync::Arc;

use imori_automation::value::Value;
use imori_automation::workflows::{Answers, Question};

use crate::datastore::Key;
use crate::engine::Engine;
use crate::python::{Datastore, DatastoreAnswer, DatastoreFuture, DatastoreQuestion};

/// The packages that the evaluation needs. Orquesta's own is not among them: it does not run on Python 3.11.
const PACKAGES: [&str; 2] = ["yaql>=3.2.0,<4", "Jinja2"];

impl Engine {
    /// The values of expressions, which read the datastore as this user.
    pub(crate) async fn evaluate(self: &Arc<Self>, questions: &[Question], user: &str) -> Answers {
        let failed = |reason: String| {
            questions.iter().map(|question| (question.id.clone(), Err(reason.clone()))).collect()
        };
        let hosts = match self.python_hosts() {
            Ok(hosts) => hosts,
            Err(error) => return failed(format!("the files of the Python host cannot be written: {error}")),
        };
        let mut environments = self.environments().clone();
        environments.folder = self.options.folder.join("expressions");
        environments.base_packages = PACKAGES.map(str::to_owned).to_vec();
        // The folder has no requirements.
        let environment = match environments.build("expressions", hosts.sources(), &[]).await {
            Ok(environment) => environment,
            Err(error) => return failed(error.to_string()),
        };
        let keys = Keys { engine: Arc::clone(self), user: user.to_owned() };
        self.evaluators.evaluate(&environment.python, hosts.sources(), questions, &keys).await
    }
}

/// The datastore as `st2kv` reads it: the scope is a part of the name.
struct Keys {
    engine: Arc<Engine>,
    user: String,
}

impl Datastore for Keys {
    fn answer(&self, question: DatastoreQuestion) -> DatastoreFuture<'_> {
        Box::pin(async move {
            let DatastoreQuestion::Get { name, decrypt } = question else {
                return Err(String::from("an expression can only read the datastore"));
            };
            let (scope, name) = match name.split_once('.') {
                Some((scope @ ("system" | "user"), name)) => (scope, name),
                _ => ("system", name.as_str()),
            };
            let key = Key::new(scope, &self.user, name).map_err(|error| error.to_string())?;
            let found = self.engine.read_key(&key, decrypt).await.map_err(|error| error.to_string())?;
            let value =
                found.and_then(|document| document.get("value").and_then(Value::as_str).map(str::to_owned));
            Ok(DatastoreAnswer::Value(value))
        })
    }
}
