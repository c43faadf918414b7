//! Every method of the library that is new here, called with arguments of every kind: any of them may raise, none may
//! crash, hang or leave a run that the next one notices.

use std::{rc::Rc, time::Duration};

use imori_gateway::for_tests::{Outcome, Phase, ScriptId, ScriptLimits, ScriptSource, Scripts, VmLimits};

use crate::scripts::{FakeServices, block_on, context, dynamic};

/// Receivers, each made anew for every call.
const RECEIVERS: &[&str] = &[
    "Nginx",
    "Nginx::Request",
    "Nginx::Request.new",
    "Nginx::Headers_in.new",
    "Nginx::Headers_out.new",
    "Nginx::Var.new",
    "Nginx::Connection.new",
    "Nginx::Server.new",
    "Nginx::Filter.new",
    "Nginx::Upstream.new('x')",
    "Nginx::Upstream",
    "Nginx::SSL.new",
    "Nginx::SSL",
    "Nginx::Utils",
    "Nginx::Async",
    "Nginx::Async::HTTP",
    "Nginx::Async::HTTP::Response.new(200, {}, '')",
    "Imori",
    "Imori::Child",
    "Imori::Child.new(-> { 1 })",
    "Imori::HTTP",
    "Imori::SSE",
    "Imori::Shared",
    "Imori::HMAC",
    "Imori::Sockets",
    "Imori::Message.new('', {}, '', 'q', nil, nil, nil, false, nil)",
    "HttpRequest.new",
    "JSON",
    "Digest",
    "Digest::MD5",
    "Digest::SHA256",
    "Digest::SHA256.new",
    "Digest::HMAC",
    "Digest::HMAC.new('k', Digest::SHA256)",
    "SecureRandom",
    "Base64",
    "Cache",
    "Cache.new(namespace: 'c')",
    "Mutex",
    "Mutex.new",
    "Userdata.new",
    "OnigRegexp",
    "/a(b)?/",
    "/a(?<n>b)?/.match('xab')",
    "OnigRegexp.__compile('a', 0)",
    "'a text'",
    ":symbol",
    "TCPSocket",
    "Redis",
    "Redis.new('127.0.0.1', 1)",
    "Redis::Pipeline.new",
    "Rack",
    "Rack::Logger.new",
    "Rack::Input.new",
    "Object.new",
];

/// Calls every method of the receiver's own classes; the classes that all objects have are imori-ruby's to test.
const CALLS: &str = r#"
values = [nil, true, 0, -1, 3, 2**62, 1.5, 0.0 / 0, '', 'abc', "a\r\nb", "\xff\x00", 'x' * 5000, :sym, [], [1, 'a', nil],
          [[[]]], { a: 1 }, { 'X' => "\n" }, (1..3), Object.new, Object, proc { |x| x }, /a/, /a/.match('a')]
deep = []
70.times { deep = [deep] }
values << deep
lists = [[]] + values.map { |value| [value] }
values.each_with_index { |value, i| lists << [value, values[(i * 7 + 3) % values.size]] << [values[(i * 5 + 1) % values.size], value, value] << [value] * 6 }
block = proc { |*x| $turns += 1; raise StopIteration if $turns > 20; x[0] }
receiver = make.call
names = receiver.methods - Class.new.methods - (receiver.is_a?(Module) ? [] : Object.new.methods)
names |= receiver.class.instance_methods(false) unless receiver.is_a?(Module)
names |= [:rputs, :echo, :run, :p, :puts, :print, :sleep, :to_json] if receiver.class == Object
names -= [:__run, :exit, :define_method]
called = 0
names.each_with_index do |name, at|
  lists.each_with_index do |list, i|
    next if (i + at) % stride != 0
    [nil, block].each do |with|
      $turns = 0
      called += 1
      begin
        Imori.timeout(2) { make.call.__send__(name, *list, &with) }
      rescue StandardError, ScriptError, NoMemoryError, SystemStackError, UncaughtThrowError
      end
    end
  end
end
Imori::Shared.set('called', called + Imori::Shared.get('called').to_i)
"#;

#[test]
fn no_native_crashes_or_hangs() {
    let stride = if std::env::var_os("IMORI_RUBY_RUNS").is_some() { 1 } else { 9 };
    block_on(async {
        let fake = FakeServices::new(&[]);
        let services = dynamic(&fake);
        for phase in [Phase::Content, Phase::BodyFilter, Phase::InitWorker] {
            for receiver in RECEIVERS {
                let source =
                    |text: String| ScriptSource { file: "calls.rb".to_owned(), line_offset: 0, text };
                let sources = [
                    source(format!("stride = {stride}\nmake = -> {{ {receiver} }}\n{CALLS}")),
                    source("[Nginx.module_name, 'ab'.sub('a', 'b')]".to_owned()),
                ];
                let scripts = Scripts::open(&sources, VmLimits::default());
                let scripts = scripts.unwrap_or_else(|error| panic!("{receiver}: {error}"));
                let context = context();
                context.phase.set(phase);
                let long = Duration::from_secs(60);
                let awaits = u32::MAX;
                context.limits.set(ScriptLimits {
                    slice_cpu: long,
                    cpu: long,
                    wall_time: long,
                    awaits,
                    ..ScriptLimits::default()
                });
                let outcome = scripts.run(ScriptId(0), &context, &services).await;
                let is_fine = match &outcome {
                    Outcome::Done(_) => true,
                    // Without a request some receivers cannot be made.
                    Outcome::Failed(_) => phase == Phase::InitWorker,
                    _ => false,
                };
                assert!(is_fine, "{receiver} in {phase:?}: {outcome:?}");
                let after = scripts.run(ScriptId(1), &crate::scripts::context(), &services).await;
                assert!(matches!(&after, Outcome::Done(_)), "after {receiver} in {phase:?}: {after:?}");
                assert_eq!(Rc::strong_count(&context), 1, "{receiver}");
            }
        }
        let called = fake.tools.shared.get(&(Vec::new(), b"called".to_vec()));
        let called = match called {
            Some(imori_ruby::Value::Integer(called)) => called,
            other => panic!("{other:?}"),
        };
        assert!(called > 5_000, "{called} calls");
    });
}
