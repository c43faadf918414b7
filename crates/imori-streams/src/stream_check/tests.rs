use super::*;

/// Streams that are there: an origin, and two that lead back to `S`.
fn others() -> Vec<StreamConfig> {
    [
        r#"{"name":"O","subjects":["o.>"],"max_msg_size":1000,"allow_direct":true}"#,
        r#"{"name":"P","sources":[{"name":"S"}]}"#,
        r#"{"name":"M","mirror":{"name":"S"}}"#,
    ]
    .map(|json| StreamConfigRequest::decode(json.as_bytes()).unwrap().config)
    .into()
}

fn check(json: &str, account: &AccountLimits, server: &ServerLimits) -> Result<StreamConfig, ApiError> {
    let request = StreamConfigRequest::decode(json.as_bytes()).unwrap();
    let others = others();
    let stream = |name: &str| others.iter().find(|other| other.name == name);
    let context = StreamContext { account, server, is_pedantic: request.is_pedantic, stream: &stream };
    request.config.check_in(&context)
}

fn assert_refused(result: Result<StreamConfig, ApiError>, err_code: u16, description: &str, json: &str) {
    match result {
        Ok(_) => assert_eq!(err_code, 0, "{json} is refused"),
        Err(error) => assert_eq!((error.err_code, &*error.description), (err_code, description), "{json}"),
    }
}

/// The answers of nats-server 2.15 to these configurations.
#[test]
fn contradictions_are_refused_as_in_nats_server() {
    for (json, err_code, description) in [
        (r#"{"name":""}"#, 10_052, "stream name is required and can not contain '.', '*', '>', '\\', '/'"),
        (r#"{"name":"a.b"}"#, 10_052, "stream name is required and can not contain '.', '*', '>', '\\', '/'"),
        (
            r#"{"name":"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"}"#,
            10_052,
            "stream name is too long, maximum allowed is 255",
        ),
        (r#"{"name":"S","num_replicas":6}"#, 10_052, "maximum replicas is 5"),
        (r#"{"name":"S","num_replicas":-1}"#, 10_133, "replicas count cannot be negative"),
        (r#"{"name":"S","num_replicas":3}"#, 10_074, "replicas > 1 not supported in non-clustered mode"),
        (
            r#"{"name":"S","max_msgs":-2,"pedantic":true}"#,
            10_157,
            "pedantic mode: max_msgs must be set to -1",
        ),
        (
            r#"{"name":"S","max_msgs_per_subject":-2,"pedantic":true}"#,
            10_157,
            "pedantic mode: max_msgs_per_subject must be set to -1",
        ),
        (
            r#"{"name":"S","max_bytes":-2,"pedantic":true}"#,
            10_157,
            "pedantic mode: max_bytes must be set to -1",
        ),
        (
            r#"{"name":"S","max_msg_size":-2,"pedantic":true}"#,
            10_157,
            "pedantic mode: max_msg_size must be set to -1",
        ),
        (
            r#"{"name":"S","max_consumers":-2,"pedantic":true}"#,
            10_157,
            "pedantic mode: max_consumers must be set to -1",
        ),
        (r#"{"name":"S","max_age":-1}"#, 10_052, "max age can not be negative"),
        (r#"{"name":"S","max_age":99999999}"#, 10_052, "max age needs to be >= 100ms"),
        (
            r#"{"name":"S","max_age":1000000000,"pedantic":true}"#,
            10_157,
            "pedantic mode: duplicate window cannot be bigger than max age",
        ),
        (r#"{"name":"S","duplicate_window":-1}"#, 10_052, "duplicates window can not be negative"),
        (
            r#"{"name":"S","max_age":1000000000,"duplicate_window":2000000000}"#,
            10_052,
            "duplicates window can not be larger then max age",
        ),
        (r#"{"name":"S","duplicate_window":99999999}"#, 10_052, "duplicates window needs to be >= 100ms"),
        (
            r#"{"name":"S","deny_purge":true,"allow_rollup_hdrs":true}"#,
            10_052,
            "roll-ups require the purge permission",
        ),
        (
            r#"{"name":"S","allow_msg_counter":true,"discard":"new"}"#,
            10_052,
            "counter stream cannot use discard new",
        ),
        (
            r#"{"name":"S","allow_msg_counter":true,"allow_msg_ttl":true}"#,
            10_052,
            "counter stream cannot use message TTLs",
        ),
        (
            r#"{"name":"S","allow_msg_counter":true,"allow_msg_schedules":true}"#,
            10_052,
            "counter stream cannot use message schedules",
        ),
        (
            r#"{"name":"S","allow_msg_counter":true,"retention":"interest"}"#,
            10_052,
            "counter stream can only use limits retention",
        ),
        (
            r#"{"name":"S","discard_new_per_subject":true}"#,
            10_052,
            "discard new per subject requires discard new policy to be set",
        ),
        (
            r#"{"name":"S","discard_new_per_subject":true,"discard":"new"}"#,
            10_052,
            "discard new per subject requires max msgs per subject > 0",
        ),
        (
            r#"{"name":"S","subject_delete_marker_ttl":1}"#,
            10_052,
            "subject delete marker TTL must be at least 1 second",
        ),
        (
            r#"{"name":"S","subject_delete_marker_ttl":-1}"#,
            10_052,
            "subject delete marker TTL must not be negative",
        ),
        (
            r#"{"name":"S","subject_delete_marker_ttl":1000000000,"pedantic":true}"#,
            10_052,
            "subject delete marker cannot be set if message TTLs are disabled",
        ),
        (
            r#"{"name":"S","subject_delete_marker_ttl":1000000000,"allow_msg_ttl":true,"pedantic":true}"#,
            10_052,
            "subject delete marker cannot be set if roll-ups are disabled",
        ),
        (
            r#"{"name":"S","allow_msg_schedules":true,"discard":"new"}"#,
            10_052,
            "message scheduling cannot use discard new",
        ),
        (
            r#"{"name":"S","allow_msg_schedules":true,"pedantic":true}"#,
            10_052,
            "message scheduling cannot be set if roll-ups are disabled",
        ),
        (
            r#"{"name":"S","persist_mode":"async","storage":"memory"}"#,
            10_052,
            "async persist mode is only supported on file storage",
        ),
        (
            r#"{"name":"S","persist_mode":"async","num_replicas":3}"#,
            10_052,
            "async persist mode is not supported on replicated streams",
        ),
        (
            r#"{"name":"S","persist_mode":"async","allow_atomic":true}"#,
            10_052,
            "async persist mode is not supported with atomic batch publish",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"first_seq":1}"#,
            10_143,
            "stream mirrors can not have first sequence configured",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"subjects":["a"]}"#,
            10_034,
            "stream mirrors can not contain subjects",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"sources":[{"name":"Y"}]}"#,
            10_031,
            "stream mirrors can not also contain other sources",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"allow_msg_counter":true}"#,
            10_173,
            "stream mirrors can not also calculate counters",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"allow_atomic":true}"#,
            10_198,
            "stream mirrors can not also use atomic publishing",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"allow_batched":true}"#,
            10_209,
            "stream mirrors can not also use batch publishing",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"allow_msg_schedules":true}"#,
            10_186,
            "stream mirrors can not also schedule messages",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","consumer":{"name":"a.b","deliver_subject":"d"}}}"#,
            10_213,
            "stream mirror consumer config is invalid",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","consumer":{"name":"c","deliver_subject":"d.*"}}}"#,
            10_213,
            "stream mirror consumer config is invalid",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","filter_subject":"f","subject_transforms":[{"src":"a","dest":"b"}]}}"#,
            10_150,
            "mirror with multiple subject transforms cannot also have a single subject filter",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X"},"subject_delete_marker_ttl":1000000000}"#,
            10_052,
            "subject delete markers forbidden on mirrors",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","subject_transforms":[{"src":"a..","dest":"b"}]}}"#,
            10_151,
            "mirror transform source: invalid subject a..",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","subject_transforms":[{"src":"a","dest":"$1"}]}}"#,
            10_154,
            "mirror transform: invalid mapping destination: wildcard index out of range in $1",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","subject_transforms":[{"src":"a.*","dest":"b"},{"src":"a.b","dest":"c"}]}}"#,
            10_152,
            "mirror subject filters can not overlap",
        ),
        (r#"{"name":"S","mirror":{"name":""}}"#, 10_142, "mirrored stream name is invalid"),
        (
            r#"{"name":"S","mirror":{"name":"O"},"max_msg_size":10}"#,
            10_030,
            "stream mirror must have max message size >= source",
        ),
        (
            r#"{"name":"S","mirror":{"name":"O"},"pedantic":true}"#,
            10_157,
            "pedantic mode: origin stream has direct get set, mirror has it disabled",
        ),
        (
            r#"{"name":"S","mirror":{"name":"X","filter_subject":"a.."}}"#,
            10_049,
            "subject filter 'a..' for the mirror invalid subject",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X"}],"allow_msg_schedules":true}"#,
            10_187,
            "stream source can not also schedule messages",
        ),
        (r#"{"name":"S","sources":[{"name":"a.b"}]}"#, 10_141, "sourced stream name is invalid"),
        (
            r#"{"name":"S","sources":[{"name":"X"},{"name":"X"}]}"#,
            10_140,
            "duplicate source configuration detected",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","filter_subject":"f","subject_transforms":[{"src":"a","dest":"b"}]}]}"#,
            10_144,
            "source with multiple subject transforms cannot also have a single subject filter",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","subject_transforms":[{"src":"a..","dest":"b"}]}]}"#,
            10_145,
            "source transform source: invalid subject a..",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","subject_transforms":[{"src":"a","dest":"$1"}]}]}"#,
            10_146,
            "source transform: invalid mapping destination: wildcard index out of range in $1",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","subject_transforms":[{"src":"a.*","dest":"b"},{"src":"a.b","dest":"c"}]}]}"#,
            10_147,
            "source filters can not overlap",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","consumer":{"name":"","deliver_subject":"d"}}]}"#,
            10_215,
            "stream source consumer config is invalid",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","consumer":{"name":"c","deliver_subject":"d"},"opt_start_seq":1}]}"#,
            10_215,
            "stream source consumer config is invalid",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","consumer":{"name":"c","deliver_subject":"d"}},{"name":"X","filter_subject":"","consumer":{"name":"c","deliver_subject":"e"}}]}"#,
            10_140,
            "duplicate source configuration detected",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","consumer":{"name":"c","deliver_subject":"d"}},{"name":"X","subject_transforms":[{"src":"a","dest":"b"}],"consumer":{"name":"c","deliver_subject":"e"}}]}"#,
            10_216,
            "duplicate stream source consumer detected",
        ),
        (
            r#"{"name":"S","sources":[{"name":"O"}],"max_msg_size":10}"#,
            10_046,
            "stream source must have max message size >= target",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","filter_subject":"a.."}]}"#,
            10_049,
            "subject filter 'a..' for the source: invalid subject",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","external":{"api":"$JS.d.API","deliver":"a.*"}}]}"#,
            10_024,
            "stream external delivery prefix a.* must not contain wildcards",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","external":{"api":"$JS.*.API","deliver":"a"}}]}"#,
            10_052,
            r#"stream external api prefix "$JS.*.API" must be a valid subject without wildcards"#,
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","external":{"api":"$JS.API","deliver":"a"}}]}"#,
            10_021,
            "stream external api prefix $JS.API must not overlap with $JS.API",
        ),
        (
            r#"{"name":"S","sources":[{"name":"X","external":{"api":"$JS.d.API","deliver":"o"}},{"name":"O"}]}"#,
            10_022,
            "stream external delivery prefix o overlaps with stream subject o.>",
        ),
        (r#"{"name":"S","sources":[{"name":"S"}]}"#, 10_052, "detected cycle"),
        (r#"{"name":"S","sources":[{"name":"P"}]}"#, 10_052, "detected cycle"),
        (r#"{"name":"S","sources":[{"name":"M"}]}"#, 10_052, "detected cycle"),
        (r#"{"name":"S","mirror":{"name":"P"}}"#, 10_052, "detected cycle"),
        (r#"{"name":"S","mirror":{"name":"S"}}"#, 10_052, "detected cycle"),
        (
            r#"{"name":"S","subjects":["S"],"sources":[{"name":"P","filter_subject":"zzz"}]}"#,
            10_052,
            "detected cycle",
        ),
        (r#"{"name":"S","subjects":["a.."]}"#, 10_052, "invalid subject"),
        (r#"{"name":"S","subjects":["a","a"]}"#, 10_052, r#"subject "a" overlaps with "a""#),
        (r#"{"name":"S","subjects":["a.*","a.b"]}"#, 10_052, r#"subject "a.*" overlaps with "a.b""#),
        (r#"{"name":"S","subjects":[">"]}"#, 10_052, "capturing all subjects requires no-ack to be true"),
        (
            r#"{"name":"S","subjects":[">"],"no_ack":true,"num_replicas":3}"#,
            10_052,
            "capturing all subjects requires replicas of 1",
        ),
        (
            r#"{"name":"S","subjects":["$JS.API.x"]}"#,
            10_052,
            "subjects that overlap with jetstream api require no-ack to be true",
        ),
        (
            r#"{"name":"S","subjects":["$SYS.x"]}"#,
            10_052,
            "subjects that overlap with system api require no-ack to be true",
        ),
        (r#"{"name":"S","subjects":["$JS.EVENT.x"]}"#, 0, ""),
        (r#"{"name":"S","subjects":["$SYS.ACCOUNT.x"]}"#, 0, ""),
        (
            r#"{"name":"S","subjects":["*.API.x"]}"#,
            10_052,
            "subjects that overlap with jetstream api require no-ack to be true",
        ),
        (
            r#"{"name":"S","subject_transform":{"src":"a..","dest":"b"}}"#,
            10_155,
            "stream transform source: invalid subject a..",
        ),
        (
            r#"{"name":"S","subject_transform":{"src":"a","dest":"$1"}}"#,
            10_156,
            "stream transform: invalid mapping destination: wildcard index out of range in $1",
        ),
        (
            r#"{"name":"S","republish":{"dest":"r"},"pedantic":true}"#,
            10_157,
            "pedantic mode: republish source can not be empty",
        ),
        (
            r#"{"name":"S","republish":{"src":"S","dest":"S"}}"#,
            10_052,
            "stream configuration for republish destination forms a cycle",
        ),
        (
            r#"{"name":"S","republish":{"src":"a","dest":"$1"}}"#,
            10_052,
            "stream configuration for republish with transform from 'a' to '$1' not valid",
        ),
        (
            r#"{"name":"S","subjects":["a.*"],"subject_transform":{"src":"a.*","dest":"b.$1"},"republish":{"src":">","dest":">"},"pedantic":true}"#,
            10_157,
            "pedantic mode: implicit republish based on subject transform",
        ),
        (
            r#"{"name":"S","placement":{"preferred":"x"}}"#,
            10_052,
            "preferred server not permitted in placement",
        ),
    ] {
        assert_refused(
            check(json, &AccountLimits::default(), &ServerLimits::default()),
            err_code,
            description,
            json,
        );
    }
}

#[test]
fn texts_and_lists_have_a_limit() {
    let subjects: Vec<_> = (0..=FILTER_COUNT_MAX).map(|number| format!("s{number}")).collect();
    let source = |number| StreamSource { name: format!("s{number}"), ..StreamSource::default() };
    let sources: Vec<_> = (0..=SOURCE_COUNT_MAX).map(source).collect();
    let transform = |number| SubjectTransform { src: format!("s{number}"), dest: String::new() };
    let transforms: Vec<_> = (0..=SOURCE_TRANSFORM_COUNT_MAX).map(transform).collect();
    let named = || StreamConfig { name: "S".to_string(), ..StreamConfig::default() };
    for (config, description) in [
        (
            StreamConfig { name: "n".repeat(NAME_BYTES_MAX + 1), ..named() },
            "stream name is too long, maximum allowed is 255",
        ),
        (
            StreamConfig { description: "d".repeat(DESCRIPTION_BYTES_MAX + 1), ..named() },
            "stream description is too long, maximum allowed is 4096",
        ),
        (
            StreamConfig { metadata: [("k".to_string(), "v".repeat(METADATA_BYTES_MAX))].into(), ..named() },
            "stream metadata exceeds maximum size of 131072 bytes",
        ),
        (StreamConfig { subjects, ..named() }, "more than 1024 subjects"),
        (StreamConfig { sources, ..named() }, "more than 1024 sources"),
        (
            StreamConfig {
                mirror: Some(StreamSource { subject_transforms: transforms, ..source(0) }),
                ..named()
            },
            "more than 256 subject transforms",
        ),
    ] {
        let result = config.check(&AccountLimits::default());
        assert_refused(result, 10_052, description, description);
    }
}

#[test]
fn limits_of_account_and_server_hold() {
    let account = AccountLimits {
        max_bytes_required: true,
        memory_max_stream_bytes: 10,
        storage_max_stream_bytes: 20,
        ..AccountLimits::default()
    };
    let server =
        ServerLimits { duplicate_window: Nanos::from_secs(1), is_clustered: true, ..ServerLimits::default() };
    for (json, err_code, description) in [
        (r#"{"name":"S"}"#, 10_113, "account requires a stream config to have max bytes set"),
        (r#"{"name":"S","max_bytes":20}"#, 0, ""),
        (r#"{"name":"S","max_bytes":20,"num_replicas":3}"#, 0, ""),
        (r#"{"name":"S","max_bytes":21}"#, 10_122, "stream max bytes exceeds account limit max stream bytes"),
        (
            r#"{"name":"S","max_bytes":11,"storage":"memory"}"#,
            10_122,
            "stream max bytes exceeds account limit max stream bytes",
        ),
        (
            r#"{"name":"S","duplicate_window":2000000000}"#,
            10_052,
            "duplicates window can not be larger then server limit of 1s",
        ),
        (
            r#"{"name":"S","pedantic":true}"#,
            10_157,
            "pedantic mode: duplicate window limits are higher than current limits",
        ),
    ] {
        assert_refused(check(json, &account, &server), err_code, description, json);
    }
}

/// The answers of nats-server 2.15 to these configurations.
#[test]
fn defaults_are_those_of_nats_server() {
    for (json, expected) in [
        (
            r#"{"name":"S"}"#,
            concat!(
                r#"{"name":"S","subjects":["S"],"retention":"limits","max_consumers":-1,"max_msgs":-1,"#,
                r#""max_bytes":-1,"max_age":0,"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","#,
                r#""storage":"file","num_replicas":1,"duplicate_window":120000000000,"compression":"none","#,
                r#""allow_direct":false,"mirror_direct":false,"sealed":false,"deny_delete":false,"#,
                r#""deny_purge":false,"allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false}"#,
            ),
        ),
        (
            r#"{"name":"S","mirror":{"name":"O"},"max_msgs":-7,"placement":{}}"#,
            concat!(
                r#"{"name":"S","retention":"limits","max_consumers":-1,"max_msgs":-1,"max_bytes":-1,"#,
                r#""max_age":0,"max_msgs_per_subject":-1,"max_msg_size":-1,"discard":"old","storage":"file","#,
                r#""num_replicas":1,"mirror":{"name":"O"},"compression":"none","allow_direct":false,"#,
                r#""mirror_direct":true,"sealed":false,"deny_delete":false,"deny_purge":false,"#,
                r#""allow_rollup_hdrs":false,"consumer_limits":{},"allow_msg_ttl":false}"#,
            ),
        ),
        (
            concat!(
                r#"{"name":"S","max_age":1000000000,"subject_delete_marker_ttl":1000000000,"deny_purge":true,"#,
                r#""republish":{"dest":"r.>"}}"#,
            ),
            concat!(
                r#"{"name":"S","subjects":["S"],"retention":"limits","max_consumers":-1,"max_msgs":-1,"#,
                r#""max_bytes":-1,"max_age":1000000000,"max_msgs_per_subject":-1,"max_msg_size":-1,"#,
                r#""discard":"old","storage":"file","num_replicas":1,"duplicate_window":1000000000,"#,
                r#""compression":"none","republish":{"src":">","dest":"r.>"},"allow_direct":false,"#,
                r#""mirror_direct":false,"sealed":false,"deny_delete":false,"deny_purge":false,"#,
                r#""allow_rollup_hdrs":true,"consumer_limits":{},"allow_msg_ttl":true,"#,
                r#""subject_delete_marker_ttl":1000000000}"#,
            ),
        ),
    ] {
        let config = check(json, &AccountLimits::default(), &ServerLimits::default()).unwrap();
        assert_eq!(serde_json::to_string(&config).unwrap(), expected);
        let again = config.clone().check_in(&StreamContext {
            account: &AccountLimits::default(),
            server: &ServerLimits::default(),
            is_pedantic: false,
            stream: &|_| None,
        });
        assert_eq!(again, Ok(config), "{json}: a checked configuration stays as it is");
    }
}

/// The answers of nats-server 2.15 to these updates.
#[test]
fn updates_are_refused_as_in_nats_server() {
    for (old, new, err_code, description) in [
        ("{}", r#"{"name":"T"}"#, 10_052, "stream configuration name must match original"),
        ("{}", r#"{"num_replicas":3}"#, 10_074, "replicas > 1 not supported in non-clustered mode"),
        ("{}", r#"{"storage":"memory"}"#, 10_052, "stream configuration update can not change storage type"),
        (
            "{}",
            r#"{"retention":"workqueue"}"#,
            10_052,
            "stream configuration update can not change retention policy to/from workqueue",
        ),
        (
            r#"{"retention":"workqueue"}"#,
            "{}",
            10_052,
            "stream configuration update can not change retention policy to/from workqueue",
        ),
        ("{}", r#"{"retention":"interest"}"#, 0, ""),
        (
            r#"{"deny_delete":true}"#,
            "{}",
            10_052,
            "stream configuration update can not cancel deny message deletes",
        ),
        (r#"{"deny_purge":true}"#, "{}", 10_052, "stream configuration update can not cancel deny purge"),
        (
            r#"{"mirror":{"name":"X"}}"#,
            r#"{"mirror":{"name":"Y"}}"#,
            10_055,
            "stream mirror configuration can not be updated",
        ),
        (r#"{"mirror":{"name":"X"}}"#, "{}", 0, ""),
        ("{}", r#"{"mirror":{"name":"X"}}"#, 10_055, "stream mirror configuration can not be updated"),
        (r#"{"allow_msg_ttl":true}"#, "{}", 10_052, "message TTL status can not be disabled"),
        ("{}", r#"{"allow_msg_ttl":true}"#, 0, ""),
        (
            r#"{"allow_msg_counter":true}"#,
            "{}",
            10_052,
            "stream configuration update can not change message counter setting",
        ),
        (r#"{"allow_msg_schedules":true}"#, "{}", 10_052, "message schedules can not be disabled"),
        (
            r#"{"persist_mode":"async"}"#,
            "{}",
            10_052,
            "stream configuration update can not change persist mode",
        ),
        (
            r#"{"sealed":true}"#,
            r#"{"deny_delete":true,"deny_purge":true}"#,
            10_052,
            "stream configuration update can not unseal a sealed stream",
        ),
        ("{}", r#"{"subjects":["b","c"]}"#, 0, ""),
    ] {
        let [old_config, new_config] = [old, new].map(|json| {
            let config = StreamConfigRequest::decode(json.as_bytes()).unwrap().config;
            if config.name.is_empty() { StreamConfig { name: "S".to_string(), ..config } } else { config }
        });
        let context = StreamContext {
            account: &AccountLimits::default(),
            server: &ServerLimits::default(),
            is_pedantic: false,
            stream: &|_| None,
        };
        let old_config = old_config.check_in(&context).unwrap();
        let result = StreamConfig::check_update(&old_config, new_config, &context);
        assert_refused(result, err_code, description, &format!("{old} to {new}"));
    }
}

#[test]
fn sealing_a_stream_closes_it() {
    let account = AccountLimits::default();
    let named = || StreamConfig { name: "S".to_string(), ..StreamConfig::default() };
    let old = named().check(&account).unwrap();
    let new = StreamConfig { sealed: true, max_age: Nanos::from_secs(5), allow_rollup_hdrs: true, ..named() };
    let context = StreamContext {
        account: &account,
        server: &ServerLimits::default(),
        is_pedantic: false,
        stream: &|_| None,
    };
    let sealed = StreamConfig::check_update(&old, new, &context).unwrap();
    let expected = StreamConfig {
        sealed: true,
        discard: Discard::New,
        deny_delete: true,
        deny_purge: true,
        duplicate_window: Nanos::from_secs(5),
        ..old
    };
    assert_eq!(sealed, expected);
}

#[test]
fn some_flags_are_for_updates_only() {
    for (subject, json, expected) in [
        ("S", r#"{"name":"S"}"#, Ok(())),
        ("S", r#"{"name":"T"}"#, Err(ApiError::STREAM_MISMATCH)),
        ("S/x", r#"{"name":"S/x"}"#, Err(ApiError::STREAM_NAME_CONTAINS_PATH_SEPARATORS)),
        (
            "S",
            r#"{"name":"S","sealed":true}"#,
            Err(invalid("stream configuration for create can not be sealed")),
        ),
        (
            "S",
            r#"{"name":"S","mirror_direct":true}"#,
            Err(invalid("stream has no mirror but does have mirror direct")),
        ),
    ] {
        let request = StreamConfigRequest::decode(json.as_bytes()).unwrap();
        assert_eq!(request.check_create(subject), expected, "{json}");
    }
}

#[test]
fn a_feature_requires_the_level_that_brought_it() {
    for (json, level) in [
        (r#"{"name":"S"}"#, 0),
        (r#"{"name":"S","allow_msg_ttl":true}"#, 1),
        (r#"{"name":"S","allow_atomic":true,"allow_msg_ttl":true}"#, 2),
        (r#"{"name":"S","persist_mode":"async"}"#, 2),
        (r#"{"name":"S","allow_batched":true}"#, 4),
    ] {
        let config = StreamConfigRequest::decode(json.as_bytes()).unwrap().config;
        assert_eq!(config.required_level(), level, "{json}");
    }
}

#[test]
fn streams_overlap_where_their_subjects_do() {
    let stream = |subjects: &[&str]| StreamConfig {
        subjects: subjects.iter().map(|subject| (*subject).to_string()).collect(),
        ..StreamConfig::default()
    };
    for (first, second, expected) in
        [(&["a", "b.*"][..], &["b.c"][..], true), (&["a"], &["b"], false), (&[], &["b"], false)]
    {
        assert_eq!(stream(first).overlaps(&stream(second)), expected, "{first:?} and {second:?}");
    }
}
