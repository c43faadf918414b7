//! The subjects of the JetStream API.

use imori_streams::consumer_check::ConsumerPlace;

/// The prefix of all requests without a domain.
const API_PREFIX: &str = "$JS.API.";

/// A request to the JetStream API, read from its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiRequest<'a> {
    /// Usage and limits of the account.
    AccountInfo,
    /// The names of streams.
    StreamNames,
    /// Streams with their details.
    StreamList,
    /// A request about one stream.
    Stream {
        /// The operation.
        verb: StreamVerb,
        /// The stream.
        stream: &'a str,
    },
    /// Creates or updates a consumer.
    ConsumerCreate {
        /// The stream.
        stream: &'a str,
        /// The name of the consumer; without it the body has the name, or the server chooses one.
        consumer: Option<&'a str>,
        /// The filter, which the body must repeat.
        filter: Option<&'a str>,
    },
    /// Creates or updates a durable consumer, in the way of old clients.
    ConsumerDurableCreate {
        /// The stream.
        stream: &'a str,
        /// The name of the consumer.
        consumer: &'a str,
    },
    /// A request about one consumer.
    Consumer {
        /// The operation.
        verb: ConsumerVerb,
        /// The stream.
        stream: &'a str,
        /// The consumer.
        consumer: &'a str,
    },
    /// Reads messages without the API's queue; the body says which.
    DirectGet {
        /// The stream.
        stream: &'a str,
    },
    /// Reads the last message of a subject without the API's queue.
    DirectGetLast {
        /// The stream.
        stream: &'a str,
        /// The subject.
        subject: &'a str,
    },
    /// A request of the system account; other clients get no answer.
    System(SystemVerb),
}

/// An operation on one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamVerb {
    /// Creates it.
    Create,
    /// Replaces its configuration.
    Update,
    /// Reads its configuration and state.
    Info,
    /// Deletes it.
    Delete,
    /// Deletes its messages.
    Purge,
    /// Copies it to a subject.
    Snapshot,
    /// Creates it from a copy.
    Restore,
    /// Reads a message.
    MessageGet,
    /// Deletes a message.
    MessageDelete,
    /// Removes a server that has a copy.
    PeerRemove,
    /// Moves the copy of a server.
    PeerEvacuate,
    /// Ends such a move.
    CancelMove,
    /// Elects another leader.
    LeaderStepDown,
    /// Lists the names of its consumers.
    ConsumerNames,
    /// Lists its consumers with their details.
    ConsumerList,
}

/// An operation on one consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsumerVerb {
    /// Reads its configuration and state.
    Info,
    /// Deletes it.
    Delete,
    /// Pauses or resumes it.
    Pause,
    /// Moves it to another sequence.
    Reset,
    /// Takes the pin from its client.
    Unpin,
    /// Asks for messages.
    MessageNext,
    /// Elects another leader.
    LeaderStepDown,
}

/// An operation of the system account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemVerb {
    /// Elects another leader of the cluster.
    MetaLeaderStepDown,
    /// Lowers the quorum of the cluster.
    MetaRescue,
    /// Removes a server.
    ServerRemove,
    /// Moves all streams of a server.
    ServerEvacuate,
    /// Deletes all streams of an account.
    AccountPurge,
    /// Moves a stream of an account.
    StreamMove,
    /// Ends such a move.
    StreamCancelMove,
}

impl<'a> ApiRequest<'a> {
    /// Reads the subject of a request, with `$JS.API.` or with `$JS.<domain>.API.` for the
    /// configured domain.
    ///
    /// `None` if the subject is no request: nats-server does not answer it.
    pub fn parse(subject: &'a [u8], domain: Option<&str>) -> Option<Self> {
        if !subject.starts_with(b"$JS.") {
            return None;
        }
        let subject = str::from_utf8(subject).ok()?;
        let rest = match subject.strip_prefix(API_PREFIX) {
            Some(rest) => rest,
            None => subject.strip_prefix("$JS.")?.strip_prefix(domain?)?.strip_prefix(".API.")?,
        };
        if rest.split('.').any(str::is_empty) {
            return None;
        }
        let (area, rest) = rest.split_once('.').unwrap_or((rest, ""));
        match area {
            "INFO" if rest.is_empty() => Some(Self::AccountInfo),
            "STREAM" => Self::parse_stream(rest),
            "CONSUMER" => Self::parse_consumer(rest),
            "DIRECT" => {
                let rest = rest.strip_prefix("GET.")?;
                Some(match rest.split_once('.') {
                    None => Self::DirectGet { stream: rest },
                    Some((stream, subject)) => Self::DirectGetLast { stream, subject },
                })
            }
            _ => Self::parse_system(area, rest),
        }
    }

    /// The `type` of the answer. Requests that are not answered in JSON have the one of a refusal.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::AccountInfo => "io.nats.jetstream.api.v1.account_info_response",
            Self::StreamNames => "io.nats.jetstream.api.v1.stream_names_response",
            Self::StreamList => "io.nats.jetstream.api.v1.stream_list_response",
            Self::Stream { verb, .. } => verb.kind(),
            Self::ConsumerCreate { .. } | Self::ConsumerDurableCreate { .. } => {
                "io.nats.jetstream.api.v1.consumer_create_response"
            }
            Self::Consumer { verb, .. } => verb.kind(),
            Self::DirectGet { .. } | Self::DirectGetLast { .. } => SYSTEM_KIND,
            Self::System(verb) => verb.kind(),
        }
    }

    fn parse_stream(rest: &'a str) -> Option<Self> {
        let (verb, stream) = match rest.rsplit_once('.') {
            None if rest == "NAMES" => return Some(Self::StreamNames),
            None if rest == "LIST" => return Some(Self::StreamList),
            None => return None,
            Some(parts) => parts,
        };
        let verb = match verb {
            "CREATE" => StreamVerb::Create,
            "UPDATE" => StreamVerb::Update,
            "INFO" => StreamVerb::Info,
            "DELETE" => StreamVerb::Delete,
            "PURGE" => StreamVerb::Purge,
            "SNAPSHOT" => StreamVerb::Snapshot,
            "RESTORE" => StreamVerb::Restore,
            "MSG.GET" => StreamVerb::MessageGet,
            "MSG.DELETE" => StreamVerb::MessageDelete,
            "PEER.REMOVE" => StreamVerb::PeerRemove,
            "PEER.EVACUATE" => StreamVerb::PeerEvacuate,
            "CANCEL_MOVE" => StreamVerb::CancelMove,
            "LEADER.STEPDOWN" => StreamVerb::LeaderStepDown,
            _ => return None,
        };
        Some(Self::Stream { verb, stream })
    }

    fn parse_consumer(rest: &'a str) -> Option<Self> {
        if let Some(rest) = rest.strip_prefix("CREATE.") {
            let (stream, rest) =
                rest.split_once('.').map_or((rest, None), |(stream, rest)| (stream, Some(rest)));
            let Some(rest) = rest else {
                return Some(Self::ConsumerCreate { stream, consumer: None, filter: None });
            };
            let (consumer, filter) =
                rest.split_once('.').map_or((rest, None), |(consumer, filter)| (consumer, Some(filter)));
            return Some(Self::ConsumerCreate { stream, consumer: Some(consumer), filter });
        }
        let (before, last) = rest.rsplit_once('.')?;
        let verb = match before {
            "NAMES" => Some(StreamVerb::ConsumerNames),
            "LIST" => Some(StreamVerb::ConsumerList),
            _ => None,
        };
        if let Some(verb) = verb {
            return Some(Self::Stream { verb, stream: last });
        }
        let (verb, stream) = before.rsplit_once('.')?;
        let consumer = last;
        let verb = match verb {
            "DURABLE.CREATE" => return Some(Self::ConsumerDurableCreate { stream, consumer }),
            "INFO" => ConsumerVerb::Info,
            "DELETE" => ConsumerVerb::Delete,
            "PAUSE" => ConsumerVerb::Pause,
            "RESET" => ConsumerVerb::Reset,
            "UNPIN" => ConsumerVerb::Unpin,
            "MSG.NEXT" => ConsumerVerb::MessageNext,
            "LEADER.STEPDOWN" => ConsumerVerb::LeaderStepDown,
            _ => return None,
        };
        Some(Self::Consumer { verb, stream, consumer })
    }

    fn parse_system(area: &str, rest: &str) -> Option<Self> {
        let tokens = rest.split('.').count();
        let verb = match (area, rest) {
            ("META", "LEADER.STEPDOWN") => SystemVerb::MetaLeaderStepDown,
            ("META", "RESCUE") => SystemVerb::MetaRescue,
            ("SERVER", "REMOVE") => SystemVerb::ServerRemove,
            ("SERVER", "EVACUATE") => SystemVerb::ServerEvacuate,
            ("ACCOUNT", _) if rest.starts_with("PURGE.") && tokens == 2 => SystemVerb::AccountPurge,
            ("ACCOUNT", _) if rest.starts_with("STREAM.MOVE.") && tokens == 4 => SystemVerb::StreamMove,
            ("ACCOUNT", _) if rest.starts_with("STREAM.CANCEL_MOVE.") && tokens == 4 => {
                SystemVerb::StreamCancelMove
            }
            _ => return None,
        };
        Some(Self::System(verb))
    }
}

/// The `type` of an answer that refuses a request of no other type.
pub const SYSTEM_KIND: &str = "io.nats.jetstream.api.v1.system_response";

impl StreamVerb {
    fn kind(self) -> &'static str {
        match self {
            Self::Create => "io.nats.jetstream.api.v1.stream_create_response",
            Self::Update | Self::CancelMove => "io.nats.jetstream.api.v1.stream_update_response",
            Self::Info => "io.nats.jetstream.api.v1.stream_info_response",
            Self::Delete => "io.nats.jetstream.api.v1.stream_delete_response",
            Self::Purge => "io.nats.jetstream.api.v1.stream_purge_response",
            Self::Snapshot => "io.nats.jetstream.api.v1.stream_snapshot_response",
            Self::Restore => "io.nats.jetstream.api.v1.stream_restore_response",
            Self::MessageGet => "io.nats.jetstream.api.v1.stream_msg_get_response",
            Self::MessageDelete => "io.nats.jetstream.api.v1.stream_msg_delete_response",
            Self::PeerRemove | Self::PeerEvacuate => "io.nats.jetstream.api.v1.stream_remove_peer_response",
            Self::LeaderStepDown => "io.nats.jetstream.api.v1.stream_leader_stepdown_response",
            Self::ConsumerNames => "io.nats.jetstream.api.v1.consumer_names_response",
            Self::ConsumerList => "io.nats.jetstream.api.v1.consumer_list_response",
        }
    }
}

impl ConsumerVerb {
    fn kind(self) -> &'static str {
        match self {
            Self::Info => "io.nats.jetstream.api.v1.consumer_info_response",
            Self::Delete => "io.nats.jetstream.api.v1.consumer_delete_response",
            Self::Pause => "io.nats.jetstream.api.v1.consumer_pause_response",
            Self::Reset => "io.nats.jetstream.api.v1.consumer_reset_response",
            Self::Unpin => "io.nats.jetstream.api.v1.consumer_unpin_response",
            Self::MessageNext => SYSTEM_KIND,
            Self::LeaderStepDown => "io.nats.jetstream.api.v1.consumer_leader_stepdown_response",
        }
    }
}

impl SystemVerb {
    fn kind(self) -> &'static str {
        match self {
            Self::MetaLeaderStepDown => "io.nats.jetstream.api.v1.meta_leader_stepdown_response",
            Self::MetaRescue => "io.nats.jetstream.api.v1.meta_rescue_response",
            Self::ServerRemove | Self::ServerEvacuate => {
                "io.nats.jetstream.api.v1.meta_server_remove_response"
            }
            Self::AccountPurge => "io.nats.jetstream.api.v1.account_purge_response",
            Self::StreamMove | Self::StreamCancelMove => "io.nats.jetstream.api.v1.stream_update_response",
        }
    }
}

impl<'a> ApiRequest<'a> {
    /// The consumer that the request creates; `None` for a request that creates none.
    pub fn consumer_place(&self) -> Option<ConsumerPlace<'a>> {
        match *self {
            ApiRequest::ConsumerCreate { stream, consumer, filter } => {
                Some(ConsumerPlace { stream, consumer, filter, is_durable: false })
            }
            ApiRequest::ConsumerDurableCreate { stream, consumer } => {
                Some(ConsumerPlace { stream, consumer: Some(consumer), filter: None, is_durable: true })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use imori_streams::consumer_config::CreateConsumerRequest;
    use imori_streams::error::ApiError;

    use super::*;

    #[test]
    fn every_request_is_read_from_its_subject() {
        let stream = |verb| ApiRequest::Stream { verb, stream: "S" };
        let consumer = |verb| ApiRequest::Consumer { verb, stream: "S", consumer: "C" };
        let create = |consumer, filter| ApiRequest::ConsumerCreate { stream: "S", consumer, filter };
        for (subject, request, kind) in [
            ("INFO", ApiRequest::AccountInfo, "account_info"),
            ("STREAM.NAMES", ApiRequest::StreamNames, "stream_names"),
            ("STREAM.LIST", ApiRequest::StreamList, "stream_list"),
            ("STREAM.CREATE.S", stream(StreamVerb::Create), "stream_create"),
            ("STREAM.UPDATE.S", stream(StreamVerb::Update), "stream_update"),
            ("STREAM.INFO.S", stream(StreamVerb::Info), "stream_info"),
            ("STREAM.DELETE.S", stream(StreamVerb::Delete), "stream_delete"),
            ("STREAM.PURGE.S", stream(StreamVerb::Purge), "stream_purge"),
            ("STREAM.SNAPSHOT.S", stream(StreamVerb::Snapshot), "stream_snapshot"),
            ("STREAM.RESTORE.S", stream(StreamVerb::Restore), "stream_restore"),
            ("STREAM.MSG.GET.S", stream(StreamVerb::MessageGet), "stream_msg_get"),
            ("STREAM.MSG.DELETE.S", stream(StreamVerb::MessageDelete), "stream_msg_delete"),
            ("STREAM.PEER.REMOVE.S", stream(StreamVerb::PeerRemove), "stream_remove_peer"),
            ("STREAM.PEER.EVACUATE.S", stream(StreamVerb::PeerEvacuate), "stream_remove_peer"),
            ("STREAM.CANCEL_MOVE.S", stream(StreamVerb::CancelMove), "stream_update"),
            ("STREAM.LEADER.STEPDOWN.S", stream(StreamVerb::LeaderStepDown), "stream_leader_stepdown"),
            ("CONSUMER.NAMES.S", stream(StreamVerb::ConsumerNames), "consumer_names"),
            ("CONSUMER.LIST.S", stream(StreamVerb::ConsumerList), "consumer_list"),
            ("CONSUMER.CREATE.S", create(None, None), "consumer_create"),
            ("CONSUMER.CREATE.S.C", create(Some("C"), None), "consumer_create"),
            ("CONSUMER.CREATE.S.C.a.*.>", create(Some("C"), Some("a.*.>")), "consumer_create"),
            (
                "CONSUMER.DURABLE.CREATE.S.C",
                ApiRequest::ConsumerDurableCreate { stream: "S", consumer: "C" },
                "consumer_create",
            ),
            ("CONSUMER.INFO.S.C", consumer(ConsumerVerb::Info), "consumer_info"),
            ("CONSUMER.DELETE.S.C", consumer(ConsumerVerb::Delete), "consumer_delete"),
            ("CONSUMER.PAUSE.S.C", consumer(ConsumerVerb::Pause), "consumer_pause"),
            ("CONSUMER.RESET.S.C", consumer(ConsumerVerb::Reset), "consumer_reset"),
            ("CONSUMER.UNPIN.S.C", consumer(ConsumerVerb::Unpin), "consumer_unpin"),
            ("CONSUMER.MSG.NEXT.S.C", consumer(ConsumerVerb::MessageNext), "system"),
            (
                "CONSUMER.LEADER.STEPDOWN.S.C",
                consumer(ConsumerVerb::LeaderStepDown),
                "consumer_leader_stepdown",
            ),
            ("DIRECT.GET.S", ApiRequest::DirectGet { stream: "S" }, "system"),
            ("DIRECT.GET.S.a.b", ApiRequest::DirectGetLast { stream: "S", subject: "a.b" }, "system"),
            (
                "META.LEADER.STEPDOWN",
                ApiRequest::System(SystemVerb::MetaLeaderStepDown),
                "meta_leader_stepdown",
            ),
            ("META.RESCUE", ApiRequest::System(SystemVerb::MetaRescue), "meta_rescue"),
            ("SERVER.REMOVE", ApiRequest::System(SystemVerb::ServerRemove), "meta_server_remove"),
            ("SERVER.EVACUATE", ApiRequest::System(SystemVerb::ServerEvacuate), "meta_server_remove"),
            ("ACCOUNT.PURGE.A", ApiRequest::System(SystemVerb::AccountPurge), "account_purge"),
            ("ACCOUNT.STREAM.MOVE.A.S", ApiRequest::System(SystemVerb::StreamMove), "stream_update"),
            (
                "ACCOUNT.STREAM.CANCEL_MOVE.A.S",
                ApiRequest::System(SystemVerb::StreamCancelMove),
                "stream_update",
            ),
        ] {
            let plain = format!("$JS.API.{subject}");
            let in_domain = format!("$JS.hub.API.{subject}");
            assert_eq!(ApiRequest::parse(plain.as_bytes(), None), Some(request), "{subject}");
            assert_eq!(ApiRequest::parse(plain.as_bytes(), Some("hub")), Some(request), "{subject}");
            assert_eq!(ApiRequest::parse(in_domain.as_bytes(), Some("hub")), Some(request), "{subject}");
            assert_eq!(ApiRequest::parse(in_domain.as_bytes(), None), None, "{subject}");
            assert_eq!(request.kind(), format!("io.nats.jetstream.api.v1.{kind}_response"));
        }
    }

    #[test]
    fn other_subjects_are_no_requests() {
        for subject in [
            "$JS.API.",
            "$JS.API.FOO",
            "$JS.API.INFO.S",
            "$JS.API.STREAM",
            "$JS.API.STREAM.NAMES.S",
            "$JS.API.STREAM.CREATE",
            "$JS.API.STREAM.CREATE.S.T",
            "$JS.API.STREAM.MSG.S",
            "$JS.API.CONSUMER.INFO.S",
            "$JS.API.CONSUMER.INFO.S.C.D",
            "$JS.API.CONSUMER.CREATE.",
            "$JS.API.CONSUMER.CREATE.S..a",
            "$JS.API.CONSUMER.DURABLE.CREATE.S",
            "$JS.API.CONSUMER.NAMES",
            "$JS.API.DIRECT.GET",
            "$JS.API.DIRECT.PUT.S",
            "$JS.API.META.FOO",
            "$JS.API.ACCOUNT.PURGE",
            "$JS.other.API.INFO",
            "$JS.ACK.S.C.1.1.1.1.0",
            "a.b",
            "",
        ] {
            assert_eq!(ApiRequest::parse(subject.as_bytes(), Some("hub")), None, "{subject}");
        }
        assert_eq!(ApiRequest::parse(b"$JS.API.STREAM.INFO.\xff", None), None);
    }

    /// The answers of nats-server 2.15 to these requests.
    #[test]
    fn the_body_repeats_the_subject() {
        for (subject, json, expected) in [
            ("CREATE.S.C", r#"{"stream_name":"T"}"#, Err(ApiError::STREAM_MISMATCH)),
            ("CREATE.S.a/b", r#"{"stream_name":"S"}"#, Err(ApiError::CONSUMER_NAME_CONTAINS_PATH_SEPARATORS)),
            (
                "CREATE.S",
                r#"{"stream_name":"S","config":{"name":"a\\b"}}"#,
                Err(ApiError::CONSUMER_NAME_CONTAINS_PATH_SEPARATORS),
            ),
            ("DURABLE.CREATE.S.C", r#"{"stream_name":"S"}"#, Err(ApiError::CONSUMER_DURABLE_NAME_NOT_SET)),
            (
                "DURABLE.CREATE.S.C",
                r#"{"stream_name":"S","config":{"durable_name":"D"}}"#,
                Err(ApiError::CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT),
            ),
            ("DURABLE.CREATE.S.C", r#"{"stream_name":"S","config":{"durable_name":"C"}}"#, Ok("C")),
            (
                "CREATE.S.C",
                r#"{"stream_name":"S","config":{"durable_name":"D"}}"#,
                Err(ApiError::CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT),
            ),
            (
                "CREATE.S",
                r#"{"stream_name":"S","config":{"durable_name":"D"}}"#,
                Err(ApiError::CONSUMER_EPHEMERAL_WITH_DURABLE_NAME),
            ),
            ("CREATE.S", r#"{"stream_name":"S","config":{"name":"D"}}"#, Ok("D")),
            ("CREATE.S", r#"{"stream_name":"S"}"#, Ok("")),
            (
                "CREATE.S.C.s.a",
                r#"{"stream_name":"S","config":{"filter_subjects":["s.a"]}}"#,
                Err(ApiError::CONSUMER_MULTIPLE_FILTERS_NOT_ALLOWED),
            ),
            (
                "CREATE.S.C.s.a",
                r#"{"stream_name":"S","config":{"filter_subject":"s.b"}}"#,
                Err(ApiError::CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH),
            ),
            (
                "CREATE.S.C.s.a",
                r#"{"stream_name":"S","config":{"filter_subject":"s.a","name":"other"}}"#,
                Ok("C"),
            ),
            ("INFO.S.C", r#"{"stream_name":"S"}"#, Err(ApiError::BAD_REQUEST)),
        ] {
            let full = format!("$JS.API.CONSUMER.{subject}");
            let request = ApiRequest::parse(full.as_bytes(), None).unwrap();
            let create = CreateConsumerRequest::decode(json.as_bytes()).unwrap();
            let place = request.consumer_place().ok_or(ApiError::BAD_REQUEST);
            let result = place.and_then(|place| create.check_place(&place));
            let name = result.map(|request| request.config.name);
            assert_eq!(name, expected.map(ToString::to_string), "{subject} {json}");
        }
    }
}
