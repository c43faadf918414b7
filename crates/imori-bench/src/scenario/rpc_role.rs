//! The connections of scenario `rpc`: requesters and responders.

use crate::load::event_loop::Role;
use crate::load::requester::{Requester, RequesterCounts};
use crate::load::responder::{Answered, Responder};
use crate::protocol::driver::Heard;

/// The role of a connection in this scenario.
pub(super) enum RpcRole {
    Requester(Box<Requester>),
    Responder(Responder),
}

pub(super) struct RpcBoard {
    pub(super) counts: RequesterCounts,
    pub(super) answered: Answered,
}

impl RpcBoard {
    pub(super) fn new() -> RpcBoard {
        RpcBoard { counts: RequesterCounts::new(), answered: Answered::default() }
    }
}

impl Role for RpcRole {
    type Board = RpcBoard;

    fn hear(&mut self, heard: &Heard<'_>, now: u64, board: &mut RpcBoard, out: &mut Vec<u8>) {
        let Heard::Delivery(delivery) = heard else { return };
        match self {
            RpcRole::Requester(requester) => requester.reply(delivery, now, &mut board.counts),
            RpcRole::Responder(responder) => responder.request(delivery, &mut board.answered, out),
        }
    }

    fn fill(&mut self, now: u64, board: &mut RpcBoard, out: &mut Vec<u8>) -> bool {
        match self {
            RpcRole::Requester(requester) => requester.fill(now, &mut board.counts, out),
            RpcRole::Responder(_) => false,
        }
    }

    fn reads(&self, unwritten: usize) -> bool {
        match self {
            RpcRole::Requester(requester) => requester.reads(unwritten),
            RpcRole::Responder(_) => true,
        }
    }

    fn is_producer(&self) -> bool {
        match self {
            RpcRole::Requester(requester) => requester.is_paced(),
            RpcRole::Responder(_) => false,
        }
    }

    fn next_due(&self) -> Option<u64> {
        match self {
            RpcRole::Requester(requester) => requester.next_due(),
            RpcRole::Responder(_) => None,
        }
    }

    fn cut_off(&mut self, now: u64, board: &mut RpcBoard) {
        if let RpcRole::Requester(requester) = self {
            requester.cut_off(now, &mut board.counts);
        }
    }

    fn reopened(&mut self, now: u64, board: &mut RpcBoard) {
        board.counts.timeline.reconnected(now);
    }

    fn tick(&mut self, now: u64, board: &mut RpcBoard) {
        if let RpcRole::Requester(requester) = self {
            requester.tick(now, &mut board.counts);
        }
    }
}
