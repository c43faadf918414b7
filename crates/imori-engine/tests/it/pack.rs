//! A pack in a folder of its own, whose actions run in the Python of this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use imori_automation::value::{Map, Value};
use imori_engine::for_tests::ResultPlace;
use imori_engine::python::{
    Datastore, DatastoreAnswer, DatastoreFuture, DatastoreItem, DatastoreQuestion, PythonAction, PythonHosts,
    PythonOptions, PythonOutcome,
};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::{OpenOptions, Receiver};

/// A pack and what runs its actions.
pub(crate) struct Pack {
    pub(crate) folder: TempDir,
    pub(crate) hosts: Arc<PythonHosts>,
    pub(crate) datastore: Arc<Items>,
}

impl Pack {
    pub(crate) fn new() -> Pack {
        Pack::with(|_| ())
    }

    pub(crate) fn with(set: impl FnOnce(&mut PythonOptions)) -> Pack {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("pack/actions/lib")).unwrap();
        fs::create_dir(folder.path().join("run")).unwrap();
        let mut options = PythonOptions::new(std::env::vars_os());
        options.kill_grace = Duration::from_millis(100);
        set(&mut options);
        let hosts = Arc::new(PythonHosts::new(&folder.path().join("python"), options).unwrap());
        Pack { folder, hosts, datastore: Arc::default() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// An action whose `run` has these lines. `tell` writes a line for [`Lines`].
    pub(crate) fn action(&self, run: &str) -> PythonAction {
        let lines = run.trim().replace('\n', "\n        ");
        let text = format!(
            "import os, signal, subprocess, sys\n\
             from st2common.runners.base_action import Action\n\n\
             def tell(*words): print(*words, file=open(os.environ['LINES'], 'w'))\n\
             class Try(Action):\n    def run(self, **parameters):\n        {lines}\n"
        );
        self.action_file(&text)
    }

    /// An action with this file.
    pub(crate) fn action_file(&self, text: &str) -> PythonAction {
        let entry_point = self.path("pack/actions/try.py");
        fs::write(&entry_point, text).unwrap();
        PythonAction {
            pack: "examples".to_owned(),
            python: python().to_owned(),
            pack_folder: self.path("pack"),
            entry_point,
            parameters: Map::new(),
            config: Map::new(),
            user: "stanley".to_owned(),
            execution_id: "5f".to_owned(),
            log_level: "debug".to_owned(),
            environment: BTreeMap::new(),
            timeout: Duration::from_secs(60),
            folder: self.path("run"),
            output_bytes_max: 16 << 20,
            place: ResultPlace::default(),
            datastore: Arc::clone(&self.datastore) as Arc<dyn Datastore>,
        }
    }

    pub(crate) async fn run(&self, action: &PythonAction) -> PythonOutcome {
        // All runs share a folder, and one may have left its result there.
        let _ = fs::remove_file(self.path("run/result"));
        self.hosts.run(action).await.unwrap()
    }

    /// How an action ends whose `run` has these lines.
    pub(crate) async fn try_run(&self, run: &str) -> PythonOutcome {
        self.run(&self.action(run)).await
    }
}

/// The Python that tests run with, and not what chooses it by the folder.
pub(crate) fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let name = std::env::var("IMORI_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let output = Command::new(name).args(["-c", "import sys; print(sys.executable, end='')"]).output();
        PathBuf::from(String::from_utf8(output.unwrap().stdout).unwrap())
    })
}

/// A datastore in memory.
#[derive(Default)]
pub(crate) struct Items(Mutex<BTreeMap<String, String>>);

impl Datastore for Items {
    fn answer(&self, question: DatastoreQuestion) -> DatastoreFuture<'_> {
        let mut items = self.0.lock().unwrap();
        let answer = match question {
            DatastoreQuestion::Get { name, .. } => Ok(DatastoreAnswer::Value(items.get(&name).cloned())),
            DatastoreQuestion::Set { name, value, .. } => {
                items.insert(name, value);
                Ok(DatastoreAnswer::Done)
            }
            DatastoreQuestion::Delete { name } => match items.remove(&name) {
                Some(_) => Ok(DatastoreAnswer::Done),
                None => Err(format!("there is no key `{name}`")),
            },
            DatastoreQuestion::List { prefix, .. } => {
                let prefix = prefix.unwrap_or_default();
                let found = items.iter().filter(|(name, _)| name.starts_with(&prefix));
                let item = |(name, value): (&String, &String)| DatastoreItem {
                    name: name.clone(),
                    value: value.clone(),
                    ..DatastoreItem::default()
                };
                Ok(DatastoreAnswer::Items(found.map(item).collect()))
            }
            DatastoreQuestion::User => {
                let mut user = Map::new();
                user.insert("username", Value::String("stanley".to_owned()));
                Ok(DatastoreAnswer::User(user))
            }
        };
        Box::pin(async { answer })
    }
}

/// Gives a test the lines that an action tells while it runs.
pub(crate) struct Lines(BufReader<Receiver>);

impl Lines {
    pub(crate) fn of(action: &mut PythonAction) -> Lines {
        let path = action.folder.join("lines");
        if !path.exists() {
            mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        }
        // With a writer of its own, the pipe has no end.
        let receiver = OpenOptions::new().read_write(true).open_receiver(&path).unwrap();
        action.environment.insert("LINES".to_owned(), path.to_str().unwrap().to_owned());
        Lines(BufReader::new(receiver))
    }

    pub(crate) async fn next(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }
}

/// Watches a process that an action told the number of, unless it has ended already.
pub(crate) struct Watched(Option<Receiver>);

impl Watched {
    pub(crate) fn new(pid: &str) -> Watched {
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        let fd = pidfd_open(pid, PidfdFlags::empty()).ok();
        Watched(fd.map(|fd| Receiver::from_owned_fd_unchecked(fd).unwrap()))
    }

    pub(crate) async fn ended(&self) {
        if let Some(process) = &self.0 {
            tokio::time::timeout(Duration::from_secs(60), process.readable()).await.unwrap().unwrap();
        }
    }
}
