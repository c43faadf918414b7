//! `imori definitions`: exports and imports everything set or declared, as one document.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use crate::admin_client::{AdminOptions, segment};
use crate::nats_server::{self, Converted, definitions};
use crate::output::{print_error, print_line};

/// Export and import users, vhosts, permissions, policies, exchanges, queues and bindings, as RabbitMQ writes them.
#[derive(Debug, Args)]
pub(crate) struct Definitions {
    #[command(subcommand)]
    command: DefinitionsCommand,
}

#[derive(Debug, Subcommand)]
enum DefinitionsCommand {
    /// Print the definitions. The hashes of passwords are among them.
    Export {
        #[command(flatten)]
        asked: AdminOptions,
        /// Print only the declarations of this vhost.
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
    },
    /// Import definitions. Existing objects stay; parts without a meaning here are listed.
    ///
    /// From a nats-server's configuration, users and permissions are imported, and accounts become vhosts. `--dry-run`
    /// prints the resulting definitions.
    Import {
        #[command(flatten)]
        asked: AdminOptions,
        /// Make the declarations of the document in this vhost.
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
        /// The program that the document was written by or for: `imori`, `rabbitmq` or `nats-server`. A file whose
        /// name ends in `.conf` is nats-server's.
        #[arg(long, value_name = "PROGRAM")]
        from: Option<Origin>,
        /// Print the definitions that would be imported, and import nothing.
        #[arg(long)]
        dry_run: bool,
        /// The document; the standard input without it.
        file: Option<PathBuf>,
    },
    /// Let users log in again after the definitions were lost.
    ///
    /// A broker that cannot read its definitions lets only the operator in, because the users are unknown. Queues and
    /// messages stay. If no user is left, the user `admin` is created and its password printed.
    Recover {
        #[command(flatten)]
        asked: AdminOptions,
        #[command(flatten)]
        content: RecoveredContent,
    },
}

/// The definitions to continue with after a recovery.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct RecoveredContent {
    /// Continue with the definitions that are left, possibly none.
    #[arg(long)]
    empty: bool,
    /// Import this document first, as `imori definitions export` printed it.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

impl Definitions {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let place = |vhost: Option<&str>| {
            let below = vhost.map(|vhost| format!("/{}", segment(vhost))).unwrap_or_default();
            (format!("/api/definitions{below}"), format!("vhost `{}`", vhost.unwrap_or_default()))
        };
        match self.command {
            DefinitionsCommand::Export { asked, vhost } => {
                let (path, what) = place(vhost.as_deref());
                let document = asked.admin()?.get(&path, &what)?;
                print_line(&serde_json::to_string_pretty(&document)?)
            }
            DefinitionsCommand::Import { asked, vhost, from, dry_run, file } => {
                let (path, what) = place(vhost.as_deref());
                let document = match (from.unwrap_or_else(|| Origin::of(file.as_deref())), &file) {
                    (Origin::NatsServer, Some(file)) => converted(file)?,
                    (Origin::NatsServer, None) => {
                        bail!("the configuration of a nats-server may include others; name its file")
                    }
                    (Origin::Imori | Origin::Rabbitmq, file) => read(file.as_deref())?,
                };
                if dry_run {
                    return print_line(&serde_json::to_string_pretty(&document)?);
                }
                print_left_out(&asked.admin()?.post(&path, &what, &document)?)?;
                print_line("the definitions are imported")
            }
            DefinitionsCommand::Recover { asked, content } => {
                let document = content.from.as_deref().map(|file| read(Some(file))).transpose()?;
                let wanted = document.map_or_else(|| json!({}), |document| json!({"definitions": document}));
                let answer = asked.admin()?.post("/v1/definitions/recover", "definitions", &wanted)?;
                print_left_out(&answer)?;
                if let Some(password) = answer["admin_password"].as_str() {
                    print_line(&format!("created user admin with password {password}"))?;
                }
                print_line("the definitions are recovered, users may log in again")
            }
        }
    }
}

/// Prints the parts of a document that the broker ignored.
fn print_left_out(answer: &Value) -> anyhow::Result<()> {
    let left_out = answer["left_out"].as_array().map_or(&[][..], Vec::as_slice);
    left_out.iter().filter_map(Value::as_str).try_for_each(|part| print_line(&format!("left out: {part}")))
}

/// The program that a document was written by or for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Origin {
    Imori,
    Rabbitmq,
    NatsServer,
}

impl Origin {
    fn of(file: Option<&Path>) -> Origin {
        let is_conf = file.and_then(Path::extension).is_some_and(|extension| extension == "conf");
        if is_conf { Origin::NatsServer } else { Origin::Imori }
    }
}

/// Converts a nats-server configuration to definitions; prints the parts that have no equivalent.
fn converted(file: &Path) -> anyhow::Result<Value> {
    let Converted { document, left_out } = definitions(&nats_server::read(file)?)?;
    for part in left_out {
        print_error(&format!("left out: {part}"));
    }
    Ok(document)
}

fn read(file: Option<&Path>) -> anyhow::Result<Value> {
    let (text, name) = match file {
        Some(path) => {
            let name = path.display().to_string();
            (fs::read_to_string(path).with_context(|| format!("`{name}` cannot be read"))?, name)
        }
        None => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("the standard input cannot be read")?;
            (text, String::from("the standard input"))
        }
    };
    let document = serde_json::from_str(&text).with_context(|| format!("`{name}` is not JSON"))?;
    match document {
        Value::Object(_) => Ok(document),
        _ => bail!("`{name}` is not a JSON object"),
    }
}
