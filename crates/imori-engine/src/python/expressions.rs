//! Evaluates expressions of workflows in Python: some processes have YAQL and Jinja2 loaded, and end when they are idle.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use imori_automation::value::{Map, Value};
use imori_automation::workflows::{Answers, Question};
use serde::{Deserialize, Serialize};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until, timeout};

use super::conversation::{receive, send};
use super::datastore::{Datastore, DatastoreAnswer, DatastoreQuestion};
use crate::limits::{
    EVALUATION_ANSWERS_BYTES_MAX, EVALUATION_TIME_MAX, EVALUATORS_MAX, ZYGOTE_IDLE_TIME, ZYGOTE_START_TIME,
};

/// Python processes that evaluate expressions.
#[derive(Clone)]
pub struct Evaluators(Arc<Shared>);

struct Shared {
    places: Semaphore,
    idle: Mutex<Vec<(Evaluator, Instant)>>,
}

/// A process, and the socket to it. The process is killed when this is dropped.
struct Evaluator {
    python: PathBuf,
    socket: UnixStream,
    _child: Child,
}

#[derive(Serialize)]
struct Batch<'a> {
    questions: Vec<Asked<'a>>,
}

#[derive(Serialize)]
struct Asked<'a> {
    expression: &'a str,
    context: &'a Map,
}

impl<'a> From<&'a Question> for Asked<'a> {
    fn from(question: &'a Question) -> Asked<'a> {
        Asked { expression: &question.expression, context: &question.context }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Frame {
    Answers { answers: Vec<Answer> },
    Key { key: String, decrypt: bool },
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Value(Value),
    Error(String),
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum KeyAnswer {
    Value(Option<String>),
    Error(String),
}

impl Default for Evaluators {
    fn default() -> Evaluators {
        Evaluators(Arc::new(Shared { places: Semaphore::new(EVALUATORS_MAX), idle: Mutex::default() }))
    }
}

impl Evaluators {
    /// The values of the questions' expressions. If the process fails or takes longer than its limit, each question is
    /// answered with the reason. `python` has the packages `yaql` and `jinja2`; `sources` is the folder of the engine's
    /// Python files.
    pub async fn evaluate(
        &self,
        python: &Path,
        sources: &Path,
        questions: &[Question],
        datastore: &dyn Datastore,
    ) -> Answers {
        let answers = self.answers(python, sources, questions, datastore).await;
        let answer = |at: usize| match &answers {
            Ok(answers) => match answers.get(at) {
                Some(Answer::Value(value)) => Ok(value.clone()),
                Some(Answer::Error(message)) => Err(message.clone()),
                None => Err(String::from("the Python that evaluates expressions gave no answer")),
            },
            Err(error) => Err(error.clone()),
        };
        questions.iter().enumerate().map(|(at, question)| (question.id.clone(), answer(at))).collect()
    }

    async fn answers(
        &self,
        python: &Path,
        sources: &Path,
        questions: &[Question],
        datastore: &dyn Datastore,
    ) -> Result<Vec<Answer>, String> {
        let batch = Batch { questions: questions.iter().map(Asked::from).collect() };
        let batch = serde_json::to_vec(&batch).map_err(|error| error.to_string())?;
        let _place = self.0.places.acquire().await.map_err(|error| error.to_string())?;
        loop {
            let (mut evaluator, limit, is_idle) = match self.idle(python) {
                Some(evaluator) => (evaluator, EVALUATION_TIME_MAX, true),
                None => {
                    let started = Evaluator::start(python, sources);
                    let started = started
                        .map_err(|error| format!("the Python for expressions does not start: {error}"))?;
                    (started, EVALUATION_TIME_MAX + ZYGOTE_START_TIME, false)
                }
            };
            let began = Instant::now();
            match timeout(limit, evaluator.converse(&batch, datastore)).await {
                Ok(Ok(answers)) => {
                    self.keep(evaluator);
                    return Ok(answers);
                }
                // It has ended while it was idle, or at this batch, which a new one may evaluate.
                Ok(Err(_)) if is_idle && began.elapsed() < EVALUATION_TIME_MAX / 2 => {}
                Ok(Err(error)) => {
                    return Err(format!("the Python that evaluates expressions has ended: {error}"));
                }
                Err(_) => {
                    let seconds = EVALUATION_TIME_MAX.as_secs();
                    return Err(format!("the evaluation of expressions takes longer than {seconds} seconds"));
                }
            }
        }
    }

    fn idle(&self, python: &Path) -> Option<Evaluator> {
        let mut idle = self.0.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().rposition(|(evaluator, _)| evaluator.python == python)?;
        Some(idle.remove(at).0)
    }

    /// Keeps a process for the next batch, and ends it when none comes.
    fn keep(&self, evaluator: Evaluator) {
        let end = Instant::now() + ZYGOTE_IDLE_TIME;
        self.0.idle.lock().unwrap_or_else(PoisonError::into_inner).push((evaluator, end));
        let shared = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            sleep_until(end).await;
            if let Some(shared) = shared.upgrade() {
                let mut idle = shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
                idle.retain(|(_, other)| *other > end);
            }
        });
    }
}

impl Evaluator {
    fn start(python: &Path, sources: &Path) -> io::Result<Evaluator> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(python)
            .arg("-u")
            .arg(sources.join("imori_host/expressions.py"))
            .arg(EVALUATION_TIME_MAX.as_secs().to_string())
            .env_clear()
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok(Evaluator { python: python.to_owned(), socket: UnixStream::from_std(ours)?, _child: child })
    }

    async fn converse(&mut self, batch: &[u8], datastore: &dyn Datastore) -> io::Result<Vec<Answer>> {
        send(&mut self.socket, batch).await?;
        loop {
            let frame = receive(&mut self.socket, EVALUATION_ANSWERS_BYTES_MAX).await?;
            match serde_json::from_slice(&frame)? {
                Frame::Answers { answers } => return Ok(answers),
                Frame::Key { key, decrypt } => {
                    let answer = match datastore.answer(DatastoreQuestion::Get { name: key, decrypt }).await {
                        Ok(DatastoreAnswer::Value(value)) => KeyAnswer::Value(value),
                        Ok(_) => KeyAnswer::Value(None),
                        Err(error) => KeyAnswer::Error(error),
                    };
                    send(&mut self.socket, &serde_json::to_vec(&answer)?).await?;
                }
            }
        }
    }
}
