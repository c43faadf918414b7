//! AMQP 1.0 bugs planted on the wire: rewrites frames on their way to or from the broker.

use imori_amqp10::codec::composite::Composite;
use imori_amqp10::codec::composites::{
    Accepted, Begin, Coordination, DeliveryState, Discharge, Disposition, Flow, Performative, Rejected,
    Released, Transfer,
};
use imori_amqp10::codec::frame::{FrameKind, Step, decode, push_frame};
use imori_amqp10::codec::restricted::Role;
use imori_amqp10::codec::sections::SectionKind;

use crate::planted::Bug;

/// The start of a discharge: the descriptors of its section and of its value.
const DISCHARGE: [u8; 6] = [0, 0x53, 0x77, 0, 0x53, 0x32];

/// A transfer window that no run uses up.
const ENDLESS: u32 = i32::MAX as u32;

/// The replacement of a frame.
enum Instead<'a> {
    /// The frame is dropped.
    Nothing,
    /// Another performative with the same payload.
    Frame(Box<Performative<'a>>),
    /// The same performative with another payload.
    Payload(Vec<u8>),
}

/// The bytes a connection reads instead of its client's; `None` if they stay as they are.
pub(super) fn read_instead(bug: Bug, bytes: &[u8]) -> Option<Vec<u8>> {
    rewritten(bytes, |performative, payload| {
        Some(Instead::Frame(Box::new(match (bug, performative) {
            (Bug::LinkCreditOneMore, Performative::Flow(flow)) if !flow.drain => {
                Flow { link_credit: flow.link_credit.map(|credit| credit + 1), ..flow }.into()
            }
            (Bug::SettledOneTooMany, Performative::Disposition(disposition)) => {
                let last = disposition.last.unwrap_or(disposition.first);
                Disposition { last: Some(last + 1), ..disposition }.into()
            }
            (Bug::AcceptedReleased, Performative::Disposition(disposition))
                if matches!(disposition.state, Some(DeliveryState::Accepted(_))) =>
            {
                Disposition { state: Some(Released {}.into()), ..disposition }.into()
            }
            (Bug::ReleasedRejected, Performative::Disposition(disposition))
                if matches!(disposition.state, Some(DeliveryState::Released(_))) =>
            {
                Disposition { state: Some(Rejected { error: None }.into()), ..disposition }.into()
            }
            (Bug::PostedOutside, Performative::Transfer(transfer)) if transfer.state.is_some() => {
                Transfer { state: None, ..transfer }.into()
            }
            (Bug::RetirementForgotten, Performative::Disposition(disposition))
                if matches!(disposition.state, Some(DeliveryState::Transactional(_))) =>
            {
                return Some(Instead::Nothing);
            }
            (Bug::CommitRollsBack, Performative::Transfer(_)) => {
                return discharged(payload, false).map(Instead::Payload);
            }
            (Bug::RollbackCommits, Performative::Transfer(_)) => {
                return discharged(payload, true).map(Instead::Payload);
            }
            (Bug::WindowUnbounded, Performative::Begin(begin)) => {
                Begin { incoming_window: ENDLESS, ..begin }.into()
            }
            (Bug::WindowUnbounded, Performative::Flow(flow)) => {
                Flow { incoming_window: ENDLESS, ..flow }.into()
            }
            _ => return None,
        })))
    })
}

/// The bytes a connection writes instead of these; `None` if they stay as they are.
pub(super) fn written_instead(bug: Bug, bytes: &[u8]) -> Option<Vec<u8>> {
    rewritten(bytes, |performative, _| {
        Some(match (bug, performative) {
            (Bug::DrainUnanswered, Performative::Flow(Flow { drain: true, .. })) => Instead::Nothing,
            (Bug::DrainMiscounted, Performative::Flow(flow)) if flow.drain => {
                let delivery_count = flow.delivery_count.map(|count| count.wrapping_sub(1));
                Instead::Frame(Box::new(Flow { delivery_count, ..flow }.into()))
            }
            (Bug::OutcomesOneTooFew, Performative::Disposition(disposition))
                if disposition.role == Role::Receiver && disposition.last.is_some() =>
            {
                let last = disposition.last.map(|last| last - 1).filter(|last| *last > disposition.first);
                let fewer = Disposition { last, state: Some(Accepted {}.into()), ..disposition };
                Instead::Frame(Box::new(fewer.into()))
            }
            (Bug::PartLost, Performative::Transfer(Transfer { delivery_id: None, .. })) => {
                Instead::Payload(Vec::new())
            }
            _ => return None,
        })
    })
}

/// The payload of the opposite discharge; `None` unless this is a discharge with the flag `fail`.
fn discharged(payload: &[u8], fail: bool) -> Option<Vec<u8>> {
    let value = payload.get(3..).filter(|_| payload.starts_with(&DISCHARGE))?;
    let Ok(Coordination::Discharge(discharge)) = Coordination::decode(value) else { return None };
    if discharge.fail != fail {
        return None;
    }
    let mut instead = Vec::new();
    SectionKind::AmqpValue.push(&mut instead);
    Discharge { fail: !fail, ..discharge }.encode(&mut instead);
    Some(instead)
}

/// Rewrites the frames among these bytes; `None` if they are not AMQP 1.0 or nothing changes.
fn rewritten(
    bytes: &[u8],
    mut instead: impl for<'a> FnMut(Performative<'a>, &'a [u8]) -> Option<Instead<'a>>,
) -> Option<Vec<u8>> {
    let (mut out, mut rest, mut is_other) = (Vec::new(), bytes, false);
    loop {
        let len = match decode(rest, bytes.len()) {
            Ok(Step::Header(header)) => header.bytes().len(),
            Ok(Step::Frame(frame)) => {
                let (performative, payload) = match (frame.kind, Performative::decode(frame.body)) {
                    (FrameKind::Amqp, Ok(read)) => read,
                    _ => {
                        out.extend_from_slice(rest.get(..frame.len)?);
                        rest = rest.get(frame.len..)?;
                        continue;
                    }
                };
                let (own, head) = (payload.len(), frame.body.len() - payload.len());
                match instead(performative, payload) {
                    None => out.extend_from_slice(rest.get(..frame.len)?),
                    Some(Instead::Nothing) => is_other = true,
                    Some(Instead::Frame(other)) => {
                        is_other = true;
                        push_frame(&mut out, FrameKind::Amqp, frame.channel, |out| {
                            other.encode(out);
                            out.extend_from_slice(frame.body.get(head..head + own).unwrap_or_default());
                        });
                    }
                    Some(Instead::Payload(other)) => {
                        is_other = true;
                        push_frame(&mut out, FrameKind::Amqp, frame.channel, |out| {
                            out.extend_from_slice(frame.body.get(..head).unwrap_or_default());
                            out.extend_from_slice(&other);
                        });
                    }
                }
                frame.len
            }
            _ => {
                out.extend_from_slice(rest);
                return is_other.then_some(out);
            }
        };
        if rest.starts_with(b"AMQP") {
            out.extend_from_slice(rest.get(..len)?);
        }
        rest = rest.get(len..)?;
    }
}
