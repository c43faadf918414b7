//! The library beside `Nginx`: storage, JSON, digests, regular expressions, sockets, Redis, Rack and messages.

use std::time::Duration;

use imori_core::{
    authorize::Identity, delivery::Outcome as Settlement, internal::OutgoingMessage, queue::QueueSettings,
};
use imori_gateway::for_tests::{Decision, Outcome, Pem, Phase, RequestContext, ScriptId, Scripts};
use imori_ruby::Value;
use imori_server::{ConsumeOptions, Server, config::Config};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};

use crate::scripts::{FakeServices, block_on, check, context, dynamic, failure, open, respond, run, value};

#[test]
fn json_goes_both_ways() {
    check(&[
        (
            r#"JSON.parse('{"a": [1, 2.5, null, true, "\u00e4"], "b": {}}')"#,
            r#"{"a"=>[1, 2.5, nil, true, "ä"], "b"=>{}}"#,
        ),
        (r#"JSON.parse('{"a": {"b": 1}}', symbolize_names: true)"#, "{:a=>{:b=>1}}"),
        (
            "JSON.generate({ a: 1, 'b' => [nil, true, 1.5, :c] })",
            r#""{\"a\":1,\"b\":[null,true,1.5,\"c\"]}""#,
        ),
        ("JSON::stringify({ 'result' => 'ERR', 'n' => 3 })", r#""{\"result\":\"ERR\",\"n\":3}""#),
        ("{ a: 1 }.to_json + [1].to_json + 'x'.to_json + nil.to_json", r#""{\"a\":1}[1]\"x\"null""#),
        ("JSON.generate([Struct.new(:a).new(1)])", r#""[{\"a\":1}]""#),
        ("JSON.parse(JSON.generate([Rack::Logger.new]))[0].is_a?(String)", "true"),
        ("begin; JSON.parse('{'); rescue JSON::ParserError => e; e.message.include?('line 1'); end", "true"),
        ("begin; JSON.generate(0.0 / 0); rescue JSON::GeneratorError; 1; end", "1"),
        ("begin; JSON.parse('[' * 100_000); rescue JSON::ParserError; 1; end", "1"),
        ("begin; JSON.parse('[' * 100 + ']' * 100); rescue StandardError; 1; end", "1"),
        ("a = []; a << a; begin; JSON.generate(a); rescue StandardError; 1; end", "1"),
        ("JSON.parse('18446744073709551615').class", "Float"),
        ("JSON.pretty_generate({ a: 1 })", r#""{\n  \"a\": 1\n}""#),
    ]);
}

#[test]
fn digests_are_right() {
    check(&[
        ("Digest::MD5.hexdigest('a')", "\"0cc175b9c0f1b6a831c399e269772661\""),
        ("Digest::SHA1.hexdigest('a')", "\"86f7e437faa5a7fce15d1ddcb9eaeaea377667b8\""),
        (
            "d = Digest::SHA256.new; d << 'a'; d.update('b'); d.hexdigest",
            "\"fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603\"",
        ),
        ("[Digest::SHA384.digest('').bytesize, Digest::SHA512.new.digest_length]", "[48, 64]"),
        (
            "Digest::HMAC.hexdigest('what do ya want for nothing?', 'Jefe', Digest::SHA256)",
            "\"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843\"",
        ),
        (
            "h = Digest::HMAC.new('Jefe', Digest::SHA1); h.update('what do ya want '); h << 'for nothing?'; h.hexdigest",
            "\"effcdf6ae5eb2fa2d27416d5f184df9c259a7c79\"",
        ),
        (
            "t = Imori::HMAC.hexdigest('k', 'd'); [Imori::HMAC.verify('k', 'd', t), Imori::HMAC.verify('k', 'e', t)]",
            "[true, false]",
        ),
        ("Imori::HMAC.verify('k', 'd', Imori::HMAC.digest('k', 'd'))", "true"),
        (
            "[Imori.secure_compare('a', 'a'), Imori.secure_compare('a', 'b'), Imori.secure_compare('a', '')]",
            "[true, false, false]",
        ),
        (
            "[SecureRandom.hex.size, SecureRandom.uuid.size, SecureRandom.random_bytes(5).bytesize]",
            "[32, 36, 5]",
        ),
        ("SecureRandom.hex == SecureRandom.hex", "false"),
        ("(0..9).include?(SecureRandom.random_number(10))", "true"),
        ("Base64.encode64('hello?>') + Base64.urlsafe_encode64('??>')", "\"aGVsbG8/Pg==Pz8-\""),
        ("Base64.decode64(\"aGVs\\nbG8=\") + Base64.urlsafe_decode64('Pz8-')", "\"hello??>\""),
        ("begin; Base64.decode('!'); rescue ArgumentError; 1; end", "1"),
        ("begin; SecureRandom.hex(-1); rescue ArgumentError; 1; end", "1"),
        ("Imori.secret(:api)", "\"hunter2!\""),
        ("begin; Imori.secret('none'); rescue KeyError => e; e.message.include?('none'); end", "true"),
    ]);
    assert_eq!(failure("Imori::HMAC.digest('k', 'd', :md5)").class, "NotImplementedError");
}

#[test]
fn regular_expressions_are_those_of_ruby() {
    check(&[
        ("'hello world' =~ /wor/", "6"),
        ("'ähello' =~ /h/", "1"),
        ("/(?<year>\\d+)-(\\d+)/.match('on 2026-11')[1]", "\"2026\""),
        (
            "m = /(?<y>\\d+)-(?<m>\\d+)/.match('on 2026-11!'); [m[:y], m['m'], m.pre_match, m.post_match, m.names]",
            "[\"2026\", \"11\", \"on \", \"!\", [\"y\", \"m\"]]",
        ),
        (
            "m = /b(c)?/.match('äbd'); [m.begin(0), m.end(0), m[1], m.to_a, m.captures]",
            "[1, 2, nil, [\"b\", nil], [nil]]",
        ),
        ("'a1b22'.scan(/\\d+/)", "[\"1\", \"22\"]"),
        ("'a1b2'.scan(/([a-z])(\\d)/)", "[[\"a\", \"1\"], [\"b\", \"2\"]]"),
        ("'a-b-c'.gsub(/-/, '+')", "\"a+b+c\""),
        ("'John Smith'.sub(/(\\w+) (\\w+)/, '\\2, \\1 [\\0]')", "\"Smith, John [John Smith]\""),
        ("'abc'.gsub(/[ac]/) { |x| x.upcase }", "\"AbC\""),
        ("'cat'.gsub(/[aeiou]/, 'a' => '4')", "\"c4t\""),
        ("'x1'.gsub(/(?<n>\\d)/, '<\\k<n>>')", "\"x<1>\""),
        ("'a, b;c'.split(/[,;]\\s*/)", "[\"a\", \"b\", \"c\"]"),
        ("'abc'.split(//)", "[\"a\", \"b\", \"c\"]"),
        ("'a1b2c'.split(/\\d/, 2)", "[\"a\", \"b2c\"]"),
        ("'a b'.split(' ') + 'a,b'.split(',')", "[\"a\", \"b\", \"a\", \"b\"]"),
        ("'hello'[/l+/] + 'k=v'[/(\\w)=(\\w)/, 2]", "\"llv\""),
        ("case '/api/v1'\nwhen /^\\/api/ then 1\nelse 2\nend", "1"),
        ("'x42' =~ /(\\d)(\\d)/; [$~[0], $1, $2, $3]", "[\"42\", \"4\", \"2\", nil]"),
        ("'ab' =~ /(z)/; [$~, $1]", "[nil, nil]"),
        (
            "[OnigRegexp.new('A', OnigRegexp::IGNORECASE).match?('a'), Regexp.new('a.b', 4).match?(\"a\\nb\"), /a.b/m.match?(\"a\\nb\"), /a.b/.match?(\"a\\nb\")]",
            "[true, true, true, false]",
        ),
        ("OnigRegexp.escape('a.b')", "\"a\\\\.b\""),
        ("\"a\\nb\" =~ /^b$/", "2"),
        ("'deadBEEF'.match?(/\\A\\h+\\Z/)", "true"),
        ("/a/i.inspect + Regexp.union('a.', /b/).source", "\"/a/ia\\\\.|(?-mix:b)\""),
        ("'aXbX'.index(/X/, 2)", "3"),
        (
            "'ü-a_1'.scan(/[\\w-]+|\\W/) + \"a\\tb\".split(/\\s/) + ['foobar foo'.sub(/\\bfoo\\b/, 'x')]",
            "[\"ü\", \"-a_1\", \"a\", \"b\", \"foobar x\"]",
        ),
        (
            "a = /b.c/m; [/a#{a}/.match?(\"ab\\nc\"), /(?m:b.c)/.match?(\"b\\nc\"), a.to_s]",
            "[true, true, \"(?m-ix:b.c)\"]",
        ),
        ("s = 'abc'; s.gsub!(/b/, ''); s", "\"ac\""),
        ("'abc'.sub!(/z/, '')", "nil"),
        ("['/a', 'b'].map { |x| x.start_with?(/\\//) }", "[true, false]"),
        (
            "begin; OnigRegexp.new('(?=a)b'); rescue RegexpError => e; e.message.include?('look-around'); end",
            "true",
        ),
        ("begin; OnigRegexp.new('('); rescue RegexpError => e; 1; end", "1"),
        ("('a' * 100_000).match?(/(a*)*b/)", "false"),
        ("begin; OnigRegexp.new('(a{100}){100}{100}'); rescue RegexpError; 1; end", "1"),
        ("begin; ('x' * 2_000_000) =~ /y/; rescue ArgumentError; 1; end", "1"),
    ]);
}

#[test]
fn storage_outlives_requests_and_vms() {
    let text = "Userdata.new('k').redis = [Object]\nCache.new(namespace: 'c')['a'] = 'b'\nImori::Shared.set('x', { 'a' => [1] }, expires: 10_000)\n3.times { Imori.shared.increment('n') }\nImori::Shared.add('x', 1)";
    let read = "[Userdata.new('k').redis, Cache.new(namespace: 'c')['a'], Cache.new(namespace: 'd')['a'], Imori::Shared['x'], Imori::Shared.increment('n', 5)].inspect";
    block_on(async {
        let services = FakeServices::new(&[]);
        let (first, second) = (open(&[text, read]), open(&[read]));
        let run = async |scripts: &Scripts, id| match scripts
            .run(ScriptId(id), &context(), &dynamic(&services))
            .await
        {
            Outcome::Done(value) => value,
            other => panic!("{other:?}"),
        };
        assert_eq!(run(&first, 0).await, Value::Boolean(false));
        assert_eq!(run(&first, 1).await.text(), Some("[[Object], \"b\", nil, {\"a\"=>[1]}, 8]"));
        assert_eq!(run(&second, 0).await.text(), Some("[nil, \"b\", nil, {\"a\"=>[1]}, 13]"));
    });
    check(&[
        (
            "c = Cache.new(namespace: 'e'); c.set('a', '1'); c['b'] = '2'; [c.keys.sort, c.size, c.delete('a'), c.get('a'), c.clear.size]",
            "[[\"a\", \"b\"], 2, \"1\", nil, 0]",
        ),
        ("begin; Imori::Shared.set('o', Object.new); rescue TypeError; 1; end", "1"),
        ("begin; Imori::Shared.set('o', 'x' * 2_000_000); rescue Imori::LimitError; 1; end", "1"),
        ("Imori::Shared.set('e', 1, expires: 1); sleep 0.005; Imori::Shared.get('e')", "nil"),
        (
            "m = Mutex.new; [m.locked?, m.lock.locked?, m.try_lock, m.unlock.locked?]",
            "[false, true, false, false]",
        ),
        ("begin; Mutex.new.unlock; rescue ThreadError; 1; end", "1"),
        ("m = Mutex.new(global: true); m.synchronize { m.locked? }", "true"),
        ("u = Userdata.new; u.a = 1; u.a += 1; [u.a, u[:a], u.none]", "[2, 2, nil]"),
    ]);
}

#[test]
fn lock_is_for_one_run_at_a_time_and_free_after_it() {
    let scripts = open(&[
        "Mutex.new(name: 'a').synchronize { v = $in.to_i; $in = v + 1; $most = [$most.to_i, $in].max; sleep 0.005; $in -= 1 }; $most",
        "Mutex.new(name: 'a').lock; raise 'x'",
    ]);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        let contexts: Vec<_> = (0..5).map(|_| context()).collect();
        let runs = contexts.iter().map(|context| scripts.run(ScriptId(0), context, &services));
        for outcome in futures_util::future::join_all(runs).await {
            assert_eq!(outcome, Outcome::Done(1.into()));
        }
        assert!(matches!(scripts.run(ScriptId(1), &context(), &services).await, Outcome::Failed(_)));
        assert_eq!(scripts.run(ScriptId(0), &context(), &services).await, Outcome::Done(1.into()));
    });
}

#[test]
fn rack_application_answers() {
    let (decision, status, body, headers) = respond(
        "class RackTest\n  def call(env)\n    [201, { 'x-hoge' => 'foo', 'x-foo' => 'hoge' }, ['rack', ' body ', env['PATH_INFO'], env['HTTP_X_ID'], env['rack.input'].gets]]\n  end\nend\nrun RackTest.new",
        Phase::Content,
    );
    assert_eq!((decision, status, body.as_str()), (Decision::Respond, 201, "rack body /a baa=1&b=x%20y"));
    assert_eq!((&headers["x-hoge"], &headers["x-foo"]), (&"foo".parse().unwrap(), &"hoge".parse().unwrap()));
    let (_, status, body, headers) =
        respond("run ->(env) { [200, [['a', '1'], ['a', '2']], ['x']] }", Phase::Content);
    assert_eq!((status, body.as_str(), headers.get_all("a").iter().count()), (200, "x", 2));
    let (decision, ..) =
        respond("run ->(env) { [Nginx::DECLINED, { 'x-ip' => env['REMOTE_ADDR'] }, []] }", Phase::Access);
    assert_eq!(decision, Decision::Continue);
    let (_, status, body, _) = respond("run ->(env) { [200, {}, [JSON.generate(env)]] }", Phase::Content);
    assert!(status == 200 && body.contains("\"REQUEST_METHOD\":\"GET\""), "{body}");
    assert_eq!(failure("run ->(env) { [200, [{ 'x' => 'y' }], ['z']] }").class, "TypeError");
}

#[test]
fn names_that_are_not_offered_say_so() {
    for text in [
        "File.read('/etc/passwd')",
        "Dir.pwd",
        "IO.popen('x')",
        "Process.pid",
        "ENV['HOME']",
        "Uname.nodename",
        "Vedis.new",
        "Nginx::Stream::Connection.new('x')",
        "Discount.new",
        "Thread.new { }",
        "require 'json'",
        "eval '1'",
        "system 'ls'",
        "`ls`",
        "exit",
        "Nginx::Server.new.add_listener({ address: '1' })",
        "Redis.new.subscribe('x')",
        "SimpleHttp.new('http', 'a')",
        "UDPSocket.new",
    ] {
        let exception = failure(text);
        assert_eq!(exception.class, "NotImplementedError", "{text}: {exception}");
        assert!(exception.message.contains("not offered"), "{text}: {exception}");
    }
    assert_eq!(failure("Nothing").class, "NameError");
    assert_eq!(failure("Nginx.echooo 'x'").class, "NoMethodError");
    assert_eq!(value("$a = 1; Nginx.remove_global_variable(:$a).include?(:$a)"), Value::Boolean(false));
}

#[test]
fn filter_and_handshake_are_of_their_phases() {
    block_on(async {
        let services = FakeServices::new(&[]);
        let context = context();
        context.phase.set(Phase::BodyFilter);
        context.filtered.replace(b"hello".to_vec().into());
        let text = "f = Nginx::Filter.new\nf.body = (f.body + ' world').upcase";
        assert!(matches!(run(text, &context, &services).await, Outcome::Done(_)));
        assert_eq!(*context.filtered.borrow(), "HELLO WORLD");
        let handshake = RequestContext::without_request(Phase::SslHandshake, context.connection.clone());
        handshake.tls.borrow_mut().server_name = "a.example".to_owned();
        let text = "ssl = Nginx::SSL.new\nssl.certificate = \"/x/#{ssl.servername}.crt\"\nssl.certificate_key_data = 'PEM'\nNginx::SSL.log Nginx::LOG_NOTICE, 'x'\nssl.local_port";
        assert_eq!(run(text, &handshake, &services).await, Outcome::Done(8080.into()));
        let tls = handshake.tls.borrow();
        assert_eq!(tls.certificate, Some(Pem::File("/x/a.example.crt".to_owned())));
        assert_eq!(tls.key, Some(Pem::Text(b"PEM".to_vec())));
    });
    assert_eq!(failure("Nginx::Filter.new.body").class, "RuntimeError");
    block_on(async {
        let context = context();
        for phase in [Phase::HeaderFilter, Phase::BodyFilter, Phase::Log] {
            context.phase.set(phase);
            let outcome = run("Nginx.rputs 'x'", &context, &FakeServices::new(&[])).await;
            assert!(
                matches!(&outcome, Outcome::Failed(exception) if exception.message.contains("on its way"))
            );
        }
    });
    assert_eq!(failure("Nginx::SSL.new.certificate = 'x'").class, "RuntimeError");
}

#[test]
fn events_are_streamed_while_the_script_runs() {
    let text = "SSE.push({ n: 1 }, event: 'tick', id: 7)\nsleep 0.01\nSSE.push \"a\\nb\"\n30.times { |i| SSE.push i.to_s }";
    let scripts = open(&[text, "SSE.push 'x' while true"]);
    block_on(async {
        let services = dynamic(&FakeServices::new(&[]));
        let context_of_stream = context();
        let script = scripts.run(ScriptId(0), &context_of_stream, &services);
        tokio::pin!(script);
        let mut chunks = tokio::select! {
            _ = &mut script => panic!("it sleeps"),
            chunks = context_of_stream.stream_started() => chunks,
        };
        assert_eq!(context_of_stream.response.borrow().headers["content-type"], "text/event-stream");
        let reading = async {
            let mut all = Vec::new();
            while let Some(chunk) = chunks.recv().await {
                all.extend_from_slice(&chunk);
            }
            String::from_utf8(all).unwrap()
        };
        let running = async {
            let outcome = script.await;
            context_of_stream.end_stream();
            outcome
        };
        let (outcome, all) = tokio::join!(running, reading);
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        assert!(
            all.starts_with("event: tick\nid: 7\ndata: {\"n\":1}\n\ndata: a\ndata: b\n\ndata: 0\n\n"),
            "{all}"
        );
        assert!(all.ends_with("data: 29\n\n"), "{all}");

        // A client that does not read makes the script wait, and one that leaves ends it.
        let context_of_endless = context();
        let script = scripts.run(ScriptId(1), &context_of_endless, &services);
        tokio::pin!(script);
        let waiting = tokio::time::timeout(Duration::from_millis(50), &mut script).await;
        assert!(waiting.is_err(), "{waiting:?}");
        drop(context_of_endless.take_stream());
        match script.await {
            Outcome::Failed(exception) => assert_eq!(exception.class, "Imori::DisconnectedError"),
            other => panic!("{other:?}"),
        }
    });
}

/// Serves connections with `serve` on a port, which it returns.
async fn serve<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream));
        }
    });
    port
}

async fn done(text: &str) -> String {
    match run(text, &context(), &FakeServices::new(&["127.0.0.1"])).await {
        Outcome::Done(value) => value.text().map_or_else(|| format!("{value:?}"), str::to_owned),
        other => panic!("{text}\nis {other:?}"),
    }
}

#[test]
fn requests_go_to_other_servers() {
    block_on(async {
        let port = serve(|stream| async move {
            let mut stream = BufReader::new(stream);
            loop {
                let (mut first, mut length) = (String::new(), 0);
                if stream.read_line(&mut first).await.unwrap_or(0) == 0 {
                    return;
                }
                let mut headers = String::new();
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).await.unwrap_or(0) == 0 || line == "\r\n" {
                        break;
                    }
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap_or(0);
                    }
                    headers += &line.to_ascii_lowercase();
                }
                let mut body = vec![0; length];
                let _ = stream.read_exact(&mut body).await;
                let text = format!(
                    "{} {} {}",
                    first.trim(),
                    headers.contains("x-a: b"),
                    String::from_utf8_lossy(&body)
                );
                let answer = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: t\r\ncontent-length: {}\r\n\r\n{text}",
                    text.len()
                );
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        })
        .await;
        for (text, expected) in [
            (
                format!(
                    "HTTP.get('http://127.0.0.1:{port}/x', query: {{ a: 'b c' }}, headers: {{ 'X-A' => 'b' }}).body"
                ),
                "GET /x?a=b%20c HTTP/1.1 true ",
            ),
            (format!("Imori::HTTP.post('http://127.0.0.1:{port}/', 'hi').body"), "POST / HTTP/1.1 false hi"),
            (
                format!(
                    "r = HTTP.put('http://127.0.0.1:{port}/', json: [1]); [r.status, r['content-type'], r.ok?, r.body].join(' ')"
                ),
                "200 t true PUT / HTTP/1.1 false [1]",
            ),
            (
                format!(
                    "Nginx::Async::HTTP.sub_request('http://127.0.0.1:{port}/y', 'q=1'); Nginx::Async::HTTP.last_response.body"
                ),
                "GET /y?q=1 HTTP/1.1 false ",
            ),
            (
                format!(
                    "r = HttpRequest.new.post('http://127.0.0.1:{port}/', {{ a: 'b' }}, {{ 'X-A' => 'b' }}); \"#{{r.code}} #{{r.body}} #{{r.headers['content-type']}}\""
                ),
                "200 POST / HTTP/1.1 true a=b t",
            ),
            (
                format!(
                    "begin; HTTP.get('http://127.0.0.1:{port}/', headers: {{ 'X' => \"a\\nb\" }}); rescue ArgumentError; 'refused'; end"
                ),
                "refused",
            ),
            (
                "begin; HTTP.get('http://127.0.0.2/'); rescue Imori::HostError => e; 'refused'; end"
                    .to_owned(),
                "refused",
            ),
            (
                "begin; HTTP.get('http://127.0.0.1:1/'); rescue Imori::ConnectError => e; 'none'; end"
                    .to_owned(),
                "none",
            ),
        ] {
            assert_eq!(done(&text).await, expected, "{text}");
        }
    });
}

#[test]
fn socket_reads_and_writes() {
    block_on(async {
        let port = serve(|mut stream| async move {
            let _ = stream.write_all(b"hello\nwor").await;
            tokio::time::sleep(Duration::from_millis(5)).await;
            let _ = stream.write_all(b"ld").await;
            let mut byte = [0; 4];
            let _ = stream.read_exact(&mut byte).await;
            let _ = stream.write_all(&byte).await;
        })
        .await;
        let text = format!(
            "s = TCPSocket.new('127.0.0.1', {port})\na = [s.gets, s.read(5), s.write('ping'), s.recv(10), s.gets, s.read(3)]\nbegin; s.readpartial(1); rescue EOFError; a << :eof; end\ns.close\na << s.closed?\nbegin; s.write('x'); rescue IOError; a << :closed; end\na.inspect"
        );
        assert_eq!(
            done(&text).await,
            "[\"hello\\n\", \"world\", 4, \"ping\", nil, nil, :eof, true, :closed]"
        );
        let silent = serve(|stream| async move {
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(stream);
        })
        .await;
        let text = format!(
            "s = TCPSocket.new('127.0.0.1', {silent}, timeout: 10); begin; s.gets; rescue Imori::TimeoutError; 'late'; end"
        );
        assert_eq!(done(&text).await, "late");
        assert_eq!(
            done("begin; TCPSocket.new('10.0.0.1', 80); rescue Imori::HostError; 'refused'; end").await,
            "refused"
        );
    });
}

/// A server of a small part of Redis: it closes a connection after each `closes_after` commands.
async fn redis(mut stream: BufReader<TcpStream>, closes_after: usize) {
    for _ in 0..closes_after {
        let mut words = Vec::new();
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
            return;
        }
        let count: usize = line.trim().trim_start_matches('*').parse().unwrap();
        for _ in 0..count {
            let mut line = String::new();
            stream.read_line(&mut line).await.unwrap();
            let mut word = vec![0; line.trim().trim_start_matches('$').parse::<usize>().unwrap() + 2];
            stream.read_exact(&mut word).await.unwrap();
            words.push(String::from_utf8_lossy(&word[..word.len() - 2]).into_owned());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let reply = match words.as_slice() {
            ["GET", "missing"] => "$-1\r\n".to_owned(),
            ["GET", key] => format!("${}\r\nv\r\nof {key}\r\n", 6 + key.len()),
            ["EXISTS", _] => ":1\r\n".to_owned(),
            ["INCR", _] => ":5\r\n".to_owned(),
            ["HGETALL", _] => "*4\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n:2\r\n".to_owned(),
            ["MULTI"] | ["SET", ..] | ["PING"] | ["AUTH", ..] | ["SELECT", _] => "+OK\r\n".to_owned(),
            ["EXEC"] => "*1\r\n+OK\r\n".to_owned(),
            ["LARGE"] => format!("$70000\r\n{}\r\n", "x".repeat(70_000)),
            ["NONSENSE"] => "nonsense\r\n".to_owned(),
            _ => format!("-ERR unknown command {}\r\n", words.join(" ")),
        };
        stream.write_all(reply.as_bytes()).await.unwrap();
    }
}

#[test]
fn redis_speaks_its_protocol() {
    block_on(async {
        let port = serve(|stream| redis(BufReader::new(stream), usize::MAX)).await;
        let text = format!(
            "r = Redis.new '127.0.0.1', {port}\na = [r.get('k'), r['missing'], r.exists?('k'), r.incr('n'), r.hgetall('h'), r.set('k', 1, ex: 5), r.command('LARGE').size]\nbegin; r.foo('x'); rescue Redis::ReplyError => e; a << e.message; end\na << r.pipelined {{ |p| p.get('a'); p.incr('b') }} << r.multi {{ |m| m.set('a', 1) }}\nr.queue(:INCR, 'x').queue(:PING); a << r.bulk_reply\na << r.select(3) << r.auth('p')\nbegin; r.command('NONSENSE'); rescue Redis::Error => e; a << :broken; end\na << r.get('k')\nr.close\na.inspect"
        );
        assert_eq!(
            done(&text).await,
            "[\"v\\r\\nof k\", nil, true, 5, {\"a\"=>\"b\", \"c\"=>2}, \"OK\", 70000, \"ERR unknown command FOO x\", [\"v\\r\\nof a\", 5], [\"OK\"], [5, \"OK\"], \"OK\", \"OK\", :broken, \"v\\r\\nof k\"]"
        );
        // The server closes each connection after its answer, so that those that are kept are dead.
        let port = serve(|stream| redis(BufReader::new(stream), 1)).await;
        let text =
            format!("r = Redis.new '127.0.0.1', {port}\n3.times.map {{ sleep 0.003; r.incr('n') }}.inspect");
        assert_eq!(done(&text).await, "[5, 5, 5]");
        // Many runs share one object.
        let port = serve(|stream| redis(BufReader::new(stream), usize::MAX)).await;
        let text = format!(
            "r = Redis.new '127.0.0.1', {port}\nImori.parallel((1..20).to_a) {{ |i| r.get(i) }}.uniq.size"
        );
        assert_eq!(done(&text).await, "Integer(20)");
    });
}

#[test]
fn messages_are_published_called_and_taken() {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.broker.data_dir = data.path().to_owned();
    config.listeners.stomp = vec!["127.0.0.1:0".parse().unwrap()];
    config.listeners.nats = Vec::new();
    config.listeners.amqp = Vec::new();
    config.listeners.ws = Vec::new();
    config.listeners.nats_monitor = Vec::new();
    config.listeners.automation = Vec::new();
    config.listeners.admin = Vec::new();
    let server = Server::start(&config).unwrap();
    let clients = server.internal_clients();
    block_on(async {
        let services = FakeServices::new(&[]);
        let client = clients.connect(Identity::broker(), b"/").await.unwrap();
        services.client.replace(Some(client.clone()));
        let durable = QueueSettings { is_durable: true, ..QueueSettings::default() };
        for queue in [&b"jobs"[..], b"requests"] {
            client.declare_queue(queue, durable.clone(), false).await.unwrap();
        }
        let mut requests = client.consume(ConsumeOptions::new(b"requests", 16)).await.unwrap();
        let service = client.clone();
        let serving = tokio::spawn(async move {
            while let Ok(request) = requests.recv().await {
                let reply = OutgoingMessage::new([b"brewed ", &*request.body].concat()).header(b"a", b"b");
                let _ = service.reply(&request, reply).await;
                let _ = service.settle(&request, Settlement::Accept).await;
            }
        });
        let done = async |text: &str| match run(text, &context(), &services).await {
            Outcome::Done(value) => value.text().unwrap_or("").to_owned(),
            other => panic!("{text}\nis {other:?}"),
        };
        for (text, expected) in [
            (
                "r = Imori.publish('one', queue: 'jobs', headers: { a: 1, 'b' => [true, nil] }, persistent: true, id: 'm1', content_type: 'text/plain')\n[r.receivers, r.level != 'memory'].inspect",
                "[1, true]",
            ),
            ("Imori.publish('x', topic: 'nobody.there').receivers.inspect", "0"),
            (
                "m = Imori.get('jobs')\n[m.body, m.headers, m.key, m.id, m.content_type, m.redelivered?, m.ack, m.ack].inspect",
                "[\"one\", {\"a\"=>1, \"b\"=>[true, nil]}, \"jobs\", \"m1\", \"text/plain\", false, true, false]",
            ),
            ("Imori.get('jobs').inspect", "nil"),
            ("Imori.get('jobs', wait: 10).inspect", "nil"),
            ("m = Imori.call('tea', queue: 'requests'); m.body + m.headers['a']", "brewed teab"),
            ("begin; Imori.call('x', topic: 'nobody'); rescue Imori::NoResponderError; 'none'; end", "none"),
            (
                "begin; Imori.call('x', queue: 'jobs', timeout: 20); rescue Imori::TimeoutError; 'late'; end",
                "late",
            ),
            ("m = Imori.get('jobs'); m.nack(requeue: false); m.body", "x"),
            ("Imori.publish('two', queue: 'jobs'); Imori.get('jobs').body", "two"),
            (
                "m = Imori.get('jobs', wait: 1000); r = [m.body, m.redelivered?].inspect; m.nack; r",
                "[\"two\", true]",
            ),
            ("m = Imori.timeout(1000) { Imori.get('jobs', wait: 500) }; m.ack; m.body", "two"),
            (
                "a, b = Imori.parallel(-> { Imori.get('jobs', wait: 2000).ack }, -> { sleep 0.02; Imori.publish('late', queue: 'jobs').receivers })\n[a, b].inspect",
                "[true, 1]",
            ),
            ("begin; Imori.get('none'); rescue Imori::BrokerError => e; 'no queue'; end", "no queue"),
            ("begin; Imori.publish('x', queue: 'a', topic: 'b'); rescue ArgumentError; 'one'; end", "one"),
            (
                "begin; Imori.publish('x', queue: 'a', wrong: 1); rescue ArgumentError => e; e.message; end",
                "there is no option `wrong`",
            ),
            (
                "begin; Imori.publish('x', queue: 'a', priority: 300); rescue ArgumentError => e; 'range'; end",
                "range",
            ),
            (
                "begin; Imori.publish('x', queue: 'a', headers: { a: 'x' * 70_000 }); rescue ArgumentError => e; 'large'; end",
                "large",
            ),
            ("Imori.json({ a: 1 }, status: 201); Nginx::Request.new.content_type", "application/json"),
        ] {
            assert_eq!(done(text).await, expected, "{text}");
        }
        serving.abort();
        services.client.replace(None);
        let text = "begin; Imori.publish('x', queue: 'jobs'); rescue Imori::BrokerError; 'refused'; end";
        assert_eq!(done(text).await, "refused");
    });
    server.stop_handle().stop();
    server.join().unwrap();
}
