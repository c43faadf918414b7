//! The arguments of `versus`: its own options may appear anywhere, all others belong to the scenario.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, CommandFactory, Parser};
use imori_bench::options::{
    FanOutOptions, IdleOptions, PubsubOptions, QueueOptions, RpcOptions, SoakOptions,
};
use imori_bench::report::compare::Share;

use crate::peers::found::SearchPaths;
use crate::peers::peer::Own;
use crate::versus::list::{self, Line};

/// Default number of turns of each peer; odd, so that the median is one of them.
const ROUNDS: u32 = 5;

/// Default folder in which `make peers` installs programs.
const PEERS: &str = ".tools/peers";

/// How the turns are run.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct TurnOptions {
    /// Turns of each peer; by default 5.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: Option<u32>,
    /// The program `imori`; by default this program, or the one in the same folder.
    #[arg(long, value_name = "PATH")]
    pub(crate) imori: Option<PathBuf>,
    /// The folder in which `make peers` has put the other brokers; by default `.tools/peers`.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) peers_dir: Option<PathBuf>,
    /// Folder for the results; by default one in the current folder, named after scenario and time.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Pin each broker to these CPUs, as `taskset -c` takes them.
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus_broker: Option<String>,
    /// Pin the client to these CPUs.
    #[arg(long, value_name = "CPUS")]
    pub(crate) cpus_client: Option<String>,
}

/// Where peers of one's own are.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct OwnOptions {
    /// The address of the first peer with an unknown name; repeat for the second.
    #[arg(long, value_name = "URL")]
    pub(crate) peer_url: Vec<String>,
    /// A shell command that starts the peer for each turn; without one, the peer runs already.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) peer_start: Vec<String>,
    /// A shell command that stops the peer; by default signals stop it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) peer_stop: Vec<String>,
}

/// How a list is run, and how its result is judged.
#[derive(Debug, Default, Clone, Args)]
pub(crate) struct ListOptions {
    /// Run only the lines of the list whose names begin with this; separate several by commas.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Exit with 5 if the first peer spends more CPU per delivery than another peer, by more than this share: `3%`.
    #[arg(long, value_name = "SHARE")]
    pub(crate) tolerance: Option<Share>,
}

/// Runs a scenario, or a list of them, against several peers in turns, and compares the medians.
#[derive(Debug, Clone, Args)]
pub struct VersusArgs {
    #[command(flatten)]
    pub(crate) turns: TurnOptions,
    #[command(flatten)]
    pub(crate) own: OwnOptions,
    #[command(flatten)]
    pub(crate) list: ListOptions,
    /// Scenario or list, peers and options: `rpc imori rabbitmq --requesters 16 --time 10s`.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "SCENARIO PEER"
    )]
    pub(crate) words: Vec<String>,
}

/// A requested comparison, with its arguments sorted.
#[derive(Debug, Clone)]
pub(crate) struct ComparisonRequest {
    pub(crate) turns: TurnOptions,
    pub(crate) own: Own,
    /// Tolerated excess of the first peer's CPU per delivery over another peer's.
    pub(crate) tolerance: Option<Share>,
    /// Name of the scenario or list, for titles and folders.
    pub(crate) name: String,
    pub(crate) peers: Vec<String>,
    pub(crate) load: Load,
}

/// The load that all peers are put under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Load {
    /// One scenario, followed by its options.
    Scenario(Vec<String>),
    /// Several named scenarios.
    List(Vec<Line>),
}

/// Our own options as a command, to separate them from the scenario's.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OwnWords {
    #[command(flatten)]
    turns: TurnOptions,
    #[command(flatten)]
    own: OwnOptions,
    #[command(flatten)]
    list: ListOptions,
}

impl TurnOptions {
    /// Number of turns of each peer.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(ROUNDS)
    }

    /// The places to search for programs.
    pub(crate) fn places(&self) -> SearchPaths {
        let peers = self.peers_dir.clone().unwrap_or_else(|| PathBuf::from(PEERS));
        SearchPaths { imori: self.imori.clone(), peers }
    }
}

impl VersusArgs {
    /// Sorts the arguments, and refuses those that no run could use.
    pub(crate) fn sorted(&self) -> Result<ComparisonRequest> {
        let (name, rest) = self.words.split_first().context("a scenario is needed, such as `rpc`")?;
        let first_option = rest.iter().position(|word| word.starts_with('-')).unwrap_or(rest.len());
        let (peers, options) = rest.split_at(first_option);
        let (ours, arguments) = split(options)?;
        let mut own_words =
            OwnWords { turns: self.turns.clone(), own: self.own.clone(), list: self.list.clone() };
        own_words.update_from(ours);
        ensure!(!peers.is_empty(), "peers are needed, such as `{name} imori rabbitmq`");
        let ListOptions { only, tolerance } = own_words.list;
        let load = load(name, arguments, &only)?;
        let OwnOptions { peer_url, peer_start, peer_stop } = own_words.own;
        Ok(ComparisonRequest {
            turns: own_words.turns,
            own: Own { urls: peer_url, starts: peer_start, stops: peer_stop },
            tolerance,
            name: short(name),
            peers: peers.to_vec(),
            load,
        })
    }
}

/// The load named by a word, with the options applied.
fn load(word: &str, arguments: Vec<String>, only: &[String]) -> Result<Load> {
    let Some(lines) = list::read(word)? else {
        check(word, &arguments)?;
        ensure!(
            only.is_empty(),
            "`--only` chooses lines of a list, and `{word}` is a scenario; leave it out"
        );
        let scenario = std::iter::once(word.to_owned());
        return Ok(Load::Scenario(scenario.chain(arguments).collect()));
    };
    let mut lines = list::only(lines, only)?;
    list::replace(&mut lines, &arguments)?;
    for line in &lines {
        let (scenario, arguments) = line.arguments.split_first().context("a line has a scenario")?;
        check(scenario, arguments).with_context(|| format!("line `{}`", line.name))?;
    }
    Ok(Load::List(lines))
}

/// Short name of a list: for a file, its name without folder and extension.
fn short(word: &str) -> String {
    let stem = Path::new(word).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.unwrap_or_else(|| word.to_owned())
}

/// Separates our options from the others, both with their values.
fn split(options: &[String]) -> Result<(Vec<String>, Vec<String>)> {
    let known = OwnWords::command();
    let known: Vec<&str> = known.get_arguments().filter_map(|argument| argument.get_long()).collect();
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    let mut words = options.iter();
    while let Some(word) = words.next() {
        let name = word.strip_prefix("--").unwrap_or_default();
        if known.contains(&name) {
            let Some(value) = words.next() else {
                bail!("`{word}` needs a value; write it behind it");
            };
            ours.extend([word.clone(), value.clone()]);
        } else if name.split_once('=').is_some_and(|(name, _)| known.contains(&name)) {
            ours.push(word.clone());
        } else {
            others.push(word.clone());
        }
    }
    Ok((ours, others))
}

/// Refuses what the scenario would refuse, before any broker is started.
pub(crate) fn check(scenario: &str, arguments: &[String]) -> Result<()> {
    for word in arguments {
        let name = word.split('=').next().unwrap_or_default();
        if matches!(name, "--url" | "--pid" | "--json" | "--html" | "--csv") {
            bail!("`{name}` is filled in for each turn; leave it out");
        }
    }
    match scenario {
        "rpc" => check_by(arguments, RpcOptions::check),
        "queue" => check_by(arguments, QueueOptions::check),
        "pubsub" => check_by(arguments, PubsubOptions::check),
        "fan-out" => check_by(arguments, |options: &FanOutOptions| options.flow.load.check_is_said()),
        "soak" => check_by(arguments, SoakOptions::check),
        "idle" => check_by(arguments, |_: &IdleOptions| Ok(())),
        _ => bail!(
            "`{scenario}` is no scenario; use `rpc`, `queue`, `pubsub`, `fan-out`, `soak` or `idle`, or a list: {} or a file",
            list::names()
        ),
    }
}

fn check_by<Options: Args>(arguments: &[String], check: fn(&Options) -> Result<()>) -> Result<()> {
    let command = Options::augment_args(clap::Command::new("scenario").no_binary_name(true));
    let parsed =
        command.try_get_matches_from(arguments).and_then(|matches| Options::from_arg_matches(&matches));
    match parsed {
        Ok(options) => check(&options),
        Err(refusal) => bail!("{}", refusal.to_string().trim_start_matches("error: ").trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn asked(text: &str) -> Result<ComparisonRequest> {
        #[derive(Parser)]
        #[command(no_binary_name = true)]
        struct Whole {
            #[command(flatten)]
            args: VersusArgs,
        }
        Whole::try_parse_from(text.split_whitespace())?.args.sorted()
    }

    #[test]
    fn options_are_ours_or_the_scenarios_wherever_they_stand() {
        for text in [
            "--rounds 3 --cpus-broker 0 rpc imori relay --depth 8 --size 64",
            "rpc imori relay --depth 8 --rounds 3 --size 64 --cpus-broker=0",
            "--cpus-broker 1 --rounds 9 rpc imori relay --rounds=3 --depth 8 --cpus-broker 0 --size 64",
        ] {
            let asked = asked(text).unwrap();
            assert_eq!(asked.name, "rpc", "{text}");
            assert_eq!(asked.peers, ["imori", "relay"], "{text}");
            assert_eq!(asked.load, Load::Scenario(words("rpc --depth 8 --size 64")), "{text}");
            assert_eq!((asked.turns.rounds(), asked.turns.cpus_broker.as_deref()), (3, Some("0")), "{text}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let asked = asked("fan-out imori --closed").unwrap();
        assert_eq!((asked.name.as_str(), asked.turns.rounds()), ("fan-out", 5));
        assert_eq!(asked.turns.places().peers, PathBuf::from(".tools/peers"));
    }

    #[test]
    fn a_list_takes_other_values_for_its_options() {
        let asked =
            asked("builds imori --only nats-rpc-l,durable --time 9s --tolerance 3% --rounds 2").unwrap();
        let Load::List(lines) = asked.load else { panic!("a list was asked for") };
        let names: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["nats-rpc-lockstep-16", "durable-confirm-256"]);
        assert_eq!(lines[0].arguments.join(" "), "rpc --requesters 16 --time 9s --warmup 1s");
        assert_eq!((asked.tolerance, asked.turns.rounds()), (Some(Share(0.03)), 2));
    }

    #[test]
    fn peers_of_ones_own_have_their_options() {
        let asked =
            asked("idle mine yours --peer-url stomp://a --peer-start run --peer-url nats://b").unwrap();
        assert_eq!((asked.own.urls.len(), asked.own.starts.len(), asked.own.stops.len()), (2, 1, 0));
    }

    #[test]
    fn what_no_run_could_use_is_refused_at_once() {
        for (text, part) in [
            ("rpc", "peers are needed"),
            ("chaos imori", "`chaos` is no scenario"),
            ("rpc imori --deep 3", "--deep"),
            ("rpc imori --depth none", "depth"),
            ("pubsub imori", "nothing says how fast to send"),
            ("rpc imori --rounds", "`--rounds` needs a value"),
            ("rpc imori --only nats", "`--only` chooses lines of a list"),
            ("builds imori --only mqtt", "begins no name of the list"),
            ("builds imori --url stomp://h", "no line of the list has `--url`"),
            ("./no/list imori", "list `./no/list` cannot be read"),
            ("rpc imori --url stomp://h", "`--url` is filled in for each turn"),
            ("rpc imori --pid=9", "`--pid` is filled in for each turn"),
        ] {
            let error = asked(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
