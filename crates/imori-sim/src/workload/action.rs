//! The actions of clients, and how likely each is.

use crate::random::Random;

/// One action of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    SendToQueue,
    SendToTopic,
    Request,
    SubscribeQueue,
    SubscribeTopic,
    SubscribeOwn,
    Unsubscribe,
    Settle,
    Cancel,
    Begin,
    Commit,
    Abort,
    StopReading,
    Leave,
    Die,
    Repeat,
    SendTooLarge,
}

impl Action {
    pub(crate) const ALL: [Action; 17] = [
        Action::SendToQueue,
        Action::SendToTopic,
        Action::Request,
        Action::SubscribeQueue,
        Action::SubscribeTopic,
        Action::SubscribeOwn,
        Action::Unsubscribe,
        Action::Settle,
        Action::Cancel,
        Action::Begin,
        Action::Commit,
        Action::Abort,
        Action::StopReading,
        Action::Leave,
        Action::Die,
        Action::Repeat,
        Action::SendTooLarge,
    ];
}

/// The main subject of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// A bit of everything, some of it often.
    Mixed,
    /// Queues, readers and connections live briefly, which reveals stale references.
    ComesAndGoes,
    /// Much is published to readers that do not read.
    Flood,
    /// Queues outgrow their memory, and the broker restarts several times.
    Backlog,
}

/// The weight of each action; a run omits some and does others nearly always.
pub(crate) fn weights(random: &Random, flavour: Flavour) -> Vec<usize> {
    let usual = |action: &Action| match action {
        Action::SendToQueue | Action::Settle => 12,
        Action::SendToTopic | Action::Request => 6,
        Action::SubscribeQueue | Action::SubscribeTopic => 5,
        Action::Unsubscribe | Action::Begin | Action::Commit => 3,
        Action::SubscribeOwn | Action::Abort | Action::StopReading | Action::Leave | Action::Die => 1,
        // Nothing is delayed, so there is nothing to cancel; without windows nothing is repeated. A
        // message that is too large ends its connection.
        Action::Cancel | Action::Repeat | Action::SendTooLarge => 0,
    };
    let weight = |action: &Action| match (flavour, action) {
        (Flavour::Mixed, _) => usual(action) * random.pick(&[0, 1, 1, 2, 4]),
        (Flavour::ComesAndGoes, Action::SubscribeQueue | Action::Unsubscribe | Action::Settle) => 8,
        (Flavour::ComesAndGoes, Action::SendToQueue | Action::SendToTopic | Action::SubscribeTopic) => 4,
        (Flavour::ComesAndGoes, Action::SubscribeOwn | Action::Request | Action::Leave | Action::Die) => 2,
        (Flavour::Backlog, Action::SendToQueue) => 16,
        (Flavour::Backlog, Action::Settle) => 8,
        (Flavour::Backlog, Action::SubscribeQueue) => *random.pick(&[1, 2, 4]),
        (Flavour::Backlog, Action::Unsubscribe | Action::Leave | Action::Die) => 1,
        (Flavour::Backlog, Action::SendToTopic | Action::StopReading) => 1,
        (Flavour::Backlog, Action::Begin | Action::Commit) => *random.pick(&[0, 0, 2]),
        (Flavour::Flood, Action::SendToTopic) => 12,
        (Flavour::Flood, Action::SubscribeTopic | Action::StopReading | Action::Request) => 4,
        (Flavour::Flood, Action::SendToQueue | Action::SubscribeQueue | Action::Settle) => 2,
        _ => 0,
    };
    let mut weights: Vec<usize> = Action::ALL.iter().map(weight).collect();
    // The weights must not all be zero.
    if let Some(first) = weights.first_mut() {
        *first += 4;
    }
    weights
}
