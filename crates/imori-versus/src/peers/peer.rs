//! Peers: brokers, and programs that respond in a broker's place, that scenarios can run against.
//!
//! This file knows the kinds of peers and their abilities; `found` finds them and `recipe` starts them.

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use imori_bench::url::{Scheme, Url};

/// The kinds of peers that are known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Imori,
    NatsServer,
    Rabbitmq,
    /// RabbitMQ with quorum queues.
    RabbitmqQuorum,
    Artemis,
    /// Apache Qpid Broker-J.
    BrokerJ,
    /// ActiveMQ Classic.
    Activemq,
    /// A relay of bytes, which shows the limits of the machine and of this tool.
    Relay,
    /// A ZeroMQ socket that responds.
    Zeromq,
    /// A gRPC service that responds.
    Grpc,
}

/// The way to choose the protocol of a peer whose word does not specify it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// A protocol that all peers support, if there is one.
    Common,
    /// The protocol of a line of a list; the peer's default if the line has none.
    Line(Option<Scheme>),
}

/// The origin of a peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A known kind, found on this machine, and started and stopped for each turn.
    Known(Kind),
    /// This program, which is a build of Imori.
    Program(PathBuf),
    /// Started and stopped by the user's shell commands.
    Commanded { start: String, stop: Option<String> },
    /// Already running, and left running.
    Elsewhere,
}

/// One peer of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    /// Name in the report.
    pub(crate) name: String,
    pub(crate) origin: Origin,
    pub(crate) protocol: Scheme,
    /// Its URL, if we do not choose it.
    pub(crate) url: Option<String>,
}

/// URLs and shell commands of the user's own peers, in order of these peers.
#[derive(Debug, Default, Clone)]
pub(crate) struct Own {
    pub(crate) urls: Vec<String>,
    pub(crate) starts: Vec<String>,
    pub(crate) stops: Vec<String>,
}

const ALL: [Kind; 10] = [
    Kind::Imori,
    Kind::NatsServer,
    Kind::Rabbitmq,
    Kind::RabbitmqQuorum,
    Kind::Artemis,
    Kind::BrokerJ,
    Kind::Activemq,
    Kind::Relay,
    Kind::Zeromq,
    Kind::Grpc,
];

impl Kind {
    /// All known kinds.
    pub(crate) fn all() -> [Kind; 10] {
        ALL
    }

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Imori => "imori",
            Kind::NatsServer => "nats-server",
            Kind::Rabbitmq => "rabbitmq",
            Kind::RabbitmqQuorum => "rabbitmq-quorum",
            Kind::Artemis => "artemis",
            Kind::BrokerJ => "broker-j",
            Kind::Activemq => "activemq",
            Kind::Relay => "relay",
            Kind::Zeromq => "zeromq",
            Kind::Grpc => "grpc",
        }
    }

    /// The protocols that it supports, the default first; empty if this program has no driver for it.
    pub(crate) fn protocols(self) -> Vec<Scheme> {
        match self {
            Kind::Imori => vec![Scheme::Stomp, Scheme::Nats, Scheme::Amqp, Scheme::Amqp10],
            Kind::Relay => vec![Scheme::Stomp, Scheme::Nats],
            Kind::NatsServer => vec![Scheme::Nats],
            Kind::Rabbitmq | Kind::RabbitmqQuorum => vec![Scheme::Stomp, Scheme::Amqp],
            Kind::Artemis => vec![Scheme::Stomp, Scheme::Amqp10],
            Kind::BrokerJ | Kind::Activemq => vec![Scheme::Amqp10],
            Kind::Zeromq | Kind::Grpc => {
                let is_ours = |scheme: &Scheme| matches!(scheme, Scheme::Peer(of) if of.peer == self.name());
                Scheme::of_peers().filter(is_ours).collect()
            }
        }
    }
}

impl Peer {
    /// The peers named by these words; the protocol of each is given by its word or by `choice`.
    ///
    /// `NAME=WORD` gives a peer another name in the report.
    pub(crate) fn named(
        words: &[String],
        own: &Own,
        arguments: &[String],
        choice: Choice,
    ) -> Result<Vec<Peer>> {
        let common = match choice {
            Choice::Common | Choice::Line(None) => common_protocol(words),
            Choice::Line(protocol) => protocol,
        };
        let mut peers: Vec<Peer> = Vec::new();
        let mut own_count = 0;
        for word in words {
            let (name, word) = name_and_word(word);
            let mut peer = match parse(word, common, arguments)? {
                Some(peer) => peer,
                None => own_peer(word, own, &mut own_count)?,
            };
            // Throughout a list, a peer has one name, whatever its protocol in a line.
            match (name, choice) {
                (Some(name), _) => name.clone_into(&mut peer.name),
                (None, Choice::Line(_)) if peer.origin != Origin::Elsewhere => {
                    word.clone_into(&mut peer.name);
                }
                (None, _) => {}
            }
            let same = peers.iter().filter(|other| other.name.split('#').next() == Some(&peer.name)).count();
            if same > 0 {
                peer.name = format!("{}#{}", peer.name, same + 1);
            }
            peers.push(peer);
        }
        ensure!(
            own_count >= own.urls.len(),
            "`--peer-url {}` belongs to no peer; name one, such as `mine`, beside the others",
            own.urls.get(own_count).map_or("", String::as_str)
        );
        Ok(peers)
    }

    /// The reason why the peer cannot take part in a line with this protocol; `None` if it can.
    pub(crate) fn cannot_speak(&self, protocol: Scheme) -> Option<String> {
        let (own, wanted) = (self.protocol.word(), protocol.word());
        (self.protocol != protocol).then(|| format!("it is spoken to by {own}, not by {wanted}"))
    }

    /// The reason why the peer cannot run a scenario; `None` if it can.
    pub(crate) fn cannot(&self, scenario: &str) -> Option<String> {
        let has_no_driver = |kind: Kind| kind.protocols().is_empty();
        if matches!(self.origin, Origin::Known(kind) if has_no_driver(kind)) {
            return Some(
                "this program does not speak to it; run `imori-brokerless` with the same words".to_owned(),
            );
        }
        let answers_only =
            matches!(self.origin, Origin::Known(Kind::Relay)) || matches!(self.protocol, Scheme::Peer(_));
        match scenario {
            "rpc" | "pubsub" | "fan-out" | "idle"
                if matches!(self.origin, Origin::Known(Kind::RabbitmqQuorum)) =>
            {
                Some(format!("`{scenario}` has no queue that could be a quorum queue; name `rabbitmq`"))
            }
            "rpc" => None,
            _ if answers_only => Some(format!("it answers requests, which is no `{scenario}`; use `rpc`")),
            "queue" if self.protocol == Scheme::Nats => {
                Some("core NATS keeps nothing, so there is no queue; use `pubsub`".to_owned())
            }
            _ => None,
        }
    }

    /// Options of a scenario that depend on the peer, except for those already given.
    pub(crate) fn options(&self, scenario: &str, given: &[String]) -> Vec<String> {
        let mut options = Vec::new();
        let is_given =
            |name: &str| given.iter().any(|word| word == name || word.starts_with(&format!("{name}=")));
        let Origin::Known(kind) = self.origin else { return options };
        if kind == Kind::Artemis && self.protocol == Scheme::Stomp && !is_given("--destination-style") {
            options.extend(["--destination-style".to_owned(), "artemis".to_owned()]);
        }
        if kind == Kind::RabbitmqQuorum {
            options.extend(["--queue-argument".to_owned(), "x-queue-type=quorum".to_owned()]);
        }
        let has_no_inbox = matches!(kind, Kind::Artemis | Kind::Relay);
        if has_no_inbox && self.protocol == Scheme::Stomp && scenario == "rpc" && !is_given("--reply") {
            options.extend(["--reply".to_owned(), "named".to_owned()]);
        }
        options
    }
}

/// Splits `NAME=WORD`. An equals sign after a slash is part of a path or URL.
fn name_and_word(word: &str) -> (Option<&str>, &str) {
    match word.split_once('=') {
        Some((name, rest)) if !name.is_empty() && !name.contains('/') => (Some(name), rest),
        _ => (None, word),
    }
}

/// The peer named by a word, unless it needs `--peer-url`.
fn parse(word: &str, common: Option<Scheme>, arguments: &[String]) -> Result<Option<Peer>> {
    if word.contains("://") {
        let Some(protocol) = Scheme::of(word) else {
            bail!("`{word}` is in no protocol that is spoken here; use `stomp://`, `nats://` or `amqp://`");
        };
        let name = word.parse::<Url>().map_or_else(|_| word.to_owned(), |url| url.to_string());
        let url = Some(word.to_owned());
        return Ok(Some(Peer { name, origin: Origin::Elsewhere, protocol, url }));
    }
    let (program, said) = match word.split_once(':') {
        Some((program, said)) => (program, Some(said)),
        None => (word, None),
    };
    let known = ALL.into_iter().find(|kind| kind.name() == program);
    let (kind, origin) = match known {
        Some(kind) => (kind, Origin::Known(kind)),
        None if program.contains('/') => (Kind::Imori, Origin::Program(PathBuf::from(program))),
        None => return Ok(None),
    };
    let protocol = match said {
        // Any protocol will do here: the missing driver is reported later.
        Some(_) if kind.protocols().is_empty() => Some(Scheme::Stomp),
        Some(said) => kind.protocols().iter().copied().find(|protocol| protocol.word() == said),
        None => Some(default_protocol(kind, common, arguments)),
    };
    let Some(protocol) = protocol else {
        let spoken: Vec<&str> = kind.protocols().iter().map(|protocol| protocol.word()).collect();
        bail!("`{word}` is not spoken by it; it speaks {}", spoken.join(" and "));
    };
    let has_choice = kind.protocols().len() > 1;
    let name = match has_choice {
        true => format!("{program}:{}", protocol.word()),
        false => program.to_owned(),
    };
    Ok(Some(Peer { name, origin, protocol, url: None }))
}

fn own_peer(word: &str, own: &Own, count: &mut usize) -> Result<Peer> {
    let Some(url) = own.urls.get(*count) else {
        let names: Vec<&str> = ALL.into_iter().map(Kind::name).collect();
        bail!(
            "`{word}` is no peer; use {}, a path of `imori`, a URL, or say with `--peer-url` where it is",
            names.join(", ")
        );
    };
    let Some(protocol) = Scheme::of(url) else {
        bail!(
            "`--peer-url {url}` is in no protocol that is spoken here; use `stomp://`, `nats://` or `amqp://`"
        );
    };
    let origin = match own.starts.get(*count) {
        Some(start) => Origin::Commanded { start: start.clone(), stop: own.stops.get(*count).cloned() },
        None => Origin::Elsewhere,
    };
    *count += 1;
    Ok(Peer { name: word.to_owned(), origin, protocol, url: Some(url.clone()) })
}

/// The first protocol that all the named peers support, if there is one.
fn common_protocol(words: &[String]) -> Option<Scheme> {
    let spoken: Vec<Vec<Scheme>> = words.iter().map(|word| spoken_by(word)).collect();
    let first = spoken.first()?;
    first.iter().copied().find(|protocol| spoken.iter().all(|all| all.is_empty() || all.contains(protocol)))
}

/// The protocols supported by the named peer; empty if unknown, which rules nothing out.
fn spoken_by(word: &str) -> Vec<Scheme> {
    let (_, word) = name_and_word(word);
    if let Some(protocol) = Scheme::of(word) {
        return vec![protocol];
    }
    let (program, said) = word.split_once(':').unwrap_or((word, ""));
    let kind = ALL.into_iter().find(|kind| kind.name() == program);
    let kind = kind.or(program.contains('/').then_some(Kind::Imori));
    let protocols = kind.map_or_else(Vec::new, Kind::protocols);
    match protocols.iter().find(|protocol| protocol.word() == said) {
        Some(said) => vec![*said],
        None => protocols,
    }
}

/// The default protocol. For ZeroMQ, it depends on whether calls are pipelined.
fn default_protocol(kind: Kind, common: Option<Scheme>, arguments: &[String]) -> Scheme {
    let protocols = kind.protocols();
    let first = protocols.first().copied().unwrap_or(Scheme::Stomp);
    if kind == Kind::Zeromq {
        let is_lock_step = matches!(depth(arguments), None | Some("1"));
        return if is_lock_step { first } else { protocols.last().copied().unwrap_or(first) };
    }
    common.filter(|common| protocols.contains(common)).unwrap_or(first)
}

fn depth(arguments: &[String]) -> Option<&str> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--depth") {
            Some("") => return words.next().map(String::as_str),
            Some(rest) => return rest.strip_prefix('='),
            None => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use imori_bench::url::{PeerScheme, bring};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn named(text: &str, own: &Own, arguments: &str) -> Result<Vec<String>> {
        chosen(text, own, arguments, Choice::Common)
    }

    /// Chooses as in a program with drivers for ZeroMQ but not for gRPC.
    fn chosen(text: &str, own: &Own, arguments: &str, choice: Choice) -> Result<Vec<String>> {
        bring_peers();
        let peers = Peer::named(&words(text), own, &words(arguments), choice)?;
        Ok(peers.into_iter().map(|peer| format!("{}={}", peer.name, peer.protocol.word())).collect())
    }

    /// Adds two protocols of the peer `zeromq`.
    fn bring_peers() {
        let one = PeerScheme { name: "one", peer: "zeromq", word: "rep" };
        let many = PeerScheme { name: "many", peer: "zeromq", word: "router" };
        bring(vec![one, many]);
    }

    #[test]
    fn peers_speak_what_they_have_in_common_unless_said() {
        for (text, arguments, expected) in [
            ("imori rabbitmq", "", "imori:stomp=stomp rabbitmq:stomp=stomp"),
            ("imori:amqp rabbitmq:amqp", "", "imori:amqp=amqp rabbitmq:amqp=amqp"),
            ("imori amqp://h", "", "imori:amqp=amqp amqp://h:5672=amqp"),
            ("imori nats-server", "", "imori:nats=nats nats-server=nats"),
            ("imori nats-server relay", "", "imori:nats=nats nats-server=nats relay:nats=nats"),
            ("imori nats-server rabbitmq", "", "imori:stomp=stomp nats-server=nats rabbitmq:stomp=stomp"),
            ("imori:nats rabbitmq", "", "imori:nats=nats rabbitmq:stomp=stomp"),
            ("imori imori", "", "imori:stomp=stomp imori:stomp#2=stomp"),
            ("imori imori:stomp imori", "", "imori:stomp=stomp imori:stomp#2=stomp imori:stomp#3=stomp"),
            ("./a/imori b/imori:nats", "", "./a/imori:nats=nats b/imori:nats=nats"),
            ("imori nats://u:p@h:1", "", "imori:nats=nats nats://h:1=nats"),
            ("zeromq", "", "zeromq:rep=rep"),
            ("zeromq imori", "--depth 1", "zeromq:rep=rep imori:stomp=stomp"),
            ("zeromq", "--size 9 --depth 64", "zeromq:router=router"),
            ("zeromq", "--depth=all", "zeromq:router=router"),
            ("zeromq:rep", "--depth=8", "zeromq:rep=rep"),
        ] {
            let found = named(text, &Own::default(), arguments).unwrap().join(" ");
            assert_eq!(found, expected, "{text} {arguments}");
        }
    }

    #[test]
    fn a_peer_may_have_another_name() {
        for (text, expected) in [
            ("now=imori before=./a/imori", "now=stomp before=stomp"),
            ("now=imori:nats before=./a/imori:nats", "now=nats before=nats"),
            ("a=imori nats-server", "a=nats nats-server=nats"),
            ("a=imori a=imori", "a=stomp a#2=stomp"),
            ("far=stomp://h:1 ./x=y/imori", "far=stomp ./x=y/imori:stomp=stomp"),
        ] {
            assert_eq!(named(text, &Own::default(), "").unwrap().join(" "), expected, "{text}");
        }
    }

    #[test]
    fn a_peer_has_one_name_throughout_a_list() {
        let (stomp, nats) = (Choice::Line(Some(Scheme::Stomp)), Choice::Line(Some(Scheme::Nats)));
        for (text, choice, expected) in [
            ("imori before=./a/imori", stomp, "imori=stomp before=stomp"),
            ("imori before=./a/imori", nats, "imori=nats before=nats"),
            ("imori rabbitmq", nats, "imori=nats rabbitmq=stomp"),
            ("imori:nats imori", stomp, "imori:nats=nats imori=stomp"),
            ("imori:nats zeromq", Choice::Line(None), "imori:nats=nats zeromq=rep"),
        ] {
            let found = chosen(text, &Own::default(), "", choice).unwrap().join(" ");
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn peers_of_ones_own_are_taken_in_order() {
        let own = Own {
            urls: words("stomp://127.0.0.1:1 nats://127.0.0.1:2"),
            starts: vec!["run one".to_owned()],
            stops: vec!["stop one".to_owned()],
        };
        let peers = Peer::named(&words("first imori second"), &own, &[], Choice::Common).unwrap();
        let commanded = Origin::Commanded { start: "run one".to_owned(), stop: Some("stop one".to_owned()) };
        assert_eq!(peers[0].origin, commanded);
        assert_eq!((&peers[2].origin, peers[2].protocol), (&Origin::Elsewhere, Scheme::Nats));
    }

    #[test]
    fn what_is_no_peer_is_told_with_what_is() {
        let own = Own { urls: words("stomp://h:1"), ..Own::default() };
        for (text, own, part) in [
            ("imori mine", &Own::default(), "`mine` is no peer; use imori, nats-server"),
            ("imori rabbitmq:nats", &Own::default(), "it speaks stomp and amqp"),
            ("imori http://h", &Own::default(), "no protocol"),
            ("imori rabbitmq", &own, "`--peer-url stomp://h:1` belongs to no peer"),
        ] {
            let error = named(text, own, "").unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_a_peer_cannot_do_is_known_before() {
        for (text, scenario, can) in [
            ("nats-server", "queue", false),
            ("imori:nats", "queue", false),
            ("nats-server", "pubsub", true),
            ("imori", "queue", true),
            ("relay", "pubsub", false),
            ("zeromq", "idle", false),
            ("zeromq", "rpc", true),
            ("grpc", "rpc", false),
            ("rabbitmq-quorum:amqp", "queue", true),
            ("rabbitmq-quorum", "rpc", false),
        ] {
            bring_peers();
            let peers = Peer::named(&words(text), &Own::default(), &[], Choice::Common).unwrap();
            assert_eq!(peers[0].cannot(scenario).is_none(), can, "{text} {scenario}");
        }
    }

    #[test]
    fn a_peers_ways_are_filled_in_unless_they_are_given() {
        for (text, scenario, given, expected) in [
            ("rabbitmq", "rpc", "", ""),
            ("rabbitmq-quorum:amqp", "queue", "", "--queue-argument x-queue-type=quorum"),
            ("artemis", "rpc", "", "--destination-style artemis --reply named"),
            ("artemis", "rpc", "--reply=named", "--destination-style artemis"),
            ("artemis", "queue", "", "--destination-style artemis"),
            ("rabbitmq-quorum", "queue", "", "--queue-argument x-queue-type=quorum"),
            ("relay:stomp", "rpc", "", "--reply named"),
            ("relay:nats", "rpc", "", ""),
        ] {
            let peers = Peer::named(&words(text), &Own::default(), &[], Choice::Common).unwrap();
            assert_eq!(peers[0].options(scenario, &words(given)).join(" "), expected, "{text} {scenario}");
        }
    }
}
