//! The table of all described lists: performatives, termini, delivery states, transactions, SASL,
//! and the sections of messages that are lists.
//!
//! Each line is a field, in the order of the list: its kind, name, type and default.

use crate::codec::composite::{Composite, FieldsWriter, choices, composites, descriptor, is_of, read_fields};
use crate::codec::error::{DecodeError, ValueError};
use crate::codec::field::Field;
use crate::codec::input::Input;
use crate::codec::restricted::{
    DistributionMode, MessageId, ReceiverSettleMode, Role, SaslCode, SenderSettleMode, TerminusDurability,
    TerminusExpiryPolicy,
};
use crate::codec::symbols::Symbols;
use crate::codec::value::{Map, Symbol, Timestamp, Value};

composites! {
    /// Opens a connection (AMQP 1.0, 2.7.1).
    Open<'a> = 0x10 "amqp:open:list" {
        /// Name of the sender's container.
        mandatory container_id: &'a str,
        /// Host name that the client connects to; it may select a vhost.
        optional hostname: &'a str,
        /// Largest frame that the sender accepts, in bytes.
        default max_frame_size: u32 = u32::MAX,
        /// Highest channel number that the sender accepts.
        default channel_max: u16 = u16::MAX,
        /// Milliseconds of silence after which the sender closes.
        optional idle_time_out: u32,
        /// Languages of texts that the sender writes.
        optional outgoing_locales: Symbols<'a>,
        /// Languages of texts that the sender wants.
        optional incoming_locales: Symbols<'a>,
        /// Extensions that the sender supports.
        optional offered_capabilities: Symbols<'a>,
        /// Extensions that the sender would use.
        optional desired_capabilities: Symbols<'a>,
        /// Further properties of the sender.
        optional properties: Map<'a>,
    }

    /// Begins a session (AMQP 1.0, 2.7.2).
    Begin<'a> = 0x11 "amqp:begin:list" {
        /// Channel of the peer whose `begin` this answers.
        optional remote_channel: u16,
        /// Number of the sender's next transfer.
        mandatory next_outgoing_id: u32,
        /// Transfers that the sender accepts.
        mandatory incoming_window: u32,
        /// Transfers that the sender may send.
        mandatory outgoing_window: u32,
        /// Highest handle that the sender accepts.
        default handle_max: u32 = u32::MAX,
        /// Extensions that the sender supports.
        optional offered_capabilities: Symbols<'a>,
        /// Extensions that the sender would use.
        optional desired_capabilities: Symbols<'a>,
        /// Further properties of the session.
        optional properties: Map<'a>,
    }

    /// Attaches a link to a session (AMQP 1.0, 2.7.3).
    Attach<'a> = 0x12 "amqp:attach:list" {
        /// Name of the link between both containers.
        mandatory name: &'a str,
        /// Number of the link in the sender's frames.
        mandatory handle: u32,
        /// Role of the frame's sender on the link.
        mandatory role: Role,
        /// When the sending end settles.
        default snd_settle_mode: SenderSettleMode = SenderSettleMode::Mixed,
        /// When the receiving end settles.
        default rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode::First,
        /// Node that messages come from.
        optional source: Source<'a>,
        /// Node that messages go to.
        optional target: AnyTarget<'a>,
        /// States of unsettled deliveries by delivery tag.
        optional unsettled: Map<'a>,
        /// Whether `unsettled` is incomplete.
        default incomplete_unsettled: bool = false,
        /// Initial delivery count, set by the sending end.
        optional initial_delivery_count: u32,
        /// Largest message that the frame's sender accepts, in bytes; 0 means no limit.
        optional max_message_size: u64,
        /// Extensions that the sender supports.
        optional offered_capabilities: Symbols<'a>,
        /// Extensions that the sender would use.
        optional desired_capabilities: Symbols<'a>,
        /// Further properties of the link.
        optional properties: Map<'a>,
    }

    /// Updates the windows of a session and the credit of a link (AMQP 1.0, 2.7.4).
    Flow<'a> = 0x13 "amqp:flow:list" {
        /// Number of the next transfer that the sender expects.
        optional next_incoming_id: u32,
        /// Transfers that the sender accepts.
        mandatory incoming_window: u32,
        /// Number of the sender's next transfer.
        mandatory next_outgoing_id: u32,
        /// Transfers that the sender may send.
        mandatory outgoing_window: u32,
        /// Handle of the link, if the frame is about one.
        optional handle: u32,
        /// Deliveries on the link so far.
        optional delivery_count: u32,
        /// Deliveries allowed after `delivery_count`.
        optional link_credit: u32,
        /// Messages that could be delivered at once.
        optional available: u32,
        /// Whether the sender of transfers must give up unused credit.
        default drain: bool = false,
        /// Whether a flow is wanted in return.
        default echo: bool = false,
        /// Further properties of the link.
        optional properties: Map<'a>,
    }

    /// Carries a message, or a part of one, as the payload after it (AMQP 1.0, 2.7.5).
    Transfer<'a> = 0x14 "amqp:transfer:list" {
        /// Handle of the link.
        mandatory handle: u32,
        /// Number of the delivery in the session; present in the first transfer of a message.
        optional delivery_id: u32,
        /// Tag of the delivery on the link; present in the first transfer of a message.
        optional delivery_tag: &'a [u8],
        /// Format of the message; 0 is the format of the specification.
        optional message_format: u32,
        /// Whether the delivery is already settled.
        optional settled: bool,
        /// Whether more transfers of the message follow.
        default more: bool = false,
        /// When the receiver settles, if different from the link's mode.
        optional rcv_settle_mode: ReceiverSettleMode,
        /// State of the delivery.
        optional state: DeliveryState<'a>,
        /// Whether an earlier delivery is resumed.
        default resume: bool = false,
        /// Whether the message is abandoned.
        default aborted: bool = false,
        /// Whether the answer may be batched.
        default batchable: bool = false,
    }

    /// Reports the state of deliveries (AMQP 1.0, 2.7.6).
    Disposition<'a> = 0x15 "amqp:disposition:list" {
        /// Role of the frame's sender on the links.
        mandatory role: Role,
        /// Number of the first delivery.
        mandatory first: u32,
        /// Number of the last delivery; absent if there is only one.
        optional last: u32,
        /// Whether the deliveries are settled.
        default settled: bool = false,
        /// State of all of them.
        optional state: DeliveryState<'a>,
        /// Whether the answer may be batched.
        default batchable: bool = false,
    }

    /// Detaches a link (AMQP 1.0, 2.7.7).
    Detach<'a> = 0x16 "amqp:detach:list" {
        /// Handle of the link.
        mandatory handle: u32,
        /// Whether the link is closed rather than suspended.
        default closed: bool = false,
        /// The reason, if it is an error.
        optional error: Error<'a>,
    }

    /// Ends a session (AMQP 1.0, 2.7.8).
    End<'a> = 0x17 "amqp:end:list" {
        /// The reason, if it is an error.
        optional error: Error<'a>,
    }

    /// Closes a connection (AMQP 1.0, 2.7.9).
    Close<'a> = 0x18 "amqp:close:list" {
        /// The reason, if it is an error.
        optional error: Error<'a>,
    }

    /// An error (AMQP 1.0, 2.8.14).
    Error<'a> = 0x1d "amqp:error:list" {
        /// The condition, for programs.
        mandatory condition: Symbol<'a>,
        /// A description, for people.
        optional description: &'a str,
        /// Further details.
        optional info: Map<'a>,
    }

    /// State of a partly received delivery (AMQP 1.0, 3.4.1).
    Received = 0x23 "amqp:received:list" {
        /// Section up to which the message was received.
        mandatory section_number: u32,
        /// Bytes received of that section.
        mandatory section_offset: u64,
    }

    /// Outcome of a delivery that was processed (AMQP 1.0, 3.4.2).
    Accepted = 0x24 "amqp:accepted:list" {}

    /// Outcome of a delivery that cannot be processed by any receiver (AMQP 1.0, 3.4.3).
    Rejected<'a> = 0x25 "amqp:rejected:list" {
        /// The reason.
        optional error: Error<'a>,
    }

    /// Outcome of a delivery that was not processed (AMQP 1.0, 3.4.4).
    Released = 0x26 "amqp:released:list" {}

    /// Outcome of a delivery that was not processed and gets annotations (AMQP 1.0, 3.4.5).
    Modified<'a> = 0x27 "amqp:modified:list" {
        /// Whether the attempt counts as failed.
        optional delivery_failed: bool,
        /// Whether the message must not be delivered to this receiver again.
        optional undeliverable_here: bool,
        /// Annotations to add to the message.
        optional message_annotations: Map<'a>,
    }

    /// A node that messages come from (AMQP 1.0, 3.5.3).
    Source<'a> = 0x28 "amqp:source:list" {
        /// Its address.
        optional address: &'a str,
        /// The state that survives the link.
        default durable: TerminusDurability = TerminusDurability::None,
        /// Event after which it expires.
        default expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy::SessionEnd,
        /// Seconds until it expires after that.
        default timeout: u32 = 0,
        /// Whether to create the node.
        default dynamic: bool = false,
        /// Properties of the node to create.
        optional dynamic_node_properties: Map<'a>,
        /// Whether deliveries take messages from the node.
        optional distribution_mode: DistributionMode,
        /// Filters by name; a message must pass all of them.
        optional filter: Map<'a>,
        /// Outcome of deliveries settled without one.
        optional default_outcome: Outcome<'a>,
        /// Descriptors of the supported outcomes.
        optional outcomes: Symbols<'a>,
        /// Capabilities of the node.
        optional capabilities: Symbols<'a>,
    }

    /// A node that messages go to (AMQP 1.0, 3.5.4).
    Target<'a> = 0x29 "amqp:target:list" {
        /// Its address; absent if each message names its own.
        optional address: &'a str,
        /// The state that survives the link.
        default durable: TerminusDurability = TerminusDurability::None,
        /// Event after which it expires.
        default expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy::SessionEnd,
        /// Seconds until it expires after that.
        default timeout: u32 = 0,
        /// Whether to create the node.
        default dynamic: bool = false,
        /// Properties of the node to create.
        optional dynamic_node_properties: Map<'a>,
        /// Capabilities of the node.
        optional capabilities: Symbols<'a>,
    }

    /// A target for declaring and discharging transactions (AMQP 1.0, 4.5.1).
    Coordinator<'a> = 0x30 "amqp:coordinator:list" {
        /// Kinds of transactions that it supports.
        optional capabilities: Symbols<'a>,
    }

    /// Asks for a new transaction (AMQP 1.0, 4.5.2).
    Declare<'a> = 0x31 "amqp:declare:list" {
        /// Global transaction to join.
        optional global_id: Value<'a>,
    }

    /// Ends a transaction (AMQP 1.0, 4.5.3).
    Discharge<'a> = 0x32 "amqp:discharge:list" {
        /// The transaction.
        mandatory txn_id: &'a [u8],
        /// Whether to roll it back.
        default fail: bool = false,
    }

    /// Outcome of a `declare` (AMQP 1.0, 4.5.5).
    Declared<'a> = 0x33 "amqp:declared:list" {
        /// The transaction.
        mandatory txn_id: &'a [u8],
    }

    /// State of a delivery within a transaction (AMQP 1.0, 4.5.6).
    TransactionalState<'a> = 0x34 "amqp:transactional-state:list" {
        /// The transaction.
        mandatory txn_id: &'a [u8],
        /// Outcome of the delivery if the transaction commits.
        optional outcome: Outcome<'a>,
    }

    /// Login mechanisms of the broker (AMQP 1.0, 5.3.3.1).
    SaslMechanisms<'a> = 0x40 "amqp:sasl-mechanisms:list" {
        /// Their names.
        mandatory sasl_server_mechanisms: Symbols<'a>,
    }

    /// Begins a login (AMQP 1.0, 5.3.3.2).
    SaslInit<'a> = 0x41 "amqp:sasl-init:list" {
        /// Name of the mechanism.
        mandatory mechanism: Symbol<'a>,
        /// Initial response of the mechanism.
        optional initial_response: &'a [u8],
        /// Host name that the client connects to.
        optional hostname: &'a str,
    }

    /// Asks for more of a login (AMQP 1.0, 5.3.3.3).
    SaslChallenge<'a> = 0x42 "amqp:sasl-challenge:list" {
        /// Data of the mechanism.
        mandatory challenge: &'a [u8],
    }

    /// Answers a challenge (AMQP 1.0, 5.3.3.4).
    SaslResponse<'a> = 0x43 "amqp:sasl-response:list" {
        /// Data of the mechanism.
        mandatory response: &'a [u8],
    }

    /// Ends a login (AMQP 1.0, 5.3.3.5).
    SaslOutcome<'a> = 0x44 "amqp:sasl-outcome:list" {
        /// The result.
        mandatory code: SaslCode,
        /// Final data of the mechanism.
        optional additional_data: &'a [u8],
    }

    /// The section about the transport of a message (AMQP 1.0, 3.2.1).
    Header = 0x70 "amqp:header:list" {
        /// Whether the message must survive a restart of its node.
        default durable: bool = false,
        /// Priority; higher is more urgent.
        default priority: u8 = 4,
        /// Time to live in milliseconds.
        optional ttl: u32,
        /// Whether no other link had the message before; absent means false.
        optional first_acquirer: bool,
        /// Number of failed deliveries.
        default delivery_count: u32 = 0,
    }

    /// The section of a message's properties (AMQP 1.0, 3.2.4).
    Properties<'a> = 0x73 "amqp:properties:list" {
        /// Identifier of the message.
        optional message_id: MessageId<'a>,
        /// User that sent it.
        optional user_id: &'a [u8],
        /// Node that the message goes to.
        optional to: &'a str,
        /// Summary of content and purpose.
        optional subject: &'a str,
        /// Node that replies go to.
        optional reply_to: &'a str,
        /// Identifier of the message that this one answers.
        optional correlation_id: MessageId<'a>,
        /// MIME type of the body.
        optional content_type: Symbol<'a>,
        /// Encoding of the body, such as `gzip`.
        optional content_encoding: Symbol<'a>,
        /// Time at which the message expires.
        optional absolute_expiry_time: Timestamp,
        /// Time at which the message was created.
        optional creation_time: Timestamp,
        /// Group of the message.
        optional group_id: &'a str,
        /// Position in the group.
        optional group_sequence: u32,
        /// Group that replies belong to.
        optional reply_to_group_id: &'a str,
    }
}

choices! {
    /// The body of a frame (AMQP 1.0, 2.7).
    Performative<'a>, "performative" {
        /// Carries a message.
        Transfer(Transfer<'a>),
        /// Reports the state of deliveries.
        Disposition(Disposition<'a>),
        /// Updates windows and credit.
        Flow(Flow<'a>),
        /// Attaches a link.
        Attach(Attach<'a>),
        /// Detaches a link.
        Detach(Detach<'a>),
        /// Begins a session.
        Begin(Begin<'a>),
        /// Ends a session.
        End(End<'a>),
        /// Opens a connection.
        Open(Open<'a>),
        /// Closes a connection.
        Close(Close<'a>),
    }

    /// State of a delivery (AMQP 1.0, 3.4 and 4.5).
    DeliveryState<'a>, "delivery-state" {
        /// The message was processed.
        Accepted(Accepted),
        /// The state belongs to a transaction.
        Transactional(TransactionalState<'a>),
        /// The message was not processed.
        Released(Released),
        /// The message cannot be processed.
        Rejected(Rejected<'a>),
        /// The message was not processed and gets annotations.
        Modified(Modified<'a>),
        /// A part was received.
        Received(Received),
        /// A transaction was declared.
        Declared(Declared<'a>),
    }

    /// A final state of a delivery (AMQP 1.0, 3.4).
    Outcome<'a>, "outcome" {
        /// The message was processed.
        Accepted(Accepted),
        /// The message was not processed.
        Released(Released),
        /// The message cannot be processed.
        Rejected(Rejected<'a>),
        /// The message was not processed and gets annotations.
        Modified(Modified<'a>),
    }

    /// Target of a link.
    AnyTarget<'a>, "target" {
        /// A node.
        Target(Target<'a>),
        /// A coordinator of transactions.
        Coordinator(Coordinator<'a>),
    }

    /// A message to a coordinator: the value of an `amqp-value` (AMQP 1.0, 4.2 and 4.3).
    Coordination<'a>, "declare or discharge" {
        /// Asks for a new transaction.
        Declare(Declare<'a>),
        /// Ends a transaction.
        Discharge(Discharge<'a>),
    }

    /// The body of a SASL frame (AMQP 1.0, 5.3.3).
    SaslFrame<'a>, "frame of SASL" {
        /// Mechanisms of the broker.
        Mechanisms(SaslMechanisms<'a>),
        /// Begins the login.
        Init(SaslInit<'a>),
        /// Asks for a response.
        Challenge(SaslChallenge<'a>),
        /// Answers a challenge.
        Response(SaslResponse<'a>),
        /// Ends the login with a result.
        Outcome(SaslOutcome<'a>),
    }
}

impl<'a> Performative<'a> {
    /// Decodes the body of a frame into the performative and the payload after it.
    ///
    /// # Errors
    /// [`DecodeError`].
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<(Performative<'a>, &'a [u8]), DecodeError> {
        let mut input = Input::new(body);
        let performative = Performative::read(input.octet()?, &mut input)?;
        Ok((performative, input.rest()))
    }

    /// Appends the performative; the caller appends the payload.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.push(out);
    }
}

impl<'a> SaslFrame<'a> {
    /// Decodes the body of a SASL frame, which has no payload.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(body: &'a [u8]) -> Result<SaslFrame<'a>, DecodeError> {
        whole(body)
    }

    /// Appends the SASL frame's body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.push(out);
    }
}

impl<'a> Coordination<'a> {
    /// Decodes the value of a message to a coordinator; nothing may follow it.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(value: &'a [u8]) -> Result<Coordination<'a>, DecodeError> {
        whole(value)
    }
}

fn whole<'a, F: Field<'a>>(bytes: &'a [u8]) -> Result<F, DecodeError> {
    let mut input = Input::new(bytes);
    let field = F::read(input.octet()?, &mut input)?;
    if input.is_empty() { Ok(field) } else { Err(ValueError::TooLong.into()) }
}
