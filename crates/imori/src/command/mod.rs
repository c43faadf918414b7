//! The commands for clients and stores, one file each, and the arguments they share.

mod serve;
mod publish;
mod subscribe;
mod call;
mod respond;
mod config;
mod cert;
mod verify;
mod store;
mod manual;
mod version;
mod argument;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::administer::{
    Binding, Connection, Consumer, Context, Definitions, Events, Exchange, Policy, Queue, Session, Stalls,
    Status, Stream, Top, User, Vhost,
};
use crate::automate::Automate;
use crate::gateway::GatewayCommand;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  could not be done; the message says why
  2  the command line or the configuration is wrong
  3  nothing came within the time given";

/// One broker that the clients you already have can talk to unchanged.
#[derive(Debug, Parser)]
#[command(name = "imori", version, after_help = EXIT_CODES, disable_help_subcommand = true)]
pub(crate) struct Cli {
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
    /// Print the version.
    Version,
}

impl Cli {
    /// Runs the command and returns the exit code.
    pub(crate) fn run(self) -> anyhow::Result<u8> {
        let done = match self.command {
            Command::Bench(bench) => return imori_bench::run(&bench),
            Command::Serve(serve) => serve.run(),
            Command::Pub(publish) => publish.run(),
            Command::Sub(subscribe) => subscribe.run(),
            Command::Call(call) => call.run(),
            Command::Respond(respond) => respond.run(),
            Command::Queue(queue) => queue.run(),
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
            Command::Version => version::run(),
        };
        done.map(|()| 0)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_arguments_are_declared_without_contradiction() {
        Cli::command().debug_assert();
    }
}
