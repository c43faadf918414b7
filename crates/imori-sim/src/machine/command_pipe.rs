//! The pipe of an internal client: its commands, and what it is sent. Tickets for both travel through the network.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use imori_core::delivery::Outcome;
use imori_core::internal::{Command, Done, Incoming, Pipe, Receiver, Verb};

use crate::planted::Bug;

/// The credit that a consumer gets under a planted bug.
const UNCHARGED: u32 = 1_000;

/// The pipe of one internal client.
#[derive(Debug)]
pub(crate) struct CommandPipe {
    bug: Option<Bug>,
    contents: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    commands: VecDeque<Command>,
    kept: BTreeMap<u64, Incoming>,
    tickets: u64,
    /// Whether the connection is purging a queue; a planted bug asks.
    is_purging: bool,
    /// Answers so far, for planted bugs.
    answers: u64,
    /// The number of the last answer to a command that is not a publish.
    last_answer: Option<u64>,
}

impl CommandPipe {
    pub(crate) fn new(bug: Option<Bug>) -> CommandPipe {
        CommandPipe { bug, contents: Mutex::default() }
    }

    /// Adds a command. Its client sends one byte with it.
    pub(crate) fn push_command(&self, command: Command) {
        self.contents().commands.push_back(command);
    }

    /// Takes what a written ticket stands for.
    pub(crate) fn take_kept(&self, ticket: u64) -> Option<Incoming> {
        self.contents().kept.remove(&ticket)
    }

    pub(crate) fn is_purging(&self) -> bool {
        self.contents().is_purging
    }

    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes a command under a planted bug.
    fn spoil(&self, verb: &mut Verb) {
        match (self.bug, &mut *verb) {
            (Some(Bug::InternalCreditUncharged), Verb::Consume(consume)) => consume.credit = UNCHARGED,
            (Some(Bug::InternalPersistenceForgotten), Verb::Publish { message, .. }) => {
                message.properties.is_persistent = false;
            }
            (Some(Bug::InternalSettleForgotten), Verb::Settle { numbers, .. }) => numbers.clear(),
            (Some(Bug::InternalAcceptReleases), Verb::Settle { outcome, .. })
                if *outcome == Outcome::Accept =>
            {
                *outcome = Outcome::Release { failed: true };
            }
            (Some(Bug::InternalCancelIgnored), Verb::Cancel { .. })
            | (Some(Bug::InternalDefinitionLost), Verb::Define(_)) => *verb = Verb::Sync,
            (Some(Bug::InternalGetAccepts), Verb::Get { settles, .. }) => *settles = false,
            _ => {}
        }
    }

    /// Changes what a client is sent under a planted bug.
    fn spoil_incoming(&self, incoming: &mut Incoming, contents: &mut Contents) {
        match (self.bug, incoming) {
            (Some(Bug::InternalBodyCut), Incoming::Message(message)) => {
                let len = message.body.len().saturating_sub(1);
                message.body = Bytes::copy_from_slice(message.body.get(..len).unwrap_or_default());
            }
            (Some(Bug::InternalReplyMisdirected), Incoming::Message(message)) => {
                if let Receiver::Call(number) = &mut message.receiver {
                    *number += 1;
                }
            }
            (Some(Bug::InternalAnswersSwapped), Incoming::Answer { command, outcome })
                if !matches!(outcome, Ok(Done::Published { .. })) =>
            {
                contents.answers += 1;
                // One in two gets the number of the one before.
                let before = contents.last_answer.replace(*command);
                if contents.answers.is_multiple_of(2) {
                    *command = before.unwrap_or(*command);
                }
            }
            _ => {}
        }
    }
}

impl Pipe for CommandPipe {
    fn take_command(&self) -> Option<Command> {
        let mut contents = self.contents();
        let mut command = contents.commands.pop_front()?;
        self.spoil(&mut command.verb);
        contents.is_purging = matches!(command.verb, Verb::Purge { .. });
        Some(command)
    }

    fn keep(&self, mut incoming: Incoming) -> u64 {
        let mut contents = self.contents();
        contents.is_purging = false;
        self.spoil_incoming(&mut incoming, &mut contents);
        contents.tickets += 1;
        let ticket = contents.tickets;
        contents.kept.insert(ticket, incoming);
        ticket
    }
}
