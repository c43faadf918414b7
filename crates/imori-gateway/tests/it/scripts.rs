//! Scripts with a request and services without a network.

use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures_util::{FutureExt, future::LocalBoxFuture};
use http::{HeaderMap, HeaderValue, StatusCode};
use imori_gateway::for_tests::{
    Answer, Connection, Decision, FetchError, FetchOptions, Fetcher, HostList, LogLevel, Outcome, Phase,
    Request, RequestContext, ScriptId, ScriptLimits, ScriptSource, Scripts, Secrets, Services, SharedState,
    Subrequest, Timer, Tools, VmLimits,
};
use imori_ruby::{Exception, Value};
use imori_server::{InternalClient, InternalError};
use rustls::ClientConfig;

/// Services that answer sub-requests themselves and collect the log.
pub(crate) struct FakeServices {
    pub(crate) tools: Tools,
    pub(crate) log: RefCell<Vec<(LogLevel, String)>>,
    pub(crate) body: RefCell<Result<Bytes, String>>,
    pub(crate) client: RefCell<Option<InternalClient>>,
    /// Sub-requests that are being answered.
    pub(crate) answering: Cell<u32>,
}

impl FakeServices {
    pub(crate) fn new(hosts: &[&str]) -> Rc<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tls = ClientConfig::builder().with_root_certificates(rustls::RootCertStore::empty());
        let fetcher = Fetcher::new(FetchOptions {
            hosts: Arc::new(HostList::parse(hosts.iter().copied()).unwrap()),
            tls: tls.with_no_client_auth(),
            connect_timeout: Duration::from_secs(2),
        });
        let tools = Tools {
            shared: Arc::new(SharedState::new(1 << 20)),
            fetcher,
            secrets: Arc::new(Secrets::new([("api".to_owned(), "hunter2!".to_owned())])),
            timer: Timer::start().unwrap(),
        };
        Rc::new(Self {
            tools,
            log: RefCell::default(),
            body: RefCell::new(Ok(Bytes::from_static(b"a=1&b=x%20y"))),
            client: RefCell::default(),
            answering: Cell::new(0),
        })
    }
}

struct Answering<'a>(&'a Cell<u32>);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Services for FakeServices {
    fn tools(&self) -> &Tools {
        &self.tools
    }

    fn client<'a>(
        &'a self,
        _: &'a RequestContext,
    ) -> LocalBoxFuture<'a, Result<InternalClient, InternalError>> {
        let client = self.client.borrow().clone().ok_or(InternalError::LoginRefused);
        Box::pin(async move { client })
    }

    /// `/slow` takes an hour; `/broken` fails; any other path answers after 2 ms with its method, path and query.
    fn subrequest<'a>(
        &'a self,
        _: &'a Rc<RequestContext>,
        request: Subrequest,
    ) -> LocalBoxFuture<'a, Result<Answer, FetchError>> {
        self.answering.set(self.answering.get() + 1);
        Box::pin(async move {
            let _answering = Answering(&self.answering);
            match request.path.as_str() {
                "/slow" => self.tools.timer.sleep(Duration::from_secs(3600)).await,
                "/broken" => return Err(FetchError::Broken("it is a test".to_owned())),
                _ => self.tools.timer.sleep(Duration::from_millis(2)).await,
            }
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static("text/plain"));
            headers.append("x-two", HeaderValue::from_static("1"));
            headers.append("x-two", HeaderValue::from_static("2"));
            let text = format!("{} {}?{}", request.method, request.path, request.query.unwrap_or_default());
            let status = if request.path == "/missing" { StatusCode::NOT_FOUND } else { StatusCode::OK };
            Ok(Answer { status, headers, body: Bytes::from(text) })
        })
    }

    fn read_body<'a>(&'a self, _: &'a RequestContext) -> LocalBoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            self.tools.timer.sleep(Duration::from_millis(1)).await;
            self.body.borrow().clone()
        })
    }

    fn log(&self, _: &RequestContext, level: LogLevel, line: &str) {
        self.log.borrow_mut().push((level, line.to_owned()));
    }
}

/// A runtime's future, as a worker runs it.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// The context of `GET /a b?x=1&y=2` in the phase of the content.
pub(crate) fn context() -> Rc<RequestContext> {
    let mut headers = HeaderMap::new();
    for (name, value) in
        [("host", "api.example:8080"), ("user-agent", "test/1"), ("cookie", "s=7"), ("x-id", "a")]
    {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let request = Request {
        path: "/a b".to_owned(),
        query: Some("x=1&y=2".to_owned()),
        raw_uri: "/a%20b?x=1&y=2".to_owned(),
        headers,
        user: Some("alice".to_owned()),
        ..Request::default()
    };
    let connection = Connection {
        peer: "192.0.2.7:4711".parse().unwrap(),
        local: "127.0.0.1:8080".parse().unwrap(),
        ..Connection::default()
    };
    let context = RequestContext::new(request, connection);
    context.phase.set(Phase::Content);
    context.document_root.replace("/srv".to_owned());
    // A busy machine keeps these too.
    let second = Duration::from_secs(1);
    context.limits.set(ScriptLimits { slice_cpu: second, cpu: second, ..ScriptLimits::default() });
    Rc::new(context)
}

/// Scripts with limits of CPU time that a busy machine keeps.
pub(crate) fn open(texts: &[&str]) -> Scripts {
    let source = |(number, text): (usize, &&str)| ScriptSource {
        file: format!("s{number}.rb"),
        line_offset: 0,
        text: (*text).to_owned(),
    };
    let sources: Vec<ScriptSource> = texts.iter().enumerate().map(source).collect();
    Scripts::open(&sources, VmLimits::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a text in a VM of its own.
pub(crate) async fn run(text: &str, context: &Rc<RequestContext>, services: &Rc<FakeServices>) -> Outcome {
    open(&[text]).run(ScriptId(0), context, &dynamic(services)).await
}

pub(crate) fn dynamic(services: &Rc<FakeServices>) -> Rc<dyn Services> {
    Rc::<FakeServices>::clone(services) as Rc<dyn Services>
}

/// Runs a text for a new request, and returns its value.
pub(crate) fn value(text: &str) -> Value {
    block_on(async {
        match run(text, &context(), &FakeServices::new(&[])).await {
            Outcome::Done(value) => value,
            other => panic!("{text}\nis {other:?}"),
        }
    })
}

/// Runs a text for a new request, and returns its exception.
pub(crate) fn failure(text: &str) -> Exception {
    block_on(async {
        match run(text, &context(), &FakeServices::new(&[])).await {
            Outcome::Failed(exception) => exception,
            other => panic!("{text}\nis {other:?}"),
        }
    })
}

/// Checks the values of many texts, each in the same VM.
pub(crate) fn check(rows: &[(&str, &str)]) {
    let texts: Vec<String> = rows.iter().map(|(text, _)| format!("(\n{text}\n).inspect")).collect();
    let scripts = open(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    block_on(async {
        let services = FakeServices::new(&[]);
        for (number, (text, expected)) in rows.iter().enumerate() {
            match scripts.run(ScriptId(number), &context(), &dynamic(&services)).await {
                Outcome::Done(value) => assert_eq!(value.text(), Some(*expected), "{text}"),
                other => panic!("{text}\nis {other:?}"),
            }
        }
    });
}

/// Runs a text for a new request in a phase; returns the decision, the status, the body and the headers.
pub(crate) fn respond(text: &str, phase: Phase) -> (Decision, u16, String, HeaderMap) {
    block_on(async {
        let context = context();
        context.phase.set(phase);
        match run(text, &context, &FakeServices::new(&[])).await {
            Outcome::Done(_) => {
                let decision = context.take_decision();
                let (parts, body) = context.take_response().into_parts();
                let body = String::from_utf8_lossy(&body).into_owned();
                (decision, parts.status.as_u16(), body, parts.headers)
            }
            other => panic!("{text}\nis {other:?}"),
        }
    })
}

#[test]
fn nginx_writes_and_decides() {
    for (text, phase, decision, status, body) in [
        (
            "Nginx.rputs 'hello'; Nginx.rputs 5; Nginx.rputs nil",
            Phase::Content,
            Decision::Respond,
            200,
            "hello5",
        ),
        ("Nginx.echo 'hello'", Phase::Rewrite, Decision::Respond, 200, "hello\n"),
        ("Nginx.rputs %w[a b]", Phase::Content, Decision::Respond, 200, "[\"a\", \"b\"]"),
        ("Nginx.return Nginx::HTTP_SERVICE_UNAVAILABLE", Phase::Access, Decision::Respond, 503, ""),
        ("Nginx.status_code = 204", Phase::Rewrite, Decision::Respond, 204, ""),
        ("Nginx.send_header 404", Phase::Content, Decision::Respond, 404, ""),
        ("Nginx.return Nginx::DECLINED", Phase::Access, Decision::Continue, 200, ""),
        ("Nginx.return Nginx::OK", Phase::Access, Decision::Continue, 200, ""),
        ("Nginx.return Nginx::HTTP_OK", Phase::Access, Decision::Continue, 200, ""),
        ("Nginx.return Nginx::HTTP_OK", Phase::Content, Decision::Respond, 200, ""),
        ("Nginx.return Nginx::ERROR", Phase::Content, Decision::Respond, 500, ""),
        ("Nginx.return Nginx::HTTP_CLOSE", Phase::Access, Decision::Close, 200, ""),
        ("Nginx::return 200; Nginx.rputs 'x'", Phase::Content, Decision::Respond, 200, "x"),
        (
            "Nginx.rputs 'hoge'\nreturn if true\nNginx.rputs 'foo'",
            Phase::Content,
            Decision::Respond,
            200,
            "hoge",
        ),
        (
            "Nginx.return -> do\n  return Nginx::HTTP_FORBIDDEN\nend.call",
            Phase::Rewrite,
            Decision::Respond,
            403,
            "",
        ),
        ("Nginx.redirect '/vars'", Phase::Rewrite, Decision::InternalRedirect("/vars".to_owned()), 200, ""),
        ("Nginx.redirect 'http://a/'", Phase::Rewrite, Decision::Respond, 302, ""),
        ("Nginx.redirect '$scheme://a/', 301", Phase::Rewrite, Decision::Respond, 301, ""),
        ("Nginx.redirect ''", Phase::Rewrite, Decision::Continue, 200, ""),
        ("get_server_class.rputs server_name", Phase::Rewrite, Decision::Respond, 200, "NGINX"),
        ("Nginx.rputs(Nginx::FALSE + Nginx::TRUE)", Phase::Content, Decision::Respond, 200, "01"),
    ] {
        let (got, got_status, got_body, headers) = respond(text, phase);
        assert_eq!((got, got_status, got_body.as_str()), (decision, status, body), "{text}");
        if got_status == 302 || got_status == 301 {
            assert_eq!(headers["location"], "http://a/");
        }
    }
}

#[test]
fn line_breaks_in_headers_raise() {
    for text in [
        "Nginx::Headers_out.new['X'] = \"a\\r\\nSet-Cookie: b\"",
        "Nginx::Headers_out.new['X'] = \"a\\nb\"",
        "Nginx::Headers_out.new[\"X\\r\\nY\"] = 'a'",
        "Nginx::Headers_out.new['X'] = ['ok', \"a\\r\"]",
        "Nginx::Headers_in.new['X'] = \"a\\r\\nb\"",
        "Nginx::Request.new.content_type = \"text/html\\r\\nX: y\"",
        "Nginx.redirect \"http://a/\\r\\nX: y\"",
        "Nginx.redirect \"/a\\r\\nX: y\"",
        "Nginx::Request.new.request_line = \"GET / HTTP/1.1\\r\\nX: y\"",
        "Nginx::Request.new.method = \"GET /\\r\\n\"",
        "Nginx::Request.new.uri = \"/a\\nb\"",
        "Nginx::Request.new.args = \"a\\nb\"",
        "Nginx::Request.new.unparsed_uri = \"/a\\nb\"",
        "Nginx.return 99",
        "Nginx.return 1000",
        "Nginx.redirect 'other'",
        "Nginx.redirect 'http://a/', 200",
        "Nginx::Async::HTTP.sub_request \"/a\\r\\nb\"",
        "Nginx::Async::HTTP.sub_request '/a', nil, headers: { 'X' => \"a\\r\\nb\" }",
        "Nginx::Async::HTTP.sub_request '/a', nil, method: \"GET\\r\\n\"",
        "Imori::SSE.push 'x', event: \"a\\nb\"",
    ] {
        let exception = failure(text);
        assert_eq!(exception.class, "ArgumentError", "{text}: {exception}");
    }
}

#[test]
fn request_has_ngx_mruby_names() {
    check(&[
        ("Nginx::Request.new.uri", "\"/a b\""),
        ("Nginx::Request.new.unparsed_uri", "\"/a%20b?x=1&y=2\""),
        ("Nginx::Request.new.args", "\"x=1&y=2\""),
        ("Nginx::Request.new.uri_args", "{\"x\"=>\"1\", \"y\"=>\"2\"}"),
        ("r = Nginx::Request.new; r.uri_args = { 'pass' => 'ngx' }; r.args", "\"pass=ngx\""),
        ("Nginx::Request.new.method", "\"GET\""),
        ("r = Nginx::Request.new; r.method = 'POST'; r.method", "\"POST\""),
        ("Nginx::Request.new.protocol", "\"HTTP/1.1\""),
        ("Nginx::Request.new.request_line", "\"GET /a%20b?x=1&y=2 HTTP/1.1\""),
        ("r = Nginx::Request.new; r.request_line = 'X /'; r.request_line", "\"X /\""),
        ("Nginx::Request.new.scheme", "\"http\""),
        ("Nginx::Request.new.hostname", "\"api.example\""),
        ("Nginx::Request.new.authority", "\"api.example:8080\""),
        ("Nginx::Request.new.user", "\"alice\""),
        ("Nginx::Request.new.filename", "\"/srv/a b\""),
        ("Nginx::Request.new.document_root", "\"/srv\""),
        ("Nginx::Request.new.sub_request?", "false"),
        ("r = Nginx::Request.new; r.content_type = 'text/plain'; r.content_type", "\"text/plain\""),
        ("Nginx::Request.new.body", "\"a=1&b=x%20y\""),
        ("Nginx::Request.new.get_body", "\"a=1&b=x%20y\""),
        ("Nginx::Request.new.read_body == Nginx::OK", "true"),
        ("Nginx::Request.new.post_args", "{\"a\"=>\"1\", \"b\"=>\"x%20y\"}"),
        ("Nginx::Utils.decode_parameters('a=x%20y&b=1+2')", "{\"a\"=>\"x y\", \"b\"=>\"1 2\"}"),
        ("Nginx::Headers_in.new['x-ID']", "\"a\""),
        ("Nginx::Headers_in.new['X-None']", "nil"),
        ("Nginx::Headers_in.new.user_agent", "\"test/1\""),
        ("Nginx::Headers_in.new.all.keys.include?('User-Agent')", "true"),
        ("h = Nginx::Headers_in.new; h['hoge'] = [h['X-Id'], 'fuga']; h['hoge']", "[\"a\", \"fuga\"]"),
        (
            "h = Nginx::Headers_out.new; h['X-Foo'] = 'F'; h['X-Foo'] = nil; h['Y'] = 1; h.all",
            "{\"Y\"=>\"1\"}",
        ),
        ("h = Nginx::Headers_out.new; h['A'] = 'b'; h.delete('a'); h['A']", "nil"),
        ("Nginx::Request.new.headers_out['A'] = 'b'; Nginx::Request.new.headers_out['a']", "\"b\""),
        ("Nginx::Request.new.var.host", "\"api.example\""),
        ("Nginx::Var.new.arg_x", "\"1\""),
        ("Nginx::Var.new.cookie_s", "\"7\""),
        ("Nginx.var.send(:http_host)", "\"api.example:8080\""),
        ("v = Nginx::Var.new; v.hoge = 5; v.set 'fuga', v.hoge.to_i * 2; v.fuga", "\"10\""),
        ("[Nginx::Var.new.exist?('arg_foo'), Nginx::Var.new.exist?('host')]", "[false, true]"),
        ("Nginx::Var.new.method", "nil"),
        (
            "c = Nginx::Connection.new; [c.remote_ip, c.remote_port, c.local_ip, c.local_port]",
            "[\"192.0.2.7\", \"4711\", \"127.0.0.1\", \"8080\"]",
        ),
        ("Nginx::Server.new.document_root", "\"/srv\""),
        (
            "u = Nginx::Upstream.new 'up'; u.server = '127.0.0.1:80'; u.keepalive_cache = 3; [u.server, u.keepalive_cache]",
            "[\"127.0.0.1:80\", 3]",
        ),
        ("Nginx::Utils.encode_parameters({ q: 'a b', r: '/' })", "\"q=a%20b&r=%2F\""),
        ("Nginx::Utils.encode_parameters({ q: 'a' }, ', ', '\"')", "\"q=\\\"a\\\"\""),
        (
            "[Nginx.module_name, Nginx.nginx_version, Nginx.server_version == Nginx.nginx_version]",
            "[\"ngx_mruby\", \"1.27.2\", true]",
        ),
    ]);
}

#[test]
fn logged_lines_are_lines_without_secrets() {
    block_on(async {
        let services = FakeServices::new(&[]);
        let text = "Nginx.log Nginx::LOG_ERR, \"a\\r\\nb #{Imori.secret('api')}\"\nNginx.errlogger Nginx::LOG_DEBUG, :x\np 1";
        assert!(matches!(run(text, &context(), &services).await, Outcome::Done(_)));
        let expected = [(LogLevel::Error, "a  b ***"), (LogLevel::Debug, "x"), (LogLevel::Info, "1")];
        let lines: Vec<_> = services.log.borrow().clone();
        assert_eq!(lines.iter().map(|(level, line)| (*level, line.as_str())).collect::<Vec<_>>(), expected);
        match run("raise Imori.secret('api')", &context(), &services).await {
            Outcome::Failed(exception) => assert_eq!(exception.message, "***"),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn awaits_work_in_nested_blocks() {
    check(&[
        ("Nginx::Async.sleep 1", "nil"),
        ("[1, 2].map { |x| [3].map { |y| Nginx::Async.sleep 1; x + y } }", "[[4], [5]]"),
        ("{ a: 1 }.each { |k, v| Nginx::Async.sleep v }", "{:a=>1}"),
        ("begin; Nginx::Async.sleep(-1); rescue ArgumentError => e; e.class; end", "ArgumentError"),
        ("Nginx::Async.sleep 1.5; sleep 0.001", "0"),
        ("e = Enumerator.new { |y| Nginx::Async.sleep 1; y << 1 }; e.next", "1"),
    ]);
}

#[test]
fn sub_request_has_a_response() {
    check(&[
        ("Nginx::Async::HTTP.last_response", "nil"),
        (
            "Nginx::Async::HTTP.sub_request '/dst', 'q=1'\nr = Nginx::Async::HTTP.last_response\n[r.status, r.body, r.headers['Content-Type'], r.headers['X-Two']]",
            "[200, \"GET /dst?q=1\", \"text/plain\", [\"1\", \"2\"]]",
        ),
        ("Nginx::Async::HTTP.sub_request('/dst', { q: 'a b', r: 2 }).body", "\"GET /dst?q=a%20b&r=2\""),
        ("Nginx::Async::HTTP.sub_request('/missing').status", "404"),
        (
            "Nginx::Async::HTTP.sub_request('/d?a=1', 'b=2', method: 'PUT', body: 'x').body",
            "\"PUT /d?a=1&b=2\"",
        ),
        (
            "begin; Nginx::Async::HTTP.sub_request('/broken'); rescue Imori::Error => e; e.class; end",
            "Imori::AnswerError",
        ),
        (
            "begin; Nginx::Async::HTTP.sub_request('/slow', timeout: 5); rescue Imori::TimeoutError => e; e.message; end",
            "\"no answer within 5 ms\"",
        ),
        (
            "begin; Nginx::Async::HTTP.sub_request('http://10.0.0.1/'); rescue Imori::HostError => e; 1; end",
            "1",
        ),
        ("begin; Nginx::Async::HTTP.sub_request('x'); rescue ArgumentError => e; 1; end", "1"),
    ]);
}

#[test]
fn blocks_run_beside_each_other() {
    let started = Instant::now();
    check(&[
        ("Imori.parallel(-> { sleep 0.05; 1 }, -> { sleep 0.05; Object })", "[1, Object]"),
        ("Imori.parallel([3, 2, 1]) { |x| Nginx::Async.sleep x * 10; x * 2 }", "[6, 4, 2]"),
        ("Imori.parallel((1..20).to_a) { |x| Nginx::Async.sleep 50; x }.sum", "210"),
        ("Imori.parallel", "[]"),
        ("Imori.parallel(-> { Imori.parallel([1, 2]) { |x| sleep 0.001; x } }, -> { 3 })", "[[1, 2], 3]"),
        (
            "$ensured = 0\nbegin\n  Imori.parallel(-> { sleep 0.01; raise 'x' }, -> { begin; sleep 100; ensure; $ensured += 1; end })\nrescue => e\n  [e.message, $ensured]\nend",
            "[\"x\", 1]",
        ),
        ("Imori.timeout(1000) { sleep 0.001; :done }", ":done"),
        (
            "begin; Imori.timeout(5) { sleep 10 }; rescue Imori::TimeoutError => e; e.message; end",
            "\"the block has not ended within 5 ms\"",
        ),
        ("begin; Imori.parallel((1..65).to_a) { 1 }; rescue Imori::LimitError; :limit; end", ":limit"),
        ("Imori.parallel((1..64).to_a) { 1 }.sum", "64"),
        (
            "begin; Imori.timeout(100) { raise ArgumentError, 'y' }; rescue ArgumentError => e; e.message; end",
            "\"y\"",
        ),
    ]);
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
}

#[test]
fn run_after_an_error_is_clean() {
    let scripts = open(&[
        "Nginx.rputs 'half'\nNginx::Async.sleep 1\nraise 'broken'",
        "Nginx::Async.sleep 1\nNginx.rputs Nginx::Async::HTTP.last_response.inspect",
    ]);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        for _ in 0..3 {
            let broken = context();
            match scripts.run(ScriptId(0), &broken, &services).await {
                Outcome::Failed(exception) => {
                    assert_eq!(
                        (exception.class.as_str(), exception.message.as_str()),
                        ("RuntimeError", "broken")
                    );
                    assert_eq!(exception.backtrace, ["s0.rb:3"]);
                }
                other => panic!("{other:?}"),
            }
            let next = context();
            assert!(matches!(scripts.run(ScriptId(1), &next, &services).await, Outcome::Done(_)));
            assert_eq!(&*next.response.borrow().body, b"nil");
        }
    });
}

#[test]
fn hundred_runs_wait_together() {
    let scripts = open(&["Nginx::Async.sleep 50\nNginx.rputs Nginx::Var.new.arg_n"]);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        let started = Instant::now();
        let runs = (0..100).map(|number| {
            let (scripts, services) = (&scripts, &services);
            async move {
                let context = context();
                context.request.borrow_mut().query = Some(format!("n={number}"));
                assert!(matches!(scripts.run(ScriptId(0), &context, services).await, Outcome::Done(_)));
                assert_eq!(*context.response.borrow().body, *number.to_string().as_bytes());
            }
        });
        futures_util::future::join_all(runs).await;
        assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    });
}

#[test]
fn dropped_run_ends_its_operation_and_runs_ensure() {
    let scripts = open(&[
        "begin\n  Nginx::Async::HTTP.sub_request '/slow'\nensure\n  $ended = Nginx::Var.new.host\nend",
        "$ended",
        "begin\n  Imori.parallel(-> { Nginx::Async::HTTP.sub_request '/slow' }, -> { begin; sleep 99; ensure; $inner = 1; end })\nensure\n  $outer = 1\nend",
        "[$inner, $outer]",
    ]);
    block_on(async {
        let fake = FakeServices::new(&[]);
        let services = dynamic(&fake);
        for (script, check, expected) in
            [(0, 1, Value::from("api.example")), (2, 3, Value::Array(vec![1.into(), 1.into()]))]
        {
            let context = context();
            let dropped = tokio::time::timeout(
                Duration::from_millis(20),
                scripts.run(ScriptId(script), &context, &services),
            );
            assert!(dropped.await.is_err());
            assert_eq!(fake.answering.get(), 0, "the operation has ended");
            assert_eq!(context.children.get(), 0);
            assert_eq!(scripts.run(ScriptId(check), &context, &services).await, Outcome::Done(expected));
            assert_eq!(Rc::strong_count(&context), 1, "nothing of the run is left");
        }
    });
}

#[test]
fn limits_end_a_run_alone() {
    let source = |text: &str| ScriptSource { file: "s.rb".to_owned(), line_offset: 0, text: text.to_owned() };
    let sources = [
        source("while true; end"),
        source("while true; begin; while true; end; rescue Exception; end; end"),
        source("1"),
        source("a = []; while true; a << 'x' * 100_000; end"),
        source("def f(n) = f(n + 1) + 1\nf(0)"),
        source("while true; Nginx::Async.sleep 0; end"),
        source("begin; sleep 99; ensure; $late = true; end"),
        source("while true; Nginx.rputs 'x' * 1_000_000; end"),
    ];
    let scripts = Scripts::open(&sources, VmLimits::default()).unwrap();
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        let limited = |wall_time| {
            let context = context();
            context.limits.set(ScriptLimits { wall_time, ..ScriptLimits::default() });
            context
        };
        let failed = async |number: usize, expected: &[&str]| {
            let context = limited(Duration::from_secs(30));
            match scripts.run(ScriptId(number), &context, &services).await {
                Outcome::Failed(exception) => {
                    assert!(expected.contains(&exception.class.as_str()), "{number}: {exception}");
                }
                other => panic!("{number}: {other:?}"),
            }
        };
        failed(0, &["Imori::CpuLimitError"]).await;
        failed(3, &["NoMemoryError", "Imori::CpuLimitError"]).await;
        failed(4, &["SystemStackError", "Imori::CpuLimitError"]).await;
        failed(5, &["Imori::LimitError"]).await;
        failed(7, &["Imori::LimitError", "Imori::CpuLimitError"]).await;
        let short = limited(Duration::from_millis(20));
        assert_eq!(scripts.run(ScriptId(6), &short, &services).await, Outcome::TimedOut);
        assert!(matches!(scripts.run(ScriptId(2), &context(), &services).await, Outcome::Done(_)));
        assert_eq!(
            scripts.run(ScriptId(1), &limited(Duration::from_secs(30)), &services).await,
            Outcome::Lost
        );
        assert!(scripts.is_lost());
        let others = open(&[
            "Nginx::Async.sleep 20; 1",
            "while true; begin; while true; end; rescue Exception; end; end",
        ]);
        let (waiting, endless) = (limited(Duration::from_secs(30)), limited(Duration::from_secs(30)));
        let both = tokio::join!(
            others.run(ScriptId(0), &waiting, &services),
            others.run(ScriptId(1), &endless, &services)
        );
        assert_eq!(both, (Outcome::Lost, Outcome::Lost), "the others of a lost VM end too");
        assert_eq!(scripts.run(ScriptId(2), &context(), &services).await, Outcome::Lost);
    });
}

#[test]
fn error_of_syntax_has_file_line_and_column() {
    let source =
        |text: &str| ScriptSource { file: "routes.toml".to_owned(), line_offset: 10, text: text.to_owned() };
    let error =
        Scripts::open(&[source("1"), source("a = 1\nif a\n  foo(\n")], VmLimits::default()).err().unwrap();
    assert_eq!((error.file.as_str(), error.line), ("routes.toml", 14), "{error}");
    assert!(!error.message.is_empty());
}

#[test]
fn phases_without_a_request_say_so() {
    let scripts = open(&[
        "Nginx.rputs 'x'",
        "Nginx.log Nginx::LOG_ERR, 'x'; Nginx::Async.sleep 1; @worker = 3",
        "@worker",
    ]);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        let worker = RequestContext::without_request(Phase::InitWorker, Connection::default());
        match scripts.run(ScriptId(0), &worker, &services).await {
            Outcome::Failed(exception) => assert!(exception.message.contains("no request"), "{exception}"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(scripts.run(ScriptId(1), &worker, &services).await, Outcome::Done(_)));
        assert_eq!(scripts.run(ScriptId(2), &context(), &services).await, Outcome::Done(3.into()));
    });
}

#[test]
fn scripts_of_a_request_share_its_cpu_time() {
    let scripts = open(&[
        "i = 0; i += 1 while i < 100_000; Nginx::Async.sleep 0; 1",
        "Imori.parallel((1..20).to_a) { while true; i = 0; i += 1 while i < 30_000; Nginx::Async.sleep 0; end }",
    ]);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        for script in [0, 1] {
            let context = context();
            let started = context.limits.get();
            context.limits.set(ScriptLimits { cpu: Duration::from_millis(100), ..started });
            let mut runs = 0;
            let outcome = loop {
                match scripts.run(ScriptId(script), &context, &services).await {
                    Outcome::Done(_) => runs += 1,
                    outcome => break outcome,
                }
            };
            assert!(runs < 1000, "{runs}");
            assert!(context.cpu.get() < Duration::from_millis(250), "{:?}", context.cpu.get());
            match outcome {
                Outcome::Failed(exception) => assert_eq!(exception.class, "Imori::CpuLimitError"),
                other => panic!("{other:?}"),
            }
        }
    });
}

/// Prints the CPU time of a run: `cargo test -p imori-gateway --release cost -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost() {
    let texts = [
        "",
        "Nginx.rputs 'hello'",
        "r = Nginx::Request.new\nNginx.echo \"#{r.uri} #{r.headers_in['X-Id']} #{r.var.host}\"",
        "Nginx::Async.sleep 0",
        "Nginx::Async::HTTP.sub_request '/dst', 'a=1'\nNginx.rputs Nginx::Async::HTTP.last_response.body",
        "Imori.parallel(-> { Nginx::Async.sleep 0 }, -> { Nginx::Async.sleep 0 })",
        "'/api/v1/x' =~ /v(\\d)/; Nginx.rputs $1",
        "Nginx.rputs JSON.generate(JSON.parse('{\"a\":[1,2,3],\"b\":{\"c\":\"d\"}}'))",
    ];
    let scripts = open(&texts);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        for (number, text) in texts.iter().enumerate() {
            let contexts: Vec<_> = (0..2000).map(|_| context()).collect();
            let started = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let runs = contexts.iter().map(|context| scripts.run(ScriptId(number), context, &services));
            for outcome in futures_util::future::join_all(runs).await {
                assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
            }
            let ended = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            let spent = (ended.tv_sec - started.tv_sec) * 1_000_000_000 + (ended.tv_nsec - started.tv_nsec);
            let line = format!("{:6.2} µs  {}\n", spent as f64 / 2_000_000.0, text.replace('\n', "; "));
            let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        }
    });
}

/// Runs that end in every way leave nothing behind, in the heap or outside.
#[test]
fn runs_leave_nothing_behind() {
    let scripts = open(&[
        "1",
        "Nginx::Async.sleep 0; Nginx.rputs 'x' * 1000; /a(b)/ =~ 'ab'",
        "Nginx::Async.sleep 0; raise 'x'",
        "begin; Nginx::Async::HTTP.sub_request '/slow'; ensure; Nginx.rputs 'x'; end",
        "Imori.parallel((1..5).to_a) { |x| Nginx::Async.sleep 0; x }",
        "Imori.parallel(-> { sleep 9 }, -> { Nginx::Async.sleep 0; raise 'x' })",
    ]);
    let rounds =
        std::env::var("IMORI_RUBY_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(2_000_usize);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        let run_round = async || {
            for script in 0..6 {
                let context = context();
                let mut run = Box::pin(scripts.run(ScriptId(script), &context, &services));
                if script == 3 {
                    assert!(run.as_mut().now_or_never().is_none());
                } else {
                    run.await;
                }
            }
        };
        for _ in 0..rounds / 2 {
            run_round().await;
        }
        scripts.collect();
        let (before, resident) = (scripts.heap_bytes(), resident_kib());
        for _ in 0..rounds {
            run_round().await;
        }
        scripts.collect();
        let after = scripts.heap_bytes();
        // The collector leaves some garbage, more or less of it.
        assert!(after <= before + (512 << 10), "the heap has grown from {before} to {after} bytes");
        let grown = resident_kib().saturating_sub(resident);
        assert!(grown < 16 * 1024, "the process has grown by {grown} KiB");
    });
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}
