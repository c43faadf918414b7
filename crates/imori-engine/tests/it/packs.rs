//! Packs: what is read of a folder, and what is told of a wrong one.

use std::fs;
use std::path::{Path, PathBuf};

use imori_engine::packs::built_in::{BUILT_IN_FILES, BUILT_IN_PACKS, write_built_in_packs};
use imori_engine::packs::document::Severity;
use imori_engine::packs::pack::Pack;
use imori_engine::packs::policy::policy_types;
use imori_engine::packs::read::PackReader;
use imori_engine::packs::runners::RunnerTypes;

pub(crate) fn sample(pack: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/automation/packs").join(pack)
}

pub(crate) fn reader() -> PackReader {
    PackReader { runners: RunnerTypes::built_in(), overrides: None }
}

pub(crate) fn surfaces() -> Pack {
    reader().pack(&sample("surfaces")).unwrap()
}

#[test]
fn pack_brings_everything_of_its_files() {
    let pack = surfaces();
    assert_eq!(pack.problems, []);
    let actions: Vec<_> =
        pack.actions.iter().map(|action| (action.name.as_str(), action.runner_type.as_str())).collect();
    let expected = [
        ("announce", "announcement"),
        ("ask", "inquirer"),
        ("chain", "action-chain"),
        ("command", "local-shell-cmd"),
        ("nothing", "noop"),
        ("publish", "imori-publish"),
        ("python", "python-script"),
        ("remote", "remote-shell-cmd"),
        ("request", "http-request"),
        ("script", "local-shell-script"),
        ("workflow", "orquesta"),
    ];
    assert_eq!(actions, expected);
    let trigger_types: Vec<_> = pack.trigger_types.iter().map(|it| it.reference()).collect();
    assert_eq!(trigger_types, ["surfaces.said.loudly", "surfaces.polled"]);
    assert_eq!(pack.sensors[0].trigger_types, ["surfaces.polled"]);
    let rules: Vec<_> = pack.rules.iter().map(|rule| rule.reference.as_str()).collect();
    assert_eq!(rules, ["surfaces.idle", "surfaces.say"]);
    assert_eq!(pack.aliases.len(), 1);
    assert_eq!(pack.policies.len(), 2);
    assert_eq!(pack.config_schema.as_ref().map(|schema| schema.len()), Some(6));
    assert!(pack.files.contains(&"lib/surfaces_lib.py".to_owned()));
}

#[test]
fn documents_have_the_shape_of_stackstorms_api() {
    let pack = surfaces();
    let folder = "/opt/packs/surfaces";
    let rows = [
        (
            pack.actions[3].to_document(),
            r#"{"name":"command","pack":"surfaces","ref":"surfaces.command","uid":"action:surfaces:command","description":"Runs with local-shell-cmd.","enabled":true,"runner_type":"local-shell-cmd","entry_point":"","parameters":{"cmd":{"immutable":true,"default":"echo {{ text }}"},"text":{"type":"string","required":true,"position":0}},"output_schema":{},"tags":[],"notify":{},"metadata_file":"actions/command.yaml"}"#,
        ),
        (
            pack.sensors[0].to_document(folder),
            r#"{"name":"PolledSensor","pack":"surfaces","ref":"surfaces.PolledSensor","uid":"sensor_type:surfaces:PolledSensor","description":"Pulls a trigger each time.","artifact_uri":"file:///opt/packs/surfaces/sensors/polled.py","entry_point":"sensors.polled.PolledSensor","trigger_types":["surfaces.polled"],"poll_interval":30,"enabled":true,"metadata_file":"sensors/polled.yaml"}"#,
        ),
        (
            pack.trigger_types[0].to_document(),
            r#"{"name":"said.loudly","pack":"surfaces","ref":"surfaces.said.loudly","uid":"trigger_type:surfaces:said.loudly","description":"Something that was said.","payload_schema":{"type":"object"},"parameters_schema":{"type":"object","properties":{"who":{"type":"string","required":true}}},"tags":[{"name":"kind","value":"test"}],"metadata_file":"triggers/said.yaml"}"#,
        ),
        (
            pack.policies[0].to_document(),
            r#"{"name":"request.again","pack":"surfaces","ref":"surfaces.request.again","uid":"policy:surfaces:request.again","description":null,"enabled":false,"resource_ref":"surfaces.request","policy_type":"action.retry","parameters":{"retry_on":"timeout","delay":1.5,"max_retry_count":2},"metadata_file":"policies/again.yaml"}"#,
        ),
        (
            pack.rules[0].document.value().clone(),
            r#"{"name":"idle","trigger":{"type":"core.st2.IntervalTimer","parameters":{"unit":"seconds","delta":30}},"action":{"ref":"core.noop"},"pack":"surfaces","ref":"surfaces.idle","metadata_file":"rules/idle.yml"}"#,
        ),
        (
            pack.manifest.to_document(),
            r#"{"ref":"surfaces","uid":"pack:surfaces","name":"Surfaces","description":"One of everything that a pack may bring.","keywords":["tests"],"version":"1.2.3-rc.1+build.5","stackstorm_version":null,"python_versions":["3"],"author":"Imori","email":"packs@imori.invalid","contributors":[],"dependencies":["core"],"system":{}}"#,
        ),
    ];
    for (document, expected) in rows {
        assert_eq!(document.to_json(), expected);
    }
}

#[test]
fn wrong_file_is_told_with_its_line_and_spoils_no_other() {
    let pack = reader().pack(&sample("wrong")).unwrap();
    let told: Vec<_> = pack.problems.iter().map(|problem| (problem.to_string(), problem.severity)).collect();
    let errors = [
        "config.schema.yaml:2: parameter `token`: type `text` is unknown",
        "triggers/bad_schema.yaml:2: key `payload_schema` is a list; give it an object",
        "triggers/no_name.yaml:1: key `name` is missing; give it a text",
        "sensors/bad_trigger.yaml:4: key `name` is missing",
        "sensors/fast.yaml:3: key `poll_interval` is less than 4 seconds",
        "sensors/no_class.yaml:1: key `class_name` is missing",
        "sensors/no_entry.yaml:1: key `entry_point` is missing",
        "actions/absolute.yaml:3: path `actions//bin/sh` leaves its folder",
        "actions/bad_parameter.yaml:4: parameter `a-b` is no word",
        "actions/bad_parameter.yaml:8: parameter `c`: key `requred` is unknown; use one of `type`",
        "actions/bad_type.yaml:5: parameter `count`: type `int` is unknown; use one of `array`",
        "actions/gap.yaml:9: parameter `b`: its position leaves a gap",
        "actions/leaves.yaml:3: path `actions/../../secret.py` leaves its folder",
        "actions/no_default.yaml:6: parameter `a`: an immutable parameter needs a value",
        "actions/no_name.yaml:1: key `name` is missing",
        "actions/no_object.yaml:1: is a list; give it keys with values",
        "actions/no_yaml.yaml:",
        "actions/other_pack.yaml:2: key `pack` is `other` in a file of pack `wrong`",
        "actions/overrides_type.yaml:5: parameter `timeout`: key `type` is the runner's",
        "actions/same_position.yaml:9: parameter `b`: position 0 is that of `a` too",
        "actions/unknown_key.yaml:3: key `paramters` is unknown; use one of `id`",
        "actions/unknown_runner.yaml:2: runner type `run-local` is unknown; use one of `noop`",
        "rules/no_name.yaml:1: key `name` is missing",
        "rules/other_pack.yaml:2: key `pack` is `other`",
        "aliases/bad_format.yaml:5: a format is a text",
        "aliases/no_formats.yaml:1: key `formats` is missing",
        "policies/bad_parameter.yaml:5: key `parameters.retry_on`:",
        "policies/bad_parameter.yaml:6: key `parameters.max_retry_count`:",
        "policies/unknown_type.yaml:3: policy type `action.repeat` is unknown; use one of `action.concurrency`",
    ];
    for error in errors {
        let is_told =
            |(told, severity): &(String, Severity)| told.starts_with(error) && *severity == Severity::Error;
        assert!(told.iter().any(is_told), "{error}\nis not among\n{told:#?}");
    }
    let warning = "actions/missing_file.yaml:3: `actions/missing.py` is not there";
    assert!(told.iter().any(|(told, severity)| told.starts_with(warning) && *severity == Severity::Warning));
    assert_eq!(told.len(), errors.len() + 1, "{told:#?}");
    let actions: Vec<_> = pack.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(actions, ["missing_file", "right"]);
}

#[test]
fn folder_without_a_right_manifest_is_no_pack() {
    let rows = [
        ("no_version", "pack.yaml:3: version `1.0` is no semantic version"),
        ("Bad-Name", "pack.yaml:1: `Bad Name` is no reference of a pack"),
        ("none", "cannot be read"),
    ];
    for (folder, expected) in rows {
        let problems = reader().pack(&sample(folder)).unwrap_err();
        assert!(problems[0].to_string().starts_with(expected), "{}", problems[0]);
    }
    let (packs, refused) = reader().packs(&sample(""));
    let names: Vec<_> = packs.iter().map(|pack| pack.manifest.reference.as_str()).collect();
    assert_eq!(names, ["issues", "kills", "surfaces", "watching", "wrong"]);
    let refused: Vec<_> = refused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(refused, ["Bad-Name", "no_version"]);
}

#[test]
fn reference_is_the_key_else_the_folder_else_the_name() {
    let root = tempfile::tempdir().unwrap();
    let rows = [
        ("a", "name: b\nref: c", "c"),
        ("a", "name: b", "a"),
        ("stackstorm-a", "name: b", "b"),
        ("stackstorm-a", "name: b\nref: ''", "b"),
    ];
    for (folder, keys, expected) in rows {
        let folder = root.path().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let rest = "description: d\nversion: 1.0.0\nauthor: a\nemail: e";
        fs::write(folder.join("pack.yaml"), format!("{keys}\n{rest}\n")).unwrap();
        assert_eq!(reader().pack(&folder).unwrap().manifest.reference, expected);
    }
}

#[test]
fn overrides_enable_and_disable() {
    let root = tempfile::tempdir().unwrap();
    let global = "actions:\n  defaults:\n    enabled: false\n  exceptions:\n    ask:\n      enabled: true\n";
    let own = "actions:\n  exceptions:\n    nothing:\n      enabled: true\nrules:\n  defaults:\n    enabled: true\n\
               aliases:\n  defaults:\n    name: x\n";
    fs::write(root.path().join("_global.yaml"), global).unwrap();
    let reader = PackReader { overrides: Some(root.path().to_owned()), ..reader() };
    let enabled = |own: &str| {
        fs::write(root.path().join("surfaces.yaml"), own).unwrap();
        let pack = reader.pack(&sample("surfaces")).unwrap();
        let actions = pack.actions.iter().filter(|action| action.enabled).map(|action| action.name.clone());
        let rules = pack.rules.iter().filter(|rule| {
            rule.document.value().get("enabled").and_then(|enabled| enabled.as_bool()) == Some(true)
        });
        (actions.collect::<Vec<_>>(), rules.count(), pack.problems)
    };
    let (actions, rules, problems) = enabled(own);
    // A wrong file counts not at all.
    assert_eq!((actions.len(), rules), (0, 1));
    assert_eq!(problems[0].to_string(), "surfaces.yaml:10: key `name` cannot be overridden; use `enabled`");
    let (actions, rules, problems) = enabled(own.split_once("aliases").unwrap().0);
    assert_eq!((actions, rules, problems), (vec!["nothing".to_owned()], 2, vec![]));
}

#[test]
fn link_out_of_a_pack_is_not_read() {
    let root = tempfile::tempdir().unwrap();
    let pack = root.path().join("linked");
    fs::create_dir_all(pack.join("actions")).unwrap();
    fs::write(pack.join("pack.yaml"), "name: linked\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: e\n")
        .unwrap();
    fs::write(root.path().join("out.yaml"), "name: out\nrunner_type: noop\n").unwrap();
    fs::write(pack.join("in.yaml"), "name: in\nrunner_type: noop\n").unwrap();
    std::os::unix::fs::symlink("../../out.yaml", pack.join("actions/out.yaml")).unwrap();
    std::os::unix::fs::symlink("../in.yaml", pack.join("actions/in.yaml")).unwrap();
    // A folder that holds itself is not walked for ever.
    std::os::unix::fs::symlink("..", pack.join("actions/up")).unwrap();
    let pack = reader().pack(&pack).unwrap();
    let names: Vec<_> = pack.actions.iter().map(|action| action.name.as_str()).collect();
    assert_eq!(names, ["in"]);
    assert_eq!(pack.problems.len(), 1);
    assert!(pack.problems[0].to_string().starts_with("actions/out.yaml: `actions/out.yaml` is a link"));
}

#[test]
fn two_files_of_one_name_are_told_and_the_later_counts() {
    let root = tempfile::tempdir().unwrap();
    let pack = root.path().join("twice");
    fs::create_dir_all(pack.join("actions")).unwrap();
    fs::write(pack.join("pack.yaml"), "name: twice\ndescription: d\nversion: 1.0.0\nauthor: a\nemail: e\n")
        .unwrap();
    for file in ["a", "b"] {
        fs::write(
            pack.join(format!("actions/{file}.yaml")),
            format!("name: x\nrunner_type: noop\ndescription: {file}"),
        )
        .unwrap();
    }
    let pack = reader().pack(&pack).unwrap();
    assert_eq!(pack.actions.len(), 1);
    assert_eq!(pack.actions[0].description.as_deref(), Some("b"));
    assert_eq!(
        pack.problems[0].to_string(),
        "actions/a.yaml: `twice.x` is described by `actions/b.yaml` too, which counts; remove one"
    );
}

#[test]
fn built_in_packs_are_right_and_complete() {
    let root = tempfile::tempdir().unwrap();
    write_built_in_packs(root.path()).unwrap();
    // What an earlier version wrote goes; what is there stays.
    fs::write(root.path().join("core/actions/old.yaml"), "name: old\n").unwrap();
    fs::create_dir_all(root.path().join("core/old/older")).unwrap();
    write_built_in_packs(root.path()).unwrap();
    let (packs, refused) = reader().packs(root.path());
    assert_eq!(refused, []);
    let names: Vec<_> = packs.iter().map(|pack| pack.manifest.reference.as_str()).collect();
    assert_eq!(names, BUILT_IN_PACKS);
    for pack in &packs {
        assert_eq!(pack.problems, [], "{}", pack.manifest.reference);
    }
    let references: Vec<_> = packs
        .iter()
        .flat_map(|pack| {
            let actions = pack.actions.iter().map(|it| it.reference());
            actions.chain(pack.trigger_types.iter().map(|it| it.reference())).collect::<Vec<_>>()
        })
        .collect();
    let needed = [
        "core.local",
        "core.local_sudo",
        "core.remote",
        "core.remote_sudo",
        "core.http",
        "core.noop",
        "core.echo",
        "core.announcement",
        "core.inject_trigger",
        "core.pause",
        "core.ask",
        "core.sendmail",
        "core.uuid",
        "core.error",
        "core.winrm_cmd",
        "core.winrm_ps_cmd",
        "core.st2.webhook",
        "core.st2.IntervalTimer",
        "core.st2.DateTimer",
        "core.st2.CronTimer",
        "core.st2.generic.actiontrigger",
        "core.st2.generic.notifytrigger",
        "core.st2.generic.inquiry",
        "core.st2.action.file_written",
        "core.st2.key_value_pair.create",
        "core.st2.key_value_pair.update",
        "core.st2.key_value_pair.value_change",
        "core.st2.key_value_pair.delete",
        "core.st2.sensor.process_spawn",
        "core.st2.sensor.process_exit",
        "packs.install",
        "packs.uninstall",
        "packs.load",
        "packs.search",
        "packs.setup_virtualenv",
        "linux.scp",
        "linux.traceroute",
        "linux.file_watch.line",
        "chatops.post_result",
        "chatops.run",
        "imori.publish",
        "imori.call",
        "imori.key_get",
        "imori.queue",
        "imori.topic",
    ];
    for reference in needed {
        assert!(references.iter().any(|it| it == reference), "{reference} is missing");
    }
    let mode = fs::metadata(root.path().join("core/actions/sendmail.sh")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o755);
}

#[test]
fn every_file_of_the_built_in_packs_is_embedded() {
    fn files(folder: &Path, prefix: &str, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            match entry.path().is_dir() {
                true if name.ends_with("__pycache__") => {}
                true => files(&entry.path(), &format!("{name}/"), found),
                false => found.push(name),
            }
        }
    }
    let mut found = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("packs"), "", &mut found);
    found.retain(|file| file.contains('/'));
    found.sort_unstable();
    let embedded: Vec<_> = BUILT_IN_FILES.iter().map(|(file, _)| (*file).to_owned()).collect();
    assert_eq!(embedded, found);
}

#[test]
fn runner_and_policy_types_are_those_of_stackstorm_and_our_own() {
    let runners = RunnerTypes::built_in();
    let names: Vec<_> = runners.iter().map(|runner| runner.name.as_str()).collect();
    let expected = [
        "noop",
        "local-shell-cmd",
        "local-shell-script",
        "python-script",
        "http-request",
        "inquirer",
        "announcement",
        "orquesta",
        "action-chain",
        "remote-shell-cmd",
        "remote-shell-script",
        "winrm-ps-script",
        "winrm-cmd",
        "winrm-ps-cmd",
        "imori-engine",
        "imori-publish",
        "imori-call",
    ];
    assert_eq!(names, expected);
    assert_eq!(runners.find("orchestra").map(|runner| runner.name.as_str()), Some("orquesta"));
    assert!(runners.iter().filter(|runner| !runner.enabled).all(|runner| runner.name.starts_with("winrm-")));
    let winrm = runners.find("winrm-cmd").unwrap();
    assert!(winrm.runner_parameters.contains_key("cmd") && winrm.runner_parameters.contains_key("host"));
    let types: Vec<_> = policy_types().iter().map(|policy_type| policy_type.reference()).collect();
    assert_eq!(types, ["action.concurrency", "action.concurrency.attr", "action.retry"]);
}
