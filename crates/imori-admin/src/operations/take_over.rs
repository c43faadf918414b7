//! Imports a document of definitions, all or nothing. A recovery of lost definitions imports a document before it lets
//! users in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::internal::{Done, StreamVerb, Verb};
use imori_core::name::Name;
use imori_core::stream::Stream;
use imori_server::InternalClient;
use imori_server::access::{AccessError, Draft, FileObjects, FirstPassword, VhostFacts};
use imori_server::broker::Broker;
use imori_streams::consumer_config::ConsumerConfig;
use imori_streams::stream_config::StreamConfig;
use imori_streams::{DeclaredStream, config_of, config_of_consumer};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::guest::ending_guest;
use super::streams::stream_ids;
use super::vhosts::delete_vhost;
use crate::objects::change::{change, check_change};
use crate::objects::import::{Declared, Import, ImportedObjects, ImportedStream};
use crate::objects::operation_error::OperationError;

/// Declarations that one turn of a cell makes.
const DECLARATIONS_A_TURN: usize = 32;

/// One import runs at a time, so that none takes an object for old that another is about to take back.
static IMPORTING: Mutex<()> = Mutex::const_new(());

/// Imports a document, all or nothing. With `file`, the users and vhosts belong to that file from now on. Returns
/// descriptions of the parts without meaning here.
///
/// Vhosts come first, then declarations with the rights that the importer will have, then users, permissions and
/// policies. An import that a crash cuts short has changed no password, so the importer can repeat it.
///
/// # Errors
/// The first object that is refused, or the broker has stopped.
pub(crate) async fn take_over(
    broker: &Broker,
    identity: &Identity,
    Import { mut objects, declared, streams, bindings, left_out }: Import,
    file: Option<FileObjects>,
) -> Result<Vec<String>, OperationError> {
    let _one_at_a_time = IMPORTING.lock().await;
    let (importer, of_file) = (identity.user.to_string(), file.clone());
    let put = move |draft: &mut Draft| {
        of_file.into_iter().for_each(|file| draft.belong_to(file));
        objects.hash_passwords(draft)?;
        objects.put(draft, &importer, &[])?;
        Ok(objects)
    };
    let (objects, _) = check_change(broker, identity.user.to_string(), put).await?;
    let (objects, count) = (Arc::new(objects), declared.len() + streams.len() + bindings.len());
    let mut made = Made::default();
    let made_all = async {
        made.put_vhosts(broker, &objects).await?;
        let all = AllObjects { objects: Arc::clone(&objects), file, importer: identity.user.to_string() };
        let (_, renewed) =
            check_change(broker, identity.user.to_string(), all.clone().put_after(&made.vhosts)).await?;
        let identity = renewed.as_ref().unwrap_or(identity);
        declare_all(broker, identity, declared, &mut made).await?;
        declare_streams(broker, identity, &streams, &mut made).await?;
        declare_all(broker, identity, bindings, &mut made).await?;
        ending_guest(broker, identity, change(broker, all.put_after(&made.vhosts))).await
    };
    if let Err(error) = made_all.await {
        made.take_back(broker).await;
        return Err(error);
    }
    for vhost in objects.policy_vhosts() {
        broker.enforce_policies(vhost).await.ok_or(OperationError::Ended)?;
    }
    info!(declared = count, left_out = left_out.len(), by = %identity.user, "definitions are imported");
    left_out.iter().for_each(|what| warn!(%what, "a part of imported definitions is left out"));
    Ok(left_out)
}

/// All users, vhosts, permissions and policies of a document, with the author of the change.
#[derive(Clone)]
struct AllObjects {
    objects: Arc<ImportedObjects>,
    file: Option<FileObjects>,
    importer: String,
}

impl AllObjects {
    /// The change that puts them, after the vhosts were put.
    fn put_after(
        self,
        vhosts: &[(String, Option<VhostFacts>)],
    ) -> impl FnOnce(&mut Draft) -> Result<(), AccessError> + Send + 'static {
        let new = vhosts.iter().filter(|(_, before)| before.is_none()).map(|(name, _)| name.clone());
        let new: Vec<String> = new.collect();
        move |draft| {
            self.file.into_iter().for_each(|file| draft.belong_to(file));
            self.objects.put(draft, &self.importer, &new)
        }
    }
}

/// The changes of an import before users change, to be taken back if the rest is refused.
#[derive(Default)]
struct Made {
    /// The vhosts as they were; `None` for a new one.
    vhosts: Vec<(String, Option<VhostFacts>)>,
    /// The commands that take declarations back, in the order of the declarations.
    opposites: Vec<(VhostId, Verb)>,
}

impl Made {
    /// Makes the vhosts and opens them to clients.
    async fn put_vhosts(
        &mut self,
        broker: &Broker,
        objects: &Arc<ImportedObjects>,
    ) -> Result<(), OperationError> {
        let objects = Arc::clone(objects);
        let put = change(broker, move |draft| {
            draft.belong_to_broker();
            let before = objects.changed_vhosts().into_iter().map(|name| {
                let known = draft.objects.vhosts.get(&name).map(|facts| (**facts).clone());
                (name, known)
            });
            let (before, mut new) = (before.collect(), Vec::new());
            for name in objects.put_vhosts(draft)? {
                let id = draft.objects.vhosts.get(&name).map_or(0, |facts| facts.id);
                new.push((name, id));
            }
            Ok((before, new))
        });
        let (before, new) = put.await?;
        self.vhosts = before;
        broker.open_vhosts(new).await.ok_or(OperationError::Ended)
    }

    /// Notes the opposites of those commands that made something new.
    fn note(&mut self, vhost: VhostId, opposites: Vec<Verb>, new: &[usize]) {
        let of_new = (0..).zip(opposites).filter(|(at, _)| new.contains(at));
        self.opposites.extend(of_new.map(|(_, verb)| (vhost, verb)));
    }

    /// Takes back everything. What cannot be taken back is logged.
    async fn take_back(self, broker: &Broker) {
        let warn = |error: &dyn fmt::Display| warn!(%error, "a part of refused definitions stays");
        let mut client: Option<(VhostId, InternalClient)> = None;
        for (vhost, verb) in self.opposites.into_iter().rev() {
            if client.as_ref().is_none_or(|(of, _)| *of != vhost) {
                match broker.connect_operator(Identity::broker(), vhost).await {
                    Ok(connected) => client = Some((vhost, connected)),
                    Err(error) => return warn(&error),
                }
            }
            if let Some((_, client)) = &client
                && let Err(error) = client.done(verb).await
            {
                warn(&error);
            }
        }
        drop(client);
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for (name, before) in self.vhosts {
            match before {
                Some(facts) => known.push((name, facts)),
                None => new.push(name),
            }
        }
        let put = change(broker, move |draft| {
            draft.belong_to_broker();
            known.into_iter().try_for_each(|(name, facts)| draft.put_vhost(&name, facts).map(drop))
        });
        if let Err(error) = put.await {
            warn(&error);
        }
        for name in new {
            if let Err(error) = delete_vhost(broker, name).await {
                warn(&error);
            }
        }
    }
}

/// The result of a recovery.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Descriptions of the document's parts without meaning here.
    pub(crate) left_out: Vec<String>,
    /// The password of the user `admin`, if no user was left.
    pub(crate) first_password: Option<FirstPassword>,
}

/// Imports the document, if one is given, then ends the recovery, during which only the operator may log in. Creates
/// the user `admin` as at a first start.
///
/// # Errors
/// No definitions are lost, a part of the document is refused, or the broker has stopped. Users then stay locked out.
pub(crate) async fn recover(
    broker: &Broker,
    identity: &Identity,
    document: Option<Import>,
) -> Result<Recovered, OperationError> {
    if !broker.access().awaits_recovery() {
        let text = "no definitions are lost; `imori definitions import` takes a document over";
        return Err(OperationError::Conflict(String::from(text)));
    }
    let left_out = match document {
        Some(document) => take_over(broker, identity, document, None).await?,
        None => Vec::new(),
    };
    let of_thread = broker.clone();
    let recovered = spawn_blocking(move || of_thread.end_recovery());
    let first_password = recovered.await.map_err(|_| OperationError::Ended)??;
    let users = broker.access().objects().users.len();
    info!(users, by = %identity.user, "definitions are recovered, users may log in again");
    if first_password.is_some() {
        warn!("no user was left: the user `admin` is made with a new password");
    }
    Ok(Recovered { left_out, first_password })
}

/// Makes the declarations in order, in batches, and waits until they are durable.
async fn declare_all(
    broker: &Broker,
    identity: &Identity,
    declared: Vec<Declared>,
    made: &mut Made,
) -> Result<(), OperationError> {
    for of_vhost in declared.chunk_by(|one, next| one.vhost == next.vhost) {
        let Some(first) = of_vhost.first() else { continue };
        let found = broker.table().vhost_named(first.vhost.as_bytes());
        let vhost = found.ok_or_else(|| OperationError::Bad(first.refused("the vhost is not there")))?;
        let client = broker.connect_operator(identity.clone(), vhost).await?;
        for some in of_vhost.chunks(DECLARATIONS_A_TURN) {
            declare_some(&client, some, (vhost, made)).await?;
        }
    }
    Ok(())
}

/// Declares streams with their consumers, and waits until they are durable.
async fn declare_streams(
    broker: &Broker,
    identity: &Identity,
    streams: &[ImportedStream],
    made: &mut Made,
) -> Result<(), OperationError> {
    for of_vhost in streams.chunk_by(|one, next| one.vhost == next.vhost) {
        let Some(first) = of_vhost.first() else { continue };
        let found = broker.table().vhost_named(first.vhost.as_bytes());
        let vhost = found.ok_or_else(|| OperationError::Bad(first.refused("the vhost is not there")))?;
        let (mut others, mut consumers) = stream_configs(broker, vhost).await;
        let client = broker.connect_operator(identity.clone(), vhost).await?;
        for stream in of_vhost {
            let own = others.iter().position(|config| config.name == stream.name);
            let own = own.map(|at| others.swap_remove(at));
            let own_consumers = consumers.remove(&stream.name).unwrap_or_default();
            let declared =
                declare_stream(&client, stream, (own, own_consumers), &others, (vhost, made)).await;
            let (config, of_stream) = declared.map_err(|why| OperationError::Bad(stream.refused(why)))?;
            others.push(config);
            consumers.insert(stream.name.clone(), of_stream);
        }
    }
    Ok(())
}

/// The configurations of the streams in a vhost, and by stream those of its consumers.
pub(crate) async fn stream_configs(
    broker: &Broker,
    vhost: VhostId,
) -> (Vec<StreamConfig>, BTreeMap<String, Vec<ConsumerConfig>>) {
    let (mut configs, mut consumers) = (Vec::new(), BTreeMap::new());
    for (name, id) in stream_ids(broker, &[vhost]).await {
        let of_stream = broker.with_queue(id, |queue| {
            let consumers = queue.stream().into_iter().flat_map(Stream::consumers);
            (config_of(queue), consumers.map(config_of_consumer).collect())
        });
        if let Some((config, of_stream)) = of_stream {
            configs.push(config);
            consumers.insert(name.to_string(), of_stream);
        }
    }
    (configs, consumers)
}

/// Declares a stream with its consumers, of which the broker has `own`; returns the configurations of both.
async fn declare_stream(
    client: &InternalClient,
    imported: &ImportedStream,
    (own, mut consumers): (Option<StreamConfig>, Vec<ConsumerConfig>),
    others: &[StreamConfig],
    (vhost, made): (VhostId, &mut Made),
) -> Result<(StreamConfig, Vec<ConsumerConfig>), String> {
    let stream = DeclaredStream::read(&imported.name, &imported.configuration, others);
    let stream = stream.map_err(|error| error.to_string())?;
    let config = own.unwrap_or_else(|| stream.config().clone());
    if config != *stream.config() {
        return Err(String::from("it exists with another configuration; change or delete it first"));
    }
    let name = Name::from(imported.name.as_str());
    let on_stream = |verb| Verb::Stream { stream: name.clone(), verb };
    let settings = Box::new(stream.settings());
    let mut verbs = vec![on_stream(StreamVerb::Declare { settings, subjects: stream.subjects() })];
    let mut opposites = vec![on_stream(StreamVerb::Delete)];
    for configuration in &imported.consumers {
        let consumer = stream.consumer(configuration, &consumers);
        let (config, settings) = consumer.map_err(|error| error.to_string())?;
        if let Some(settings) = settings {
            let consumer = Name::from(config.name.as_str());
            opposites.push(on_stream(StreamVerb::DeleteConsumer { consumer: consumer.clone() }));
            verbs.push(on_stream(StreamVerb::PutConsumer { consumer, settings: Box::new(settings) }));
            consumers.push(config);
        }
    }
    match client.done(Verb::Define(verbs)).await {
        Ok(Done::Defined { refused, new, .. }) => {
            made.note(vhost, opposites, &new);
            refused.map_or(Ok((config, consumers)), |error| Err(error.to_string()))
        }
        Ok(_) => Err(OperationError::Ended.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes these declarations; the error names the first one refused.
async fn declare_some(
    client: &InternalClient,
    some: &[Declared],
    (vhost, made): (VhostId, &mut Made),
) -> Result<(), OperationError> {
    let refused = |at: usize, why: &str| {
        some.get(at).map_or(Ok(()), |declared| Err(OperationError::Bad(declared.refused(why))))
    };
    let (mut verbs, mut unreadable) = (Vec::new(), None);
    for declared in some {
        match declared.declaration.verb() {
            Ok(verb) => verbs.push(verb),
            Err(error) => {
                unreadable = Some(error.to_string());
                break;
            }
        }
    }
    let Done::Defined { done, new, refused: error } = client.done(Verb::Define(verbs)).await? else {
        return Err(OperationError::Ended);
    };
    made.note(vhost, some.iter().map(|declared| declared.declaration.opposite()).collect(), &new);
    error.map(|error| error.to_string()).or(unreadable).map_or(Ok(()), |why| refused(done, &why))
}
