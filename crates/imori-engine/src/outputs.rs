//! The outputs of actions. A recorder of its own process reads them from pipes and writes them to files: it ends at a
//! limit, which the program that prints sees as a closed pipe, and it survives the broker as the action does. Only the
//! beginning of a file becomes part of an execution.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use imori_automation::value::{Map, Value};
use tokio::process::Command;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::limits::{OUTPUT_BYTES_MAX, OUTPUT_GRACE, RESULT_BYTES_WITHOUT_PLACE, RESULTS_AT_ONCE};
use crate::process::Process;

/// The key of a result that says which outputs it has only the beginning of.
const CUT_KEY: &str = "x-imori.cut";

/// The file in a run's folder that has the identity of the recorder.
const RECORDER_FILE: &str = "recorder";

/// The file in a run's folder that the recorder makes once it has written both outputs to their ends.
const RECORDED_FILE: &str = "recorded";

/// Copies the pipes that are its standard input and output to the files `stdout` and `stderr` of the folder that is its
/// first argument, as they are read, so that the API shows what an action prints. The limit, in the 512-byte units of
/// POSIX, ends a copy by an error and not by a signal, which would leave a core. The shell keeps no end of the pipes: the
/// last reader of a pipe is its copy.
const RECORDER: &str = r#"trap '' XFSZ; ulimit -f "$2"; exec 3<&0 4<&1 </dev/null >/dev/null
cat <&3 3<&- 4<&- >>"$1/stdout" & stdout=$!
cat <&4 3<&- 4<&- >>"$1/stderr" & stderr=$!
exec 3<&- 4<&-
wait $stdout; code=$?; wait $stderr && [ $code = 0 ] && : >"$1/recorded""#;

/// Bytes of the unit in which a shell sets the limit of files.
const LIMIT_UNIT: u64 = 512;

/// Where an action writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl OutputStream {
    /// Both, in the order of their descriptors.
    pub(crate) const ALL: [OutputStream; 2] = [OutputStream::Stdout, OutputStream::Stderr];

    /// The key of a result that has it, and its file in a run's folder.
    pub(crate) fn name(self) -> &'static str {
        match self {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        }
    }
}

/// What is kept of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The beginning of the text.
    pub text: String,
    /// The bytes of the text in the output's file.
    pub kept: u64,
    /// The bytes that were recorded; the action may have written more.
    pub bytes: u64,
}

impl Output {
    /// The beginning of a file. One that cannot be read counts as empty.
    pub fn of_file(path: &Path, bytes_max: u64) -> Output {
        Output::read(path, bytes_max).unwrap_or_default()
    }

    /// Whether more was recorded than is kept.
    pub fn is_cut(&self) -> bool {
        self.bytes > self.kept
    }

    fn read(path: &Path, bytes_max: u64) -> io::Result<Output> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut kept = Vec::new();
        file.take(bytes_max).read_to_end(&mut kept)?;
        let count = kept.len() as u64;
        let text = match String::from_utf8(kept) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        // A process that the action left behind may still write.
        Ok(Output { text, kept: count, bytes: bytes.max(count) })
    }
}

/// What became of the outputs of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// What it wrote to standard output.
    pub stdout: Output,
    /// What it wrote to standard error.
    pub stderr: Output,
    /// Why the recorder ended before the action did, if so.
    pub stop: Option<RecorderStop>,
}

/// Why a recorder ended before the action did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecorderStop {
    /// An output has more than this many bytes.
    Limit(u64),
    /// It was killed, or the disk has no room.
    Fault,
}

impl Recorded {
    /// Why the outputs are not whole, as a sentence for the error of a result; `None` if they are.
    pub fn cut(&self) -> Option<String> {
        let parts: Vec<String> = self
            .streams()
            .filter(|(_, output)| output.is_cut())
            .map(|(stream, output)| {
                let at_least = if self.stop.is_some() { "at least " } else { "" };
                format!(
                    "`{}` has {at_least}{} bytes, of which {} are kept",
                    stream.name(),
                    output.bytes,
                    output.kept
                )
            })
            .collect();
        let parts = parts.join("; ");
        match self.stop {
            None if parts.is_empty() => None,
            None => Some(format!("{parts}; print less, or write to a file and print its path")),
            Some(RecorderStop::Limit(bytes)) => Some(format!(
                "the action was stopped after more than {bytes} bytes of output: {parts}; print less, or write to a file"
            )),
            Some(RecorderStop::Fault) => {
                let parts = if parts.is_empty() { parts } else { format!("; {parts}") };
                Some(format!("the output could not be recorded to its end; look for room on the disk{parts}"))
            }
        }
    }

    /// Notes in a result of which outputs it has the beginning only.
    pub(crate) fn note_cut(&self, result: &mut Map) {
        let mut cut = Map::new();
        for (stream, output) in self.streams().filter(|(_, output)| output.is_cut() || self.stop.is_some()) {
            let number = |bytes: u64| Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
            let counts: Map =
                [("kept", number(output.kept)), ("printed", number(output.bytes))].into_iter().collect();
            cut.insert(stream.name(), counts);
        }
        if !cut.is_empty() {
            result.insert(CUT_KEY, cut);
        }
    }

    fn streams(&self) -> impl Iterator<Item = (OutputStream, &Output)> {
        OutputStream::ALL.into_iter().zip([&self.stdout, &self.stderr])
    }
}

/// The outputs of a run and their recorder.
pub(crate) struct Outputs {
    folder: PathBuf,
    bytes_max: u64,
    /// `None` where an earlier broker's recorder has ended.
    recorder: Option<Process>,
}

impl Outputs {
    /// Starts the recorder of a run, and returns the ends of its pipes for the action. `bytes_max` are recorded of each
    /// output.
    ///
    /// # Errors
    /// The files cannot be made, or the recorder not be started.
    pub(crate) fn record(folder: &Path, bytes_max: u64) -> io::Result<(Outputs, [OwnedFd; 2])> {
        for stream in OutputStream::ALL {
            File::create(folder.join(stream.name()))?;
        }
        match fs::remove_file(folder.join(RECORDED_FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (stdout, stdout_writer) = io::pipe()?;
        let (stderr, stderr_writer) = io::pipe()?;
        let mut recorder = Command::new("/bin/sh");
        recorder
            .arg("-c")
            .arg(RECORDER)
            .arg("imori")
            .arg(folder)
            .arg((bytes_max / LIMIT_UNIT + 1).to_string());
        // A group of its own: it reads to the end what an action prints that is killed.
        recorder.process_group(0).stdin(stdout).stdout(stderr).stderr(Stdio::null());
        let recorder = Process::start(recorder, &folder.join(RECORDER_FILE))?;
        let outputs = Outputs { folder: folder.to_owned(), bytes_max, recorder: Some(recorder) };
        Ok((outputs, [stdout_writer.into(), stderr_writer.into()]))
    }

    /// The outputs of a run that an earlier broker started.
    pub(crate) fn find(folder: &Path, bytes_max: u64) -> Outputs {
        let recorder = Process::find(&folder.join(RECORDER_FILE));
        Outputs { folder: folder.to_owned(), bytes_max, recorder }
    }

    /// Whether an output is longer than may be recorded.
    pub(crate) fn are_over(&self) -> bool {
        OutputStream::ALL.into_iter().any(|stream| {
            fs::metadata(self.folder.join(stream.name())).is_ok_and(|file| file.len() > self.bytes_max)
        })
    }

    /// Waits until the recorder has read what the action wrote before its end, for a short time: processes that the
    /// action left behind may hold the pipes open for ever.
    pub(crate) async fn settle(&mut self) {
        if let Some(recorder) = &mut self.recorder
            && timeout(OUTPUT_GRACE, recorder.ended()).await.is_ok()
        {
            self.recorder = None;
        }
    }

    /// Waits for a place among the results in memory, unless the outputs are short.
    pub(crate) async fn wait_for_place(&self, place: &ResultPlace) {
        let bytes: u64 = OutputStream::ALL
            .into_iter()
            .filter_map(|stream| fs::metadata(self.folder.join(stream.name())).ok())
            .map(|file| file.len())
            .sum();
        if bytes > RESULT_BYTES_WITHOUT_PLACE {
            place.take().await;
        }
    }

    /// What is recorded. At most so many bytes of both outputs are kept, and of each at most `OUTPUT_BYTES_MAX`.
    pub(crate) fn recorded(&self, kept_max: u64) -> Recorded {
        let read = |stream: OutputStream, left: u64| {
            Output::of_file(&self.folder.join(stream.name()), left.min(OUTPUT_BYTES_MAX))
        };
        let stdout = read(OutputStream::Stdout, kept_max);
        let stderr = read(OutputStream::Stderr, kept_max.saturating_sub(stdout.kept));
        Recorded { stop: self.stop(), stdout, stderr }
    }

    fn stop(&self) -> Option<RecorderStop> {
        if self.are_over() {
            return Some(RecorderStop::Limit(self.bytes_max));
        }
        // A broker of an earlier version had no recorder.
        let has_recorder = self.folder.join(RECORDER_FILE).exists();
        let is_whole = self.recorder.is_some() || self.folder.join(RECORDED_FILE).exists();
        (has_recorder && !is_whole).then_some(RecorderStop::Fault)
    }
}

/// A place among the results in memory. It is free again once the execution of its holder is stored and forgotten.
#[derive(Clone, Debug)]
pub struct ResultPlace {
    places: Arc<Semaphore>,
    held: Arc<OnceCell<Option<OwnedSemaphorePermit>>>,
}

impl ResultPlace {
    /// A place among these, which is not taken yet.
    pub(crate) fn among(places: &Arc<Semaphore>) -> ResultPlace {
        ResultPlace { places: Arc::clone(places), held: Arc::default() }
    }

    /// Waits for the place, and keeps it as long as there is a clone of this.
    pub(crate) async fn take(&self) {
        let acquire = || async { Arc::clone(&self.places).acquire_owned().await.ok() };
        self.held.get_or_init(acquire).await;
    }
}

impl Default for ResultPlace {
    fn default() -> ResultPlace {
        ResultPlace::among(&Arc::new(Semaphore::new(RESULTS_AT_ONCE)))
    }
}
