//! The engine's limits: each with its unit, its reason, and what happens when it is reached.

use std::time::Duration;

/// Bytes of a result of a Python action, as JSON. An action that returns more fails, and is told so.
pub const PYTHON_RESULT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of a question that an action asks the datastore. Ends the conversation with an action that sends more.
pub const PYTHON_QUESTION_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of the parameters, configuration and environment of a Python action, as JSON. More is refused before it runs.
pub const PYTHON_REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of each output of an action that its result keeps. The rest is counted, and goes with the run's folder.
pub const OUTPUT_BYTES_MAX: u64 = 1024 * 1024;

/// Bytes of the outputs of all hosts that the result of a remote action keeps.
pub const SSH_OUTPUT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Results in memory at a time, from the read of the outputs until the execution is stored: JSON of 1 MiB takes 20 MiB as
/// values. The outputs of further actions wait in their files.
pub const RESULTS_AT_ONCE: usize = 2;

/// Bytes of outputs up to which a result is in memory without a place among [`RESULTS_AT_ONCE`].
pub const RESULT_BYTES_WITHOUT_PLACE: u64 = 32 * 1024;

/// Reports of ends and changes that wait to become events. Executions, keys and sensors beyond wait with their reports.
pub const OWN_EVENTS_MAX: usize = 16;

/// Bytes of an output that are read at once, of a sensor or for the API.
pub const OUTPUT_READ_BYTES: usize = 16 * 1024;

/// Bytes kept of what a Python that starts says on standard error. The rest is dropped.
pub const PYTHON_COMPLAINT_BYTES_MAX: usize = 4 * 1024;

/// Pythons that wait for actions. The one that has waited longest ends when there is one more.
pub const ZYGOTES_IDLE_MAX: usize = 8;

/// Time after which a Python that waits for actions ends.
pub const ZYGOTE_IDLE_TIME: Duration = Duration::from_secs(300);

/// Time that a Python has for its start. A host under load takes seconds.
pub const ZYGOTE_START_TIME: Duration = Duration::from_secs(60);

/// Bytes of a packet from a Python: a few numbers, or the text of an error.
pub const ZYGOTE_PACKET_BYTES: usize = 4 * 1024;

/// Time between the signals that ask a process to end and that end it.
pub const KILL_GRACE: Duration = Duration::from_secs(5);

/// Time after which a sensor that was asked to stop is sent a signal too: one that runs hears the request, one that still
/// starts does not.
pub const SENSOR_STOP_TIME: Duration = Duration::from_secs(1);

/// Time after the end of an action in which what it wrote before is read. Processes that it left behind may hold its
/// outputs open for ever.
pub const OUTPUT_GRACE: Duration = Duration::from_millis(500);

/// Bytes of a YAML file of a pack. The largest of the exchange has 200 KB. More: the file is left out.
pub const DOCUMENT_BYTES_MAX: u64 = 1 << 20;

/// Bytes of the definition of a workflow. More: the workflow fails.
pub const DEFINITION_BYTES_MAX: u64 = 2 << 20;

/// Nesting depth of the schema of a parameter. More: the file is left out.
pub const SCHEMA_DEPTH_MAX: usize = 32;

/// Metadata files of one kind in a pack. The pack `aws` has 5,000 actions. More: the others are left out, with an error.
pub const CONTENT_FILES_MAX: usize = 20_000;

/// Files and folders of a pack. Bounds a walk through it. More: the pack is refused.
pub const PACK_ENTRIES_MAX: usize = 100_000;

/// Nesting depth of folders of a pack. More: the pack is refused.
pub const PACK_FOLDERS_DEPTH_MAX: usize = 32;

/// Bytes of all files of a pack. Bounds a copy of it. More: the pack is refused.
pub const PACK_BYTES_MAX: u64 = 1 << 30;

/// Packs in the folder of packs. More: the others are left out, with an error.
pub const PACKS_MAX: usize = 1_000;

/// The time between two looks at the folders of packs, for changed files. A pack is registered anew once two looks in a
/// row find the same, so that a file is not read while it is written.
pub const PACKS_LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Bytes of an index of packs. StackStorm Exchange's has 200 KB. More: the index is refused.
pub const INDEX_BYTES_MAX: usize = 16 << 20;

/// Bytes of output that are kept of a command, its last ones. The reason of a failure stands at the end.
pub const COMMAND_OUTPUT_BYTES_MAX: usize = 64 << 10;

/// Lines of output of a failed command that its error shows.
pub const COMMAND_ERROR_LINES_MAX: usize = 20;

/// Time that fetching a pack may take. Longer: it is stopped and the installation fails.
pub const FETCH_TIME_MAX: Duration = Duration::from_secs(300);

/// Time that one step of building an environment may take; some packages compile C. Longer: it is stopped and the
/// environment stays as it was.
pub const ENVIRONMENT_TIME_MAX: Duration = Duration::from_secs(900);

/// Transactions that one sync confirms; more wait for the next.
pub const COMMIT_TRANSACTIONS_MAX: usize = 1_024;

/// Pages of SQLite's log after which they are moved into the database: 16 MiB.
pub const WAL_PAGES: i64 = 4_096;

/// Bytes that the file of SQLite's log keeps between two uses; what a large commit took beyond is given back.
pub const WAL_BYTES_KEPT: i64 = 16 * 1024 * 1024;

/// Bytes of a part of a document, such as a result, that lie within it. A larger part lies beside it, compressed, so that
/// lists need not read it.
pub const PART_BYTES_MAX: usize = 32 * 1024;

/// Bytes of a large value, more than SQLite stores in one. Bounds what a damaged length can allocate.
pub const LARGE_VALUE_BYTES_MAX: usize = 1_000_000_000;

/// Time for which history is kept where the configuration does not say.
pub const HISTORY_AGE: Duration = Duration::from_secs(30 * 86_400);

/// Bytes of the store above which the oldest history is deleted, where the configuration does not say.
pub const HISTORY_BYTES: u64 = 1 << 30;

/// Documents that are deleted at a time. Commits wait for as long as that takes: some milliseconds.
pub const SWEEP_DOCUMENTS: usize = 100;

/// Executions that have to be deleted by their age, but are not because one below them has not ended, which one look at
/// the history passes over.
pub const SWEEP_ROWS_MAX: usize = 10_000;

/// Time between two looks at the history, so that one wake-up deletes many documents. A tenth of the history's age, if
/// that is less.
pub const SWEEP_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Free pages of the store's file that later documents use: 4 MiB. More are given back to the file system.
pub const FREE_PAGES_KEPT: u64 = 1_024;

/// Pages that are given back to the file system at a time: 2 MiB. Commits wait for as long as that takes.
pub const VACUUM_PAGES: u64 = 512;

/// Matches within [`RULE_LOOP_TIME`] that a rule on the engine's own events may have where it does not say. More: it most
/// likely triggers itself, and is suspended.
pub const RULE_LOOP: u32 = 1_000;

/// See [`RULE_LOOP`].
pub const RULE_LOOP_TIME: Duration = Duration::from_secs(60);

/// Matches within [`RULE_FLOOD_TIME`] that any other rule may have where it does not say: several times what the engine
/// can run. More: the rule is suspended.
pub const RULE_FLOOD: u32 = 1_000_000;

/// See [`RULE_FLOOD`].
pub const RULE_FLOOD_TIME: Duration = Duration::from_secs(60);

/// Time for which a rule is suspended.
pub const RULE_SUSPENSION: Duration = Duration::from_secs(300);

/// Events that a trial of a rule reads at most.
pub const RULE_TRIAL_EVENTS: usize = 1_000;

/// Problems that a check of the store names. More are left out.
pub const PROBLEMS_MAX: usize = 10_000;

/// KiB of pages that the reading connection to SQLite keeps in memory.
pub const PAGE_CACHE_KIB: i64 = 1_024;

/// KiB of pages that the writing connection to SQLite keeps in memory: the inner pages of all indexes.
pub const WRITER_CACHE_KIB: i64 = 4_096;

/// Prepared statements that a connection to SQLite keeps.
pub const STATEMENTS_MAX: usize = 64;

/// Executions that run at a time; more wait in the order of their requests.
pub const EXECUTIONS_AT_ONCE: usize = 64;

/// Open executions that a start takes up of each kind.
pub const EXECUTIONS_LOADED: usize = 1_000_000;

/// Time that a shell command may take where its action does not say: StackStorm's default.
pub const SHELL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that an HTTP request may take where its action does not say: StackStorm's default.
pub const HTTP_TIMEOUT: Duration = Duration::from_secs(60);

/// Redirects that an HTTP request follows, where it may.
pub const HTTP_REDIRECTS_MAX: u32 = 30;

/// Bytes of an HTTP response's body; a longer one fails the action.
pub const HTTP_RESPONSE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Time between two looks at the size of a running action's output: an action that goes on although its pipe is closed is
/// killed.
pub const OUTPUT_CHECK: Duration = Duration::from_secs(1);

/// Bytes of a request to the API, webhooks included.
pub const REQUEST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Objects on a page of a list, and the limit where a request names none.
pub const PAGE_MAX: usize = 100;

/// Updates that a reader of the stream may be behind; a slower one misses some.
pub const UPDATES_MAX: usize = 1_024;

/// Rules, trigger types and packs that a start loads.
pub const OBJECTS_LOADED: usize = 1_000_000;

/// Bytes of a key's name in the datastore.
pub const KEY_NAME_BYTES_MAX: usize = 1_024;

/// Bytes of a key's value in the datastore: a document of MongoDB, which StackStorm's users cannot exceed.
pub const KEY_VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Time that a call through the broker may take where its action does not say.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Messages of a queue that are being made events at a time, where the trigger does not say.
pub const PREFETCH_DEFAULT: u32 = 16;

/// Time before a queue or topic that cannot be read is tried again.
pub const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// Time before the store is tried again with an event that must not be lost.
pub const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Time after which the clock is read again, so that a change of it is noticed by the timers.
pub const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Seconds that an access token is valid where its request does not say, and at most: StackStorm's.
pub const TOKEN_SECONDS_DEFAULT: i64 = 86_400;

/// See [`TOKEN_SECONDS_DEFAULT`].
pub const TOKEN_SECONDS_MAX: i64 = 86_400;

/// Time that a Python action may take where it does not say: StackStorm's default.
pub const PYTHON_TIMEOUT: Duration = Duration::from_secs(600);

/// Python processes that evaluate expressions of workflows; further batches wait.
pub const EVALUATORS_MAX: usize = 2;

/// Time that a batch of expressions may take. Longer: its process is killed, and each expression of the batch fails.
pub const EVALUATION_TIME_MAX: Duration = Duration::from_secs(10);

/// Bytes of the answers to a batch of expressions, as JSON. More: each expression of the batch fails.
pub const EVALUATION_ANSWERS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Sensors that run at a time, each in a process of 25 MiB and more. The API shows that a further one is not started.
pub const SENSORS_AT_ONCE: usize = 256;

/// Time before a sensor that has ended is started again the first time. Doubles with each end in a row.
pub const SENSOR_PAUSE_MIN: Duration = Duration::from_secs(1);

/// Time before a sensor that ends again and again is started again, at most.
pub const SENSOR_PAUSE_MAX: Duration = Duration::from_secs(300);

/// Time that a sensor has to run for its earlier ends to be forgotten.
pub const SENSOR_STABLE_TIME: Duration = Duration::from_secs(60);

/// Ends in a row after which the API shows a sensor as crash-looping.
pub const SENSOR_CRASH_LOOP_ENDS: u32 = 3;

/// Bytes of a frame of a sensor, such as an event. More is refused by the sensor's process, or ends the sensor.
pub const SENSOR_FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Lines of a sensor's output that the API shows, its last ones.
pub const SENSOR_LINES_KEPT: usize = 100;

/// Bytes of a line of a sensor's output that are kept and logged. A longer line is cut into several.
pub const SENSOR_LINE_BYTES_MAX: usize = 1_024;

/// Bytes of a sensor's output that are read in a second. A sensor that writes more waits, as at a full pipe.
pub const SENSOR_OUTPUT_BYTES_PER_SECOND: usize = 1024 * 1024;

/// Lines of a sensor's output that are logged in a second. The others are counted.
pub const SENSOR_LINES_LOGGED_PER_SECOND: u32 = 20;

/// Seconds that a service token is valid at most: ten years.
pub const SERVICE_TOKEN_SECONDS_MAX: i64 = 10 * 366 * 86_400;

/// Bytes of what a client notes about a token or an API key, as JSON. More: it is refused.
pub const CREDENTIAL_METADATA_BYTES_MAX: usize = 4 * 1024;

/// Users that may ask the API in the life of a process, which keeps their names. More: the request is refused.
pub const REQUESTERS_MAX: usize = 100_000;

/// Files of roles, and of assignments. More: the others are left out, with an error.
pub const ROLE_FILES_MAX: usize = 10_000;

/// Bytes of a file of a pack that the API shows. More: it is left out of a list, and refused alone. StackStorm's.
pub const PACK_FILE_BYTES_MAX: u64 = 500_000;

/// Bytes of the files of a pack that the API shows at once. More: the others are left out.
pub const PACK_VIEW_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Newest executions that a list of traces looks at.
pub const TRACED_EXECUTIONS_MAX: usize = 10_000;

/// Hosts on which a remote action runs at a time; the others wait.
pub const SSH_HOSTS_AT_ONCE: usize = 32;

/// Hosts of one remote action. More: it is refused.
pub const SSH_HOSTS_MAX: usize = 1_000;

/// Seconds that ssh tries to connect to a host. Longer: the host fails.
pub const SSH_CONNECT_SECONDS: u32 = 30;

/// Workflows above a workflow, so that one which runs itself ends. Deeper: the execution fails.
pub const WORKFLOW_DEPTH_MAX: i64 = 32;

/// Workflows within an outermost one that may be open at a time. One more: no further one is started within it.
pub const WORKFLOWS_NESTED_MAX: usize = 1_000;

/// Calls of actions that do nothing which one transaction of a workflow stores. More wait in the queue, so that the
/// workflow can be canceled.
pub const INSTANT_CALLS_MAX: usize = 64;

/// Rounds of questions that a workflow asks for one transition. More: the execution fails.
pub const QUESTION_ROUNDS_MAX: usize = 1_000;

/// Executions that a list of an execution's children or descendants shows. The others are left out.
pub const DESCENDANTS_MAX: usize = 10_000;

/// Large values that a check reads at once, so that it holds few of them in memory.
pub const LARGE_VALUES_CHECKED: usize = 8;

/// Documents that a check reads at once.
pub const DOCUMENTS_CHECKED: usize = 500;

/// Pause after the first failed attempt to reach the store's server; it doubles with each further attempt.
pub const STORE_RECONNECT_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Longest pause between two attempts to reach the store's server.
pub const STORE_RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Time for which a template waits for a key of the datastore while the store's server cannot be reached. Longer: the key
/// has no value for it.
pub const STORE_READ_TIME_MAX: Duration = Duration::from_secs(30);

/// Time in which the store's server has to accept a connection.
pub const STORE_CONNECT_TIME: Duration = Duration::from_secs(5);

/// Time without an answer from the host of the store's server after which the connection is lost.
pub const STORE_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Prepared statements that a connection to a server keeps. More: all are prepared anew.
pub const SERVER_STATEMENTS_MAX: usize = 512;

/// Bytes that are counted for a document on a server beside its body: its columns and the entries of indexes.
pub const SERVER_DOCUMENT_BYTES: i64 = 1_024;

/// The longest time for which a stream without events goes on after its user lost the right to it.
pub const TENURE_CHECK: Duration = Duration::from_secs(5);

/// Bytes from which on the body of a webhook goes to a file as it comes, as does one of unknown length.
pub const SPOOLED_FROM_BYTES: usize = 1 << 20;

/// Bytes that are written to such a file at once.
pub const SPOOL_WRITE_BYTES: usize = 256 * 1024;

/// Bytes on disk of all such files. More: a request waits, and then gets 503.
pub const SPOOL_BYTES_MAX: usize = 1 << 30;

/// Bytes that are charged for each byte of such a body while it is parsed: its values take up to so much.
pub const VALUE_BYTES_PER_BODY_BYTE: usize = 8;
