//! The table of all described lists: performatives, termini, delivery states, transactions, SASL, and the sections of
//! messages that are lists.
//!
//! A line is a field, in the order of the list: whether it is mandatory, its name, its type and its default.

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
        /// Name of the host, or of a part of it, to which the connection is.
        optional hostname: &'a str,
        /// Bytes of a frame that the sender takes.
        default max_frame_size: u32 = u32::MAX,
        /// Highest channel that the sender takes.
        default channel_max: u16 = u16::MAX,
        /// Milliseconds of silence after which the sender closes.
        optional idle_time_out: u32,
        /// Languages of texts from the sender.
        optional outgoing_locales: Symbols<'a>,
        /// Languages of texts that the sender asks for.
        optional incoming_locales: Symbols<'a>,
        /// Extensions that the sender has.
        optional offered_capabilities: Symbols<'a>,
        /// Extensions that the sender would use.
        optional desired_capabilities: Symbols<'a>,
        /// Further facts of the sender.
        optional properties: Map<'a>,
    }

    /// Begins a session (AMQP 1.0, 2.7.2).
    Begin<'a> = 0x11 "amqp:begin:list" {
        /// Channel of the other end whose session this answers.
        optional remote_channel: u16,
        /// Number of the sender's next transfer.
        mandatory next_outgoing_id: u32,
        /// Transfers that the sender takes.
        mandatory incoming_window: u32,
        /// Transfers that the sender may send.
        mandatory outgoing_window: u32,
        /// Highest handle that the sender takes.
        default handle_max: u32 = u32::MAX,
        /// Extensions that the sender has.
        optional offered_capabilities: Symbols<'a>,
        /// Extensions that the sender would use.
        optional desired_capabilities: Symbols<'a>,
        /// Further facts of the session.
        optional properties: Map<'a>,
    }

    /// Attaches a link to a session (AMQP 1.0, 2.7.3).
    Attach<'a> = 0x12 "amqp:attach:list" {
        /// Name of the link between both containers.
        mandatory name: &'a str,
        /// Number of the link in the sender's frames.
        mandatory handle: u32,
        /// End of the link that the frame's sender is.
        mandatory role: Role,
        /// Settlement by the end that sends transfers.
        default snd_settle_mode: SenderSettleMode = SenderSettleMode::Mixed,
        /// Settlement by the end that receives them.
        default rcv_settle_mode: ReceiverSettleMode = ReceiverSettleMode::First,
        /// Node from which messages come.
        optional source: Source<'a>,
        /// Node to which they go.
        optional target: AnyTarget<'a>,
        /// States of unsettled deliveries by tag.
        optional unsettled: Map<'a>,
        /// Tells that `unsettled` lacks some.
        default incomplete_unsettled: bool = false,
        /// Number of deliveries so far, from the end that sends.
        optional initial_delivery_count: u32,
        /// Bytes of a message that the frame's sender takes; 0 is any number.
        optional max_message_size: u64,
        /// Extensions that the sender has.
        optional offered_capabilities: Symbols<'a>,
        /// Extensions that the sender would use.
        optional desired_capabilities: Symbols<'a>,
        /// Further facts of the link.
        optional properties: Map<'a>,
    }

    /// Tells windows of a session, and credit of a link (AMQP 1.0, 2.7.4).
    Flow<'a> = 0x13 "amqp:flow:list" {
        /// Number of the next transfer that the sender expects.
        optional next_incoming_id: u32,
        /// Transfers that the sender takes.
        mandatory incoming_window: u32,
        /// Number of the sender's next transfer.
        mandatory next_outgoing_id: u32,
        /// Transfers that the sender may send.
        mandatory outgoing_window: u32,
        /// The link, where the frame is about one.
        optional handle: u32,
        /// Deliveries on the link so far.
        optional delivery_count: u32,
        /// Deliveries that are allowed from that count on.
        optional link_credit: u32,
        /// Messages that could be delivered at once.
        optional available: u32,
        /// Tells that credit which cannot be used at once is to be given up.
        default drain: bool = false,
        /// Asks for a flow in return.
        default echo: bool = false,
        /// Further facts of the link.
        optional properties: Map<'a>,
    }

    /// Carries a message or a part of it, which is the payload behind it (AMQP 1.0, 2.7.5).
    Transfer<'a> = 0x14 "amqp:transfer:list" {
        /// The link.
        mandatory handle: u32,
        /// Number of the delivery in the session; the first part of a message has it.
        optional delivery_id: u32,
        /// Name of the delivery on the link; the first part of a message has it.
        optional delivery_tag: &'a [u8],
        /// Format of the message: 0 is that of the specification.
        optional message_format: u32,
        /// Tells whether the delivery is settled already.
        optional settled: bool,
        /// Tells that further parts of the message follow.
        default more: bool = false,
        /// Settlement by the receiver, where it differs from the link's.
        optional rcv_settle_mode: ReceiverSettleMode,
        /// State of the delivery.
        optional state: DeliveryState<'a>,
        /// Tells that a delivery of before is taken up again.
        default resume: bool = false,
        /// Tells that the message is given up.
        default aborted: bool = false,
        /// Tells that its answer may wait for others.
        default batchable: bool = false,
    }

    /// Tells the state of deliveries (AMQP 1.0, 2.7.6).
    Disposition<'a> = 0x15 "amqp:disposition:list" {
        /// End of their links that the frame's sender is.
        mandatory role: Role,
        /// Number of the first delivery.
        mandatory first: u32,
        /// Number of the last; absent, there is one alone.
        optional last: u32,
        /// Tells whether they are settled.
        default settled: bool = false,
        /// State of all of them.
        optional state: DeliveryState<'a>,
        /// Tells that the answer may wait for others.
        default batchable: bool = false,
    }

    /// Detaches a link (AMQP 1.0, 2.7.7).
    Detach<'a> = 0x16 "amqp:detach:list" {
        /// The link.
        mandatory handle: u32,
        /// Tells that the link ends and will not be attached again.
        default closed: bool = false,
        /// The reason.
        optional error: Error<'a>,
    }

    /// Ends a session (AMQP 1.0, 2.7.8).
    End<'a> = 0x17 "amqp:end:list" {
        /// The reason.
        optional error: Error<'a>,
    }

    /// Closes a connection (AMQP 1.0, 2.7.9).
    Close<'a> = 0x18 "amqp:close:list" {
        /// The reason.
        optional error: Error<'a>,
    }

    /// A reason (AMQP 1.0, 2.8.14).
    Error<'a> = 0x1d "amqp:error:list" {
        /// Its kind, for programs.
        mandatory condition: Symbol<'a>,
        /// Its text, for people.
        optional description: &'a str,
        /// Further facts.
        optional info: Map<'a>,
    }

    /// State of a delivery of which a part was received (AMQP 1.0, 3.4.1).
    Received = 0x23 "amqp:received:list" {
        /// Section up to which it was.
        mandatory section_number: u32,
        /// Bytes of that section.
        mandatory section_offset: u64,
    }

    /// Outcome of a delivery that was processed (AMQP 1.0, 3.4.2).
    Accepted = 0x24 "amqp:accepted:list" {}

    /// Outcome of a delivery that cannot be processed by anybody (AMQP 1.0, 3.4.3).
    Rejected<'a> = 0x25 "amqp:rejected:list" {
        /// The reason.
        optional error: Error<'a>,
    }

    /// Outcome of a delivery that was not processed (AMQP 1.0, 3.4.4).
    Released = 0x26 "amqp:released:list" {}

    /// Outcome of a delivery that was not processed, and is changed (AMQP 1.0, 3.4.5).
    Modified<'a> = 0x27 "amqp:modified:list" {
        /// Tells that the try counts as a failed one.
        optional delivery_failed: bool,
        /// Tells that this receiver is not to get it again.
        optional undeliverable_here: bool,
        /// Annotations to put into the message.
        optional message_annotations: Map<'a>,
    }

    /// A node from which messages come (AMQP 1.0, 3.5.3).
    Source<'a> = 0x28 "amqp:source:list" {
        /// Its address.
        optional address: &'a str,
        /// State that outlasts the link.
        default durable: TerminusDurability = TerminusDurability::None,
        /// Event after which it expires.
        default expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy::SessionEnd,
        /// Seconds until it expires after that.
        default timeout: u32 = 0,
        /// Tells that the node is to be made.
        default dynamic: bool = false,
        /// Facts of the node that is to be made.
        optional dynamic_node_properties: Map<'a>,
        /// Whether messages are taken away.
        optional distribution_mode: DistributionMode,
        /// Filters by name, of which a message has to pass all.
        optional filter: Map<'a>,
        /// Outcome of deliveries that have none.
        optional default_outcome: Outcome<'a>,
        /// Descriptors of outcomes that can be used.
        optional outcomes: Symbols<'a>,
        /// Extensions of the node.
        optional capabilities: Symbols<'a>,
    }

    /// A node to which messages go (AMQP 1.0, 3.5.4).
    Target<'a> = 0x29 "amqp:target:list" {
        /// Its address; absent, each message has its own.
        optional address: &'a str,
        /// State that outlasts the link.
        default durable: TerminusDurability = TerminusDurability::None,
        /// Event after which it expires.
        default expiry_policy: TerminusExpiryPolicy = TerminusExpiryPolicy::SessionEnd,
        /// Seconds until it expires after that.
        default timeout: u32 = 0,
        /// Tells that the node is to be made.
        default dynamic: bool = false,
        /// Facts of the node that is to be made.
        optional dynamic_node_properties: Map<'a>,
        /// Extensions of the node.
        optional capabilities: Symbols<'a>,
    }

    /// A target to which transactions are declared and discharged (AMQP 1.0, 4.5.1).
    Coordinator<'a> = 0x30 "amqp:coordinator:list" {
        /// Kinds of transactions that it does.
        optional capabilities: Symbols<'a>,
    }

    /// Asks for a transaction (AMQP 1.0, 4.5.2).
    Declare<'a> = 0x31 "amqp:declare:list" {
        /// A transaction of several resources, of which this is one.
        optional global_id: Value<'a>,
    }

    /// Ends a transaction (AMQP 1.0, 4.5.3).
    Discharge<'a> = 0x32 "amqp:discharge:list" {
        /// The transaction.
        mandatory txn_id: &'a [u8],
        /// Tells that it is rolled back.
        default fail: bool = false,
    }

    /// Outcome of a declaration (AMQP 1.0, 4.5.5).
    Declared<'a> = 0x33 "amqp:declared:list" {
        /// The transaction.
        mandatory txn_id: &'a [u8],
    }

    /// State of a delivery within a transaction (AMQP 1.0, 4.5.6).
    TransactionalState<'a> = 0x34 "amqp:transactional-state:list" {
        /// The transaction.
        mandatory txn_id: &'a [u8],
        /// Outcome that the commit gives the delivery.
        optional outcome: Outcome<'a>,
    }

    /// Mechanisms of a login that the broker has (AMQP 1.0, 5.3.3.1).
    SaslMechanisms<'a> = 0x40 "amqp:sasl-mechanisms:list" {
        /// Their names.
        mandatory sasl_server_mechanisms: Symbols<'a>,
    }

    /// Begins a login (AMQP 1.0, 5.3.3.2).
    SaslInit<'a> = 0x41 "amqp:sasl-init:list" {
        /// Name of the mechanism.
        mandatory mechanism: Symbol<'a>,
        /// First bytes of the mechanism.
        optional initial_response: &'a [u8],
        /// Name of the host to which the connection is.
        optional hostname: &'a str,
    }

    /// Asks for more of a login (AMQP 1.0, 5.3.3.3).
    SaslChallenge<'a> = 0x42 "amqp:sasl-challenge:list" {
        /// Bytes of the mechanism.
        mandatory challenge: &'a [u8],
    }

    /// Answers a challenge (AMQP 1.0, 5.3.3.4).
    SaslResponse<'a> = 0x43 "amqp:sasl-response:list" {
        /// Bytes of the mechanism.
        mandatory response: &'a [u8],
    }

    /// Ends a login (AMQP 1.0, 5.3.3.5).
    SaslOutcome<'a> = 0x44 "amqp:sasl-outcome:list" {
        /// How it ended.
        mandatory code: SaslCode,
        /// Last bytes of the mechanism.
        optional additional_data: &'a [u8],
    }

    /// The section that is about the transport of a message (AMQP 1.0, 3.2.1).
    Header = 0x70 "amqp:header:list" {
        /// Tells that the message is to outlast its node.
        default durable: bool = false,
        /// Rank among others; more is more urgent.
        default priority: u8 = 4,
        /// Milliseconds for which it is of use.
        optional ttl: u32,
        /// Tells that no other link had it before; absent means what false does.
        optional first_acquirer: bool,
        /// Tries that failed.
        default delivery_count: u32 = 0,
    }

    /// The section of a message's properties (AMQP 1.0, 3.2.4).
    Properties<'a> = 0x73 "amqp:properties:list" {
        /// Identifier of the message.
        optional message_id: MessageId<'a>,
        /// User that sent it.
        optional user_id: &'a [u8],
        /// Node to which it goes.
        optional to: &'a str,
        /// Summary of its content and purpose.
        optional subject: &'a str,
        /// Node to which replies go.
        optional reply_to: &'a str,
        /// Identifier of the message that this one answers.
        optional correlation_id: MessageId<'a>,
        /// MIME type of the body.
        optional content_type: Symbol<'a>,
        /// Encoding of the body, such as `gzip`.
        optional content_encoding: Symbol<'a>,
        /// Time at which it is of no more use.
        optional absolute_expiry_time: Timestamp,
        /// Time at which it was made.
        optional creation_time: Timestamp,
        /// Group that it belongs to.
        optional group_id: &'a str,
        /// Place in its group.
        optional group_sequence: u32,
        /// Group to which replies belong.
        optional reply_to_group_id: &'a str,
    }
}

choices! {
    /// A body of a frame (AMQP 1.0, 2.7).
    Performative<'a>, "performative" {
        /// Carries a message.
        Transfer(Transfer<'a>),
        /// Tells the state of deliveries.
        Disposition(Disposition<'a>),
        /// Tells windows and credit.
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
        /// The message was not processed, and is changed.
        Modified(Modified<'a>),
        /// A part was received.
        Received(Received),
        /// A transaction was declared.
        Declared(Declared<'a>),
    }

    /// Last state of a delivery (AMQP 1.0, 3.4).
    Outcome<'a>, "outcome" {
        /// The message was processed.
        Accepted(Accepted),
        /// The message was not processed.
        Released(Released),
        /// The message cannot be processed.
        Rejected(Rejected<'a>),
        /// The message was not processed, and is changed.
        Modified(Modified<'a>),
    }

    /// Target of a link.
    AnyTarget<'a>, "target" {
        /// A node.
        Target(Target<'a>),
        /// A coordinator of transactions.
        Coordinator(Coordinator<'a>),
    }

    /// Message to a coordinator, which is the value of an `amqp-value` (AMQP 1.0, 4.2 and 4.3).
    Coordination<'a>, "declare or discharge" {
        /// Asks for a transaction.
        Declare(Declare<'a>),
        /// Ends one.
        Discharge(Discharge<'a>),
    }

    /// A body of a frame of SASL (AMQP 1.0, 5.3.3).
    SaslFrame<'a>, "frame of SASL" {
        /// Mechanisms that the broker has.
        Mechanisms(SaslMechanisms<'a>),
        /// Begins a login.
        Init(SaslInit<'a>),
        /// Asks for more.
        Challenge(SaslChallenge<'a>),
        /// Answers that.
        Response(SaslResponse<'a>),
        /// Ends the login.
        Outcome(SaslOutcome<'a>),
    }
}

impl<'a> Performative<'a> {
    /// Reads the body of a frame: the performative, and the payload behind it.
    ///
    /// # Errors
    /// [`DecodeError`].
    #[inline]
    pub fn decode(body: &'a [u8]) -> Result<(Performative<'a>, &'a [u8]), DecodeError> {
        let mut input = Input::new(body);
        let performative = Performative::read(input.octet()?, &mut input)?;
        Ok((performative, input.rest()))
    }

    /// Appends the performative; its payload is to follow.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.push(out);
    }
}

impl<'a> SaslFrame<'a> {
    /// Reads the body of a frame of SASL, all of which it has to be.
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(body: &'a [u8]) -> Result<SaslFrame<'a>, DecodeError> {
        whole(body)
    }

    /// Appends it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.push(out);
    }
}

impl<'a> Coordination<'a> {
    /// Reads the value of a message to a coordinator, all of which it has to be.
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
