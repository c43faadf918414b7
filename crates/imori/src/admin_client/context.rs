//! `imori context`: brokers by name, so that commands need no address.

use std::collections::BTreeMap;
use std::env;
use std::fs::{self, OpenOptions, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};

use super::listens::Listens;
use crate::output::print_line;

/// Save the addresses and logins of several brokers under names.
///
/// Contexts are in `imori/contexts.json` below `$XDG_CONFIG_HOME` or `~/.config`, a file that only you may read.
#[derive(Debug, Args)]
pub(crate) struct Context {
    #[command(subcommand)]
    command: ContextCommand,
}

#[derive(Debug, Subcommand)]
enum ContextCommand {
    /// Add a broker, or change one. The first becomes the current one.
    Add {
        /// The name of the context.
        name: String,
        /// The admin listener: `http://user:password@host:port`, or `https://…`.
        #[arg(long, value_name = "URL")]
        admin: String,
        /// The automation's listener, for `imori automate`.
        #[arg(long, value_name = "URL")]
        automation: Option<String>,
        /// The listener for `imori pub`, `sub`, `call` and `respond`: `stomp://user:password@host:port`, or another
        /// protocol's.
        #[arg(long, value_name = "URL")]
        messages: Option<String>,
        /// The environment variable that has the password of the user in the address.
        #[arg(long, value_name = "NAME", conflicts_with = "token_env")]
        password_env: Option<String>,
        /// The environment variable that has a token to log in with.
        #[arg(long, value_name = "NAME")]
        token_env: Option<String>,
    },
    /// Make a context the current one, which commands use if none is named.
    Use {
        /// The name of the context.
        name: String,
    },
    /// List the contexts, without their passwords; the current one has a star.
    Ls,
    /// Forget a context.
    Delete {
        /// The name of the context.
        name: String,
    },
}

/// All saved contexts.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Contexts {
    /// The name of the current context.
    #[serde(default)]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Kept>,
}

/// A saved broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Kept {
    /// The address of the admin listener, with the user and password if they are saved here.
    admin: String,
    /// The same of the automation's listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    automation: Option<String>,
    /// The same of a listener for messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    messages: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password_env: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_env: Option<String>,
}

/// The resolved address and login of a listener.
#[derive(Debug, PartialEq, Eq)]
pub struct ContextAddress {
    /// The address, with user and password if known.
    pub address: String,
    /// An access token to log in with.
    pub(super) token: Option<String>,
}

impl Contexts {
    /// Loads the saved contexts; a missing file means there are none.
    pub(crate) fn load() -> anyhow::Result<Contexts> {
        let path = path()?;
        match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).with_context(|| {
                format!("`{}` is no file of contexts; correct or delete it", path.display())
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contexts::default()),
            Err(error) => Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
        }
    }

    fn save(&self) -> anyhow::Result<()> {
        let path = path()?;
        let folder = path.parent().map(PathBuf::from).unwrap_or_default();
        let told = || format!("`{}` cannot be written", path.display());
        fs::create_dir_all(&folder).with_context(told)?;
        let temporary = path.with_extension("new");
        // SECURITY OPS-02: no other user can read the passwords, even while the file is written.
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .with_context(told)?;
        file.set_permissions(Permissions::from_mode(0o600)).with_context(told)?;
        file.write_all(serde_json::to_string_pretty(self)?.as_bytes()).with_context(told)?;
        fs::rename(&temporary, &path).with_context(told)
    }

    /// Resolves the context `name`, or the current one if no name is given, to the address of a listener. `None` if there
    /// is no current context, or it does not have this listener.
    ///
    /// # Errors
    /// The named context does not exist or does not have this listener, or a variable of the context is not set.
    pub fn resolve(&self, name: Option<&str>, listens: Listens) -> anyhow::Result<Option<ContextAddress>> {
        let Some(found) = name.or(self.current.as_deref()) else { return Ok(None) };
        let Some(kept) = self.contexts.get(found) else {
            bail!("there is no context `{found}`; `imori context ls` lists them");
        };
        let address = match listens {
            Listens::Admin => Some(&kept.admin),
            Listens::Automation => kept.automation.as_ref(),
            Listens::Messages => kept.messages.as_ref(),
        };
        let Some(address) = address else {
            if name.is_none() {
                return Ok(None);
            }
            bail!("the context `{found}` has no {}; add it by `imori context add`", listens.name());
        };
        let variable = |name: &String| {
            env::var(name)
                .with_context(|| format!("the environment variable `{name}` of the context is not set"))
        };
        let password = kept.password_env.as_ref().map(variable).transpose()?;
        let address = match password {
            Some(password) => with_password(address, &password)?,
            None => address.clone(),
        };
        Ok(Some(ContextAddress { address, token: kept.token_env.as_ref().map(variable).transpose()? }))
    }
}

impl Context {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut all = Contexts::load()?;
        match self.command {
            ContextCommand::Add { name, admin, automation, messages, password_env, token_env } => {
                let kept = Kept { admin, automation, messages, password_env, token_env };
                all.contexts.insert(name.clone(), kept);
                all.current.get_or_insert_with(|| name.clone());
                all.save()?;
                print_line(&format!("context `{name}` is kept"))
            }
            ContextCommand::Use { name } => {
                if !all.contexts.contains_key(&name) {
                    bail!("there is no context `{name}`; `imori context ls` lists them");
                }
                all.current = Some(name.clone());
                all.save()?;
                print_line(&format!("context `{name}` is the current one"))
            }
            ContextCommand::Ls => all.contexts.iter().try_for_each(|(name, kept)| {
                let star = if all.current.as_ref() == Some(name) { "*" } else { " " };
                print_line(&format!("{star} {name}  {}", without_password(&kept.admin)))
            }),
            ContextCommand::Delete { name } => {
                if all.contexts.remove(&name).is_none() {
                    bail!("there is no context `{name}`; `imori context ls` lists them");
                }
                all.current.take_if(|current| *current == name);
                all.save()?;
                print_line(&format!("context `{name}` is forgotten"))
            }
        }
    }
}

fn path() -> anyhow::Result<PathBuf> {
    let folder = env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".config"));
    let folder = folder.or_else(home).context("neither `XDG_CONFIG_HOME` nor `HOME` is set; set one")?;
    Ok(folder.join("imori").join("contexts.json"))
}

/// Inserts a password after the user name in an address.
pub fn with_password(admin: &str, password: &str) -> anyhow::Result<String> {
    let parts = admin.split_once("://").and_then(|(scheme, rest)| {
        let (user, place) = rest.rsplit_once('@')?;
        Some((scheme, user.split(':').next().unwrap_or_default(), place))
    });
    let (scheme, user, place) =
        parts.context("the context names no user; add it as `http://user@host:port`")?;
    Ok(format!("{scheme}://{user}:{password}@{place}"))
}

/// The address without its password.
pub fn without_password(admin: &str) -> String {
    let Some((scheme, rest)) = admin.split_once("://") else { return String::from("(no address)") };
    match rest.rsplit_once('@') {
        Some((login, place)) => {
            let user = login.split(':').next().unwrap_or_default();
            format!("{scheme}://{user}@{place}")
        }
        None => admin.to_owned(),
    }
}
