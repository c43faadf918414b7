//! `imori serve`: runs the broker until a signal stops it.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{self, Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use imori_engine::{EngineOptions, Retention, ServerAddress};
use imori_gateway::Gateway;
use imori_server::config::{
    AddressError, Config, FilePath, ListenAddress, ListenerName, Listeners, LogLevel, ProtocolName, Service,
    parse,
};
use imori_server::{Listener, OperatorRequest, Server, StartError};
use tracing::{info, warn};

use crate::admin_client::Listens;
use crate::config::{Loaded, load};
use crate::gateway::{self, RunGateway, TemporaryFolder};
use crate::log;
use crate::notify::{ReadyFile, State, tell_service_manager};
use crate::output::print_line;
use crate::reload::reload;
use crate::watchdog;

/// Run the broker until SIGTERM, SIGINT or SIGUSR2; a second one ends it at once.
///
/// SIGHUP, as `imori config reload`, reads the configuration and the files of `tls` again, applies the keys that a
/// reload can change, and logs these and the keys that need a restart; `imori config show --sample` says which do.
/// Connections stay. An invalid configuration changes nothing. SIGUSR1 reopens the log file.
///
/// Prints `listening PROTOCOL ADDRESS` for each listener and then `ready` to the standard output; the log goes to the
/// standard error. Before that, the first start prints the password that it made for the user `admin`, only once.
///
/// Exit codes: 0 the broker was told to stop, 1 it cannot start or has ended with an error, 74 the disk failed, and
/// nothing was confirmed after the failure.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// The configuration file; without one, the defaults. `imori config show --sample` prints one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep all data that survives a restart in this folder.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Listen at this address instead of at the configured listeners. Can be given several times. Port 0 takes a free
    /// port; put an IPv6 address in brackets: `stomp=[::1]:61613`.
    #[arg(long, value_name = "PROTOCOL=HOST:PORT")]
    listen: Vec<Listen>,
    /// The lowest level that is logged: error, warn, info, debug or trace.
    #[arg(long, value_name = "LEVEL", value_parser = parse::<LogLevel>)]
    log: Option<LogLevel>,
    /// Write the line `ready` to this inherited file descriptor, a pipe or file, when clients can connect, and close it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..))]
    ready_fd: Option<u32>,
    /// Listen beyond loopback without TLS, and treat remote clients as local ones, so that anyone can do anything.
    #[arg(long)]
    insecure_dev: bool,
    /// Takes the place of `gateway.routes`.
    #[arg(skip)]
    routes: Option<PathBuf>,
}

/// The value of `--listen`.
#[derive(Debug, Clone, Copy)]
struct Listen {
    name: ListenerName,
    address: ListenAddress,
}

impl FromStr for Listen {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Listen, AddressError> {
        let (protocol, address) = text.split_once('=').unwrap_or((text, ""));
        Ok(Listen { name: protocol.parse()?, address: address.parse()? })
    }
}

/// Writes the addresses of the listeners that commands look for into the data folder.
fn tell_addresses(folder: &Path, listeners: &[Listener]) {
    for listens in [Listens::Admin, Listens::Automation, Listens::Messages] {
        let file = folder.join(listens.file());
        let addresses = listeners.iter().filter_map(|listener| address_of(listens, listener));
        let lines: String = addresses.map(|address| address + "\n").collect();
        let told = match lines.is_empty() {
            false => write_private(&file, &lines),
            true => fs::remove_file(&file),
        };
        if let Err(error) = told
            && error.kind() != ErrorKind::NotFound
        {
            warn!(file = %file.display(), %error, "the address of a listener cannot be written");
        }
    }
}

/// Writes a file that only the broker's user may read, as everything in the data folder.
fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut opened = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    opened.write_all(text.as_bytes())
}

/// The address of a listener on this machine, if it is such a one.
fn address_of(listens: Listens, listener: &Listener) -> Option<String> {
    let Listener { name, address } = listener;
    let scheme = match (listens, name.service, name.is_tls) {
        (Listens::Admin, Service::Admin, false) | (Listens::Automation, Service::Automation, false) => "http",
        (Listens::Admin, Service::Admin, true) | (Listens::Automation, Service::Automation, true) => "https",
        (Listens::Messages, Service::Messages(ProtocolName::Stomp), false) => "stomp",
        (Listens::Messages, Service::Messages(ProtocolName::Stomp), true) => "stomps",
        (Listens::Messages, Service::Messages(ProtocolName::Nats), false) => "nats",
        (Listens::Messages, Service::Messages(ProtocolName::Nats), true) => "tls",
        (Listens::Messages, Service::Messages(ProtocolName::Amqp), false) => "amqp",
        (Listens::Messages, Service::Messages(ProtocolName::Amqp), true) => "amqps",
        _ => return None,
    };
    let mut address = *address;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        });
    }
    // Until there are users, clients of this machine are `guest`.
    let login = if listens == Listens::Messages { "guest:guest@" } else { "" };
    Some(format!("{scheme}://{login}{address}"))
}

impl Serve {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let loaded = self.load()?;
        let config = &loaded.config;
        let ready_file =
            self.ready_fd.map(ReadyFile::open).transpose().context("`--ready-fd` cannot be written")?;
        log::start(&config.log).context("the log cannot be started")?;
        if let Some(exposed) = config.exposed_listener() {
            warn!(
                listener = %exposed.listener,
                address = %exposed.address,
                "`--insecure-dev` is on: anyone who can reach this listener can do anything"
            );
        }
        for accepted in config.accepted_listeners() {
            warn!(
                listener = %accepted.listener,
                address = %accepted.address,
                "`broker.accept_plaintext` names a listener that other hosts reach without TLS"
            );
        }
        // Actions run in folders of their own, where a relative path would lead elsewhere.
        let folder = path::absolute(config.broker.data_dir.join("automation"))
            .context("the data folder cannot be found: the current folder is gone")?;
        let retention = Retention {
            age: config.automation.history_age_s.duration(),
            bytes: config.automation.history_bytes.0,
        };
        let has_automation = config.listeners.has(Service::Automation);
        let server = match &config.automation.store {
            Some(address) if has_automation => {
                let read = ServerAddress::parse(address.reveal(), config.automation.store_ca.path());
                let keys = [String::from("automation.store")];
                Some(read.map_err(|error| anyhow::anyhow!("{}", loaded.located(&keys, &error)))?)
            }
            _ => None,
        };
        let routes = gateway::routes(&loaded)?;
        let mut gateway = None;
        let mut watched = None;
        let started = Server::start_with(config, |broker| {
            watched = Some(broker.clone());
            let automation = has_automation.then(|| {
                let mut options = EngineOptions::new(&folder);
                options.retention = retention;
                options.server = server;
                imori_engine::start(options, broker)
            });
            let mut services = imori_admin::services(broker, automation);
            let made = gateway.insert(Gateway::new(broker, config.gateway.workers));
            services.gateway = Some(Arc::new(made.clone()));
            services
        });
        let mut server = started.map_err(|error| start_error(&loaded, error))?;
        if let (Some(gateway), Some(routes)) = (&gateway, routes) {
            gateway.install(routes)?;
        }
        if let Some(password) = server.take_first_password() {
            print_line(&format!("created user admin with password {}", password.reveal()))?;
        }
        for listener in server.listeners() {
            print_line(&format!("listening {} {}", listener.name, listener.address))?;
        }
        tell_addresses(&config.broker.data_dir, server.listeners());
        // A script that sees `ready` can rely on the log of the start being complete.
        log::flush();
        print_line("ready")?;
        if let Some(file) = ready_file {
            file.tell().context("`--ready-fd` cannot be written")?;
        }
        tell(State::Ready);
        if let Some(broker) = watched {
            watchdog::start(broker);
        }
        info!(version = env!("CARGO_PKG_VERSION"), "ready");
        let reloader = server.reloader();
        let outcome = server.serve(|request| match request {
            OperatorRequest::Reload(answer) => answer.tell(reload(&reloader, gateway.as_ref(), self.load())),
            OperatorRequest::ReopenLog => log::reopen(),
        });
        tell(State::Stopping);
        Ok(outcome?)
    }

    /// Merges the file, the environment and the command line, and checks the result.
    fn load(&self) -> anyhow::Result<Loaded> {
        let mut loaded = load(self.config.as_deref(), env::vars_os())?;
        self.override_in(&mut loaded.config);
        if !self.listen.is_empty() {
            loaded.forget_places("listeners");
        }
        loaded.check()?;
        Ok(loaded)
    }

    /// Applies the options of the command line, which take precedence.
    fn override_in(&self, config: &mut Config) {
        let mut set_by = |key: &str, place: &str| {
            config.set_by.insert(key.to_owned(), place.to_owned());
        };
        config.insecure_dev = self.insecure_dev;
        if let Some(folder) = &self.data_dir {
            config.broker.data_dir.clone_from(folder);
            set_by("broker.data_dir", "option `--data-dir`");
        }
        if let Some(routes) = &self.routes {
            config.gateway.routes = FilePath::from(routes.as_path());
            set_by("gateway.routes", "FILE of the command line");
        }
        if let Some(level) = self.log {
            config.log.level = level;
            set_by("log.level", "option `--log`");
        }
        if !self.listen.is_empty() {
            config.listeners = listeners(&self.listen);
            for name in ListenerName::all() {
                set_by(&format!("listeners.{name}"), "option `--listen`");
            }
        }
    }
}

/// Runs a broker whose only listeners are those of the gateway.
pub(super) fn gateway_alone(run: RunGateway) -> anyhow::Result<()> {
    let RunGateway { file, listen, data_dir, log } = run;
    let temporary = match data_dir {
        Some(_) => None,
        None => Some(TemporaryFolder::create().context("no folder for temporary files; give `--data-dir`")?),
    };
    let serve = Serve {
        config: None,
        data_dir: data_dir.or_else(|| temporary.as_ref().map(|folder| folder.path().to_owned())),
        listen: listen
            .into_iter()
            .map(|address| Listen { name: ListenerName::plain(Service::Http), address })
            .collect(),
        log,
        ready_fd: None,
        insecure_dev: false,
        routes: Some(file),
    };
    serve.run()
}

/// Points a start error to the place where its key is set.
fn start_error(loaded: &Loaded, error: StartError) -> anyhow::Error {
    let keys = error.keys();
    match keys.is_empty() {
        true => error.into(),
        false => anyhow::anyhow!("{}", loaded.located(&keys, &error)),
    }
}

fn listeners(listens: &[Listen]) -> Listeners {
    let mut listeners = Listeners::none();
    for listen in listens {
        listeners.of_mut(listen.name).push(listen.address);
    }
    listeners
}

/// Serves on even if the service manager cannot be reached.
fn tell(state: State) {
    if let Err(error) = tell_service_manager(state) {
        warn!(%error, ?state, "the service manager of `NOTIFY_SOCKET` cannot be told");
    }
}
