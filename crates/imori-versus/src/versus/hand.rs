//! `peers`: lists the peers on this machine, or runs one of them for use with other tools.

use std::io::{Read, Write};

use anyhow::{Context, Result, bail};
use clap::Args;

use crate::peers::found::find;
use crate::peers::ourselves::Ourselves;
use crate::peers::peer::{Choice, Kind, Origin, Own, Peer};
use crate::peers::running::Running;
use crate::versus::arguments::TurnOptions;

/// Shows which peers are on this machine, or runs one until standard input ends.
#[derive(Debug, Clone, Args)]
pub struct PeersArgs {
    /// The peer to run, such as `rabbitmq` or `imori:nats`; without one, all are listed.
    pub(crate) peer: Option<String>,
    #[command(flatten)]
    pub(crate) turns: TurnOptions,
}

/// Lists all peers, or runs one and prints the options that a scenario needs to use it.
pub(crate) fn run(args: &PeersArgs) -> Result<()> {
    match &args.peer {
        Some(word) => run_one(word, &args.turns),
        None => show_all(&args.turns),
    }
}

fn show_all(options: &TurnOptions) -> Result<()> {
    let mut out = std::io::stdout();
    for kind in Kind::all() {
        for protocol in kind.protocols() {
            let name = format!("{}:{}", kind.name(), protocol.word());
            let peer = Peer { name: name.clone(), origin: Origin::Known(kind), protocol, url: None };
            match find(&peer, &options.places()) {
                Ok(found) => writeln!(out, "{name:18} {}", found.unwrap_or_default().version)?,
                Err(error) => writeln!(out, "{name:18} {error:#}")?,
            }
        }
    }
    Ok(())
}

fn run_one(word: &str, options: &TurnOptions) -> Result<()> {
    let named = Peer::named(&[word.to_owned()], &Own::default(), &[], Choice::Common)?;
    let Some(peer) = named.into_iter().next().filter(|peer| peer.origin != Origin::Elsewhere) else {
        bail!("`{word}` runs already; name a kind of peer");
    };
    let found = find(&peer, &options.places())?;
    let ours = Ourselves::found(&["peers"])?;
    let running = Running::start(&peer, found.as_ref(), &ours, options.cpus_broker.as_deref())?;
    let mut words = vec!["--url".to_owned(), running.url.clone()];
    for pid in &running.pids {
        words.extend(["--pid".to_owned(), pid.to_string()]);
    }
    words.extend(peer.options("rpc", &[]));
    let mut out = std::io::stdout();
    writeln!(out, "{}", words.join(" "))?;
    out.flush()?;
    // Ctrl-C ends this process at once, and the guard then ends the peer.
    let mut rest = Vec::new();
    std::io::stdin().lock().read_to_end(&mut rest).context("standard input cannot be read")?;
    Ok(())
}
