use imori_core::authorize::{Grants, Identity, Rights, Tags};
use imori_core::broker::{self, Actor, ConsumeOptions, Step, SubscribeOptions};
use imori_core::delivery::Outcome;
use imori_core::error::BrokerError;
use imori_core::message::{Address, OriginId, Properties, Publication};
use imori_core::name::Name;
use imori_core::outbound::{Credit, Numbers, SessionId};
use imori_core::queue::QueueSettings;
use imori_core::route::{Arguments, BindingKey, ExchangeKind, Settings, Syntax};
use imori_core::stream::CursorOptions;
use imori_core::world::World;
use imori_testkit::{TestWorld, VHOST};

// SECURITY AUTH-05: reserved names are used only as their protocol defines.
#[test]
fn reserved_names_are_not_declared() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let inbox = client.inbox("i");
    for (name, allowed) in [
        ("orders", true),
        ("amqp", true),
        ("imori", true),
        ("amq.gen-1", false),
        ("amq.", false),
        ("imori.queue.x", false),
        (&inbox, false),
    ] {
        let queue = client.declare_with(name, &QueueSettings::default());
        assert_eq!(queue.is_ok(), allowed, "{name}");
        let (actor, kind) = (client.actor(), ExchangeKind::Fanout);
        let exchange = broker::declare_exchange(&world, &actor, name.as_bytes(), kind, Settings::default());
        assert_eq!(exchange.is_ok(), allowed, "{name}");
        assert_eq!(world.depth(name).is_some(), allowed, "{name}");
    }
}

// SECURITY AUTH-05.
#[test]
fn a_queue_that_the_broker_names_is_declared_and_deleted_as_such_alone() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let settings = QueueSettings::default();
    let made = b"amq.gen-1";
    assert!(broker::declare_unnamed_queue(&world, &client.actor(), made, &settings).is_ok());
    assert!(world.depth("amq.gen-1").is_some());
    assert!(broker::delete_queue(&world, &client.actor(), made).is_ok());
    assert!(broker::declare_queue(&world, &client.actor(), made, &settings, true).is_err());
}

// A client that says goodbye may rely on its exclusive queues being gone.
#[test]
fn exclusive_queues_go_before_their_connection() {
    let world = TestWorld::new();
    let (client, other) = (world.connect(1), world.connect(2));
    let mine = QueueSettings { exclusive_to: Some(client.id), ..QueueSettings::default() };
    client.declare_with("mine", &mine).unwrap();
    other.declare("shared");
    assert!(broker::delete_exclusive(&world, &other.actor()));
    assert!(world.depth("mine").is_some());
    assert!(broker::delete_exclusive(&world, &client.actor()));
    assert_eq!((world.depth("mine"), world.depth("shared").is_some()), (None, true));
}

#[test]
fn counts_of_a_queue_are_for_its_readers() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let id = client.declare("q");
    client.send("q", "m");
    for (configure, write, read, expected) in [
        ("", "", "^q$", Some(1)),
        ("^q$", "", "", Some(0)),
        ("", "^q$", "", Some(0)),
        ("^p$", "^p$", "^p$", None),
    ] {
        let user = Name::from("eve");
        let [configure, write, read] = [configure, write, read].map(str::to_owned);
        let grants = Grants { configure, write, read, ..Grants::default() };
        let rights = Rights::new(&user, Tags::NONE, [(VHOST, &Name::from("/"), &grants)]).unwrap();
        let identity = Identity { user, rights: rights.into() };
        let eve = Actor { identity: &identity, connection: client.id, vhost: VHOST };
        let found = broker::look_up_queue(&world, &eve, b"q").map(|found| (found.id, found.ready));
        assert_eq!(found.as_ref().ok(), expected.map(|ready| (id, ready)).as_ref(), "{grants:?}");
        let is_refused = matches!(broker::look_up_queue(&world, &eve, b"no"), Err(BrokerError::Refused(_)));
        assert!(is_refused, "a queue that is not there is refused alike");
    }
}

#[test]
fn who_has_no_rights_does_nothing() {
    let world = TestWorld::new();
    let client = world.connect(1);
    let queue = client.declare("q");
    client.consume("q", "c", 9);
    client.send("q", "m");
    let inbox = client.inbox("i");
    client.read();
    // SECURITY AUTH-01.
    let nobody = Identity::nobody();
    let eve = Actor { identity: &nobody, connection: client.id, vhost: VHOST };
    let properties = Properties::new(OriginId::BROKER);
    let publication = Publication::new(&properties, b"", b"m");
    let message = publication.stored(world.gauge());
    let key = BindingKey::new(Syntax::Amqp, b"a");
    let consume = || ConsumeOptions {
        session: SessionId(0),
        label: Box::default(),
        settles: false,
        credit: Credit::Unlimited,
        priority: 0,
        is_exclusive: false,
        selector: None,
        drops_unwanted: false,
        is_browser: false,
        name: None,
        cursor: CursorOptions::default(),
    };
    let subscribe =
        || SubscribeOptions { session: SessionId(0), label: Box::default(), group: None, selector: None };
    let settle = |numbers| Step::Settle {
        session: SessionId(0),
        numbers,
        outcome: Outcome::Accept,
        annotations: None,
    };
    let publish = |subject: &str| Step::Publish {
        address: Address::new(b"", subject.as_bytes()),
        copies: Vec::new(),
        message: message.clone(),
    };
    let get = broker::GetOptions { session: SessionId(0), label: &|_| Box::default(), settles: true };
    let results = [
        broker::publish(&world, &eve, b"", b"q", &publication).err(),
        broker::publish(&world, &eve, b"", inbox.as_bytes(), &publication).err(),
        broker::consume(&world, &eve, queue, b"q", consume(), |_, _| ()).err(),
        broker::subscribe(&world, &eve, b"amq.topic", &key, subscribe()).err(),
        broker::settle(&world, &eve, SessionId(0), Numbers::One(1), Outcome::Accept).err(),
        broker::bind_queue(&world, &eve, b"amq.topic", &key, &Arguments::NONE, queue).err(),
        broker::unbind_queue(&world, &eve, b"amq.topic", &key, &Arguments::NONE, queue).err(),
        broker::bind_exchange(&world, &eve, b"amq.topic", &key, &Arguments::NONE, b"amq.fanout").err(),
        broker::unbind_exchange(&world, &eve, b"amq.topic", &key, &Arguments::NONE, b"amq.fanout").err(),
        broker::look_up_queue(&world, &eve, b"q").err(),
        broker::look_up_exchange(&world, &eve, b"amq.topic").err(),
        broker::delete_exchange(&world, &eve, b"amq.topic", false).err(),
        broker::declare_queue(&world, &eve, b"new", &QueueSettings::default(), true).err(),
        broker::delete_queue(&world, &eve, b"q").err(),
        broker::purge(&world, &eve, b"q").err(),
        broker::get(&world, &eve, b"q", &get).err(),
        broker::declare_exchange(&world, &eve, b"x", ExchangeKind::Topic, Settings::default()).err(),
        broker::commit(&world, &eve, &[publish("q")]).err(),
        broker::commit(&world, &eve, &[publish(&inbox)]).err(),
        broker::commit(&world, &eve, &[settle(Numbers::One(1))]).err(),
    ];
    for (index, error) in results.into_iter().enumerate() {
        assert!(matches!(error, Some(BrokerError::Refused(_))), "{index}: {error:?}");
    }
    assert_eq!((client.read(), world.depth("q")), (String::new(), Some((0, 1))));
    assert_eq!(world.bindings("amq.topic"), 0);
}
