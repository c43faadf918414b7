//! How actions and sensors reach the API: environment variables with its address, and a token that stands for their user
//! and ends with the run. An action's token derives from its execution's id, so that it is stored nowhere and holds on
//! when a later engine finds the action again.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use imori_automation::value::Value;
use imori_server::config::Service;

use crate::access::Holder;
use crate::engine::Engine;
use crate::executions::Run;
use crate::store::EXECUTIONS;

/// What tokens of actions begin with.
const ACTION: &str = "action";

/// What tokens of sensors begin with.
const SENSOR: &str = "sensor";

impl Engine {
    /// The environment variables that StackStorm gives every action on this machine.
    pub(crate) fn action_variables(&self, run: &Run) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("ST2_ACTION_PACK_NAME", run.action_text("pack").to_owned()),
            ("ST2_ACTION_EXECUTION_ID", run.id.clone()),
            ("ST2_ACTION_DEBUG", String::from("False")),
        ];
        // Without a listener, or without a key, an action has no API.
        if let (Some(url), Ok(token)) = (self.api_url(), self.action_token(&run.id)) {
            variables.extend([("ST2_ACTION_API_URL", url), ("ST2_ACTION_AUTH_TOKEN", token)]);
        }
        variables
    }

    /// The environment variables that StackStorm gives a sensor with this token.
    pub(crate) fn sensor_variables(&self, token: &str) -> Vec<(&'static str, String)> {
        let url = self.api_url();
        url.map(|url| vec![("ST2_API_URL", url), ("ST2_AUTH_TOKEN", token.to_owned())]).unwrap_or_default()
    }

    /// A token for one run of a sensor; `None` if the system has no randomness.
    pub(crate) fn sensor_token(&self) -> Option<String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).ok()?;
        Some(format!("{SENSOR}.{}", URL_SAFE_NO_PAD.encode(random)))
    }

    /// The holder of a token of an action or a sensor; `None` if it is no such token, or the run has ended.
    pub(crate) async fn run_token_holder(&self, token: &str) -> Option<Holder> {
        let user = match token.split_once('.')? {
            (ACTION, rest) => {
                let (id, tag) = rest.split_once('.')?;
                let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
                self.cipher.verify(&claim(id), &tag).ok()?;
                let execution = self.store.get(&EXECUTIONS, id).await.ok().flatten()?;
                let is_running = execution.get("status").and_then(Value::as_str) == Some("running");
                let user = execution.get("context")?.get("user")?.as_str()?.to_owned();
                Some(user).filter(|_| is_running)
            }
            (SENSOR, _) => self.sensors.has_token(token).then(|| self.system_user().to_owned()),
            _ => None,
        };
        // Where roles decide, nothing that runs is more than its user.
        Some(Holder {
            user: user?,
            user_id: None,
            is_operator: !self.roles().is_enforced(),
            is_run: true,
            bearer_until: None,
        })
    }

    fn action_token(&self, id: &str) -> Result<String, String> {
        let tag = self.cipher.tag(&claim(id))?;
        Ok(format!("{ACTION}.{id}.{}", URL_SAFE_NO_PAD.encode(tag)))
    }

    /// The address of the API's first listener, as programs of this machine reach it.
    fn api_url(&self) -> Option<String> {
        let settings = self.broker.settings();
        let mut listeners = settings.listeners().iter();
        let listener = listeners.find(|listener| listener.name.service == Service::Automation)?;
        let mut address = listener.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                [0, 0, 0, 0, 0, 0, 0, 1].into()
            });
        }
        let scheme = if listener.name.is_tls { "https" } else { "http" };
        Some(format!("{scheme}://{address}/v1"))
    }
}

/// What the tag of an action's token proves.
fn claim(id: &str) -> String {
    format!("token of execution {id}")
}
