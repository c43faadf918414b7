//! Imports a document of definitions: users, vhosts, permissions and policies all or nothing, then the declarations. A
//! recovery of lost definitions imports a document before it lets users in.

use std::collections::BTreeMap;

use imori_core::authorize::Identity;
use imori_core::id::VhostId;
use imori_core::internal::{Done, StreamVerb, Verb};
use imori_core::name::Name;
use imori_core::stream::Stream;
use imori_nats::jetstream::consumer_config::ConsumerConfig;
use imori_nats::jetstream::stream_config::StreamConfig;
use imori_nats::{DeclaredStream, config_of, config_of_consumer};
use imori_server::InternalClient;
use imori_server::access::{FileObjects, FirstPassword};
use imori_server::broker::Broker;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::streams::stream_ids;
use crate::objects::change::change;
use crate::objects::import::{Declared, Import, ImportedStream};
use crate::objects::operation_error::OperationError;

/// Declarations that one turn of a cell makes.
const DECLARATIONS_A_TURN: usize = 32;

/// Imports a document; stops at the first declaration that is refused and keeps the earlier ones. With `file`, the
/// users and vhosts belong to that file from now on. Returns descriptions of the parts without meaning here.
///
/// # Errors
/// The first object that is refused, or the broker has stopped.
pub(crate) async fn take_over(
    broker: &Broker,
    identity: &Identity,
    Import { objects, declared, streams, bindings, left_out }: Import,
    file: Option<FileObjects>,
) -> Result<Vec<String>, OperationError> {
    let policy_vhosts = objects.policy_vhosts();
    let importer = identity.user.to_string();
    let named = importer.clone();
    let new_vhosts = change(broker, move |draft| {
        file.into_iter().for_each(|file| draft.belong_to(file));
        objects.put(draft, &named)
    });
    let new_vhosts = new_vhosts.await?;
    broker.open_vhosts(new_vhosts).await.ok_or(OperationError::Ended)?;
    for vhost in policy_vhosts {
        broker.enforce_policies(vhost).await.ok_or(OperationError::Ended)?;
    }
    // The document may have given rights to its importer, and new vhosts are its own.
    let renewed = broker.access().user(&importer).and_then(|_| broker.access().identity_of(&importer));
    let identity = renewed.as_ref().unwrap_or(identity);
    let count = declared.len() + streams.len() + bindings.len();
    declare_all(broker, identity, declared).await?;
    declare_streams(broker, identity, &streams).await?;
    declare_all(broker, identity, bindings).await?;
    info!(declared = count, left_out = left_out.len(), by = %identity.user, "definitions are imported");
    left_out.iter().for_each(|what| warn!(%what, "a part of imported definitions is left out"));
    Ok(left_out)
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
) -> Result<(), OperationError> {
    for of_vhost in declared.chunk_by(|one, next| one.vhost == next.vhost) {
        let Some(first) = of_vhost.first() else { continue };
        let found = broker.table().vhost_named(first.vhost.as_bytes());
        let vhost = found.ok_or_else(|| OperationError::Bad(first.refused("the vhost is not there")))?;
        let client = broker.connect_operator(identity.clone(), vhost).await?;
        for some in of_vhost.chunks(DECLARATIONS_A_TURN) {
            declare_some(&client, some).await?;
        }
    }
    Ok(())
}

/// Declares streams with their consumers, and waits until they are durable.
async fn declare_streams(
    broker: &Broker,
    identity: &Identity,
    streams: &[ImportedStream],
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
            let declared = declare_stream(&client, stream, (own, own_consumers), &others).await;
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
    for configuration in &imported.consumers {
        let consumer = stream.consumer(configuration, &consumers);
        let (config, settings) = consumer.map_err(|error| error.to_string())?;
        if let Some(settings) = settings {
            let consumer = Name::from(config.name.as_str());
            verbs.push(on_stream(StreamVerb::PutConsumer { consumer, settings: Box::new(settings) }));
            consumers.push(config);
        }
    }
    match client.done(Verb::Define(verbs)).await {
        Ok(Done::Defined { refused: None, .. }) => Ok((config, consumers)),
        Ok(Done::Defined { refused: Some(error), .. }) => Err(error.to_string()),
        Ok(_) => Err(OperationError::Ended.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes these declarations; the error names the first one refused.
async fn declare_some(client: &InternalClient, some: &[Declared]) -> Result<(), OperationError> {
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
    match client.done(Verb::Define(verbs)).await? {
        Done::Defined { done, refused: Some(error) } => refused(done, &error.to_string()),
        Done::Defined { done, refused: None } => unreadable.map_or(Ok(()), |why| refused(done, &why)),
        _ => Err(OperationError::Ended),
    }
}
