//! The pack whose actions are measured, written to a folder from which the broker installs it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::peers::running::fresh_folder;

/// The pack's reference.
pub(crate) const PACK: &str = "imori_bench";

const ABOUT: &str = "name: imori_bench
description: Actions of a measurement; it may be removed.
version: 1.0.0
author: imori bench
email: bench@imori.invalid
";

const PYTHON: &str = "name: text
description: Returns a text of this length.
enabled: true
runner_type: python-script
entry_point: text.py
parameters:
  length:
    type: integer
    default: 1
";

const PYTHON_CODE: &str = "from st2common.runners.base_action import Action


class Text(Action):
    def run(self, length):
        return 'x' * length
";

/// A folder that is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct PackFolder(PathBuf);

impl PackFolder {
    /// Writes the pack, without workflows of runners that the broker lacks.
    pub(crate) fn written(has_runner: impl Fn(&str) -> bool) -> Result<PackFolder> {
        let folder = PackFolder(fresh_folder("pack")?);
        for (file, text) in files(has_runner) {
            let path = folder.0.join(&file);
            let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
            made.with_context(|| format!("`{}` cannot be written; set `TMPDIR`", path.display()))?;
        }
        Ok(folder)
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PackFolder {
    fn drop(&mut self) {
        // A leftover folder is in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn files(has_runner: impl Fn(&str) -> bool) -> Vec<(String, String)> {
    let mut files = vec![
        ("pack.yaml".to_owned(), ABOUT.to_owned()),
        ("actions/text.yaml".to_owned(), PYTHON.to_owned()),
        ("actions/text.py".to_owned(), PYTHON_CODE.to_owned()),
    ];
    let mut add = |name: &str, runner: &str, workflow: String| {
        if has_runner(runner) {
            files.push((format!("actions/{name}.yaml"), action(name, runner)));
            files.push((format!("actions/workflows/{name}.yaml"), workflow));
        }
    };
    for length in [20, 100] {
        add(&format!("chain_{length}"), "action-chain", chain(length));
        add(&format!("orquesta_{length}"), "orquesta", sequence(length));
    }
    add("items_101", "orquesta", items(101));
    files
}

fn action(name: &str, runner: &str) -> String {
    format!(
        "name: {name}\ndescription: A workflow of noops.\nenabled: true\nrunner_type: {runner}\n\
         entry_point: workflows/{name}.yaml\n"
    )
}

/// An action-chain of noops.
fn chain(length: u32) -> String {
    let mut text = "chain:\n".to_owned();
    for number in 1..=length {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  - name: t{number}\n    ref: core.noop");
        if number < length {
            let _ = writeln!(text, "    on-success: t{}", number + 1);
        }
    }
    text + "default: t1\n"
}

/// An Orquesta workflow of noops, one after the other.
fn sequence(length: u32) -> String {
    let mut text = "version: 1.0\ntasks:\n".to_owned();
    for number in 1..=length {
        let _ = writeln!(text, "  t{number}:\n    action: core.noop");
        if number < length {
            let _ = writeln!(text, "    next:\n      - when: <% succeeded() %>\n        do: t{}", number + 1);
        }
    }
    text
}

/// An Orquesta task with items.
fn items(count: u32) -> String {
    let list: Vec<String> = (0..count).map(|number| number.to_string()).collect();
    format!(
        "version: 1.0\nvars:\n  - numbers: [{}]\ntasks:\n  each:\n    with: <% ctx(numbers) %>\n    action: core.noop\n",
        list.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workflows_are_written_for_runners_that_exist() {
        let names = |runners: &[&str]| -> Vec<String> {
            files(|runner| runners.contains(&runner)).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(&[]), ["pack.yaml", "actions/text.yaml", "actions/text.py"]);
        assert_eq!(names(&["action-chain"]).len(), 7);
        assert_eq!(names(&["action-chain", "orquesta"]).len(), 13);
    }

    #[test]
    fn workflows_have_so_many_noops_in_a_row() {
        for (text, noops, links) in
            [(chain(20), 20, 19), (sequence(100), 100, 99), (chain(1), 1, 0), (items(3), 1, 0)]
        {
            assert_eq!(text.matches("core.noop").count(), noops, "{text}");
            let found = text.matches("on-success: t").count() + text.matches("do: t").count();
            assert_eq!(found, links, "{text}");
        }
        assert!(items(3).contains("numbers: [0, 1, 2]"));
    }

    #[test]
    fn the_folder_goes_with_its_owner() {
        let folder = PackFolder::written(|_| true).unwrap();
        let path = folder.path().to_owned();
        assert!(path.join("actions/workflows/items_101.yaml").is_file());
        drop(folder);
        assert!(!path.exists());
    }
}
