//! What Python actions return, write and ask for.

use std::fs;

use imori_automation::value::Value;
use imori_engine::python::{PythonError, PythonStatus};

use crate::pack::{Lines, Pack};

#[tokio::test]
async fn what_run_returns_becomes_result_and_status() {
    let pack = Pack::new();
    for (run, status, result) in [
        ("return {'a': [1, 1.0, 'ä']}", "succeeded", r#"{"a":[1,1.0,"ä"]}"#),
        ("return None", "succeeded", "null"),
        ("pass", "succeeded", "null"),
        ("return (True, {'b': 1})", "succeeded", r#"{"b":1}"#),
        ("return (False, 'no')", "failed", r#""no""#),
        ("return (None, 1)", "succeeded", "1"),
        ("return (1, 2, 3)", "succeeded", "[1,2,3]"),
        ("return [True, 1]", "succeeded", "[true,1]"),
        ("return (True, {1: 2})", "succeeded", r#""{1: 2}""#),
        ("return {1, }", "succeeded", r#""{1}""#),
        ("return float('nan')", "succeeded", "null"),
        ("return '\\ud800'", "succeeded", r#""?""#),
        ("a = []\na.append(a)\nreturn a", "succeeded", r#""[[...]]""#),
    ] {
        let outcome = pack.try_run(run).await;
        assert_eq!(outcome.status().name(), status, "{run}: {}", outcome.recorded.stderr.text);
        assert_eq!(outcome.result.unwrap().to_json(), result, "{run}");
        assert_eq!(outcome.recorded.stdout.text + &outcome.recorded.stderr.text, "", "{run}");
    }
}

#[tokio::test]
async fn a_status_that_is_no_boolean_fails_with_220() {
    let pack = Pack::new();
    let outcome = pack.try_run("return ('item1', 'item2')").await;
    assert_eq!((outcome.exit_code, outcome.result.clone()), (Some(220), None));
    let error = outcome.output().get("error").unwrap().to_json();
    assert!(error.contains("neither True nor False: 'item1'"), "{error}");
}

#[tokio::test]
async fn an_exception_fails_with_a_traceback_of_the_action() {
    let pack = Pack::new();
    let outcome = pack.try_run("print('before')\nraise KeyError('k')").await;
    assert_eq!((outcome.status(), outcome.exit_code), (PythonStatus::Failed, Some(1)));
    assert_eq!(outcome.recorded.stdout.text, "before\n");
    let trace = &outcome.recorded.stderr.text;
    assert!(trace.starts_with("Traceback") && trace.ends_with("KeyError: 'k'\n"), "{trace}");
    assert!(trace.contains("actions/try.py\", line 8, in run") && !trace.contains("imori_host"), "{trace}");
}

#[tokio::test]
async fn a_file_without_an_action_fails_and_says_so() {
    let pack = Pack::new();
    for (text, complaint) in [
        ("def x(:\n", "SyntaxError"),
        ("import absent_module\n", "No module named 'absent_module'"),
        ("class A: pass\n", "has no class with the method `run`"),
        ("from st2common.persistence.rule import Rule\n", "not provided by Imori; provided are"),
    ] {
        let outcome = pack.run(&pack.action_file(text)).await;
        assert_eq!(outcome.exit_code, Some(1));
        assert!(outcome.recorded.stderr.text.contains(complaint), "{}", outcome.recorded.stderr.text);
    }
}

#[tokio::test]
async fn an_action_has_parameters_configuration_logger_and_environment() {
    let pack = Pack::new();
    let mut action = pack.action(
        "self.logger.info('at work')\n\
         keys = ['ST2_ACTION_PACK_NAME', 'ST2_ACTION_EXECUTION_ID', 'ST2_ACTION_API_URL']\n\
         imports = os.environ['PYTHONPATH'].split(':')\n\
         return [parameters, self.config['url'], [os.environ[key] for key in keys], imports[-1] in sys.path]",
    );
    action.parameters.insert("text", Value::String("x".repeat(300_000)));
    action.config.insert("url", Value::String("http://localhost".to_owned()));
    action.environment.insert("ST2_ACTION_API_URL".to_owned(), "http://api".to_owned());
    action.environment.insert("PythonPath".to_owned(), "/nowhere".to_owned());
    let outcome = pack.run(&action).await;
    let rest = r#"},"http://localhost",["examples","5f","http://api"],true]"#;
    let result = outcome.result.unwrap().to_json();
    assert!(
        result.starts_with(r#"[{"text":"xxxx"#) && result.ends_with(rest),
        "{}",
        outcome.recorded.stderr.text
    );
    assert_eq!(outcome.recorded.stderr.text, "st2.actions.python.Try: INFO     at work\n");
}

#[tokio::test]
async fn a_missing_configuration_says_where_to_set_it() {
    let pack = Pack::new();
    let outcome = pack.try_run("return self.config['token']").await;
    let complaint =
        "the configuration of pack `examples` has no key `token`; set it in configs/examples.yaml";
    assert!(outcome.recorded.stderr.text.contains(complaint), "{}", outcome.recorded.stderr.text);
}

#[tokio::test]
async fn an_action_imports_from_its_pack_and_sees_changes() {
    let pack = Pack::new();
    for number in 1..=3 {
        let number = "1".repeat(number);
        fs::write(pack.path("pack/actions/lib/__init__.py"), "").unwrap();
        fs::write(pack.path("pack/actions/lib/numbers_here.py"), format!("N = {number}\n")).unwrap();
        fs::write(pack.path("pack/actions/beside.py"), format!("N = {number}\n")).unwrap();
        let run = format!(
            "import beside, numbers_here, lib.numbers_here\nreturn [beside.N, lib.numbers_here.N, {number}]"
        );
        let outcome = pack.try_run(&run).await;
        let result = outcome.result.map(|result| result.to_json());
        assert_eq!(result, Some(format!("[{number},{number},{number}]")), "{}", outcome.recorded.stderr.text);
    }
}

#[tokio::test]
async fn the_datastore_answers_also_when_system_calls_are_patched() {
    let pack = Pack::new();
    let outcome = pack
        .try_run(
            "os.read = os.write = os.fstat = None\n\
             service = self.action_service\n\
             said = [service.get_value('a'), service.set_value('a', 1), service.get_value('a')]\n\
             service.set_value('b', 'B', local=False)\n\
             said += [[item.name, item.value] for item in service.list_values()]\n\
             said += [[item.name, item.id] for item in service.list_values(local=False, prefix='b')]\n\
             said += [service.delete_value('a'), service.delete_value('a'), service.get_user_info()['username']]\n\
             return said",
        )
        .await;
    let said = r#"[null,true,"1",["examples.Try:a","1"],["b","b"],true,false,"stanley"]"#;
    assert_eq!(outcome.result.unwrap().to_json(), said);
    assert!(
        outcome.recorded.stderr.text.contains("there is no key `examples.Try:a`"),
        "{}",
        outcome.recorded.stderr.text
    );
}

#[tokio::test]
async fn output_is_in_its_file_while_the_action_runs() {
    let pack = Pack::new();
    let gate = pack.path("gate");
    rustix::fs::mkfifoat(rustix::fs::CWD, &gate, rustix::fs::Mode::RWXU).unwrap();
    let mut action = pack.action(&format!("print('ready')\ntell('written')\nreturn open({gate:?}).read()"));
    let mut lines = Lines::of(&mut action);
    let (outcome, ()) = tokio::join!(pack.run(&action), async {
        assert_eq!(lines.next().await, "written");
        // The recorder is a process of its own.
        while fs::read_to_string(pack.path("run/stdout")).unwrap() != "ready\n" {
            tokio::task::yield_now().await;
        }
        tokio::fs::write(&gate, "opened").await.unwrap();
    });
    assert_eq!(outcome.result.unwrap().to_json(), r#""opened""#);
}

#[tokio::test]
async fn actions_run_at_once_also_when_their_python_has_yet_to_start() {
    let pack = Pack::new();
    let action = pack.action("return os.getppid()");
    let run = || async { pack.run(&action).await.result.unwrap().to_json() };
    let (a, b, c, d) = tokio::join!(run(), run(), run(), run());
    assert!(a == b && b == c && c == d, "{a} {b} {c} {d}");
}

#[tokio::test]
async fn a_python_that_does_not_start_is_an_error() {
    let pack = Pack::new();
    let broken = pack.path("broken");
    fs::write(&broken, "#!/bin/sh\necho library is missing >&2; exit 3\n").unwrap();
    fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (python, complaint) in [
        (pack.path("absent"), "No such file or directory"),
        (broken, "library is missing"),
        ("/bin/true".into(), "exit status: 0"),
    ] {
        let mut action = pack.action("return 1");
        action.python = python;
        let error = pack.hosts.run(&action).await.unwrap_err();
        assert!(matches!(&error, PythonError::Start(text) if text.contains(complaint)), "{error}");
    }
}
