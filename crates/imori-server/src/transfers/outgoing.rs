//! Sends the archive of a stream to a subject, in pieces that the client answers.
//!
//! The dialogue is that of nats-server: each whole piece has a reply subject, and no more than a window of pieces is
//! unanswered. The last piece has none; an empty message follows it, whose status says how it went.

use std::collections::VecDeque;
use std::time::Duration;

use imori_core::name::Name;
use imori_streams::archive::TransferEnd;
use tokio::time::{sleep, timeout};

use super::error::TransferError;
use super::line::Line;
use super::snapshot::StreamSnapshot;
use crate::internal::Subscription;
use crate::limits::{SNAPSHOT_ANSWER_PATIENCE, SNAPSHOT_READER_LOOK_EVERY, SNAPSHOT_READER_PATIENCE};

/// What a client of a snapshot wants.
pub(super) struct SnapshotRequest {
    pub(super) reply: Option<Name>,
    /// The answer if the snapshot begins.
    pub(super) answer: Vec<u8>,
    pub(super) deliver_subject: Name,
    pub(super) piece_bytes: usize,
    pub(super) pieces_max: usize,
    pub(super) has_consumers: bool,
}

/// Sends the archive of a stream.
pub(super) async fn send_snapshot(line: Line, wanted: SnapshotRequest) {
    let begun = async {
        let client = line.broker.connect_operator(line.identity.clone(), line.vhost).await?;
        let snapshot =
            StreamSnapshot::begin(&line.broker, client, line.vhost, &line.stream, wanted.has_consumers)
                .await?;
        let token = line.token().await.ok_or(TransferError::Gone)?;
        let acks = line.words.ack_subject(&line.stream.to_string(), &token);
        let answers = line.receive(&format!("{acks}.>")).await?;
        Ok::<_, TransferError>((snapshot, acks, answers))
    };
    let (snapshot, acks, answers) = match begun.await {
        Ok(begun) => begun,
        Err(error) => {
            let refused = line.words.refused(false, &error.to_string());
            return line.answer(wanted.reply.as_ref(), refused).await;
        }
    };
    line.answer(wanted.reply.as_ref(), wanted.answer.clone()).await;
    let mut sender = Sender { line, wanted, acks, answers, sent: 0, unanswered: 0 };
    let outcome = sender.send_all(snapshot).await;
    let error = outcome.err();
    let text = error.as_ref().map(ToString::to_string);
    let end = match (&error, &text) {
        (Some(TransferError::Stalled(_)), _) if sender.unanswered == 0 => TransferEnd::NoReader,
        (Some(TransferError::Stalled(_)), _) => TransferEnd::NoAnswer,
        (_, Some(text)) => TransferEnd::Failed(text),
        (_, None) => TransferEnd::Sent { has_pieces: sender.sent > 0 },
    };
    let status = sender.line.words.end(end);
    let Sender { line, wanted, .. } = sender;
    // The client may be gone.
    let _ = line.send(&wanted.deliver_subject, b"", &status, Vec::new()).await;
    line.tell(None, text).await;
}

struct Sender {
    line: Line,
    wanted: SnapshotRequest,
    acks: String,
    answers: Subscription,
    /// Whole pieces that were sent, and those of them without an answer.
    sent: u64,
    unanswered: usize,
}

impl Sender {
    async fn send_all(&mut self, mut snapshot: StreamSnapshot) -> Result<(), TransferError> {
        let mut waiting: VecDeque<u8> = VecDeque::new();
        while let Some(more) = snapshot.read().await? {
            waiting.extend(more);
            while waiting.len() >= self.wanted.piece_bytes {
                let piece: Vec<u8> = waiting.drain(..self.wanted.piece_bytes).collect();
                self.await_room().await?;
                self.sent += 1;
                self.unanswered += 1;
                let reply = format!("{}.{}.{}", self.acks, piece.len(), self.sent);
                self.send(reply.as_bytes(), piece).await?;
            }
        }
        if !waiting.is_empty() {
            self.await_room().await?;
            self.send(b"", waiting.into()).await?;
        }
        Ok(())
    }

    async fn send(&mut self, reply: &[u8], piece: Vec<u8>) -> Result<(), TransferError> {
        // The reader may subscribe a moment after its request.
        let mut left = if self.sent <= 1 { SNAPSHOT_READER_PATIENCE } else { Duration::ZERO };
        loop {
            let sent = self.line.send(&self.wanted.deliver_subject, reply, b"", piece.clone()).await;
            if sent.ok_or(TransferError::Gone)? > 0 {
                return Ok(());
            }
            if left.is_zero() {
                self.unanswered = 0;
                return Err(TransferError::Stalled("no interest"));
            }
            let pause = left.min(SNAPSHOT_READER_LOOK_EVERY);
            sleep(pause).await;
            left -= pause;
        }
    }

    /// Waits until another piece may be unanswered.
    async fn await_room(&mut self) -> Result<(), TransferError> {
        while let Ok(Some(_)) = self.answers.try_recv() {
            self.unanswered = self.unanswered.saturating_sub(1);
        }
        while self.unanswered >= self.wanted.pieces_max {
            match timeout(SNAPSHOT_ANSWER_PATIENCE, self.answers.recv()).await {
                Ok(Ok(_)) => self.unanswered -= 1,
                Ok(Err(_)) => return Err(TransferError::Gone),
                Err(_) => return Err(TransferError::Stalled("no flow response")),
            }
        }
        Ok(())
    }
}
