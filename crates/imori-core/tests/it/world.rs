//! A world of one thread: plain cells that notice when locks are taken in the wrong order.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::Duration;

use imori_core::authorize::Identity;
use imori_core::broker::{
    self, Actor, ConsumeOptions, PublishReport, SubscribeOptions, queue_woken, resume_publishers,
    wake_consumers,
};
use imori_core::confirm::Lsn;
use imori_core::delivery::{Delivery, Outcome};
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, QueueId, ReaderId, VhostId};
use imori_core::limits::RECORD_SLACK_BYTES;
use imori_core::memory::Gauge;
use imori_core::message::{Head, HeaderReader, OriginId, Property, Publication, Span, Value};
use imori_core::name::Name;
use imori_core::outbound::{
    AfterCancel, Credit, CutReason, Encoder, Numbers, Outbound, OutboundLimits, SessionId,
};
use imori_core::queue::{DeadLetter, PageWork, Queue, QueueSettings};
use imori_core::record::{Appended, NewRecord, RecordKind};
use imori_core::route::hamt::Seed;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Router, Settings, Syntax, Table, TableLimits};
use imori_core::time::Time;
use imori_core::topology::Topology;
use imori_core::world::{Event, World};

pub(crate) const VHOST: VhostId = VhostId(0);
const QUEUES_MAX: usize = 500;
pub(crate) const LIMITS: OutboundLimits =
    OutboundLimits { feed_bytes: 200, unsent_bytes_max: 2000, inboxes_max: 4 };

/// What is locked, in the order in which it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lock {
    None,
    Topology,
    Queue,
    Outbound,
}

pub(crate) struct TestWorld {
    now: Cell<Time>,
    secrets: Cell<u8>,
    gauge: Gauge,
    counts: RefCell<BTreeMap<Event, usize>>,
    router: RefCell<Router>,
    topology: RefCell<Topology>,
    /// The table as readers see it.
    table: RefCell<Table>,
    queues: RefCell<Vec<Slot>>,
    outbounds: RefCell<BTreeMap<ConnectionId, Rc<RefCell<Outbound>>>>,
    wakes: RefCell<BTreeSet<(Time, QueueId)>>,
    pub(crate) resumed: RefCell<Vec<ConnectionId>>,
    /// Who was told to go on, having waited for a queue.
    pub(crate) relieved: RefCell<Vec<ConnectionId>>,
    lock: Cell<Lock>,
    /// How often a queue was locked alone.
    pub(crate) queue_locks: Cell<usize>,
    /// Records with their numbers, and of those of a group that they are of one.
    pub(crate) journal: RefCell<Vec<(Lsn, NewRecord, bool)>>,
    appended: Cell<Lsn>,
    /// Bytes that the journal takes as one.
    pub(crate) group_bytes_max: Cell<usize>,
    identity: Identity,
    /// Bytes of memory that a queue may keep.
    pub(crate) share: Cell<usize>,
    /// Bytes of the disk for dead letters, where there is little; nobody has them twice.
    pub(crate) room: Cell<Option<usize>>,
    pub(crate) is_room_taken: Cell<bool>,
    /// The same for one command, where there is more.
    pub(crate) moves_bytes_max: Cell<usize>,
    /// There is room for what is declared.
    pub(crate) may_declare: Cell<bool>,
    /// What queues asked of the disk.
    pub(crate) work: RefCell<Vec<PageWork>>,
}

/// A place for a queue, and how often it was used before.
type Slot = (u32, Option<Rc<RefCell<Queue>>>);

impl TestWorld {
    pub(crate) fn new() -> TestWorld {
        let mut table = Table::new(Seed(1), TableLimits::default());
        table.add_vhost(VHOST);
        TestWorld {
            now: Cell::new(Time(1_000_000)),
            secrets: Cell::new(0),
            gauge: Gauge::default(),
            counts: RefCell::default(),
            router: RefCell::default(),
            table: RefCell::new(table.clone()),
            topology: RefCell::new(Topology::new(table)),
            queues: RefCell::default(),
            outbounds: RefCell::default(),
            wakes: RefCell::default(),
            resumed: RefCell::default(),
            relieved: RefCell::default(),
            lock: Cell::new(Lock::None),
            queue_locks: Cell::default(),
            journal: RefCell::default(),
            appended: Cell::default(),
            group_bytes_max: Cell::new(1 << 20),
            identity: Identity::guest(),
            share: Cell::new(usize::MAX),
            room: Cell::default(),
            is_room_taken: Cell::default(),
            moves_bytes_max: Cell::new(usize::MAX),
            may_declare: Cell::new(true),
            work: RefCell::default(),
        }
    }

    fn locked<R>(&self, lock: Lock, f: impl FnOnce() -> R) -> R {
        let before = self.lock.replace(lock);
        assert!(before < lock, "{lock:?} is taken while {before:?} is held");
        let result = f();
        self.lock.set(before);
        result
    }

    // ---- Connections.

    pub(crate) fn connect(&self, slot: u32) -> Client<'_> {
        self.connect_again(slot, 0)
    }

    pub(crate) fn connect_again(&self, slot: u32, generation: u32) -> Client<'_> {
        let id = ConnectionId { cell: 0, slot, generation };
        let outbound = Outbound::new(id, Box::new(Plain), LIMITS, self.gauge.clone());
        self.outbounds.borrow_mut().insert(id, Rc::new(RefCell::new(outbound)));
        Client { world: self, id }
    }

    // ---- Time.

    /// Lets time pass and wakes the queues that are due; tells how many wake-ups came.
    pub(crate) fn pass(&self, time: Duration) -> usize {
        let end = self.now.get().after(time);
        let mut woken = 0;
        loop {
            let first = self.wakes.borrow().first().copied().filter(|(at, _)| *at <= end);
            let Some((at, id)) = first else {
                break;
            };
            self.wakes.borrow_mut().pop_first();
            self.now.set(at.max(self.now.get()));
            queue_woken(self, id);
            woken += 1;
        }
        self.now.set(end);
        woken
    }

    /// A world like one that went away with this journal; the caller has its queues.
    pub(crate) fn after(journal: &[(Lsn, NewRecord, bool)], now: Time) -> TestWorld {
        let world = TestWorld::new();
        world.now.set(now);
        world.appended.set(journal.last().map_or(Lsn::NONE, |(lsn, ..)| Lsn(lsn.0 + 1)));
        world.journal.replace(journal.to_vec());
        world
    }

    // ---- What it looks like.

    pub(crate) fn counted(&self, event: Event) -> usize {
        self.counts.borrow().get(&event).copied().unwrap_or(0)
    }

    pub(crate) fn charged(&self) -> usize {
        self.gauge.bytes()
    }

    /// How many messages of a queue are ready and how many unsettled; `None` where it is not there.
    pub(crate) fn depth(&self, name: &str) -> Option<(usize, usize)> {
        let id = self.table.borrow().queue(VHOST, name.as_bytes())?;
        self.with_queue(id, |queue| (queue.ready_len(), queue.unsettled_len()))
    }

    /// The queue of this name.
    pub(crate) fn queue(&self, name: &str) -> Option<QueueId> {
        self.table.borrow().queue(VHOST, name.as_bytes())
    }

    pub(crate) fn bindings(&self, exchange: &str) -> usize {
        let table = self.table.borrow();
        let mut count = 0;
        if let Some(exchange) = table.exchange(VHOST, exchange.as_bytes()) {
            exchange.for_each_binding(&mut |_| count += 1);
        }
        count
    }
}

impl World for TestWorld {
    fn now(&self) -> Time {
        self.now.get()
    }

    fn secret(&self) -> [u8; 16] {
        self.secrets.set(self.secrets.get() + 1);
        [self.secrets.get(); 16]
    }

    fn is_alarmed(&self) -> bool {
        false
    }

    fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    fn count_many(&self, event: Event, times: usize) {
        *self.counts.borrow_mut().entry(event).or_default() += times;
    }

    fn with_router<R>(&self, f: impl FnOnce(&mut Router, &Table) -> R) -> R {
        f(&mut self.router.borrow_mut(), &self.table.borrow())
    }

    fn with_topology<R>(&self, f: impl FnOnce(&mut Topology) -> R) -> R {
        self.locked(Lock::Topology, || {
            let result = f(&mut self.topology.borrow_mut());
            self.table.replace(self.topology.borrow().table().clone());
            result
        })
    }

    fn append(&self, records: Vec<NewRecord>) -> Appended {
        let first = Lsn(self.appended.get().0 + 1);
        // Of two counts of one message the later is believed, so that nobody else may come between.
        let is_count = |record: &NewRecord| record.kind == RecordKind::Count;
        assert!(self.lock.get() == Lock::Queue || !records.iter().any(is_count), "its queue is locked");
        for record in records {
            assert!(record.payload.len() + RECORD_SLACK_BYTES <= self.group_bytes_max(), "it fits");
            self.appended.set(Lsn(self.appended.get().0 + 1));
            self.journal.borrow_mut().push((self.appended.get(), record, false));
        }
        Appended { first, through: self.appended.get() }
    }

    fn append_group(&self, records: Vec<NewRecord>) -> Appended {
        let bytes: usize = records.iter().map(|record| record.payload.len() + RECORD_SLACK_BYTES).sum();
        assert!(bytes <= self.group_bytes_max(), "they fit");
        let begins = self.journal.borrow().len();
        self.appended.set(Lsn(self.appended.get().0 + 1));
        let appended = self.append(records);
        self.journal.borrow_mut().iter_mut().skip(begins).for_each(|(.., is_of_group)| *is_of_group = true);
        self.appended.set(Lsn(self.appended.get().0 + 1));
        Appended { through: self.appended.get(), ..appended }
    }

    fn appended(&self) -> Lsn {
        self.appended.get()
    }

    fn group_bytes_max(&self) -> usize {
        self.group_bytes_max.get()
    }

    fn is_room_scarce(&self) -> bool {
        self.room.get().is_some()
    }

    fn moves_bytes_max(&self) -> usize {
        self.moves_bytes_max.get()
    }

    fn take_room(&self) -> Option<usize> {
        if self.is_room_taken.replace(true) { None } else { self.room.get() }
    }

    fn give_room_back(&self) {
        assert!(self.is_room_taken.replace(false), "it was taken");
    }

    fn has_room_to_declare(&self) -> bool {
        self.may_declare.get()
    }

    fn add_queue(&self, queue: Queue) -> Option<QueueId> {
        let mut queues = self.queues.borrow_mut();
        let free = queues.iter().position(|(_, queue)| queue.is_none());
        let slot = match free {
            Some(slot) => slot,
            None if queues.len() >= QUEUES_MAX => return None,
            None => {
                queues.push((0, None));
                queues.len() - 1
            }
        };
        queues[slot].1 = Some(Rc::new(RefCell::new(queue)));
        Some(QueueId { slot: slot as u32, generation: queues[slot].0 })
    }

    fn remove_queue(&self, id: QueueId) -> Option<Queue> {
        let mut queues = self.queues.borrow_mut();
        let (generation, place) = queues.get_mut(id.slot as usize)?;
        if *generation != id.generation {
            return None;
        }
        let queue = place.take()?;
        *generation += 1;
        Some(Rc::into_inner(queue).expect("nobody has it locked").into_inner())
    }

    fn with_queue<R>(&self, id: QueueId, f: impl FnOnce(&mut Queue) -> R) -> Option<R> {
        self.queue_locks.set(self.queue_locks.get() + 1);
        let queue = self.find(id)?;
        Some(self.locked(Lock::Queue, || f(&mut queue.borrow_mut())))
    }

    fn with_queues<R>(&self, ids: &[QueueId], f: impl FnOnce(&mut [Option<&mut Queue>]) -> R) -> R {
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?} rise");
        let queues: Vec<_> = ids.iter().map(|id| self.find(*id)).collect();
        let mut borrowed: Vec<_> =
            queues.iter().map(|queue| queue.as_ref().map(|queue| queue.borrow_mut())).collect();
        let mut lent: Vec<Option<&mut Queue>> =
            borrowed.iter_mut().map(|queue| queue.as_mut().map(|queue| &mut **queue)).collect();
        self.locked(Lock::Queue, || f(&mut lent))
    }

    fn with_outbound<R>(&self, id: ConnectionId, f: impl FnOnce(&mut Outbound) -> R) -> Option<R> {
        let outbound = self.outbounds.borrow().get(&id).cloned()?;
        Some(self.locked(Lock::Outbound, || f(&mut outbound.borrow_mut())))
    }

    fn queue_memory_bytes(&self) -> usize {
        self.share.get()
    }

    fn page(&self, _: QueueId, work: PageWork) {
        self.work.borrow_mut().push(work);
    }

    fn wake_queue_at(&self, id: QueueId, at: Time) {
        self.wakes.borrow_mut().insert((at, id));
    }

    fn resume(&self, publisher: ConnectionId) {
        self.resumed.borrow_mut().push(publisher);
    }

    fn relieve(&self, publisher: ConnectionId) {
        self.relieved.borrow_mut().push(publisher);
    }

    fn header_reader(&self, _: OriginId) -> &dyn HeaderReader {
        &Lines
    }
}

impl TestWorld {
    fn find(&self, id: QueueId) -> Option<Rc<RefCell<Queue>>> {
        let queues = self.queues.borrow();
        let (generation, queue) = queues.get(id.slot as usize)?;
        queue.clone().filter(|_| *generation == id.generation)
    }
}

/// Reads `name=value` lines.
struct Lines;

impl HeaderReader for Lines {
    fn visit_headers<'t>(&self, text: &'t [u8], visit: &mut dyn FnMut(Cow<'t, [u8]>, Value<'t>)) {
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(middle) = line.iter().position(|byte| *byte == b'=') {
                visit(Cow::Borrowed(&line[..middle]), Value::text(&line[middle + 1..]));
            }
        }
    }
}

/// Writes `label:body;`, with `!` where it was given out before and the deaths behind.
struct Plain;

impl Encoder for Plain {
    fn kind(&self) -> u16 {
        1
    }

    fn head(&mut self, out: &mut Vec<u8>, label: &[u8], _: u64, _: bool, delivery: &Delivery<'_>) {
        out.extend_from_slice(label);
        if delivery.is_redelivered {
            out.push(b'!');
        }
    }

    fn headers(&mut self, out: &mut Vec<u8>, _: &Delivery<'_>) {
        out.push(b':');
    }

    fn body(&mut self, out: &mut Vec<u8>, delivery: &Delivery<'_>) {
        out.extend_from_slice(delivery.message.body);
        for death in delivery.deaths.iter().flat_map(|deaths| deaths.iter()) {
            let text = format!("({} {} {})", death.queue, death.reason.as_str(), death.count);
            out.extend_from_slice(text.as_bytes());
        }
        out.push(b';');
    }

    fn cancelled(&mut self, out: &mut Vec<u8>, label: &[u8], queue: &Name) -> AfterCancel {
        out.extend_from_slice(format!("{} lost {queue};", String::from_utf8_lossy(label)).as_bytes());
        AfterCancel::GoOn
    }

    fn cut(&mut self, out: &mut Vec<u8>, _: &CutReason) {
        out.extend_from_slice(b"cut;");
    }
}

/// What a publisher says of a message; a name of its own is its whole header text.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mail<'a> {
    pub(crate) body: &'a str,
    pub(crate) id: &'a str,
    pub(crate) delay_ms: u32,
    pub(crate) expiration_ms: Option<u32>,
    pub(crate) priority: Option<u8>,
    /// It goes with the broker.
    pub(crate) is_transient: bool,
}

impl Mail<'_> {
    pub(crate) fn head(&self) -> Head {
        let mut head = Head::new(OriginId::BROKER);
        head.is_persistent = !self.is_transient;
        head.delay_ms = NonZeroU32::new(self.delay_ms);
        head.expiration_ms = self.expiration_ms;
        head.priority = self.priority;
        head.set(Property::MessageId, Span::new(0, self.id.len()).expect("it is short"));
        head
    }
}

/// A connection and what its client does.
#[derive(Clone, Copy)]
pub(crate) struct Client<'w> {
    pub(crate) world: &'w TestWorld,
    pub(crate) id: ConnectionId,
}

impl<'w> Client<'w> {
    pub(crate) fn actor(&self) -> Actor<'w> {
        Actor { identity: &self.world.identity, connection: self.id, vhost: VHOST }
    }

    pub(crate) fn declare(&self, name: &str) -> QueueId {
        self.declare_with(name, &QueueSettings::default()).expect("the queue is new or plain")
    }

    pub(crate) fn declare_with(&self, name: &str, settings: &QueueSettings) -> Result<QueueId, BrokerError> {
        broker::declare_queue(self.world, &self.actor(), name.as_bytes(), settings, true)
            .map(|declared| declared.id)
    }

    pub(crate) fn bind(&self, exchange: &str, key: &str, queue: QueueId) -> Result<(), BrokerError> {
        let key = BindingKey::new(Syntax::Amqp, key.as_bytes());
        let (actor, arguments) = (self.actor(), Arguments::NONE);
        broker::bind_queue(self.world, &actor, exchange.as_bytes(), &key, &arguments, queue).map(drop)
    }

    /// Declares an exchange that outlives the broker.
    pub(crate) fn exchange(&self, name: &str, kind: ExchangeKind) {
        let settings = Settings { is_durable: true, ..Settings::default() };
        broker::declare_exchange(self.world, &self.actor(), name.as_bytes(), kind, settings)
            .expect("it is new");
    }

    pub(crate) fn publish(&self, exchange: &str, subject: &str, body: &str) -> PublishReport {
        self.try_publish(exchange, subject, "", body).expect("the exchange is there")
    }

    pub(crate) fn try_publish(
        &self,
        exchange: &str,
        subject: &str,
        text: &str,
        body: &str,
    ) -> Result<PublishReport, BrokerError> {
        let head = Head::new(OriginId::BROKER);
        let publication = Publication::new(&head, text.as_bytes(), body.as_bytes());
        broker::publish(self.world, &self.actor(), exchange.as_bytes(), subject.as_bytes(), &publication)
    }

    /// Publishes a message that is to outlive the broker, and otherwise as `mail` says.
    pub(crate) fn mail(&self, exchange: &str, subject: &str, mail: &Mail<'_>) -> PublishReport {
        self.try_mail(exchange, subject, mail).expect("the exchange is there")
    }

    pub(crate) fn try_mail(
        &self,
        exchange: &str,
        subject: &str,
        mail: &Mail<'_>,
    ) -> Result<PublishReport, BrokerError> {
        let head = mail.head();
        let publication = Publication::new(&head, mail.id.as_bytes(), mail.body.as_bytes());
        broker::publish(self.world, &self.actor(), exchange.as_bytes(), subject.as_bytes(), &publication)
    }

    /// Sends to a queue by its name.
    pub(crate) fn send(&self, queue: &str, body: &str) -> PublishReport {
        self.publish("", queue, body)
    }

    pub(crate) fn subscribe(&self, pattern: &str, label: &str) -> ReaderId {
        self.try_subscribe("amq.topic", pattern, label, None).expect("the pattern is one")
    }

    pub(crate) fn join(&self, group: &str, pattern: &str, label: &str) -> ReaderId {
        self.try_subscribe("amq.topic", pattern, label, Some(group)).expect("the pattern is one")
    }

    pub(crate) fn try_subscribe(
        &self,
        exchange: &str,
        pattern: &str,
        label: &str,
        group: Option<&str>,
    ) -> Result<ReaderId, BrokerError> {
        let key = BindingKey::new(Syntax::Amqp, pattern.as_bytes());
        let options = SubscribeOptions {
            session: SessionId(0),
            label: label.as_bytes().into(),
            group: group.map(Name::from),
        };
        broker::subscribe(self.world, &self.actor(), exchange.as_bytes(), &key, options)
    }

    /// Consumes with a window of `credit`, or without settling where that is zero.
    pub(crate) fn consume(&self, queue: &str, label: &str, credit: u32) -> ReaderId {
        self.try_consume(queue, label, credit, false).expect("the queue is there")
    }

    pub(crate) fn try_consume(
        &self,
        queue: &str,
        label: &str,
        credit: u32,
        is_exclusive: bool,
    ) -> Result<ReaderId, BrokerError> {
        let id = broker::find_queue(self.world, &self.actor(), queue.as_bytes())?;
        let options = ConsumeOptions {
            session: SessionId(0),
            label: label.as_bytes().into(),
            settles: credit > 0,
            credit: if credit > 0 { Credit::window(credit) } else { Credit::Unlimited },
            priority: 0,
            is_exclusive,
        };
        broker::consume(self.world, &self.actor(), id, queue.as_bytes(), options, |_, _| ())
    }

    pub(crate) fn settle(&self, numbers: Numbers, outcome: Outcome) -> Result<usize, BrokerError> {
        broker::settle(self.world, &self.actor(), SessionId(0), numbers, outcome).map(|(count, _)| count)
    }

    pub(crate) fn accept(&self, number: u64) {
        assert_eq!(self.settle(Numbers::One(number), Outcome::Accept), Ok(1));
    }

    pub(crate) fn cancel(&self, reader: ReaderId) {
        broker::cancel(self.world, &self.actor(), reader);
    }

    /// Opens an inbox and gives its address on the default exchange.
    pub(crate) fn inbox(&self, label: &str) -> String {
        let secret = self.world.secret();
        let make = || (label.as_bytes().into(), secret);
        let inbox = self.world.with_outbound(self.id, |outbound| outbound.inbox(label.as_bytes(), make));
        String::from_utf8(inbox.flatten().expect("there may be another").to_key()).expect("it is text")
    }

    /// The connection ends, and with it its outbound half.
    pub(crate) fn disconnect(self) {
        while !broker::disconnect(self.world, &self.actor()) {}
        self.world.outbounds.borrow_mut().remove(&self.id);
    }

    /// What waits to be read, all of which is read now; whoever has room for it goes on.
    pub(crate) fn read(&self) -> String {
        let mut text = Vec::new();
        let (wakes, publishers) = self
            .world
            .with_outbound(self.id, |outbound| {
                while let Some((bytes, written)) = outbound.take_unsent() {
                    text.extend_from_slice(&bytes[written..]);
                    let len = bytes.len();
                    outbound.put_back(bytes, len);
                }
                outbound.written()
            })
            .unwrap_or_default();
        wake_consumers(self.world, self.id, &wakes);
        resume_publishers(self.world, &publishers);
        String::from_utf8(text).expect("bodies are text")
    }

    /// Reads until nothing more comes.
    pub(crate) fn read_all(&self) -> String {
        let mut text = String::new();
        loop {
            match self.read() {
                more if more.is_empty() => return text,
                more => text += &more,
            }
        }
    }
}

/// Settings of a queue whose dead messages go to this exchange with this key.
pub(crate) fn dying_to(exchange: &str, routing_key: Option<&str>) -> QueueSettings {
    let dead_letter = DeadLetter { exchange: Name::from(exchange), routing_key: routing_key.map(Name::from) };
    QueueSettings { dead_letter: Some(dead_letter), ..QueueSettings::default() }
}
