//! The table of permissions: what each method and path of the API needs.

/// What a request needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The permission type; empty where any user may ask, `admin` where only administrators may.
    pub permission: &'static str,
    /// The resource.
    pub target: Target,
}

/// How a request names its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// It has none.
    None,
    /// A registered object, by the reference or id in the path.
    Named,
    /// The object in the body, by its pack and name.
    Body,
    /// The action that the body names.
    BodyAction,
    /// The action of the execution whose id is in the path.
    Execution,
    /// The action of the alias that the body names, or that its command has.
    Alias,
    /// A key of the datastore.
    Key,
    /// An address of a webhook.
    Webhook,
}

/// A row: methods, the path below the version, the permission type and the target.
type Row = (&'static str, &'static str, &'static str, Target);

use Target::{Alias, Body, BodyAction, Execution, Key, Named, None as Nothing, Webhook};

/// The rows. The first that matches counts.
pub const ROWS: &[Row] = &[
    ("GET", "/user", "", Nothing),
    ("GET", "/actions", "action_list", Nothing),
    ("POST", "/actions", "action_create", Body),
    ("GET", "/actions/views/overview", "action_list", Nothing),
    ("GET", "/actions/views/overview/{ref}", "action_view", Named),
    ("GET", "/actions/views/parameters/{ref}", "action_view", Named),
    ("GET", "/actions/views/entry_point/{ref}", "action_view", Named),
    ("GET", "/actions/{ref}", "action_view", Named),
    ("PUT", "/actions/{ref}", "action_modify", Named),
    ("DELETE", "/actions/{ref}", "action_delete", Named),
    ("POST", "/actions/{ref}/clone", "action_create", Named),
    ("GET", "/actionalias", "action_alias_list", Nothing),
    ("POST", "/actionalias", "action_alias_create", Body),
    ("POST", "/actionalias/match", "action_alias_match", Nothing),
    ("GET", "/actionalias/help", "action_alias_help", Nothing),
    ("POST", "/actionalias/help", "action_alias_help", Nothing),
    ("GET", "/actionalias/{ref}", "action_alias_view", Named),
    ("PUT", "/actionalias/{ref}", "action_alias_modify", Named),
    ("DELETE", "/actionalias/{ref}", "action_alias_delete", Named),
    ("POST", "/aliasexecution", "action_execute", Alias),
    ("POST", "/aliasexecution/match_and_execute", "action_execute", Alias),
    ("GET", "/executions", "execution_list", Nothing),
    ("POST", "/executions", "action_execute", BodyAction),
    ("GET", "/executions/views/filters", "execution_views_filters_list", Nothing),
    ("POST", "/executions/{id}/re_run", "execution_rerun", Execution),
    ("PUT", "/executions/{id}", "execution_stop", Execution),
    ("DELETE", "/executions/{id}", "execution_stop", Execution),
    ("GET", "/executions/{id}", "execution_view", Execution),
    ("GET", "/executions/{id}/{*part}", "execution_view", Execution),
    ("POST", "/workflows/inspect", "", Nothing),
    ("GET", "/inquiries", "inquiry_list", Nothing),
    ("GET", "/inquiries/{id}", "inquiry_view", Nothing),
    ("PUT", "/inquiries/{id}", "inquiry_respond", Nothing),
    ("GET", "/keys", "key_value_pair_list", Nothing),
    ("GET", "/keys/{*name}", "key_value_pair_view", Key),
    ("PUT", "/keys/{*name}", "key_value_pair_set", Key),
    ("DELETE", "/keys/{*name}", "key_value_pair_delete", Key),
    ("GET", "/packs", "pack_list", Nothing),
    ("POST", "/packs/install", "pack_install", Nothing),
    ("POST", "/packs/uninstall", "pack_uninstall", Nothing),
    ("POST", "/packs/register", "pack_register", Nothing),
    ("GET", "/packs/index", "pack_list", Nothing),
    ("GET", "/packs/index/health", "pack_views_index_health", Nothing),
    ("POST", "/packs/index/search", "pack_search", Nothing),
    ("GET", "/packs/views/files/{ref}", "pack_view", Named),
    ("GET", "/packs/views/file/{ref}/{*path}", "pack_view", Named),
    ("GET", "/packs/{ref}", "pack_view", Named),
    ("GET", "/configs", "pack_list", Nothing),
    ("GET", "/configs/{ref}", "pack_view", Named),
    ("PUT", "/configs/{ref}", "pack_config", Nothing),
    ("GET", "/config_schemas", "pack_list", Nothing),
    ("GET", "/config_schemas/{ref}", "pack_view", Named),
    ("GET", "/policytypes", "policy_type_list", Nothing),
    ("GET", "/policytypes/{ref}", "policy_type_view", Nothing),
    ("GET", "/policies", "policy_list", Nothing),
    ("POST", "/policies", "policy_create", Body),
    ("GET", "/policies/{ref}", "policy_view", Named),
    ("PUT", "/policies/{ref}", "policy_modify", Named),
    ("DELETE", "/policies/{ref}", "policy_delete", Named),
    ("GET", "/rules", "rule_list", Nothing),
    ("POST", "/rules", "rule_create", Body),
    ("GET", "/rules/views", "rule_list", Nothing),
    ("GET", "/rules/views/{ref}", "rule_view", Named),
    ("GET", "/rules/{ref}", "rule_view", Named),
    ("PUT", "/rules/{ref}", "rule_modify", Named),
    ("DELETE", "/rules/{ref}", "rule_delete", Named),
    ("POST", "/imori/rules/test", "rule_create", Nothing),
    ("GET", "/ruletypes", "", Nothing),
    ("GET", "/ruletypes/{id}", "", Nothing),
    ("GET", "/ruleenforcements", "rule_enforcement_list", Nothing),
    ("GET", "/ruleenforcements/views", "rule_enforcement_list", Nothing),
    ("GET", "/ruleenforcements/{*id}", "rule_enforcement_view", Nothing),
    ("GET", "/runnertypes", "runner_type_list", Nothing),
    ("GET", "/runnertypes/{name}", "runner_type_view", Named),
    ("PUT", "/runnertypes/{name}", "runner_type_modify", Named),
    ("GET", "/sensortypes", "sensor_type_list", Nothing),
    ("GET", "/sensortypes/{ref}", "sensor_type_view", Named),
    ("PUT", "/sensortypes/{ref}", "sensor_type_modify", Named),
    ("GET", "/apikeys", "api_key_list", Nothing),
    ("POST", "/apikeys", "api_key_create", Nothing),
    ("GET", "/apikeys/{id}", "api_key_view", Nothing),
    ("PUT", "/apikeys/{id}", "api_key_modify", Nothing),
    ("DELETE", "/apikeys/{id}", "api_key_delete", Nothing),
    ("GET", "/timers", "timer_list", Nothing),
    ("GET", "/timers/{ref}", "timer_view", Nothing),
    ("GET", "/traces", "trace_list", Nothing),
    ("GET", "/traces/{id}", "trace_view", Nothing),
    ("GET", "/triggertypes", "trigger_list", Nothing),
    ("GET", "/triggertypes/{ref}", "trigger_view", Nothing),
    ("GET", "/triggers", "trigger_list", Nothing),
    ("GET", "/triggers/{id}", "trigger_view", Nothing),
    ("GET", "/triggerinstances", "trigger_list", Nothing),
    ("GET", "/triggerinstances/{id}", "trigger_view", Nothing),
    ("GET", "/webhooks", "webhook_list", Nothing),
    ("GET", "/webhooks/{*url}", "webhook_view", Webhook),
    ("POST", "/webhooks/{*url}", "webhook_send", Webhook),
    ("GET", "/stream", "stream_view", Nothing),
    ("POST", "/tokens", "", Nothing),
    ("POST", "/tokens/validate", "", Nothing),
    ("DELETE", "/tokens/{id}", "", Nothing),
];

/// What a method needs on a path below the version. A path without a row is for administrators.
pub fn need(method: &str, path: &str) -> Need {
    let row = ROWS.iter().find(|(name, template, ..)| *name == method && matches(template, path));
    match row {
        Some((_, _, permission, target)) => Need { permission, target: *target },
        None => Need { permission: "admin", target: Target::None },
    }
}

fn matches(template: &str, path: &str) -> bool {
    let (mut wanted, mut found) = (template.split('/'), path.split('/'));
    loop {
        match (wanted.next(), found.next()) {
            (None, None) => return true,
            (Some(wanted), Some(part)) if wanted.starts_with("{*") => return !part.is_empty(),
            (Some(wanted), Some(part)) if wanted.starts_with('{') && !part.is_empty() => {}
            (Some(wanted), Some(part)) if wanted == part => {}
            _ => return false,
        }
    }
}
