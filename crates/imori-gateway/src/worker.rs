//! What the connections of a worker share.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use crate::asking::Asking;
use crate::callers::Callers;
use crate::chosen_certificates::ChosenCertificates;
use crate::limits::CONNECT_MAX;
use crate::outgoing::{FetchOptions, Fetcher, HostList, system_roots, trusting};
use crate::respond::Body;
use crate::routes::Configuration;
use crate::scripts::{Scripts, Secrets, Tools};
use crate::shared::Shared;
use crate::timer::Timer;
use crate::upstream::Upstreams;
use futures_util::future::LocalBoxFuture;
use http::Response;
use rustls::RootCertStore;

/// What a worker's connections share.
pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) callers: Callers,
    pub(crate) upstreams: Upstreams,
    pub(crate) chosen_certificates: ChosenCertificates,
    /// Answers the requests of scripts.
    pub(crate) respond: Respond,
    timer: Timer,
    served: RefCell<Rc<Served>>,
}

/// Answers a request.
pub(crate) type Respond = for<'a> fn(&'a Rc<Worker>, Asking) -> LocalBoxFuture<'a, Response<Body>>;

/// A configuration with its scripts, as a worker serves it.
pub(crate) struct Served {
    pub(crate) configuration: Arc<Configuration>,
    /// What scripts use, whatever their request is.
    pub(crate) tools: Tools,
    /// `None` without scripts, and until they are ready.
    scripts: RefCell<Option<Rc<Scripts>>>,
}

impl Worker {
    /// A worker on this thread's runtime.
    ///
    /// # Errors
    /// The process has no more file descriptors.
    pub(crate) fn new(
        shared: Arc<Shared>,
        configuration: Arc<Configuration>,
        respond: Respond,
    ) -> io::Result<Worker> {
        let timer = Timer::start()?;
        let served = Served::new(&shared, &timer, configuration);
        Ok(Worker {
            callers: Callers::new(&shared.broker),
            upstreams: Upstreams::default(),
            chosen_certificates: ChosenCertificates::default(),
            served: RefCell::new(Rc::new(served)),
            respond,
            timer,
            shared,
        })
    }

    /// A configuration to be put in force, whose scripts are not open yet.
    pub(crate) fn prepare(&self, configuration: Arc<Configuration>) -> Rc<Served> {
        Rc::new(Served::new(&self.shared, &self.timer, configuration))
    }

    /// Puts a configuration in force; requests that have begun keep theirs.
    pub(crate) fn install(&self, served: Rc<Served>) {
        self.served.replace(served);
    }

    /// The configuration in force.
    pub(crate) fn served(&self) -> Rc<Served> {
        Rc::clone(&self.served.borrow())
    }
}

impl Served {
    fn new(shared: &Shared, timer: &Timer, configuration: Arc<Configuration>) -> Served {
        // The routes are checked before they come here.
        let hosts = HostList::parse(configuration.allow_hosts.iter().map(String::as_str)).unwrap_or_default();
        let secrets = configuration.secrets.iter().map(|(name, secret)| (name.clone(), secret.0.clone()));
        // They are read only where a script may connect somewhere.
        let roots = match configuration.allow_hosts.is_empty() {
            true => RootCertStore::empty(),
            false => system_roots(),
        };
        let tools = Tools {
            shared: Arc::clone(&shared.values),
            fetcher: Fetcher::new(FetchOptions {
                hosts: Arc::new(hosts),
                tls: trusting(roots),
                connect_timeout: CONNECT_MAX,
            }),
            secrets: Arc::new(Secrets::new(secrets)),
            timer: timer.clone(),
        };
        Served { configuration, tools, scripts: RefCell::default() }
    }

    /// The scripts, if there are any.
    pub(crate) fn scripts(&self) -> Option<Rc<Scripts>> {
        self.scripts.borrow().clone()
    }

    /// Sets the scripts once they are ready for requests.
    pub(crate) fn set_scripts(&self, scripts: Rc<Scripts>) {
        self.scripts.replace(Some(scripts));
    }

    /// Takes the scripts if their VM is lost; they have to be opened anew then.
    pub(crate) fn take_lost(&self) -> bool {
        let mut scripts = self.scripts.borrow_mut();
        let is_lost = scripts.as_ref().is_some_and(|scripts| scripts.is_lost());
        if is_lost {
            *scripts = None;
        }
        is_lost
    }
}
