//! The commands for clients and stores, one file each, and the arguments they share.

mod serve;
mod publish;
mod subscribe;
mod call;
pub(crate) mod respond;
mod config;
mod cert;
mod verify;
mod store;
mod manual;
mod version;
pub(crate) mod argument;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::admin_client::Context;
use crate::administer::{
    Binding, Connection, Consumer, Definitions, Events, Exchange, Policy, Queue, Session, Stalls, Status,
    Stream, Top, User, Vhost, Why,
};
use crate::automate::Automate;
use crate::gateway::GatewayCommand;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  could not be done; the message says why
  2  the command line or the configuration is wrong
  3  nothing came within the time given";

/// The commands by what they are for, as the help lists them.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("Run a broker", &["serve", "config", "cert", "verify", "store", "gateway", "automate"]),
    ("Send and receive", &["pub", "sub", "call", "respond"]),
    ("See what goes on", &["status", "why", "top", "events", "stalls"]),
    (
        "Administer",
        &[
            "queue",
            "stream",
            "exchange",
            "binding",
            "connection",
            "session",
            "consumer",
            "user",
            "vhost",
            "policy",
            "definitions",
            "context",
        ],
    ),
    ("Measure", &["bench"]),
    ("This program", &["version", "completions", "man"]),
];

/// One broker that the clients you already have can talk to unchanged.
#[derive(Debug, Parser)]
#[command(name = "imori", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Serve),
    Pub(publish::Pub),
    Sub(subscribe::Sub),
    Call(call::Call),
    Respond(respond::Respond),
    Queue(Queue),
    Why(Why),
    Stream(Stream),
    Exchange(Exchange),
    Binding(Binding),
    Connection(Connection),
    Session(Session),
    Consumer(Consumer),
    User(User),
    Vhost(Vhost),
    Policy(Policy),
    Definitions(Definitions),
    Status(Status),
    Top(Top),
    Events(Events),
    Stalls(Stalls),
    Context(Context),
    Automate(Automate),
    Gateway(GatewayCommand),
    /// Put load on Imori or another broker, and check every delivery and reply.
    ///
    /// Exit codes: 0 done, 1 could not run, 2 the command line is wrong, 3 a message was lost or altered, 4 the run is
    /// invalid or inconclusive, 5 an objective was missed, or a number is worse than allowed.
    Bench(imori_bench::BenchArgs),
    Config(config::Config),
    Cert(cert::Cert),
    Verify(verify::Verify),
    Store(store::Store),
    Completions(manual::Completions),
    Man(manual::Man),
    Version(version::Version),
}

impl Cli {
    /// Reads the command line; prints help or what is wrong with it, and ends the process then.
    pub(crate) fn from_command_line() -> Cli {
        let read = Cli::from_arg_matches(&Cli::grouped().get_matches());
        read.unwrap_or_else(|error| error.exit())
    }

    /// The command line, whose help has the commands in groups.
    fn grouped() -> clap::Command {
        let command = Cli::command();
        let about = |name: &&str| {
            let found = command.find_subcommand(name).and_then(clap::Command::get_about);
            format!("  {name:12} {}\n", found.map(ToString::to_string).unwrap_or_default())
        };
        let group = |(title, names): &(&str, &[&str])| {
            format!("{title}:\n{}\n", names.iter().map(about).collect::<String>())
        };
        let groups: String = GROUPS.iter().map(group).collect();
        let template = format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}Options:\n{{options}}{{after-help}}"
        );
        command.help_template(template)
    }

    /// Runs the command and returns the exit code.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let done = match self.command {
            Command::Bench(bench) => return bench.task.run(),
            Command::Serve(serve) => serve.run(),
            Command::Pub(publish) => publish.run(),
            Command::Sub(subscribe) => subscribe.run(),
            Command::Call(call) => call.run(),
            Command::Respond(respond) => respond.run(),
            Command::Queue(queue) => queue.run(),
            Command::Why(why) => why.run(),
            Command::Stream(stream) => stream.run(),
            Command::Exchange(exchange) => exchange.run(),
            Command::Binding(binding) => binding.run(),
            Command::Connection(connection) => connection.run(),
            Command::Session(session) => session.run(),
            Command::Consumer(consumer) => consumer.run(),
            Command::User(user) => user.run(),
            Command::Vhost(vhost) => vhost.run(),
            Command::Policy(policy) => policy.run(),
            Command::Definitions(definitions) => definitions.run(),
            Command::Status(status) => status.run(),
            Command::Top(top) => top.run(),
            Command::Events(events) => events.run(),
            Command::Stalls(stalls) => stalls.run(),
            Command::Context(context) => context.run(),
            Command::Automate(automate) => automate.run(),
            Command::Gateway(gateway) => return gateway.run(serve::gateway_alone),
            Command::Config(config) => return config.run(),
            Command::Cert(cert) => cert.run(),
            Command::Verify(verify) => return verify.run(),
            Command::Store(store) => store.run(),
            Command::Completions(completions) => completions.run(Cli::command()),
            Command::Man(man) => man.run(Cli::command()),
            Command::Version(version) => version.run(),
        };
        done.map(|()| 0)
    }
}
