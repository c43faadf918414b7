//! Which broker a command speaks to: one rule for the admin listener, the automation and messages.
//!
//! An option beats a variable, and each beats what is there without being named: the current context and the folder
//! `.data`. Among equals an address beats a context, and that a data folder (SECURITY ROOM-14).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::context::Contexts;
use super::listens::Listens;

/// The variable that names a context.
const CONTEXT: &str = "IMORI_CONTEXT";

/// The variable that names a data folder.
const DATA_DIR: &str = "IMORI__BROKER__DATA_DIR";

/// The data folder of a broker that is started without another one.
pub(crate) const DEFAULT_FOLDER: &str = ".data";

/// What the command line and the environment name; clap gives either as one value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'a> {
    /// An address.
    pub address: Option<&'a str>,
    /// A context.
    pub context: Option<&'a str>,
    /// A data folder.
    pub data_dir: Option<&'a Path>,
}

/// The broker that a command speaks to.
#[derive(Debug, PartialEq, Eq)]
pub struct Destination {
    /// The address, with user and password if they are known.
    pub address: String,
    /// An access token to log in with.
    pub token: Option<String>,
    /// The data folder whose broker has this address: its operator may act there.
    pub folder: Option<PathBuf>,
    /// What names another broker, and was not followed: a sentence.
    pub passed_over: Option<String>,
}

/// How something is named: earlier ones count first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Option,
    Variable,
    Unnamed,
}

struct Candidate {
    rank: Rank,
    address: String,
    token: Option<String>,
    /// The words for what names it.
    named_by: String,
}

/// Finds the broker. `variable` reads an environment variable.
///
/// # Errors
/// There is no such context, or the broker of the named folder has no such listener.
pub fn destination(
    listens: Listens,
    named: Named<'_>,
    contexts: &Contexts,
    variable: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Destination> {
    let is_of = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
    let rank = |name: &str, value: &str| if is_of(name, value) { Rank::Variable } else { Rank::Option };
    let words = |rank, option: &str, name: &str| match rank {
        Rank::Variable => format!("the variable `{name}`"),
        Rank::Option | Rank::Unnamed => format!("`{option}`"),
    };
    let mut candidates = Vec::new();
    if let Some(address) = named.address {
        let rank = rank(listens.variable(), address);
        let named_by = words(rank, listens.option(), listens.variable());
        candidates.push(Candidate { rank, address: address.to_owned(), token: None, named_by });
    }
    let context_rank = named.context.map_or(Rank::Unnamed, |name| rank(CONTEXT, name));
    if let Some(found) = contexts.resolve(named.context, listens)? {
        let named_by = match context_rank {
            Rank::Unnamed => String::from("the current context"),
            rank => words(rank, "--context", CONTEXT),
        };
        candidates.push(Candidate {
            rank: context_rank,
            address: found.address,
            token: found.token,
            named_by,
        });
    }
    let folder = named.data_dir.unwrap_or_else(|| Path::new(DEFAULT_FOLDER));
    let of_folder = addresses(&folder.join(listens.file()));
    let folder_rank = named.data_dir.map_or(Rank::Unnamed, |dir| rank(DATA_DIR, &dir.to_string_lossy()));
    if let Some(address) = of_folder.first() {
        let named_by = match folder_rank {
            Rank::Unnamed => format!("the folder `{DEFAULT_FOLDER}`"),
            rank => words(rank, "--data-dir", DATA_DIR),
        };
        let address = address.clone();
        candidates.push(Candidate { rank: folder_rank, address, token: None, named_by });
    } else if folder_rank < candidates.iter().map(|candidate| candidate.rank).min().unwrap_or(Rank::Unnamed) {
        bail!(
            "the broker of `{}` has no {} that is known here; start it, or name an address by `{}`",
            folder.display(),
            listens.name(),
            listens.option()
        );
    }
    // The order in which they were added decides among equals.
    let best = candidates.iter().map(|candidate| candidate.rank).min();
    let at = candidates.iter().position(|candidate| Some(candidate.rank) == best);
    let Some(at) = at else {
        let address = listens.default().to_owned();
        return Ok(Destination { address, token: None, folder: None, passed_over: None });
    };
    let Candidate { address, token, named_by, .. } = candidates.swap_remove(at);
    // A broker may have several such listeners; the first is asked unless another is named.
    let is_of_folder = of_folder.iter().any(|own| is_same(own, &address));
    let is_other = |other: &&Candidate| {
        let is_folder = of_folder.first() == Some(&other.address);
        !(is_same(&other.address, &address) || is_folder && is_of_folder)
    };
    let other = candidates.iter().filter(|other| other.rank < Rank::Unnamed).find(is_other);
    let passed_over = other.map(|other| {
        let (shown, passed) = (without_login(&address), without_login(&other.address));
        format!("speaking to `{shown}`, which {named_by} names, and not to `{passed}` of {}", other.named_by)
    });
    Ok(Destination { address, token, folder: is_of_folder.then(|| folder.to_owned()), passed_over })
}

/// The addresses that a broker has written into its data folder, one a line.
fn addresses(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Whether two addresses are of one listener, whatever the login. The names of this machine are one.
fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (without_login(one), without_login(other));
    let port = |address: &str| {
        let (scheme, place) = address.split_once("://")?;
        let place = place.split('/').next()?;
        let (host, port) = place.rsplit_once(':')?;
        matches!(host, "localhost" | "127.0.0.1" | "[::1]").then(|| (scheme.to_owned(), port.to_owned()))
    };
    one.trim_end_matches('/') == other.trim_end_matches('/')
        || port(&one).is_some_and(|of_one| port(&other) == Some(of_one))
}

fn without_login(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => {
            format!("{scheme}://{}", rest.rsplit_once('@').map_or(rest, |(_, place)| place))
        }
        None => address.to_owned(),
    }
}
