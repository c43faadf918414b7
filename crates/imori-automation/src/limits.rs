//! The limits of the automation: each with its unit, its reason, and what happens when it is reached.

/// Bytes of a YAML document. The largest files of packs have some hundred kilobytes. More: the document is refused.
pub const YAML_BYTES_MAX: usize = 2 << 20;

/// Depth of lists and objects in a YAML document, as in JSON. Deeper: the document is refused.
pub const YAML_DEPTH_MAX: usize = 100;

/// Values of a YAML document; an alias counts as its values each time. Large workflows have some thousands.
/// More: the document is refused.
pub const YAML_VALUES_MAX: usize = 200_000;

/// Bytes of keys and texts of a YAML document; an alias counts as its bytes each time. More: the document is
/// refused.
pub const YAML_TEXT_BYTES_MAX: usize = 8 << 20;

/// Quoted scalars of a YAML document with a line left of their block, for each of which it is read anew. More: the
/// document is refused.
pub const YAML_REREADS_MAX: usize = 32;

/// Criteria of a rule, including nested ones in `search` and `any_of`. Rules have a handful. More: the rule is refused.
pub const CRITERIA_MAX: usize = 1_000;

/// Depth of searches in searches. Payloads are nested a few levels. Deeper: the rule is refused.
pub const SEARCH_DEPTH_MAX: usize = 8;

/// Bytes of the key of a criterion. Longer: the rule is refused.
pub const PATH_BYTES_MAX: usize = 1_024;

/// Bytes of a pattern for regular expressions and wildcards. Longer: the rule is refused; a pattern that only a
/// template makes so long fails its evaluation.
pub const EXPRESSION_BYTES_MAX: usize = 16 << 10;

/// Depth of groups in a regular expression. Deeper: it is refused.
pub const EXPRESSION_DEPTH_MAX: usize = 100;

/// Bytes of memory of a compiled regular expression, which bound its repetitions. More: it is refused.
pub const EXPRESSION_SIZE_BYTES_MAX: usize = 4 << 20;

/// Regular expressions and wildcards of a rule, which are kept compiled. More: the rule is refused.
pub const EXPRESSIONS_MAX: usize = 100;

/// Steps back that a regular expression with look-around or back-references may take on one text: some milliseconds.
/// More: the evaluation fails.
pub const EXPRESSION_BACKTRACKS_MAX: usize = 100_000;

/// Bytes of a date in a payload. Longer: the evaluation fails.
pub const DATE_BYTES_MAX: usize = 128;

/// Characters of a value that an error or an explanation shows. Longer: its end is left out.
pub const SHOWN_CHARS_MAX: usize = 200;

/// Actions of one rule. More: the rule is refused.
pub const RULE_ACTIONS_MAX: usize = 100;

/// Sets of criteria in `any_of` of one rule. More: the rule is refused.
pub const RULE_ALTERNATIVES_MAX: usize = 100;

/// Matches that `count` and `throttle` of a rule may count, for each of which a moment is kept. More: the rule is
/// refused.
pub const RULE_COUNT_MAX: i64 = 1_000;

/// Seconds of `throttle`, `once_within` and `count` of a rule: a year. More: the rule is refused.
pub const RULE_WINDOW_SECONDS_MAX: i64 = 366 * 86_400;

/// Matches that `breaker` of a rule may allow within its time; they are counted in one number. More: the rule is refused.
pub const RULE_BREAKER_MAX: i64 = 100_000_000;

/// Executions of a rule at once that `limit` may allow. More: the rule is refused.
pub const RULE_LIMIT_MAX: i64 = 100_000;

/// Values of `dedup_key` that a rule remembers. More: the one that matched longest ago is forgotten.
pub const RULE_KEYS_MAX: usize = 4_096;

/// Bytes of one value of `dedup_key`. Longer: the match fails.
pub const RULE_KEY_BYTES_MAX: usize = 1_024;

/// Bytes of a written time, which need 32. Longer: the time is refused.
pub const TIME_BYTES_MAX: usize = 64;

/// Bytes of a field of a cron timer. All 60 minutes in a list need 169. Longer: the timer is refused.
pub const CRON_FIELD_BYTES_MAX: usize = 256;

/// Steps of a search for the next firing of a cron timer. The calendar repeats every 400 years, and the search takes
/// two steps or three for each of their 146 097 days, so that a timer that needs more never fires. More: it has ended.
pub const CRON_STEPS_MAX: usize = 500_000;

/// Firings of one timer that are made up for after the engine was down. More: the oldest are skipped.
pub const MISSED_FIRINGS_MAX: usize = 1_000;

/// Bytes of the body of a webhook, as many as GitHub sends. As a value it takes several times as much memory, which the
/// engine charges. More: the request is refused.
pub const WEBHOOK_BODY_BYTES_MAX: usize = 25 << 20;

/// Fields of a form in the body of a webhook. More: the request is refused.
pub const FORM_FIELDS_MAX: usize = 1_000;

/// Secrets of a webhook, each of which is tried for every request. A rotation needs two. More: the webhook is refused.
pub const WEBHOOK_SECRETS_MAX: usize = 8;

/// Bytes of the URL, of a secret, or of another setting of a webhook. More: the webhook is refused.
pub const WEBHOOK_SETTING_BYTES_MAX: usize = 1_024;

/// Signatures in the header of one request. A sender that rotates its secret sends two. More: the request is refused.
pub const WEBHOOK_SIGNATURES_MAX: usize = 16;

/// Seconds by which the timestamp of a signed request may differ from the clock, where the sender gives no number.
pub const WEBHOOK_WINDOW_SECONDS: i64 = 300;

/// Seconds that a webhook may set as its window. A day allows for queues of a sender. More: the webhook is refused.
pub const WEBHOOK_WINDOW_SECONDS_MAX: i64 = 86_400;

/// Bytes of a key that tells deliveries of a webhook apart. UUIDs need 36. Longer: the request is refused.
pub const DELIVERY_KEY_BYTES_MAX: usize = 256;

/// Bytes of a challenge that a webhook sends back. Longer: there is no answer.
pub const CHALLENGE_BYTES_MAX: usize = 1_024;

/// Retries that a policy may ask for, as in StackStorm. More: the policy is refused.
pub const RETRIES_MAX: i64 = 5;

/// Seconds that a policy may wait before a retry, as in StackStorm. More: the policy is refused.
pub const RETRY_DELAY_SECONDS_MAX: f64 = 120.0;

/// Fuel of one rendering: about one an instruction, and one for 64 bytes that it makes. Some hundred thousand steps
/// and 16 MB are far more than a parameter needs, and end a loop that runs away within a tenth of a second. More: the
/// rendering fails.
pub const TEMPLATE_FUEL_MAX: u64 = 250_000;

/// Bytes of a template. A report with a page of text has a few kilobytes. More: the template is refused.
pub const TEMPLATE_BYTES_MAX: usize = 256 << 10;

/// Bytes that a rendering may write. A result that large is data, which belongs into a file or the datastore. More:
/// the rendering fails.
pub const TEMPLATE_OUTPUT_BYTES_MAX: usize = 4 << 20;

/// Items of a `range`, as in Jinja's sandbox. More: the rendering fails.
pub const TEMPLATE_RANGE_ITEMS_MAX: i128 = 100_000;

/// Depth of blocks, macro calls and recursive loops of a template. It is kept on the stack of the thread. More: the
/// rendering fails.
pub const TEMPLATE_RECURSION_MAX: usize = 200;

/// Depth of lists and objects that a template or a schema reads or writes. It is kept on the stack of the thread;
/// JSON that is deeper is refused when it is read. More: the rendering or the check fails.
pub const VALUE_DEPTH_MAX: usize = 128;

/// Lists, objects and scalars in a value that a template gives a name or gets from a filter. The engine compares and
/// writes values without counting. More: the rendering fails.
pub const TEMPLATE_VALUE_PARTS_MAX: usize = 200_000;

/// Bytes that a compiled regular expression of a template may take. More: the rendering fails.
pub const TEMPLATE_REGEX_BYTES_MAX: usize = 1 << 20;

/// Fuel that a regular expression costs where a rendering first uses it. It takes up to some milliseconds to compile.
pub const TEMPLATE_REGEX_FUEL: u64 = 1_000;

/// Steps back that a regular expression with look-around or back-references may take. More: the rendering fails.
pub const TEMPLATE_REGEX_BACKTRACKS_MAX: usize = 100_000;

/// Width of a field in a format such as `%20s`, in characters. Python has no limit. More: the rendering fails.
pub const FORMAT_WIDTH_MAX: usize = 10_000;

/// Bytes of a JSONPath. Its operators are kept on the stack of the thread. More: the rendering fails.
pub const JSONPATH_BYTES_MAX: usize = 1024;

/// Values of a YAML text in a template; an alias counts as its values each time. More: the rendering fails.
pub const YAML_NODES_MAX: usize = 100_000;

/// Schemas and keywords that one check of a value may try. References and alternatives could else take forever. More:
/// the value is refused.
pub const SCHEMA_STEPS_MAX: usize = 200_000;

/// Bytes of a literal of Python that a parameter is cast from. More: the cast fails.
pub const LITERAL_BYTES_MAX: usize = 4 << 20;

/// Parameters by which a policy counts concurrent executions. More: the policy is refused.
pub const CONCURRENCY_ATTRIBUTES_MAX: usize = 32;

/// Depth of a YAQL expression that is evaluated without a Python host. It is kept on the stack of the thread. Deeper:
/// the expression is left to the host.
pub const YAQL_DEPTH_MAX: usize = 100;

/// Bytes of a text with expressions in a workflow. More: the evaluation fails.
pub const WORKFLOW_EXPRESSION_BYTES_MAX: usize = 256 << 10;

/// How often the value of an expression may have expressions itself. More: they are left as they are.
pub const EXPRESSION_ROUNDS_MAX: usize = 8;

/// Tasks of a workflow. Large workflows have some dozens. More: the workflow is refused.
pub const WORKFLOW_TASKS_MAX: usize = 1_000;

/// Transitions between the tasks of a workflow, each name in a `do` counted. More: the workflow is refused.
pub const WORKFLOW_TRANSITIONS_MAX: usize = 10_000;

/// Items of one list of a task. Each is an execution of its own. More: the task fails.
pub const WORKFLOW_ITEMS_MAX: usize = 10_000;

/// Runs of tasks of one execution of a workflow: what its state keeps, also of a cycle that has no end. More: the
/// workflow fails.
pub const WORKFLOW_RUNS_MAX: usize = 10_000;

/// Runs of tasks in a rehearsal, which ends with an error beyond. No test needs more, and a cycle without end is told soon.
pub const REHEARSAL_RUNS_MAX: usize = 1_000;

/// Runs of tasks that follow one event without a call between them. A cycle of tasks without actions has no end.
/// More: the workflow fails.
pub const WORKFLOW_STEPS_MAX: usize = 2_000;

/// Bytes of all values in the state of a workflow, about. It is written with each event. More: the workflow fails.
pub const WORKFLOW_STATE_BYTES_MAX: usize = 32 << 20;

/// Errors that an execution of a workflow keeps. More: the later ones are dropped.
pub const WORKFLOW_ERRORS_MAX: usize = 1_000;

/// Seconds that a task or a retry may be delayed: a year. More: the task fails.
pub const WORKFLOW_DELAY_SECONDS_MAX: i64 = 366 * 86_400;

/// Visits of tasks in the search for joins that cannot be reached. Workflows of the largest size need as many as they
/// have transitions, unless their splits are nested deeply. More: the search ends without a finding.
pub const WORKFLOW_VISITS_MAX: usize = 20_000;

/// Bytes of a format of an alias. Formats have a line or two. More: the alias is refused.
pub const ALIAS_FORMAT_BYTES_MAX: usize = 4 << 10;

/// Formats of an alias, each of which is compared with every command. More: the alias is refused.
pub const ALIAS_FORMATS_MAX: usize = 100;

/// Bytes of a chat command; chats allow some thousand characters. More: the command is refused.
pub const ALIAS_COMMAND_BYTES_MAX: usize = 16 << 10;

/// Tasks of an action chain. More: the chain is refused.
pub const CHAIN_TASKS_MAX: usize = 1_000;

/// Tasks that one execution of an action chain runs, each as often as a loop comes to it. The state of the chain has all
/// their results. More: the execution fails.
pub const CHAIN_CALLS_MAX: u32 = 1_000;
