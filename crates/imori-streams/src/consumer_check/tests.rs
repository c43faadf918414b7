use super::*;
use crate::stream_config::StreamConfigRequest;

/// The streams of the rows, by name.
fn stream(name: &str) -> StreamConfig {
    let json = match name {
        "W" => r#"{"name":"W","subjects":["w.>"],"retention":"workqueue"}"#,
        "I" => r#"{"name":"I","subjects":["i.>"],"retention":"interest"}"#,
        "L" => concat!(
            r#"{"name":"L","subjects":["l.>"],"#,
            r#""consumer_limits":{"max_ack_pending":10,"inactive_threshold":1000000000}}"#,
        ),
        "R" => r#"{"name":"R","subjects":["r.>"],"retention":"interest","num_replicas":3}"#,
        _ => r#"{"name":"S","subjects":["s.>"]}"#,
    };
    StreamConfigRequest::decode(json.as_bytes()).unwrap().config
}

fn check_in(json: &str, account: &AccountLimits, server: &ServerLimits) -> Result<ConsumerConfig, ApiError> {
    let request = CreateConsumerRequest::decode(json.as_bytes()).unwrap();
    let stream = StreamConfig { num_replicas: 3, ..stream(&request.stream_name) };
    let context = ConsumerContext { stream: &stream, account, server, is_pedantic: request.is_pedantic };
    request.config.check(&context)
}

fn check(json: &str) -> Result<ConsumerConfig, ApiError> {
    check_in(json, &AccountLimits::default(), &ServerLimits::default())
}

fn assert_refused(result: Result<ConsumerConfig, ApiError>, err_code: u16, description: &str, json: &str) {
    match result {
        Ok(_) => assert_eq!(err_code, 0, "{json} is refused"),
        Err(error) => assert_eq!((error.err_code, &*error.description), (err_code, description), "{json}"),
    }
}

/// The answers of nats-server 2.15 to these configurations, but for the reason of a bad sampling.
#[test]
fn contradictions_are_refused_as_in_nats_server() {
    for (json, err_code, description) in [
        (
            r#"{"stream_name":"S","config":{"num_replicas":2}}"#,
            10_074,
            "replicas > 1 not supported in non-clustered mode",
        ),
        (r#"{"stream_name":"S","config":{"num_replicas":-1}}"#, 10_133, "replicas count cannot be negative"),
        (
            r#"{"stream_name":"S","config":{"max_deliver":-2},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_deliver must be set to -1",
        ),
        (
            r#"{"stream_name":"S","config":{"max_waiting":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_waiting must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"max_ack_pending":-2},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_ack_pending must be set to -1",
        ),
        (
            r#"{"stream_name":"S","config":{"max_batch":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_batch must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"max_expires":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_expires must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"max_bytes":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_bytes must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"idle_heartbeat":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: idle_heartbeat must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"inactive_threshold":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: inactive_threshold must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_timeout":-1},"pedantic":true}"#,
            10_157,
            "pedantic mode: priority_timeout must not be negative",
        ),
        (
            r#"{"stream_name":"S","config":{"backoff":[1000000000],"ack_wait":1},"pedantic":true}"#,
            10_157,
            "pedantic mode: first backoff value has to equal batch AckWait",
        ),
        (
            r#"{"stream_name":"L","config":{"ack_policy":"explicit"},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_ack_pending must be set if it's configured in stream limits",
        ),
        (
            r#"{"stream_name":"L","config":{"ack_policy":"explicit","max_ack_pending":5},"pedantic":true}"#,
            10_157,
            "pedantic mode: inactive_threshold must be set if it's configured in stream limits",
        ),
        (r#"{"stream_name":"S","config":{"backoff":[-1]}}"#, 10_184, "consumer backoff needs to be positive"),
        (r#"{"stream_name":"S","config":{"ack_wait":-1}}"#, 10_183, "consumer ack wait needs to be positive"),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"flow_control"}}"#,
            10_218,
            "flow control ack policy requires a push based consumer",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"flow_control","deliver_subject":"d"},"pedantic":true}"#,
            10_219,
            "flow control ack policy requires flow control",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"flow_control","deliver_subject":"d","flow_control":true,"idle_heartbeat":5},"pedantic":true}"#,
            10_052,
            "flow control ack policy heartbeat needs to be 1s",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"flow_control","deliver_subject":"d","max_ack_pending":-1}}"#,
            10_220,
            "flow control ack policy requires max ack pending",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"flow_control","deliver_subject":"d","ack_wait":1000000000}}"#,
            10_221,
            "flow control ack policy requires unset ack wait",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"flow_control","deliver_subject":"d","max_deliver":3}}"#,
            10_222,
            "flow control ack policy requires unset max deliver",
        ),
        (r#"{"stream_name":"S","config":{"ack_policy":"flow_control","deliver_subject":"d"}}"#, 0, ""),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit","backoff":[1000000000,2000000000],"max_deliver":1}}"#,
            10_116,
            "max deliver is required to be > length of backoff values",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit","backoff":[1000000000,2000000000],"max_deliver":2}}"#,
            0,
            "",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d.*"}}"#,
            10_079,
            "consumer deliver subject has wildcards",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d..e"}}"#,
            10_112,
            "invalid push consumer deliver subject",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"s.x"}}"#,
            10_081,
            "consumer deliver subject forms a cycle",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d","max_waiting":1}}"#,
            10_080,
            "consumer in push mode can not set max waiting",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d","max_ack_pending":1}}"#,
            10_082,
            "consumer requires ack policy for max ack pending",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d","idle_heartbeat":1}}"#,
            10_083,
            "consumer idle heartbeat needs to be >= 100ms",
        ),
        (
            r#"{"stream_name":"W","config":{}}"#,
            10_084,
            "consumer in pull mode requires explicit ack policy on workqueue stream",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit","rate_limit_bps":1}}"#,
            10_086,
            "consumer in pull mode can not have rate limit set",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit","idle_heartbeat":1000000000}}"#,
            10_088,
            "consumer idle heartbeat requires a push based consumer",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit","flow_control":true}}"#,
            10_089,
            "consumer flow control requires a push based consumer",
        ),
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit","max_expires":1}}"#,
            10_115,
            "consumer max request expires needs to be >= 1ms",
        ),
        (
            r#"{"stream_name":"L","config":{"ack_policy":"explicit","max_ack_pending":11}}"#,
            10_121,
            "consumer max ack pending exceeds system limit of 10",
        ),
        (
            r#"{"stream_name":"L","config":{"ack_policy":"explicit","inactive_threshold":2000000000}}"#,
            10_153,
            "consumer inactive threshold exceeds system limit of 1s",
        ),
        (
            r#"{"stream_name":"S","config":{"direct":true}}"#,
            10_090,
            "consumer direct requires a push based consumer",
        ),
        (
            r#"{"stream_name":"S","config":{"direct":true,"deliver_subject":"d","durable_name":"C"}}"#,
            10_091,
            "consumer direct requires an ephemeral consumer",
        ),
        (
            r#"{"stream_name":"S","config":{"filter_subject":"s.a","filter_subjects":["s.b"]}}"#,
            10_136,
            "consumer cannot have both FilterSubject and FilterSubjects specified",
        ),
        (r#"{"stream_name":"S","config":{"filter_subject":"a.."}}"#, 10_052, "invalid subject"),
        (
            r#"{"stream_name":"S","config":{"filter_subjects":["s.a",""]}}"#,
            10_139,
            "consumer filter in FilterSubjects cannot be empty",
        ),
        (r#"{"stream_name":"S","config":{"filter_subjects":["s.a","b.."]}}"#, 10_052, "invalid subject"),
        (
            r#"{"stream_name":"S","config":{"filter_subjects":["s.a","s.*"]}}"#,
            10_138,
            "consumer subject filters cannot overlap",
        ),
        (r#"{"stream_name":"S","config":{"filter_subject":"other"}}"#, 0, ""),
        (
            r#"{"stream_name":"S","config":{"opt_start_seq":1}}"#,
            10_094,
            "consumer delivery policy is deliver all, but optional start sequence is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"opt_start_time":"2026-01-01T00:00:00Z"}}"#,
            10_094,
            "consumer delivery policy is deliver all, but optional start time is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"last","opt_start_seq":1}}"#,
            10_094,
            "consumer delivery policy is deliver last, but optional start sequence is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"last","opt_start_time":"2026-01-01T00:00:00Z"}}"#,
            10_094,
            "consumer delivery policy is deliver last, but optional start time is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"last_per_subject","opt_start_seq":1}}"#,
            10_094,
            "consumer delivery policy is deliver last per subject, but optional start sequence is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"last_per_subject","opt_start_time":"2026-01-01T00:00:00Z"}}"#,
            10_094,
            "consumer delivery policy is deliver last per subject, but optional start time is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"last_per_subject"}}"#,
            10_094,
            "consumer delivery policy is deliver last per subject, but optional filter subject is not set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"last_per_subject","filter_subject":"s.>"}}"#,
            0,
            "",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"new","opt_start_seq":1}}"#,
            10_094,
            "consumer delivery policy is deliver new, but optional start sequence is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"new","opt_start_time":"2026-01-01T00:00:00Z"}}"#,
            10_094,
            "consumer delivery policy is deliver new, but optional start time is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"by_start_sequence"}}"#,
            10_094,
            "consumer delivery policy is deliver by start sequence, but optional start sequence is not set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"by_start_sequence","opt_start_seq":1,"opt_start_time":"2026-01-01T00:00:00Z"}}"#,
            10_094,
            "consumer delivery policy is deliver by start sequence, but optional start time is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"by_start_time"}}"#,
            10_094,
            "consumer delivery policy is deliver by start time, but optional start time is not set",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_policy":"by_start_time","opt_start_seq":1,"opt_start_time":"2026-01-01T00:00:00Z"}}"#,
            10_094,
            "consumer delivery policy is deliver by start time, but optional start start sequence is also set",
        ),
        (
            r#"{"stream_name":"S","config":{"sample_freq":"x"}}"#,
            10_095,
            r#"failed to parse consumer sampling configuration: "x" is not a number"#,
        ),
        (
            r#"{"stream_name":"S","config":{"sample_freq":"-1"}}"#,
            10_095,
            r#"failed to parse consumer sampling configuration: "-1" is negative"#,
        ),
        (r#"{"stream_name":"S","config":{"sample_freq":"50%"}}"#, 0, ""),
        (
            r#"{"stream_name":"S","config":{"sample_freq":"%"}}"#,
            10_095,
            r#"failed to parse consumer sampling configuration: "" is not a number"#,
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d","flow_control":true}}"#,
            10_108,
            "consumer with flow control also needs heartbeats",
        ),
        (
            r#"{"stream_name":"S","config":{"deliver_subject":"d","priority_policy":"overflow","priority_groups":["a"]}}"#,
            10_178,
            "priority groups can not be used with push consumers",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_policy":"overflow"}}"#,
            10_159,
            "Setting PriorityPolicy requires at least one PriorityGroup to be set",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_policy":"overflow","priority_groups":[""]}}"#,
            10_161,
            "Group name cannot be an empty string",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_policy":"overflow","priority_groups":["a b"]}}"#,
            10_162,
            "Valid priority group name must match A-Z, a-z, 0-9, -_/=)+ and may not exceed 16 characters",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_policy":"overflow","priority_groups":["aaaaaaaaaaaaaaaaa"]}}"#,
            10_162,
            "Valid priority group name must match A-Z, a-z, 0-9, -_/=)+ and may not exceed 16 characters",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_policy":"overflow","priority_groups":["aZ09/_=-"]}}"#,
            0,
            "",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_groups":["a"]}}"#,
            10_196,
            "consumer can not have priority groups when policy is none",
        ),
        (
            r#"{"stream_name":"S","config":{"priority_timeout":1000000000}}"#,
            10_197,
            "PinnedTTL cannot be set when PriorityPolicy is none",
        ),
        (r#"{"stream_name":"I","config":{"num_replicas":0}}"#, 0, ""),
        (
            r#"{"stream_name":"W","config":{"ack_policy":"all"}}"#,
            10_098,
            "workqueue stream requires explicit ack",
        ),
        (
            r#"{"stream_name":"W","config":{"ack_policy":"explicit","deliver_policy":"new"}}"#,
            10_101,
            "consumer must be deliver all on workqueue stream",
        ),
        (r#"{"stream_name":"W","config":{"ack_policy":"explicit"}}"#, 0, ""),
        (
            r#"{"stream_name":"S","config":{"durable_name":"a.b"}}"#,
            10_052,
            "consumer durable name can not contain '.', '*', '>', '\\', '/'",
        ),
        (
            r#"{"stream_name":"S","config":{"name":"a.b"}}"#,
            10_052,
            "consumer name can not contain '.', '*', '>', '\\', '/'",
        ),
        (
            r#"{"stream_name":"S","config":{"durable_name":"C","name":"D"}}"#,
            10_132,
            "Consumer Durable and Name have to be equal if both are provided",
        ),
    ] {
        assert_refused(check(json), err_code, description, json);
    }
}

#[test]
fn texts_and_lists_have_a_limit() {
    let account = AccountLimits::default();
    let server = ServerLimits::default();
    let filter_subjects: Vec<_> = (0..=FILTER_COUNT_MAX).map(|number| format!("s{number}")).collect();
    let metadata = [("k".to_string(), "v".repeat(METADATA_BYTES_MAX))].into();
    for (config, err_code, description) in [
        (
            ConsumerConfig { name: "n".repeat(NAME_BYTES_MAX + 1), ..ConsumerConfig::default() },
            10_102,
            "consumer name is too long, maximum allowed is 255",
        ),
        (
            ConsumerConfig {
                description: "d".repeat(DESCRIPTION_BYTES_MAX + 1),
                ..ConsumerConfig::default()
            },
            10_107,
            "consumer description is too long, maximum allowed is 4096",
        ),
        (
            ConsumerConfig { metadata, ..ConsumerConfig::default() },
            10_135,
            "consumer metadata exceeds maximum size of 128KB",
        ),
        (
            ConsumerConfig { filter_subjects, ..ConsumerConfig::default() },
            10_052,
            "more than 1024 filter subjects",
        ),
    ] {
        let stream = stream("S");
        let context =
            ConsumerContext { stream: &stream, account: &account, server: &server, is_pedantic: false };
        assert_refused(config.check(&context), err_code, description, description);
    }
}

#[test]
fn limits_of_account_and_server_hold() {
    let account = AccountLimits { max_ack_pending: 30, ..AccountLimits::default() };
    let server = ServerLimits {
        max_request_batch: 10,
        max_ack_pending: 20,
        is_clustered: true,
        ..ServerLimits::default()
    };
    for (json, err_code, description) in [
        (r#"{"config":{"ack_policy":"explicit"}}"#, 0, ""),
        (
            r#"{"config":{"ack_policy":"explicit","max_ack_pending":21}}"#,
            10_121,
            "consumer max ack pending exceeds system limit of 20",
        ),
        (r#"{"config":{"max_batch":11}}"#, 10_125, "consumer max request batch exceeds server limit of 10"),
        (
            r#"{"config":{},"pedantic":true}"#,
            10_157,
            "pedantic mode: max_request_batch must be set if it's JetStream limits are set",
        ),
        (r#"{"config":{"num_replicas":2}}"#, 0, ""),
        (r#"{"config":{"num_replicas":4}}"#, 10_126, "consumer config replica count exceeds parent stream"),
        (
            r#"{"stream_name":"R","config":{"num_replicas":2}}"#,
            10_134,
            "consumer config replicas must match interest retention stream's replicas",
        ),
        (r#"{"stream_name":"R","config":{"num_replicas":3}}"#, 0, ""),
    ] {
        assert_refused(check_in(json, &account, &server), err_code, description, json);
    }
    let config = check_in(r#"{"config":{"ack_policy":"explicit"}}"#, &account, &server).unwrap();
    assert_eq!((config.max_ack_pending, config.max_batch), (20, 10));
    let account = AccountLimits { max_ack_pending: 5, ..AccountLimits::default() };
    let json = r#"{"config":{"ack_policy":"explicit","max_ack_pending":6}}"#;
    let result = check_in(json, &account, &ServerLimits::default());
    assert_refused(result, 10_121, "consumer max ack pending exceeds system limit of 5", json);
}

/// The answers of nats-server 2.15 to these configurations.
#[test]
fn defaults_are_those_of_nats_server() {
    for (json, expected) in [
        (
            r#"{"stream_name":"S","config":{"ack_policy":"explicit"}}"#,
            concat!(
                r#"{"deliver_policy":"all","ack_policy":"explicit","ack_wait":30000000000,"max_deliver":-1,"#,
                r#""replay_policy":"instant","max_waiting":512,"max_ack_pending":1000,"#,
                r#""inactive_threshold":5000000000,"num_replicas":0}"#,
            ),
        ),
        (
            r#"{"config":{"durable_name":"C","name":"C","ack_policy":"none","deliver_subject":"d"}}"#,
            concat!(
                r#"{"durable_name":"C","name":"C","deliver_policy":"all","ack_policy":"none","#,
                r#""max_deliver":-1,"replay_policy":"instant","deliver_subject":"d","num_replicas":0}"#,
            ),
        ),
        (
            r#"{"config":{"ack_policy":"flow_control","deliver_subject":"d"}}"#,
            concat!(
                r#"{"deliver_policy":"all","ack_policy":"flow_control","max_deliver":-1,"#,
                r#""replay_policy":"instant","max_ack_pending":1000,"flow_control":true,"#,
                r#""deliver_subject":"d","idle_heartbeat":1000000000,"#,
                r#""inactive_threshold":5000000000,"num_replicas":0}"#,
            ),
        ),
        (
            concat!(
                r#"{"config":{"ack_policy":"explicit","backoff":[1000000000,2000000000],"max_deliver":2,"#,
                r#""max_batch":-1,"max_ack_pending":-5}}"#,
            ),
            concat!(
                r#"{"deliver_policy":"all","ack_policy":"explicit","ack_wait":1000000000,"max_deliver":2,"#,
                r#""backoff":[1000000000,2000000000],"replay_policy":"instant","max_waiting":512,"#,
                r#""max_ack_pending":-1,"inactive_threshold":5000000000,"num_replicas":0}"#,
            ),
        ),
        (
            r#"{"config":{"durable_name":"C","priority_policy":"pinned_client","priority_groups":["g"]}}"#,
            concat!(
                r#"{"durable_name":"C","deliver_policy":"all","ack_policy":"none","max_deliver":-1,"#,
                r#""replay_policy":"instant","max_waiting":512,"num_replicas":0,"priority_groups":["g"],"#,
                r#""priority_policy":"pinned_client","priority_timeout":120000000000}"#,
            ),
        ),
        (
            r#"{"stream_name":"L","config":{"ack_policy":"all"}}"#,
            concat!(
                r#"{"deliver_policy":"all","ack_policy":"all","ack_wait":30000000000,"max_deliver":-1,"#,
                r#""replay_policy":"instant","max_waiting":512,"max_ack_pending":10,"#,
                r#""inactive_threshold":1000000000,"num_replicas":0}"#,
            ),
        ),
    ] {
        let config = check(json).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), expected);
    }
}

#[test]
fn only_some_fields_can_be_updated() {
    let time = r#"{"deliver_policy":"by_start_time","opt_start_time":"2026-01-01T00:00:00Z"}"#;
    let push = r#"{"deliver_subject":"d"}"#;
    for (old, new, is_bound, expected) in [
        ("{}", "{}", false, Ok(())),
        ("{}", r#"{"description":"d","max_deliver":3,"filter_subject":"s.a"}"#, false, Ok(())),
        ("{}", r#"{"deliver_policy":"new"}"#, false, Err("deliver policy can not be updated")),
        ("{}", r#"{"mem_storage":true}"#, false, Err("storage type can not be updated")),
        (push, r#"{"deliver_subject":"d","direct":true}"#, false, Err("direct can not be updated")),
        ("{}", r#"{"sourcing":true}"#, false, Err("sourcing can not be updated")),
        (
            r#"{"deliver_policy":"by_start_sequence","opt_start_seq":1}"#,
            r#"{"deliver_policy":"by_start_sequence","opt_start_seq":2}"#,
            false,
            Err("start sequence can not be updated"),
        ),
        (
            time,
            r#"{"deliver_policy":"by_start_time","opt_start_time":"2026-01-01T00:00:01Z"}"#,
            false,
            Err("start time can not be updated"),
        ),
        (
            time,
            r#"{"deliver_policy":"by_start_time","opt_start_time":"2026-01-01T01:00:00+01:00"}"#,
            false,
            Ok(()),
        ),
        ("{}", r#"{"ack_policy":"all"}"#, false, Err("ack policy can not be updated")),
        ("{}", r#"{"replay_policy":"original"}"#, false, Err("replay policy can not be updated")),
        (
            push,
            r#"{"deliver_subject":"d","idle_heartbeat":1000000000}"#,
            false,
            Err("heart beats can not be updated"),
        ),
        (
            r#"{"deliver_subject":"d","idle_heartbeat":1000000000}"#,
            r#"{"deliver_subject":"d","idle_heartbeat":1000000000,"flow_control":true}"#,
            false,
            Err("flow control can not be updated"),
        ),
        ("{}", push, false, Err("can not update pull consumer to push based")),
        (push, "{}", false, Err("can not update push consumer to pull based")),
        (push, r#"{"deliver_subject":"e"}"#, false, Ok(())),
        (push, r#"{"deliver_subject":"e"}"#, true, Err("consumer name already in use")),
        ("{}", r#"{"max_waiting":7}"#, false, Err("max waiting can not be updated")),
    ] {
        let [old_config, new_config] =
            [old, new].map(|json| check(&format!(r#"{{"config":{json}}}"#)).unwrap());
        let result = ConsumerConfig::check_update(&old_config, &new_config, is_bound);
        let text = result.map_err(|error| error.description.into_owned());
        assert_eq!(text, expected.map_err(ToString::to_string), "{old} to {new}");
    }
}

#[test]
fn limits_of_a_stream_change_only_where_its_consumers_keep_them() {
    let consumers: Vec<_> = [("A", 5), ("B", 10), ("C", 15)]
        .into_iter()
        .map(|(name, max_ack_pending)| {
            (name, ConsumerConfig { max_ack_pending, ..ConsumerConfig::default() })
        })
        .collect();
    let with_limit = |max_ack_pending| {
        let mut stream = stream("S");
        stream.consumer_limits.max_ack_pending = max_ack_pending;
        stream
    };
    for (old, new, expected) in [
        (0, 0, Ok(())),
        (0, 20, Ok(())),
        (0, 7, Err("change to limits violates consumers: B, C")),
        (7, 7, Ok(())),
        (7, 0, Ok(())),
    ] {
        let listed = consumers.iter().map(|(name, config)| (*name, config));
        let result = check_stream_update(&with_limit(old), &with_limit(new), listed);
        let text = result.map_err(|error| error.description.into_owned());
        assert_eq!(text, expected.map_err(ToString::to_string), "{old} to {new}");
    }
}

#[test]
fn consumers_overlap_where_their_filters_do() {
    for (first, second, expected) in [
        ("{}", r#"{"filter_subject":"a"}"#, true),
        (r#"{"filter_subject":"a.*"}"#, r#"{"filter_subjects":["b","a.b"]}"#, true),
        (r#"{"filter_subject":"a"}"#, r#"{"filter_subjects":["b","c"]}"#, false),
    ] {
        let [own, other] = [first, second].map(|json| serde_json::from_str::<ConsumerConfig>(json).unwrap());
        assert_eq!(own.overlaps(&other), expected, "{first} and {second}");
    }
}

#[test]
fn a_feature_requires_the_level_that_brought_it() {
    for (json, level) in [
        ("{}", 0),
        (r#"{"pause_until":"0001-01-01T00:00:00Z"}"#, 0),
        (r#"{"pause_until":"2030-01-01T00:00:00Z"}"#, 1),
        (r#"{"priority_policy":"overflow"}"#, 1),
        (r#"{"ack_policy":"flow_control"}"#, 4),
    ] {
        let config: ConsumerConfig = serde_json::from_str(json).unwrap();
        assert_eq!(config.required_level(), level, "{json}");
    }
}
