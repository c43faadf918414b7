//! What clients can do, and how likely each of that is.

use crate::random::Random;

/// What a client can do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
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

impl Deed {
    pub(crate) const ALL: [Deed; 17] = [
        Deed::SendToQueue,
        Deed::SendToTopic,
        Deed::Request,
        Deed::SubscribeQueue,
        Deed::SubscribeTopic,
        Deed::SubscribeOwn,
        Deed::Unsubscribe,
        Deed::Settle,
        Deed::Cancel,
        Deed::Begin,
        Deed::Commit,
        Deed::Abort,
        Deed::StopReading,
        Deed::Leave,
        Deed::Die,
        Deed::Repeat,
        Deed::SendTooLarge,
    ];
}

/// What a run is mostly about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// A bit of everything, some of it often.
    Mixed,
    /// Queues, readers and connections live shortly, to find who still holds on to them.
    ComesAndGoes,
    /// Much is published to readers that do not read.
    Flood,
    /// Queues are longer than their memory, and the broker has several lives.
    Backlog,
}

/// How likely each deed is: some are not done at all in a run, some nearly always.
pub(crate) fn weights(random: &Random, flavour: Flavour) -> Vec<usize> {
    let usual = |deed: &Deed| match deed {
        Deed::SendToQueue | Deed::Settle => 12,
        Deed::SendToTopic | Deed::Request => 6,
        Deed::SubscribeQueue | Deed::SubscribeTopic => 5,
        Deed::Unsubscribe | Deed::Begin | Deed::Commit => 3,
        Deed::SubscribeOwn | Deed::Abort | Deed::StopReading | Deed::Leave | Deed::Die => 1,
        // Where nothing is delayed there is nothing to cancel, and without windows nothing is repeated.
        // What is too large ends its connection.
        Deed::Cancel | Deed::Repeat | Deed::SendTooLarge => 0,
    };
    let weight = |deed: &Deed| match (flavour, deed) {
        (Flavour::Mixed, _) => usual(deed) * random.pick(&[0, 1, 1, 2, 4]),
        (Flavour::ComesAndGoes, Deed::SubscribeQueue | Deed::Unsubscribe | Deed::Settle) => 8,
        (Flavour::ComesAndGoes, Deed::SendToQueue | Deed::SendToTopic | Deed::SubscribeTopic) => 4,
        (Flavour::ComesAndGoes, Deed::SubscribeOwn | Deed::Request | Deed::Leave | Deed::Die) => 2,
        (Flavour::Backlog, Deed::SendToQueue) => 16,
        (Flavour::Backlog, Deed::Settle) => 8,
        (Flavour::Backlog, Deed::SubscribeQueue) => *random.pick(&[1, 2, 4]),
        (Flavour::Backlog, Deed::Unsubscribe | Deed::Leave | Deed::Die) => 1,
        (Flavour::Backlog, Deed::SendToTopic | Deed::StopReading) => 1,
        (Flavour::Backlog, Deed::Begin | Deed::Commit) => *random.pick(&[0, 0, 2]),
        (Flavour::Flood, Deed::SendToTopic) => 12,
        (Flavour::Flood, Deed::SubscribeTopic | Deed::StopReading | Deed::Request) => 4,
        (Flavour::Flood, Deed::SendToQueue | Deed::SubscribeQueue | Deed::Settle) => 2,
        _ => 0,
    };
    let mut weights: Vec<usize> = Deed::ALL.iter().map(weight).collect();
    // There is always something to do.
    if let Some(first) = weights.first_mut() {
        *first += 4;
    }
    weights
}
