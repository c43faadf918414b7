//! The configuration of a running broker: printing it and reloading it.

use anyhow::anyhow;
use serde_json::{Value, json};

use crate::admin_client::AdminOptions;
use crate::output::print_line;

/// Makes a broker reload its configuration; prints what took effect and what waits for a restart.
pub(crate) fn reload(asked: &AdminOptions) -> anyhow::Result<()> {
    let answer = asked.admin()?.post("/v1/config/reload", "configuration", &json!({}))?;
    if asked.is_json() {
        return print_line(&answer.to_string());
    }
    for (list, what) in [("taken_over", "taken over"), ("waiting", "waits for a restart")] {
        for change in answer[list].as_array().into_iter().flatten() {
            let text = |name| change[name].as_str().unwrap_or_default();
            print_line(&format!("{what}: {} = {}", text("key"), text("to")))?;
        }
    }
    print_line("the configuration was read again")
}

/// The keys of a running broker with their values, as TOML writes them.
pub(crate) fn running(asked: &AdminOptions) -> anyhow::Result<Vec<(String, String)>> {
    let answer = asked.admin()?.get("/v1/config", "configuration")?;
    let keys = answer["keys"].as_array().ok_or_else(|| anyhow!("the broker's answer has no keys"))?;
    let text = |key: &Value, name: &str| key[name].as_str().unwrap_or_default().to_owned();
    Ok(keys.iter().map(|key| (text(key, "key"), text(key, "value"))).collect())
}
