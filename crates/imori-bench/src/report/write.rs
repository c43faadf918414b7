//! Writes results to files, each completely or not at all, and reports failures.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::options::Outputs;
use crate::report::csv::{seconds_csv, stalls_csv};
use crate::report::fit;
use crate::report::html::{Link, html_of, html_of_many};
use crate::report::runs::Runs;
use anyhow::{Context, Result, anyhow};

impl Outputs {
    /// Prints the results of one or several runs, and writes all requested files. A file that
    /// cannot be written is an error, which is returned after everything else is written.
    pub fn publish(&self, title: &str, runs: &Runs) -> Result<()> {
        let mut faults = Vec::new();
        let printed = match self.json.as_deref() {
            Some("-") => {
                std::io::stdout().write_all(json(runs)?.as_bytes()).context("standard output is closed")
            }
            _ => fit::print(&texts(runs)),
        };
        faults.extend(printed.err());
        faults.extend(self.write(title, runs).err());
        match faults.is_empty() {
            true => Ok(()),
            false => Err(joined(&faults)),
        }
    }

    /// Writes the files without printing anything.
    pub fn write(&self, title: &str, runs: &Runs) -> Result<()> {
        let mut faults = Vec::new();
        if let Some(file) = self.json.as_deref().filter(|file| *file != "-") {
            faults.extend(save(file, "--json", json(runs)?.as_bytes()).err());
        }
        if let Some(place) = &self.csv {
            let (seconds, stalls) = csv_files(place);
            faults.extend(make_folder(place, &seconds).err());
            // If the folder cannot be created, one error about it is enough.
            if faults.is_empty() || seconds.parent().is_some_and(Path::is_dir) {
                let files = [(seconds, seconds_csv(runs)), (stalls, stalls_csv(runs))];
                for (file, text) in files {
                    faults.extend(save(&file.to_string_lossy(), "--csv", text.as_bytes()).err());
                }
            }
        }
        if let Some(file) = &self.html {
            let links = self.links(file);
            let page = match runs.runs.as_slice() {
                [run] => html_of(&run.report, &links),
                _ => html_of_many(title, runs, &links),
            };
            faults.extend(save(file, "--html", page.as_bytes()).err());
        }
        match faults.is_empty() {
            true => Ok(()),
            false => Err(joined(&faults)),
        }
    }

    /// Links to the other files that are in the page's folder or below it.
    fn links(&self, page: &str) -> Vec<Link> {
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        let json = self.json.iter().filter(|file| *file != "-").map(PathBuf::from);
        let (seconds, stalls) = self.csv.as_deref().map(csv_files).unzip();
        json.chain(seconds)
            .chain(stalls)
            .filter_map(|file| {
                let path = file.strip_prefix(folder).ok().filter(|path| path.is_relative())?;
                let name = file.file_name()?.to_string_lossy().into_owned();
                Some(Link { name, path: path.to_string_lossy().into_owned() })
            })
            .filter(|link| !link.path.starts_with(".."))
            .collect()
    }
}

/// JSON of one report, or of a list of runs.
fn json(runs: &Runs) -> Result<String> {
    let mut text = match runs.runs.as_slice() {
        [run] if run.side.is_empty() => serde_json::to_string_pretty(&run.report)?,
        _ => serde_json::to_string_pretty(runs)?,
    };
    text.push('\n');
    Ok(text)
}

fn texts(runs: &Runs) -> String {
    let texts: Vec<String> = runs
        .runs
        .iter()
        .map(|run| {
            if run.side.is_empty() { run.report.to_string() } else { format!("{}: {}", run.side, run.report) }
        })
        .collect();
    texts.join("\n")
}

/// Paths of the tables of seconds and of stalls.
fn csv_files(place: &str) -> (PathBuf, PathBuf) {
    let path = Path::new(place);
    match path.extension().is_some_and(|extension| extension == "csv") && !path.is_dir() {
        true => (path.to_owned(), path.with_extension("stalls.csv")),
        false => (path.join("seconds.csv"), path.join("stalls.csv")),
    }
}

/// Creates the folder of the tables if a folder was named and it does not exist.
fn make_folder(place: &str, seconds: &Path) -> Result<()> {
    match seconds.parent() {
        Some(folder) if folder == Path::new(place) => match fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(unwritable(place, "--csv", &error)),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Writes a file through a temporary one, so that its name never refers to a partial file.
pub fn save(file: &str, option: &str, bytes: &[u8]) -> Result<()> {
    let path = Path::new(file);
    let is_special = fs::metadata(path).is_ok_and(|metadata| !metadata.is_file());
    let written = if is_special { write_into(path, bytes) } else { write_beside(path, bytes) };
    written.map_err(|error| unwritable(file, option, &error))
}

/// Writes directly to a pipe or device, which a rename would replace by a file.
fn write_into(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(bytes)
}

fn write_beside(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_string_lossy();
    // If the path is a symbolic link, its target is replaced.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let write = || {
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        // Some file systems report a full disk only here.
        file.sync_all()?;
        fs::rename(&beside, &path)
    };
    write().inspect_err(|_| {
        // The partial file is useless, and a failure to remove it adds nothing to the error.
        let _ = fs::remove_file(&beside);
    })
}

fn unwritable(file: &str, option: &str, error: &std::io::Error) -> anyhow::Error {
    let folder = match Path::new(file).parent() {
        Some(folder) if folder != Path::new("") => folder.to_string_lossy().into_owned(),
        _ => ".".to_owned(),
    };
    let another = format!("name another place with `{option}`");
    match error.kind() {
        ErrorKind::NotFound => {
            anyhow!("`{file}` cannot be written: there is no folder `{folder}`; make it, or {another}")
        }
        ErrorKind::PermissionDenied => {
            anyhow!(
                "`{file}` cannot be written: folder `{folder}` may not be written to; allow it, or {another}"
            )
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            anyhow!("`{file}` cannot be written: the disk is full; free some space, or {another}")
        }
        ErrorKind::ReadOnlyFilesystem => {
            anyhow!("`{file}` cannot be written: its file system is read-only; {another}")
        }
        ErrorKind::IsADirectory => anyhow!("`{file}` cannot be written: it is a folder; {another}"),
        ErrorKind::NotADirectory => anyhow!("`{file}` cannot be written: `{folder}` is no folder; {another}"),
        _ => anyhow!("`{file}` cannot be written: {error}; {another}"),
    }
}

fn joined(faults: &[anyhow::Error]) -> anyhow::Error {
    let said: Vec<String> = faults.iter().map(|fault| format!("{fault:#}")).collect();
    anyhow!("{}", said.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::runs::{Run, read};
    use crate::report::sample;

    fn runs() -> Runs {
        Runs::new(vec![Run { side: String::new(), report: sample::report() }])
    }

    /// An empty folder for one test.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("imori-bench-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn every_file_is_written_and_nothing_else() {
        let folder = folder("all");
        let at = |name: &str| Some(folder.join(name).to_string_lossy().into_owned());
        let outputs = Outputs { json: at("run.json"), csv: at("tables"), html: at("report.html") };
        outputs.write("a run", &runs()).unwrap();
        outputs.write("a run", &runs()).unwrap();
        assert_eq!(names(&folder), ["report.html", "run.json", "tables"]);
        assert_eq!(names(&folder.join("tables")), ["seconds.csv", "stalls.csv"]);
        assert_eq!(read(&at("run.json").unwrap()).unwrap(), runs());
        let page = fs::read_to_string(folder.join("report.html")).unwrap();
        for link in ["./run.json", "./tables/seconds.csv", "./tables/stalls.csv"] {
            assert!(page.contains(&format!("href=\"{link}\"")), "{link}");
        }
        Outputs { csv: at("x.csv"), ..Outputs::default() }.write("a run", &runs()).unwrap();
        assert_eq!(names(&folder), ["report.html", "run.json", "tables", "x.csv", "x.stalls.csv"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_cannot_be_written_is_said_and_the_rest_is_written() {
        let folder = folder("faults");
        fs::write(folder.join("file"), "").unwrap();
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        for (json, expected) in [
            (at("none/run.json"), "there is no folder"),
            (at(""), "it is a folder"),
            (at("file/run.json"), "is no folder"),
            ("/dev/full".to_owned(), "the disk is full; free some space"),
            (format!("{}/{}", at(""), "x".repeat(400)), "cannot be written"),
        ] {
            let outputs = Outputs { json: Some(json.clone()), csv: None, html: Some(at("report.html")) };
            let error = outputs.write("a run", &runs()).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(&json), "`{error}` does not say `{expected}`");
            assert!(error.contains("`--json`") && !error.contains('\n'), "{error}");
            assert_eq!(names(&folder), ["file", "report.html"], "{json}");
            fs::remove_file(folder.join("report.html")).unwrap();
        }
        let both = Outputs { json: Some(at("a/b")), csv: Some(at("a/c")), html: None };
        let error = both.write("a run", &runs()).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 2, "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
