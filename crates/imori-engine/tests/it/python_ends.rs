//! How Python actions end, and what they do in spite of it.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use imori_engine::limits::OUTPUT_BYTES_MAX;
use imori_engine::python::PythonStatus;
use rustix::process::{Pid, Signal, kill_process};

use crate::pack::{Lines, Pack, Watched};

#[tokio::test]
async fn the_exit_code_is_that_of_the_process() {
    let pack = Pack::new();
    for (run, exit_code, status) in [
        ("sys.exit(0)", 0, PythonStatus::Succeeded),
        ("sys.exit()", 0, PythonStatus::Succeeded),
        ("sys.exit(3)", 3, PythonStatus::Failed),
        ("sys.exit('why')", 1, PythonStatus::Failed),
        ("os._exit(7)", 7, PythonStatus::Failed),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, PythonStatus::Failed),
        ("os.abort()", -6, PythonStatus::Failed),
        ("raise KeyboardInterrupt", 1, PythonStatus::Failed),
    ] {
        let outcome = pack.try_run(run).await;
        assert_eq!((outcome.exit_code, outcome.status()), (Some(exit_code), status), "{run}");
        assert_eq!(outcome.output().get("result").unwrap().to_json(), r#""None""#, "{run}");
    }
}

#[tokio::test]
async fn an_action_that_takes_too_long_is_ended_with_all_it_started() {
    let pack = Pack::new();
    for deaf in ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"] {
        let mut action = pack.action(&format!(
            "{deaf}child = subprocess.Popen(['sleep', '1000'])\n\
             group = subprocess.Popen(['sleep', '1000'], preexec_fn=os.setpgrp)\n\
             tell(os.getpid(), child.pid, group.pid)\n\
             signal.pause()\n\
             while True: signal.pause()"
        ));
        action.timeout = Duration::from_millis(1_500);
        let mut lines = Lines::of(&mut action);
        let watch = async {
            let line = lines.next().await;
            line.split(' ').map(Watched::new).collect::<Vec<_>>()
        };
        let (outcome, watched) = tokio::join!(pack.run(&action), watch);
        assert_eq!(outcome.status(), PythonStatus::TimedOut);
        let error = outcome.output().get("error").unwrap().to_json();
        assert_eq!(error, r#""Action failed to complete in 1.5 seconds""#);
        for process in &watched {
            process.ended().await;
        }
    }
}

#[tokio::test]
async fn an_action_ends_when_nobody_waits_for_it_any_more() {
    let pack = Pack::new();
    let mut action = pack.action("tell(os.getpid())\nwhile True: signal.pause()");
    let mut lines = Lines::of(&mut action);
    let hosts = Arc::clone(&pack.hosts);
    let running = tokio::spawn(async move { hosts.run(&action).await });
    let process = Watched::new(&lines.next().await);
    running.abort();
    process.ended().await;
}

#[tokio::test]
async fn a_process_left_behind_goes_on_and_is_not_waited_for() {
    let pack = Pack::new();
    let gate = pack.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    // The copy comes back from `run` too, and its result counts for nothing.
    let outcome =
        pack.try_run(&format!("if os.fork() == 0:\n    return open({gate:?}).read()\nreturn 'first'")).await;
    assert_eq!(outcome.result.unwrap().to_json(), r#""first""#);
    // Opening it needs a reader.
    tokio::fs::write(&gate, "end").await.unwrap();
}

#[tokio::test]
async fn what_python_does_at_its_end_is_done() {
    let pack = Pack::new();
    let file = pack.path("file");
    let outcome = pack
        .try_run(&format!(
            "import atexit, threading\n\
             global kept\n\
             kept = open({file:?}, 'w')\n\
             kept.write('written')\n\
             atexit.register(print, 'at exit')\n\
             held = threading.Event()\n\
             threading.Thread(target=lambda: (held.wait(), print('thread'))).start()\n\
             threading.Timer(0.01, held.set).start()\n\
             return 1"
        ))
        .await;
    assert_eq!((outcome.exit_code, outcome.recorded.stdout.text.as_str()), (Some(0), "thread\nat exit\n"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "written");
}

#[tokio::test]
async fn a_pack_that_is_closed_lets_its_actions_end() {
    let pack = Pack::new();
    let gate = pack.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    let mut action = pack.action(&format!("tell('ready')\nopen({gate:?}).read()\nos._exit(9)"));
    let mut lines = Lines::of(&mut action);
    let (outcome, ()) = tokio::join!(pack.run(&action), async {
        lines.next().await;
        pack.hosts.end_pack(&action.pack_folder);
        tokio::fs::write(&gate, "go").await.unwrap();
    });
    assert_eq!(outcome.exit_code, Some(9));
}

#[tokio::test]
async fn long_output_is_cut_and_the_result_kept() {
    let pack = Pack::new();
    let outcome = pack
        .try_run("for _ in range(100):\n    os.write(1, b'x' * 65536)\n    os.write(2, b'x')\nreturn 'done'")
        .await;
    assert_eq!(outcome.status(), PythonStatus::Succeeded);
    let recorded = &outcome.recorded;
    assert_eq!((recorded.stdout.kept, recorded.stdout.bytes), (OUTPUT_BYTES_MAX, 100 * 65_536));
    assert_eq!((recorded.stderr.kept, recorded.stderr.bytes), (100, 100));
    let output = outcome.output();
    assert_eq!(output.get("result").unwrap().to_json(), r#""done""#);
    let cut = r#"{"stdout":{"kept":1048576,"printed":6553600}}"#;
    assert_eq!(output.get("x-imori.cut").unwrap().to_json(), cut);
}

#[tokio::test]
async fn an_action_that_prints_more_than_is_recorded_fails_although_it_returns() {
    let pack = Pack::new();
    let mut action = pack.action("for _ in range(100):\n    print('x' * 65536)\nreturn 'done'");
    action.output_bytes_max = 2 << 20;
    let outcome = pack.run(&action).await;
    assert_eq!(outcome.result.as_ref().unwrap().to_json(), r#""done""#);
    assert_eq!(outcome.status(), PythonStatus::Failed);
    let output = outcome.output();
    let error = output.get("error").unwrap().as_str().unwrap();
    assert!(error.starts_with("the action was stopped after more than 2097152 bytes of output"), "{error}");
    assert!(outcome.recorded.stdout.bytes <= (2 << 20) + 512, "{}", outcome.recorded.stdout.bytes);
}

#[tokio::test]
async fn what_was_printed_at_once_before_the_end_is_recorded() {
    let pack = Pack::new();
    let outcome = pack.try_run("os.write(1, b'x' * 60000)\nos._exit(5)").await;
    assert_eq!((outcome.exit_code, outcome.recorded.stdout.bytes), (Some(5), 60_000));
    assert_eq!(outcome.recorded.cut(), None);
}

#[tokio::test]
async fn a_result_that_is_too_large_fails_and_says_so() {
    let pack = Pack::new();
    let outcome = pack.try_run("return 'x' * (17 << 20)").await;
    assert_eq!((outcome.exit_code, outcome.result), (Some(1), None));
    assert!(
        outcome.recorded.stderr.text.starts_with("the result has 17825"),
        "{}",
        outcome.recorded.stderr.text
    );
}

#[tokio::test]
async fn the_result_is_in_its_file_when_every_descriptor_is_closed() {
    let pack = Pack::new();
    let close =
        "os.closerange(0, 256)\nfiles = [os.open('/dev/null', os.O_RDWR) for _ in range(9)]\nreturn 'kept'";
    let mut action = pack.action(close);
    let outcome = pack.run(&action).await;
    assert_eq!((outcome.exit_code, outcome.result.unwrap().to_json()), (Some(0), r#""kept""#.to_owned()));
    let file = pack.path("run/result");
    assert!(fs::read_to_string(&file).unwrap().contains(r#""execution_id": "5f""#));
    action.execution_id = "60".to_owned();
    fs::write(
        &action.entry_point,
        "import os\nclass A:\n    def __init__(self, **_): os._exit(0)\n    def run(self): 0\n",
    )
    .unwrap();
    assert_eq!(pack.run(&action).await.result, None);
}

#[tokio::test]
async fn an_action_outlives_the_python_that_forked_it() {
    let pack = Pack::new();
    let gate = pack.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    for (end, exit_code) in [("return 'alive'", Some(0)), ("sys.exit(3)", Some(3)), ("os._exit(4)", None)] {
        let mut action = pack.action(&format!("tell(os.getppid())\nopen({gate:?}).read()\n{end}"));
        let mut lines = Lines::of(&mut action);
        let (outcome, ()) = tokio::join!(pack.run(&action), async {
            let line = lines.next().await;
            let python = Watched::new(&line);
            kill_process(Pid::from_raw(line.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
            python.ended().await;
            tokio::fs::write(&gate, "go").await.unwrap();
        });
        assert_eq!(outcome.exit_code, exit_code, "{end}: {}", outcome.recorded.stderr.text);
    }
    assert_eq!(pack.try_run("return 1").await.result.unwrap().to_json(), "1");
}

#[tokio::test]
async fn an_action_without_its_python_is_ended_when_it_takes_too_long() {
    let pack = Pack::new();
    let mut action = pack.action(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         child = subprocess.Popen(['sleep', '1000'])\n\
         tell(os.getppid(), os.getpid(), child.pid)\n\
         while True: signal.pause()",
    );
    action.timeout = Duration::from_millis(1_500);
    let mut lines = Lines::of(&mut action);
    let (outcome, watched) = tokio::join!(pack.run(&action), async {
        let line = lines.next().await;
        let pids: Vec<_> = line.split(' ').collect();
        let watched: Vec<_> = pids.iter().map(|pid| Watched::new(pid)).collect();
        kill_process(Pid::from_raw(pids[0].parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        watched
    });
    assert_eq!(outcome.status(), PythonStatus::TimedOut);
    for process in &watched {
        process.ended().await;
    }
}

#[tokio::test]
async fn a_python_ends_when_it_is_not_used_and_another_one_starts() {
    let pack = Pack::with(|options| options.idle_time = Duration::from_millis(1));
    let parent = "return os.getppid()";
    let mut action = pack.action("tell(os.getppid())");
    let mut lines = Lines::of(&mut action);
    pack.run(&action).await;
    let first = lines.next().await;
    Watched::new(&first).ended().await;
    assert_ne!(pack.try_run(parent).await.result.unwrap().to_json(), first);
}

#[tokio::test]
async fn no_more_pythons_wait_than_may() {
    let pack = Pack::with(|options| options.idle_max = 1);
    let mut action = pack.action("tell(os.getppid())\nreturn os.getppid()");
    let mut lines = Lines::of(&mut action);
    pack.run(&action).await;
    let first = Watched::new(&lines.next().await);
    let mut other = pack.action("return os.getppid()");
    other.pack_folder = pack.path("other");
    let second = pack.run(&other).await.result.unwrap();
    first.ended().await;
    assert_eq!(pack.run(&other).await.result.unwrap(), second);
    let second = Watched::new(&second.to_json());
    pack.hosts.end_pack(&other.pack_folder);
    second.ended().await;
}
