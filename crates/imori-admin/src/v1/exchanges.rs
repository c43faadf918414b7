//! `/v1/exchanges` and `/v1/bindings`: the routing table.

use imori_core::id::VhostId;
use imori_server::broker::Broker;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::objects::declaration::{BindingDeclaration, Declaration, Ends, ExchangeDeclaration};
use crate::objects::operation_error::OperationError;
use crate::operations::routing::{BindingFacts, BindingKey, DEFAULT_EXCHANGE, ExchangeFacts, binding_keys};
use crate::requests::answer::Answer;
use crate::requests::input::{Answered, Input, Names, Page, PageQuery, Params, page};
use crate::requests::operator::Operator;
use crate::requests::problem::Problem;

/// An exchange.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct Exchange {
    /// Empty for the default exchange, which paths name `amq.default`.
    name: String,
    vhost: String,
    /// `direct`, `fanout`, `topic`, `headers` or `x-delayed-message`.
    #[serde(rename = "type")]
    kind: &'static str,
    durable: bool,
    auto_delete: bool,
    /// Clients cannot publish to it.
    internal: bool,
    arguments: Map<String, Value>,
}

impl From<ExchangeFacts> for Exchange {
    fn from(facts: ExchangeFacts) -> Exchange {
        Exchange {
            name: facts.name,
            vhost: facts.vhost,
            kind: facts.kind,
            durable: facts.is_durable,
            auto_delete: facts.is_auto_delete,
            internal: facts.is_internal,
            arguments: facts.arguments,
        }
    }
}

/// Lists the exchanges of all vhosts that you may see.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/exchanges", tag = "exchanges",
    params(PageQuery),
    responses((status = 200, body = Page<Exchange>)),
))]
pub(super) async fn list_all(
    operator: Operator,
    Params(query): Params<PageQuery>,
) -> Answered<Page<Exchange>> {
    answer_page(operator.broker(), query, &operator.vhost_ids()?).await
}

/// Lists the exchanges of a vhost.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/exchanges/{vhost}", tag = "exchanges",
    params(("vhost" = String, Path), PageQuery),
    responses((status = 200, body = Page<Exchange>)),
))]
pub(super) async fn list(operator: Operator, Params(query): Params<PageQuery>) -> Answered<Page<Exchange>> {
    answer_page(operator.broker(), query, &operator.vhost_ids()?).await
}

async fn answer_page(broker: &Broker, query: PageQuery, vhosts: &[VhostId]) -> Answered<Page<Exchange>> {
    let table = broker.table();
    let mut keys = Vec::new();
    for vhost in vhosts {
        keys.extend(table.exchanges(*vhost).map(|exchange| (*vhost, exchange.name().clone())));
    }
    keys.sort_unstable();
    page(
        query,
        keys,
        |(_, name)| Some(name.to_string()),
        |(vhost, name)| {
            let found = table.exchange(*vhost, name.as_bytes())?;
            Some(ExchangeFacts::of(broker, *vhost, found).into())
        },
    )
    .await
}

fn exchange_name(name: String) -> String {
    if name == DEFAULT_EXCHANGE { String::new() } else { name }
}

/// Shows one exchange; `amq.default` names the default exchange.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/exchanges/{vhost}/{name}", tag = "exchanges",
    params(("vhost" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = Exchange)),
))]
pub(super) async fn show(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
) -> Answered<Exchange> {
    let vhost = operator.in_vhost()?.vhost;
    let table = operator.broker().table();
    let name = exchange_name(name);
    let found = table.exchange(vhost, name.as_bytes());
    let found = found.ok_or(OperationError::Missing("exchange", name))?;
    Ok(Answer::of(ExchangeFacts::of(operator.broker(), vhost, found).into()))
}

/// The properties of an exchange to declare.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct NewExchange {
    /// `direct`, `fanout`, `topic`, `headers` or `x-delayed-message`.
    #[serde(rename = "type", default = "direct")]
    #[cfg_attr(feature = "openapi", schema(default = "direct"))]
    kind: String,
    #[serde(default = "yes")]
    #[cfg_attr(feature = "openapi", schema(default = true))]
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    /// Clients cannot publish to it.
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    arguments: Map<String, Value>,
}

fn direct() -> String {
    String::from("direct")
}

fn yes() -> bool {
    true
}

/// Declares an exchange. An existing exchange must have the same properties.
#[cfg_attr(feature = "openapi", utoipa::path(
    put, path = "/v1/exchanges/{vhost}/{name}", tag = "exchanges",
    params(("vhost" = String, Path), ("name" = String, Path)),
    request_body = NewExchange,
    responses((status = 201, description = "it is made"), (status = 204, description = "it was there")),
))]
pub(super) async fn put(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Input(new): Input<NewExchange>,
) -> Result<Answer, Problem> {
    let declaration = ExchangeDeclaration {
        name,
        is_durable: new.durable,
        is_auto_delete: new.auto_delete,
        is_internal: new.internal,
        kind: new.kind,
        arguments: new.arguments,
    };
    let operator = operator.in_vhost()?;
    Ok(Answer::put(operator.declare(Declaration::Exchange(declaration)).await?))
}

/// Conditions of a deletion.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteQuery {
    /// Delete the exchange only if nothing is bound to it.
    #[serde(default)]
    if_unused: bool,
}

/// Deletes an exchange with its bindings.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete, path = "/v1/exchanges/{vhost}/{name}", tag = "exchanges",
    params(("vhost" = String, Path), ("name" = String, Path), DeleteQuery),
    responses((status = 204, description = "it is deleted")),
))]
pub(super) async fn delete(
    operator: Operator,
    Names((_vhost, name)): Names<(String, String)>,
    Params(query): Params<DeleteQuery>,
) -> Result<Answer, Problem> {
    let operator = operator.in_vhost()?;
    operator.delete_exchange(&name, query.if_unused).await?;
    Ok(Answer::done())
}

/// The kind of a binding's destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
enum DestinationKind {
    Queue,
    Exchange,
}

/// A binding.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct Binding {
    /// The exchange that messages come from.
    source: String,
    /// The queue or exchange that messages go to.
    destination: String,
    destination_type: DestinationKind,
    /// The routing key, or a pattern of routing keys.
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// A binding and its vhost.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(super) struct ListedBinding {
    vhost: String,
    #[serde(flatten)]
    binding: Binding,
}

impl From<BindingFacts> for ListedBinding {
    fn from(facts: BindingFacts) -> ListedBinding {
        let destination_type =
            if facts.is_to_queue { DestinationKind::Queue } else { DestinationKind::Exchange };
        let BindingFacts { source, vhost, destination, routing_key, arguments, .. } = facts;
        ListedBinding {
            vhost,
            binding: Binding { source, destination, destination_type, routing_key, arguments },
        }
    }
}

/// Selects the bindings to list.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::IntoParams), into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub(super) struct BindingQuery {
    /// Page number, from 1.
    #[cfg_attr(feature = "openapi", param(minimum = 1, default = 1))]
    page: Option<usize>,
    /// Rows per page.
    #[cfg_attr(feature = "openapi", param(minimum = 1, maximum = 500, default = 100))]
    page_size: Option<usize>,
    /// A part of the exchange's name; case does not matter.
    name: Option<String>,
    /// The exchange that messages come from.
    source: Option<String>,
    /// The queue or exchange that messages go to.
    destination: Option<String>,
}

/// Lists the bindings of a vhost, without the default exchange's bindings, one for each queue.
#[cfg_attr(feature = "openapi", utoipa::path(
    get, path = "/v1/bindings/{vhost}", tag = "exchanges",
    params(("vhost" = String, Path), BindingQuery),
    responses((status = 200, body = Page<ListedBinding>)),
))]
pub(super) async fn bindings(
    operator: Operator,
    Params(query): Params<BindingQuery>,
) -> Answered<Page<ListedBinding>> {
    let (vhosts, broker) = (operator.vhost_ids()?, operator.broker());
    let BindingQuery { page: number, page_size, name, source, destination } = query;
    let is_from = |key: &BindingKey| {
        !key.source.as_bytes().is_empty()
            && source.as_ref().is_none_or(|source| key.source.as_bytes() == source.as_bytes())
    };
    let mut keys = binding_keys(broker, &vhosts).await;
    keys.retain(is_from);
    let rows: Vec<BindingFacts> = keys.iter().filter_map(|key| BindingFacts::of(broker, key)).collect();
    let is_to = |row: &BindingFacts| destination.as_ref().is_none_or(|name| row.destination == *name);
    let mut rows: Vec<BindingFacts> = rows.into_iter().filter(is_to).collect();
    rows.sort_by(|a, b| {
        (&a.source, &a.destination, &a.properties_key).cmp(&(&b.source, &b.destination, &b.properties_key))
    });
    let query = PageQuery::new(number, page_size, name);
    page(query, rows, |row| Some(row.source.clone()), |row| Some(row.clone().into())).await
}

/// Binds a queue or an exchange to an exchange.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/bindings/{vhost}", tag = "exchanges",
    params(("vhost" = String, Path)),
    request_body = Binding,
    responses((status = 201, description = "it is bound")),
))]
pub(super) async fn bind(operator: Operator, Input(binding): Input<Binding>) -> Result<Answer, Problem> {
    set(&operator, binding, true).await?;
    Ok(Answer::created())
}

/// Removes a binding. A binding that does not exist is not an error.
#[cfg_attr(feature = "openapi", utoipa::path(
    post, path = "/v1/bindings/{vhost}/unbind", tag = "exchanges",
    params(("vhost" = String, Path)),
    request_body = Binding,
    responses((status = 204, description = "it is there no more")),
))]
pub(super) async fn unbind(operator: Operator, Input(binding): Input<Binding>) -> Result<Answer, Problem> {
    set(&operator, binding, false).await?;
    Ok(Answer::done())
}

async fn set(operator: &Operator, binding: Binding, is_bound: bool) -> Result<(), Problem> {
    let operator = operator.in_vhost()?;
    let is_to_queue = binding.destination_type == DestinationKind::Queue;
    let ends = Ends { source: binding.source, destination: binding.destination, is_to_queue };
    let Binding { routing_key, arguments, .. } = binding;
    let binding = BindingDeclaration { ends, routing_key, arguments };
    match is_bound {
        true => operator.declare(Declaration::Binding(binding)).await.map(drop)?,
        false => operator.remove_binding(&binding).await?,
    }
    Ok(())
}
