//! `imori stream`: the streams of a broker, with their consumers and messages.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::bail;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::{Args, Subcommand};
use imori_core::name::Printable;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admin_client::{AdminOptions, print_table, segment, text};
use crate::archive_files::{self, NewBackup};
use crate::output::print_line;

/// Enough pages for all streams of any broker.
const PAGES_MAX: usize = 10_000;

/// Bytes of an archive in one request.
const PIECE_BYTES: u64 = 1024 * 1024;

/// Show streams with their consumers, read and delete their messages, purge and delete them, back them up and restore them.
#[derive(Debug, Args)]
pub(crate) struct Stream {
    #[command(subcommand)]
    command: StreamCommand,
}

#[derive(Debug, Subcommand)]
enum StreamCommand {
    /// List streams with what they hold.
    Ls {
        #[command(flatten)]
        asked: AdminOptions,
        /// The streams of this vhost; without it, of all vhosts.
        #[arg(long, value_name = "NAME")]
        vhost: Option<String>,
        /// Streams whose names contain this text.
        part: Option<String>,
    },
    /// Show one stream: its configuration, its state, and how far its consumers are behind.
    Info(Named),
    /// Read messages of a stream without changing anything.
    Get {
        #[command(flatten)]
        stream: Named,
        /// The sequence number of the message. With `--count` or `--subject`, of the first message to consider.
        #[arg(default_value_t = 1)]
        sequence: u64,
        /// Print up to this many messages.
        #[arg(long, value_name = "N")]
        count: Option<usize>,
        /// Print only messages with this subject, which may have wildcards of NATS.
        #[arg(long, value_name = "SUBJECT")]
        subject: Option<String>,
    },
    /// Drop messages of a stream; without an option, all of them.
    Purge {
        #[command(flatten)]
        stream: Named,
        /// Only messages with this subject, which may have wildcards of NATS.
        #[arg(long, value_name = "SUBJECT")]
        subject: Option<String>,
        /// Only messages before this sequence number.
        #[arg(long, value_name = "SEQUENCE", conflicts_with = "keep")]
        before: Option<u64>,
        /// The newest messages stay, this many.
        #[arg(long, value_name = "N")]
        keep: Option<u64>,
        /// Only report how many messages would be dropped.
        #[arg(long)]
        dry_run: bool,
    },
    /// Write the messages and consumers of a stream into a new file or a folder.
    ///
    /// `nats stream restore` reads such a folder, and so does a nats-server from 2.15 on.
    Backup {
        #[command(flatten)]
        stream: Named,
        /// A new file, or a folder: one that exists, or whose name ends with `/`.
        to: PathBuf,
        /// Leave out the consumers.
        #[arg(long)]
        no_consumers: bool,
    },
    /// Make a stream of a backup, by this command or by `nats stream backup`.
    Restore {
        #[command(flatten)]
        asked: AdminOptions,
        /// The vhost of the stream.
        #[arg(long, value_name = "NAME", default_value = "/")]
        vhost: String,
        /// The file or the folder of the backup.
        from: PathBuf,
    },
    /// Delete a stream with its messages and consumers, or one message of it.
    Rm {
        #[command(flatten)]
        stream: Named,
        /// Delete only the message with this sequence number.
        #[arg(long, value_name = "SEQUENCE", conflicts_with = "dry_run")]
        message: Option<u64>,
        /// Only report how many messages would be dropped.
        #[arg(long)]
        dry_run: bool,
    },
}

/// One stream.
#[derive(Debug, Args)]
struct Named {
    #[command(flatten)]
    asked: AdminOptions,
    /// The vhost of the stream.
    #[arg(long, value_name = "NAME", default_value = "/")]
    vhost: String,
    /// The name of the stream.
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!("/v1/streams/{}/{}", segment(&self.vhost), segment(&self.name))
    }

    fn what(&self) -> String {
        format!("stream `{}` in vhost `{}`", self.name, self.vhost)
    }

    /// Prints how many messages are dropped, or would be.
    fn print_dropped(&self, dropped: &Value) -> anyhow::Result<()> {
        if self.asked.is_json() {
            return print_line(&serde_json::to_string_pretty(dropped)?);
        }
        let verb = if dropped["dry_run"] == true { "would go" } else { "are gone" };
        print_line(&format!("{} messages of {} {verb}", dropped["messages"], self.what()))
    }
}

impl Stream {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self.command {
            StreamCommand::Ls { asked, vhost, part } => {
                let vhost = vhost.as_deref();
                let place = vhost.map(|vhost| format!("/{}", segment(vhost))).unwrap_or_default();
                let part = part.map(|part| format!("?name={}", segment(&part))).unwrap_or_default();
                let what = format!("vhost `{}`", vhost.unwrap_or_default());
                let streams = asked.admin()?.all(&format!("/v1/streams{place}{part}"), &what, PAGES_MAX)?;
                if asked.is_json() {
                    return print_line(&serde_json::to_string_pretty(&streams)?);
                }
                print_streams(&streams)
            }
            StreamCommand::Info(stream) => {
                let shown = stream.asked.admin()?.get(&stream.path(), &stream.what())?;
                if stream.asked.is_json() {
                    return print_line(&serde_json::to_string_pretty(&shown)?);
                }
                print_stream(&shown, now_ms())
            }
            StreamCommand::Get { stream, sequence, count: None, subject: None } => {
                let path = format!("{}/messages/{sequence}", stream.path());
                let what = format!("message `{sequence}` in {}", stream.what());
                let message = stream.asked.admin()?.get(&path, &what)?;
                print_messages(&stream.asked, &json!([message]), true)
            }
            StreamCommand::Get { stream, sequence, count, subject } => {
                let subject = subject.map(|subject| format!("&subject={}", segment(&subject)));
                let path = format!(
                    "{}/messages?from={sequence}&count={}{}",
                    stream.path(),
                    count.unwrap_or(1),
                    subject.unwrap_or_default()
                );
                let answer = stream.asked.admin()?.get(&path, &stream.what())?;
                print_messages(&stream.asked, &answer["messages"], false)
            }
            StreamCommand::Purge { stream, subject, before, keep, dry_run } => {
                let subject = subject.map(|subject| format!("&subject={}", segment(&subject)));
                let before = before.map(|before| format!("&sequence={before}"));
                let keep = keep.map(|keep| format!("&keep={keep}"));
                let options: String = [subject, before, keep].into_iter().flatten().collect();
                let path = format!("{}/purge?dry_run={dry_run}{options}", stream.path());
                let dropped = stream.asked.admin()?.post(&path, &stream.what(), &json!({}))?;
                stream.print_dropped(&dropped)
            }
            StreamCommand::Backup { stream, to, no_consumers } => back_up(&stream, &to, no_consumers),
            StreamCommand::Restore { asked, vhost, from } => restore(asked, vhost, &from),
            StreamCommand::Rm { stream, message: Some(sequence), .. } => {
                let path = format!("{}/messages/{sequence}", stream.path());
                let what = format!("message `{sequence}` in {}", stream.what());
                stream.asked.admin()?.delete(&path, &what, None)?;
                print_line(&format!("{what} is deleted"))
            }
            StreamCommand::Rm { stream, message: None, dry_run: true } => {
                let path = format!("{}/purge?dry_run=true", stream.path());
                let dropped = stream.asked.admin()?.post(&path, &stream.what(), &json!({}))?;
                stream.print_dropped(&dropped)
            }
            StreamCommand::Rm { stream, message: None, dry_run: false } => {
                stream.asked.admin()?.delete(&stream.path(), &stream.what(), None)?;
                print_line(&format!("{} is deleted", stream.what()))
            }
        }
    }
}

/// Writes a backup of a stream.
fn back_up(stream: &Named, to: &Path, no_consumers: bool) -> anyhow::Result<()> {
    let admin = stream.asked.admin()?;
    let shown = admin.get(&stream.path(), &stream.what())?;
    let facts = json!({ "config": shown["configuration"], "state": state(&shown["state"]) });
    let mut backup = NewBackup::create(to, &facts)?;
    let path = format!("{}/archive?no_consumers={no_consumers}", stream.path());
    let bytes = admin.download(&path, &stream.what(), &mut backup)?;
    backup.keep()?;
    let bytes = size(&json!(bytes));
    print_line(&format!("{} is in `{}`, {bytes}", stream.what(), to.display()))
}

/// The state of a stream in the words of JetStream.
fn state(shown: &Value) -> Value {
    let at = |time: &Value| match time.as_u64() {
        Some(_) => moment(time).replacen(' ', "T", 1).replace(" UTC", "Z"),
        None => String::from("0001-01-01T00:00:00Z"),
    };
    json!({
        "messages": shown["messages"],
        "bytes": shown["bytes"],
        "first_seq": shown["first_sequence"],
        "first_ts": at(&shown["first_at"]),
        "last_seq": shown["last_sequence"],
        "last_ts": at(&shown["last_at"]),
        "num_subjects": shown["subjects"],
        "num_deleted": shown["deleted"],
        "consumer_count": shown["consumers"],
    })
}

/// Makes a stream of a backup.
fn restore(asked: AdminOptions, vhost: String, from: &Path) -> anyhow::Result<()> {
    let (mut facts, mut archive) = archive_files::open(from)?;
    let configuration = facts["config"].take();
    let Some(name) = configuration["name"].as_str().map(str::to_owned) else {
        bail!("`{}` does not name its stream", from.display());
    };
    let stream = Named { asked, vhost, name };
    let (admin, path) = (stream.asked.admin()?, format!("{}/restore", stream.path()));
    let (mut offset, mut configuration) = (0, Some(configuration));
    loop {
        let mut bytes = Vec::new();
        archive.by_ref().take(PIECE_BYTES).read_to_end(&mut bytes)?;
        let is_last = bytes.is_empty();
        let mut piece = json!({ "offset": offset, "bytes": BASE64_STANDARD.encode(&bytes), "last": is_last });
        if let Some(configuration) = configuration.take() {
            piece["configuration"] = configuration;
        }
        admin.post(&path, &stream.what(), &piece)?;
        offset += bytes.len() as u64;
        if is_last {
            return print_line(&format!("{} is restored", stream.what()));
        }
    }
}

fn print_streams(streams: &Value) -> anyhow::Result<()> {
    let now = now_ms();
    let row = |stream: &Value| {
        let state = &stream["state"];
        json!({
            "vhost": stream["vhost"],
            "name": stream["name"],
            "messages": state["messages"],
            "size": size(&state["bytes"]),
            "last": state["last_sequence"],
            "age": ago(&state["last_at"], now),
            "subjects": state["subjects"],
            "consumers": state["consumers"],
            "storage": stream["storage"],
        })
    };
    let rows: Value = streams.as_array().into_iter().flatten().map(row).collect();
    let columns = [
        ("VHOST", "vhost"),
        ("NAME", "name"),
        ("MESSAGES", "messages"),
        ("SIZE", "size"),
        ("LAST", "last"),
        ("LAST_CAME", "age"),
        ("SUBJECTS", "subjects"),
        ("CONSUMERS", "consumers"),
        ("STORAGE", "storage"),
    ];
    print_table(&rows, &columns)
}

/// Prints a stream for people: its configuration, then its state, then its consumers.
fn print_stream(stream: &Value, now: u64) -> anyhow::Result<()> {
    let (state, limits) = (&stream["state"], &stream["limits"]);
    let subjects: Vec<String> = stream["subjects"].as_array().into_iter().flatten().map(text).collect();
    let (first, last) = (&state["first_sequence"], &state["last_sequence"]);
    let sequences = match state["messages"].as_u64() {
        Some(0) | None => format!("none; the next message has {}", last.as_u64().unwrap_or(0) + 1),
        Some(_) => format!("{first} to {last}"),
    };
    let times = format!("{}, the last one {}", ago(&state["first_at"], now), ago(&state["last_at"], now));
    let parts = [
        ("stream", format!("{} in vhost {}", text(&stream["name"]), text(&stream["vhost"]))),
        ("created", format!("{}, {}", moment(&stream["created_at"]), ago(&stream["created_at"], now))),
        ("subjects", subjects.join(", ")),
        ("storage", format!("{}, confirmed at level {}", text(&stream["storage"]), text(&stream["level"]))),
        ("retention", text(&stream["retention"])),
        ("limits", limits_text(limits)),
        ("policy", text(&stream["policy"])),
        ("operator policy", text(&stream["operator_policy"])),
        ("", String::new()),
        ("messages", text(&state["messages"])),
        ("size", size(&state["bytes"])),
        ("sequences", sequences),
        ("first message", times),
        ("subjects in use", text(&state["subjects"])),
        ("deleted", text(&state["deleted"])),
        ("", String::new()),
    ];
    for (name, value) in parts {
        let line = if name.is_empty() { String::new() } else { format!("{name}: {value}") };
        print_line(&line)?;
    }
    let consumers = stream["consumers"].as_array().map_or(&[][..], Vec::as_slice);
    if consumers.is_empty() {
        return print_line("no consumers");
    }
    let rows: Value = consumers.iter().map(|consumer| consumer_row(consumer, now)).collect();
    let columns = [
        ("CONSUMER", "name"),
        ("KIND", "kind"),
        ("LAG", "pending"),
        ("ACK_PENDING", "ack_pending"),
        ("REDELIVERED", "redelivered"),
        ("WAITING", "waiting_pulls"),
        ("DELIVERED", "delivered"),
        ("ACK_FLOOR", "floor"),
        ("LAST_DELIVERY", "active"),
        ("STATE", "state"),
    ];
    print_table(&rows, &columns)
}

fn consumer_row(consumer: &Value, now: u64) -> Value {
    let durable = if consumer["durable"] == true { "" } else { ", ephemeral" };
    let state = match (consumer["paused_until"].as_u64(), consumer["bound"].as_bool()) {
        (Some(until), _) => format!("paused for {}", span(until.saturating_sub(now))),
        (None, Some(false)) => String::from("nobody reads"),
        (None, _) => String::from("running"),
    };
    json!({
        "name": consumer["name"],
        "kind": format!("{}{durable}", text(&consumer["kind"])),
        "pending": consumer["pending"],
        "ack_pending": consumer["ack_pending"],
        "redelivered": consumer["redelivered"],
        "waiting_pulls": consumer["waiting_pulls"],
        "delivered": consumer["delivered"]["sequence"],
        "floor": consumer["ack_floor"]["sequence"],
        "active": ago(&consumer["delivered"]["at"], now),
        "state": state,
    })
}

/// The limits that are set, on one line.
pub fn limits_text(limits: &Value) -> String {
    let set = |name: &str, shown: &dyn Fn(&Value) -> String| {
        let limit = &limits[name];
        let words = name.strip_suffix("_ms").unwrap_or(name).replace('_', " ");
        (!limit.is_null()).then(|| format!("{words} {}", shown(limit)))
    };
    let age = |limit: &Value| span(limit.as_u64().unwrap_or(0));
    let limits = [
        set("messages", &text),
        set("bytes", &size),
        set("age_ms", &age),
        set("messages_per_subject", &text),
        set("message_bytes", &size),
        set("consumers", &text),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if limits.is_empty() { String::from("none") } else { limits.join(", ") }
}

/// Prints messages as JSON, one alone without a list, or for people as a line of facts with headers and body below.
fn print_messages(asked: &AdminOptions, messages: &Value, is_one: bool) -> anyhow::Result<()> {
    if asked.is_json() {
        let shown = if is_one { &messages[0] } else { messages };
        return print_line(&serde_json::to_string_pretty(shown)?);
    }
    for message in messages.as_array().into_iter().flatten() {
        print_line(&format!(
            "#{} {} {} {} bytes",
            text(&message["sequence"]),
            text(&message["subject"]),
            moment(&message["stored_at"]),
            text(&message["body_bytes"])
        ))?;
        for part in ["properties", "headers"] {
            for (name, value) in message[part].as_object().into_iter().flatten() {
                print_line(&format!("  {}: {}", Printable(name.as_bytes()), text(value)))?;
            }
        }
        print_line(&format!("  {}", body(&message["body"])))?;
    }
    Ok(())
}

/// A body in base64, as text if it is UTF-8.
pub fn body(encoded: &Value) -> String {
    let encoded = encoded.as_str().unwrap_or_default();
    match BASE64_STANDARD.decode(encoded).map(String::from_utf8) {
        Ok(Ok(text)) => Printable(text.as_bytes()).to_string(),
        Ok(Err(_)) | Err(_) => format!("base64:{encoded}"),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes in a unit that people read, with one decimal.
pub fn size(bytes: &Value) -> String {
    let Some(bytes) = bytes.as_u64() else { return String::from("-") };
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut tenths = u128::from(bytes) * 10;
    let mut unit = None;
    for larger in units {
        if tenths < 10_240 {
            break;
        }
        (tenths, unit) = (tenths / 1024, Some(larger));
    }
    match unit {
        None => format!("{bytes} B"),
        Some(unit) => format!("{}.{} {unit}", tenths / 10, tenths % 10),
    }
}

/// A time in milliseconds since the UNIX epoch as the time that has passed since.
pub fn ago(time: &Value, now: u64) -> String {
    match time.as_u64() {
        Some(time) => format!("{} ago", span(now.saturating_sub(time))),
        None => String::from("-"),
    }
}

/// Milliseconds in the two largest units that are not zero.
pub fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) if seconds < 10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, minutes) => format!("{minutes}m{}s", seconds % 60),
        (0, hours, minutes) => format!("{hours}h{}m", minutes % 60),
        (days, hours, _) => format!("{days}d{}h", hours % 24),
    }
}

/// A time in milliseconds since the UNIX epoch, in UTC.
pub fn moment(time: &Value) -> String {
    let time = time.as_u64().and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    match time {
        Some(time) => time.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string(),
        None => String::from("-"),
    }
}
