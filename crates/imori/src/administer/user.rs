//! `imori user`: users and their permissions.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::limit::Limited;
use crate::admin_client::{AdminOptions, segment, text};
use crate::output::{print_line, print_question};

/// Make, change, show and delete users and their permissions.
#[derive(Debug, Args)]
pub(crate) struct User {
    #[command(subcommand)]
    command: UserCommand,
}

#[derive(Debug, Subcommand)]
enum UserCommand {
    /// List users and their tags.
    Ls(AdminOptions),
    /// Show what a user may do, by vhost.
    Show(Named),
    /// Make a user, or change its password and tags.
    ///
    /// The password is read as a line of standard input, because other users of this host can read command lines.
    ///
    /// The first user besides `admin` ends the login `guest`. The command says what ends with it, and asks before if its
    /// standard input is a terminal.
    #[command(aliases = ["add", "create"])]
    Set {
        #[command(flatten)]
        user: Named,
        /// A role towards the admin API: administrator, monitoring, policymaker or management. Can be given several
        /// times.
        #[arg(long, value_name = "TAG")]
        tag: Vec<String>,
        /// The user has no password, and logs in only by certificate or key.
        #[arg(long)]
        no_password: bool,
        /// A public key of NATS, `U…`, by which the user logs in. Can be given several times.
        #[arg(long, value_name = "KEY")]
        nkey: Vec<String>,
        /// The name that a client's certificate must have, if it differs from the user's name.
        #[arg(long, value_name = "NAME")]
        certificate: Option<String>,
        /// The vhost of the user's NATS clients; `/` without it.
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
    },
    /// Set or show the limits of a user.
    Limit {
        #[command(flatten)]
        limited: Limited,
        /// Channels of AMQP at the same time, on all connections together; `-1` is no limit.
        #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
        max_channels: Option<i64>,
    },
    /// Make a token for a user and print it, only this once. Clients send it as NATS's token, as the password, or over
    /// HTTP as `Authorization: Bearer`.
    Token {
        #[command(flatten)]
        user: Named,
        /// Revoke all tokens of the user instead, its sessions, and its tokens and API keys of the automation.
        #[arg(long)]
        revoke: bool,
    },
    /// Delete a user and close its connections.
    Delete(Named),
    /// Give a user these rights in a vhost, in place of those that it has there; without any of the three, all.
    ///
    /// If you give only one or two of the three, give the others as well, or pass `--only` to grant nothing else.
    Grant {
        #[command(flatten)]
        user: Named,
        /// The vhost.
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
        /// A regular expression: queues and exchanges that the user may declare and delete.
        #[arg(long, value_name = "REGEX")]
        configure: Option<String>,
        /// A regular expression: queues and exchanges that the user may send to.
        #[arg(long, value_name = "REGEX")]
        write: Option<String>,
        /// A regular expression: queues and exchanges that the user may receive from.
        #[arg(long, value_name = "REGEX")]
        read: Option<String>,
        /// The user has only the rights that are given, and none of the others.
        #[arg(long)]
        only: bool,
    },
    /// Take a user's rights in a vhost away.
    Revoke {
        #[command(flatten)]
        user: Named,
        /// The vhost.
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
    },
}

/// One user.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AdminOptions,
    /// The name of the user.
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/api/users/{}", segment(&self.name))
    }

    fn permission(&self, vhost: &str) -> String {
        format!("/api/permissions/{}/{}", segment(vhost), segment(&self.name))
    }

    fn what(&self) -> String {
        format!("user `{}`", self.name)
    }
}

impl User {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            UserCommand::Ls(asked) => {
                let mut rows = asked.admin()?.get("/api/users", "list of users")?;
                if !asked.is_json() {
                    // People only need to know that SCRAM keys exist; `--json` prints them for
                    // import.
                    let keys = rows.as_array_mut().into_iter().flatten();
                    keys.filter_map(|user| user.get_mut("scram_sha256"))
                        .for_each(|keys| *keys = json!("yes"));
                }
                asked.print_rows(&rows, &[("NAME", "name"), ("TAGS", "tags"), ("SCRAM", "scram_sha256")])
            }
            UserCommand::Show(user) => {
                let path = format!("{}/permissions", user.path());
                let rows = user.asked.admin()?.get(&path, &user.what())?;
                let columns = [
                    ("VHOST", "vhost"),
                    ("CONFIGURE", "configure"),
                    ("WRITE", "write"),
                    ("READ", "read"),
                    ("SUBJECTS", "subjects"),
                ];
                user.asked.print_rows(&rows, &columns)
            }
            UserCommand::Set { user, tag, no_password, nkey, certificate, vhost } => {
                let mut object = Map::new();
                object.insert(String::from("tags"), json!(tag));
                if !no_password {
                    object.insert(String::from("password"), json!(password()?));
                }
                if !nkey.is_empty() {
                    object.insert(String::from("nkeys"), json!(nkey));
                }
                if let Some(named) = certificate {
                    object.insert(String::from("certificate"), json!(named));
                }
                vhost.into_iter().for_each(|vhost| drop(object.insert(String::from("vhost"), json!(vhost))));
                let admin = user.asked.admin()?;
                let ends = admin.get(&format!("/v1/users/{}/ends", segment(&user.name)), &user.what())?;
                if let Some(ends) = ends["guest"].as_str().filter(|_| io::stdin().is_terminal()) {
                    confirm(&format!("{} ends {ends}", user.what()))?;
                }
                let set = admin.put(&user.path(), &user.what(), &Value::Object(object))?;
                print_line(&format!("{} is set", user.what()))?;
                set["guest"].as_str().map_or(Ok(()), |ended| print_line(&format!("it has ended {ended}")))
            }
            UserCommand::Limit { limited, max_channels } => {
                limited.run("user", &[("max-channels", max_channels)])
            }
            UserCommand::Token { user, revoke: true } => {
                user.asked.admin()?.delete(&format!("{}/tokens", user.path()), &user.what(), None)?;
                print_line(&format!("the tokens of {} are gone", user.what()))
            }
            UserCommand::Token { user, revoke: false } => {
                let path = format!("{}/tokens", user.path());
                let made = user.asked.admin()?.post(&path, &user.what(), &json!({}))?;
                print_line(made["token"].as_str().unwrap_or_default())
            }
            UserCommand::Delete(user) => {
                let stopped = user.asked.admin()?.delete_and_read(&user.path(), &user.what())?;
                print_line(&format!("{} is deleted", user.what()))?;
                for stream in stopped["republishing"].as_array().into_iter().flatten() {
                    let (stream, vhost) = (text(&stream["stream"]), text(&stream["vhost"]));
                    print_line(&format!("stream `{stream}` in vhost `{vhost}` no longer republishes"))?;
                }
                Ok(())
            }
            UserCommand::Grant { user, vhost, configure, write, read, only } => {
                let object = permission([("configure", configure), ("write", write), ("read", read)], only)?;
                let what = format!("{} or vhost `{vhost}`", user.what());
                user.asked.admin()?.put(&user.permission(&vhost), &what, &object)?;
                print_line(&format!("{} may enter vhost `{vhost}`", user.what()))
            }
            UserCommand::Revoke { user, vhost } => {
                let what = format!("permission of {} in vhost `{vhost}`", user.what());
                user.asked.admin()?.delete(&user.permission(&vhost), &what, None)?;
                print_line(&format!("{} may no longer enter vhost `{vhost}`", user.what()))
            }
        }
    }
}

/// The permission of rights of which some are given. If none is, the user has all.
///
/// # Errors
/// One or two are given, and not whether the others are to be taken away.
pub fn permission(rights: [(&str, Option<String>); 3], only: bool) -> anyhow::Result<Value> {
    let missing: Vec<String> = rights
        .iter()
        .filter(|(_, regex)| regex.is_none())
        .map(|(right, _)| format!("`--{right} REGEX`"))
        .collect();
    let absent = match (missing.len(), only) {
        (0, _) | (1 | 2, true) => "^$",
        (3, false) => ".*",
        (3, true) => {
            bail!("`--only` needs a right that the user keeps; give `--configure`, `--write` or `--read`")
        }
        _ => bail!("give {} too, or `--only` for no other rights than these", missing.join(" and ")),
    };
    let value = |regex: Option<String>| json!(regex.unwrap_or_else(|| absent.to_owned()));
    Ok(Value::Object(rights.into_iter().map(|(right, regex)| (right.to_owned(), value(regex))).collect()))
}

/// Asks on the terminal whether to go on.
///
/// # Errors
/// The answer is not yes.
fn confirm(what: &str) -> anyhow::Result<()> {
    print_question(&format!("{what}\ngo on? [y/N] "));
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("the answer cannot be read from the standard input")?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => bail!("nothing is changed"),
    }
}

/// Reads the password from the first line of standard input.
fn password() -> anyhow::Result<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("the password cannot be read from the standard input")?;
    let password = line.trim_end_matches(['\n', '\r']);
    if password.is_empty() {
        bail!("there is no password; write it as a line to the standard input, or give `--no-password`");
    }
    Ok(password.to_owned())
}
