//! Channel frames: joins them to messages and methods, and decides which of those must wait.

use bytes::Bytes;
use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::inbound::{Inbound, Performed, Taken, Unread, park};
use imori_core::message::BODY_SHARED_MIN;
use imori_core::outbound::SessionId;
use imori_core::turn::{Budget, Next};
use imori_core::world::World;

use super::Connection;
use super::state::State;
use crate::channel::{Channel, Closing};
use crate::codec::frame::Frame;
use crate::codec::method::{MethodFields, MethodId};
use crate::codec::methods::{Method, basic, channel};
use crate::commands::confirm;
use crate::commands::publish::{check_len, publish};
use crate::commands::repeat::note;
use crate::content::{Behind, Content, ContentError, Unfinished, behind, frames, frames_of_method};
use crate::protocol_error::{Code, ProtocolError};

impl Connection {
    /// Publishes the leading messages of the input that repeat known frames; returns their length
    /// in bytes.
    #[inline]
    pub(super) fn publish_again<W: World>(
        &mut self,
        world: &W,
        input: &[u8],
        budget: &mut Budget,
    ) -> Option<usize> {
        if self.state != State::Running || !self.repeat.is_known() {
            return None;
        }
        let &[_, channel1, channel2, ..] = input else { return None };
        let number = u16::from_be_bytes([channel1, channel2]);
        let channel = self.client.channels.get(&number)?;
        let has_parked = self.intake.parking.has_parked_of(SessionId(number));
        if !channel.only_publishes() || has_parked || self.must_wait(world) {
            return None;
        }
        if channel.confirms.is_none() {
            let sent = self.repeat.publish(world, &self.client.actor(), input, budget)?;
            budget.spend(sent.frames, sent.report.receivers, sent.report.slow_reader);
            return Some(sent.bytes);
        }
        let sent = self.repeat.publish_each(world, &self.client.actor(), input, budget)?;
        let receivers = sent.report.iter().map(|report| report.receivers).sum();
        let slow_reader = sent.report.iter().find_map(|report| report.slow_reader);
        budget.spend(sent.frames, receivers, slow_reader);
        if let Some(first) = confirm::count(&mut self.client, number, sent.frames) {
            confirm::answer(world, self.client.connection, number, first, &sent.report);
        }
        Some(sent.bytes)
    }

    /// Performs, gathers or parks a frame of a channel.
    #[inline]
    pub(super) fn take_of_channel<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        method: Option<Method<'_>>,
        unread: Unread<'_>,
        budget: &mut Budget,
    ) -> Result<Taken, ProtocolError> {
        let (number, payload_bytes_max) = (frame.channel, self.payload_bytes_max());
        let Some(channel) = self.client.channels.get_mut(&number) else {
            budget.spend(1, 0, None);
            return self.open_channel(world, number, method).map(|()| Taken::Bytes(frame.len()));
        };
        if channel.closing.is_some() {
            return Ok(match self.take_of_closing(world, number, method) {
                Performed::Partly => Taken::Left(Next::Again),
                _ => Taken::Bytes(frame.len()),
            });
        }
        match (method, &channel.unfinished) {
            (Some(Method::BasicPublish(op)), None) => {
                let rest = unread.bytes().get(frame.len()..).unwrap_or_default();
                match behind(rest, number, payload_bytes_max) {
                    Behind::Whole { content, bytes, end } => {
                        let len = frame.len() + bytes;
                        let shared = unread.kept_body(len - end, content.body.len());
                        if let Some(next) =
                            self.take_message(world, frame, &op, &content, shared.as_ref(), budget)?
                        {
                            return Ok(Taken::Left(next));
                        }
                        if !self.intake.parking.has_parked_of(SessionId(number)) {
                            let bytes = unread.bytes().get(..len).unwrap_or_default();
                            note(&mut self.repeat, &self.client, &op, &content, bytes);
                        }
                        Ok(Taken::Bytes(len))
                    }
                    Behind::Incomplete { bytes } => {
                        Ok(Taken::Incomplete { frame_bytes: bytes.map(|bytes| frame.len() + bytes) })
                    }
                    Behind::Apart => {
                        channel.unfinished = Some(Unfinished::new(frame.payload));
                        Ok(Taken::Bytes(frame.len()))
                    }
                }
            }
            (Some(Method::BasicAck(ack)), None)
                if !ack.multiple && channel.transaction.is_none() && ack.delivery_tag > 0 =>
            {
                self.take_acks(world, frame, ack, unread.bytes(), budget)
            }
            (Some(method), None) => {
                let left = self.take_method(world, frame, &method, budget)?;
                Ok(left.map_or(Taken::Bytes(frame.len()), Taken::Left))
            }
            (None, None) => {
                let text = "expected method frame, got non method frame instead";
                Err(ProtocolError::new(Code::UnexpectedFrame, text))
            }
            (_, Some(_)) => {
                self.take_of_content(world, frame, budget)?;
                Ok(Taken::Bytes(frame.len()))
            }
        }
    }

    /// Returns the method whose content a frame without a method belongs to.
    #[inline]
    pub(super) fn content_id(&self, number: u16) -> MethodId {
        let channel = self.client.channels.get(&number);
        let is_content = channel.is_some_and(|channel| channel.unfinished.is_some());
        if is_content { basic::Publish::ID } else { MethodId::default() }
    }

    pub(super) fn open_channel<W: World>(
        &mut self,
        world: &W,
        number: u16,
        method: Option<Method<'_>>,
    ) -> Result<(), ProtocolError> {
        let Some(Method::ChannelOpen(_)) = method else {
            return Err(ProtocolError::new(Code::ChannelError, "expected 'channel.open'"));
        };
        let (count, max) = (self.client.channels.len(), self.client.channel_max);
        if count >= usize::from(max) {
            let text = format_args!(
                "number of channels opened ({count}) has reached the negotiated channel_max ({max})"
            );
            return Err(ProtocolError::new(Code::NotAllowed, text));
        }
        broker::open_session(world, &self.client.actor(), SessionId(number))
            .map_err(|error| self.client.error(&error))?;
        self.client.channels.insert(number, Channel::default());
        self.client.answer(world, number, Confirm::NOW, &channel::OpenOk);
        Ok(())
    }

    /// Takes a frame of a channel that the broker closes.
    #[cold]
    pub(super) fn take_of_closing<W: World>(
        &mut self,
        world: &W,
        number: u16,
        method: Option<Method<'_>>,
    ) -> Performed {
        let channel = self.client.channels.get(&number);
        match (method, channel.and_then(|channel| channel.closing.as_ref())) {
            // The refused frame itself, taken again to continue closing the channel.
            (_, Some(Closing::Ending(_))) => return self.end_refused(world, number),
            (Some(Method::ChannelCloseOk(_)), _) => {
                self.client.channels.remove(&number);
            }
            // Both ends are closing the channel at the same time.
            (Some(Method::ChannelClose(_)), _) => {
                self.client.answer(world, number, Confirm::NOW, &channel::CloseOk);
            }
            // Frames that the client sent before it learned of the end.
            _ => {}
        }
        Performed::Done
    }

    /// Publishes or parks a message that is complete in the input; returns `Some` if it has to stay
    /// there.
    #[inline]
    fn take_message<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        op: &basic::Publish<'_>,
        content: &Content<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Result<Option<Next>, ProtocolError> {
        let session = SessionId(frame.channel);
        let waiting = || frames(frame.channel, frame.payload, content);
        if self.intake.parking.has_parked_of(session) {
            self.intake.parking.push(session, waiting(), world.gauge());
            return Ok(None);
        }
        if self.publish_now(world, frame.channel, op, content, shared, budget)? {
            return Ok(None);
        }
        Ok(park(self, world, session, waiting))
    }

    /// Publishes a message; returns false if it has to wait for the end of an alarm or for a queue.
    /// No earlier message of the channel may be parked.
    #[inline]
    fn publish_now<W: World>(
        &mut self,
        world: &W,
        number: u16,
        op: &basic::Publish<'_>,
        content: &Content<'_>,
        shared: Option<&Bytes>,
        budget: &mut Budget,
    ) -> Result<bool, ProtocolError> {
        if self.must_wait(world) {
            self.block(world);
            return Ok(false);
        }
        let performed = publish(&mut self.client, world, number, op, content, shared, budget)?;
        if performed == Performed::Done {
            return Ok(true);
        }
        self.intake.parking.wait_for_queue(SessionId(number), world.gauge());
        Ok(false)
    }

    /// Adds a frame to a message whose frames are not contiguous in the input.
    #[cold]
    fn take_of_content<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        budget: &mut Budget,
    ) -> Result<(), ProtocolError> {
        let (number, body_bytes_max) = (frame.channel, self.client.settings.body_bytes_max);
        let unfinished_bytes: usize = self.client.unfinished().map(Unfinished::came_bytes).sum();
        let unfinished_bytes_max = self.client.settings.unfinished_bytes_max;
        if unfinished_bytes + frame.payload.len() > unfinished_bytes_max {
            let text = format_args!(
                "unfinished messages on all channels have more than {unfinished_bytes_max} bytes; send one after the other"
            );
            return Err(ProtocolError::new(Code::ResourceError, text));
        }
        let channel = self.client.channels.entry(number).or_default();
        let Some(unfinished) = channel.unfinished.as_mut() else { return Ok(()) };
        self.client.has_unfinished = true;
        let is_whole = unfinished.add(frame.kind, frame.payload, body_bytes_max);
        if !is_whole.map_err(|error| content_error(&error, body_bytes_max))? {
            return Ok(());
        }
        let Some(finished) = channel.unfinished.take().and_then(Unfinished::finish) else { return Ok(()) };
        let has_unfinished = self.client.unfinished().next().is_some();
        self.client.has_unfinished = has_unfinished;
        let Ok(Method::BasicPublish(op)) = Method::decode(&finished.method) else { return Ok(()) };
        let (session, body) = (SessionId(number), Bytes::from(finished.body));
        let content = Content { properties: &finished.properties, body: &body };
        let shared = (body.len() >= BODY_SHARED_MIN).then_some(&body);
        if !self.intake.parking.has_parked_of(session)
            && self.publish_now(world, number, &op, &content, shared, budget)?
        {
            return Ok(());
        }
        let waiting = frames(number, &finished.method, &content);
        self.intake.parking.push(session, waiting, world.gauge());
        Ok(())
    }

    /// Performs a method, or parks it behind earlier ones of its channel; returns `Some` if it has
    /// to stay in the input.
    pub(super) fn take_method<W: World>(
        &mut self,
        world: &W,
        frame: &Frame<'_>,
        method: &Method<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Next>, ProtocolError> {
        let session = SessionId(frame.channel);
        let transaction = self.client.channels.get(&frame.channel).and_then(|it| it.transaction.as_ref());
        let is_transactional = transaction.is_some();
        // A commit without publishes does not wait for alarms, as its settles free memory and disk
        // space.
        let publishes = transaction.is_some_and(|transaction| !transaction.mandatory.is_empty());
        // Settles free memory, and no parked frame but a commit could change their meaning.
        let settles = matches!(method, Method::BasicAck(_) | Method::BasicNack(_) | Method::BasicReject(_));
        let has_parked = self.intake.parking.has_parked_of(session);
        let is_behind = has_parked && (is_transactional || !settles);
        if matches!(method, Method::TxCommit(_)) && publishes && self.must_wait(world) {
            self.block(world);
        } else if !is_behind {
            match self.perform(world, frame.channel, method, budget) {
                Ok(Performed::Done) => return Ok(None),
                Ok(Performed::Partly) => return Ok(Some(Next::Again)),
                Ok(Performed::Held) => self.intake.parking.wait_for_queue(session, world.gauge()),
                // A refusal closes the channel, so it must wait for what the client sent before.
                Err(_) if has_parked => {}
                Err(error) => return Err(error),
            }
        }
        let waiting = frames_of_method(frame.channel, frame.payload);
        self.intake.parking.push(session, waiting, world.gauge());
        Ok(None)
    }
}

#[cold]
fn content_error(error: &ContentError, body_bytes_max: usize) -> ProtocolError {
    let unexpected = |text: &str| ProtocolError::new(Code::UnexpectedFrame, text);
    match error {
        ContentError::NoHeader => {
            unexpected("expected content header for class 60, got non content header frame instead")
        }
        ContentError::NoBody => unexpected("expected content body, got non content body frame instead"),
        ContentError::BodyTooLong { bytes, announced } => {
            let text = format_args!("content body has {bytes} bytes and its header says {announced}");
            ProtocolError::new(Code::FrameError, text)
        }
        ContentError::BodyOverLimit { bytes } => check_len(*bytes, body_bytes_max)
            .err()
            .unwrap_or_else(|| unexpected("a content body is over its limit")),
        ContentError::Decode(error) => (*error).into(),
    }
}
