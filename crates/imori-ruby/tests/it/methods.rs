//! Every method of the library, called with arguments of every kind: any of them may raise, none may crash.

use std::{rc::Rc, time::Duration};

use imori_ruby::{Library, Limits, Step, Value};

use crate::vm;

/// Receivers, each made anew for every call.
const RECEIVERS: &[&str] = &[
    "nil",
    "true",
    "5",
    "0 - 2**62",
    "2.5",
    "'abcabc ä'",
    "''",
    "('x' * 100)",
    ":sym",
    "[3, 'a', nil, [1, [2]], 2.5]",
    "[]",
    "(1..40).to_a",
    "{a: 1, 'b' => [2], 3 => nil}",
    "(1..20).map { |i| [i, i.to_s] }.to_h",
    "(1..5)",
    "('a'..)",
    "(1.5..2)",
    "Object.new",
    "Class.new(Array).new([1, 2])",
    "Class.new",
    "Module.new",
    "proc { |a, b| [a, b] }",
    "lambda { |a| a }",
    "[1, 2, 3].each",
    "[1, 2, 3].lazy",
    "Fiber.new { |x| Fiber.yield x }",
    "StandardError.new('m')",
    "Struct.new(:a, :b).new(1, 2)",
    "Time.at(0)",
    "Random.new(1)",
    "Comparable",
    "Math",
    "Class.new(Hash)",
    "Class.new(String)",
    "Class.new(Struct)",
    "Class.new(Exception)",
];

const CALLS: &str = r#"
values = [nil, true, 0, 1, -1, 3, 2**31, 2**62, 0 - 2**62 - 2**62, 1.5, 0.0 / 0, 1e300, '', 'abc', 'ä', '%-*.3d', :sym, [], [1, 'a', nil],
          [[1, 2], [3, 4]], { a: 1 }, (1..3), (-1..), Object.new, Object, Kernel, proc { |x| x }, StandardError.new]
lists = [[]] + values.map { |value| [value] }
values.each_with_index { |value, i| lists << [value, values[(i * 7 + 3) % values.size]] << [values[(i * 5 + 1) % values.size], value, value] }
block = proc { |*x| $turns += 1; raise StopIteration if $turns > 50; $turns.odd? ? x[0] : nil }
stride, at = Imori.arguments[1], Imori.arguments[2]
lists.each_with_index do |list, i|
  next if (i + at) % stride != 0
  [nil, block].each do |with|
    $turns = 0
    list = list.map { |value| value.is_a?(String) || value.is_a?(Array) || value.is_a?(Hash) ? value.dup : value }
    begin
      make.call.__send__(Imori.arguments[0], *list, &with)
    rescue StandardError, ScriptError, NoMemoryError, SystemStackError, UncaughtThrowError
    end
  end
end
1
"#;

#[test]
fn no_method_crashes() {
    let limits = Limits {
        slice_cpu: Duration::from_millis(200),
        run_cpu: Duration::from_millis(200),
        heap_bytes: 32 << 20,
        ..Limits::default()
    };
    // All calls take a minute; a share of them, another one for each method, takes seconds.
    let stride = if std::env::var_os("IMORI_RUBY_RUNS").is_some() { 1 } else { 16 };
    let mut calls = 0;
    let mut lost = Vec::new();
    for receiver in RECEIVERS {
        let names = {
            let vm = vm(limits, Library::new());
            let script =
                vm.compile("names.rb", format!("({receiver}).methods")).expect("the receiver is Ruby");
            match vm.start(&script, Vec::new(), Rc::new(())) {
                Step::Done(Value::Array(names)) => names,
                other => panic!("{receiver}: {other:?}"),
            }
        };
        assert!(names.len() > 30, "{receiver} has {} methods", names.len());
        let text = format!("make = lambda {{ {receiver} }}\n{CALLS}");
        let mut opened = vm(limits, Library::new());
        let mut script = opened.compile("calls.rb", &text).expect("the text is Ruby");
        for name in names {
            // A crash leaves nothing but this file to say where it was.
            if let Some(trace) = std::env::var_os("IMORI_RUBY_TRACE") {
                std::fs::write(trace, format!("{receiver} {name:?}")).expect("the file can be written");
            }
            calls += 1;
            let step = opened.start(&script, vec![name.clone(), stride.into(), calls.into()], Rc::new(()));
            // A call may change a class that all use, and an operator that its VM needs.
            if !matches!(step, Step::Done(Value::Integer(1))) {
                if matches!(step, Step::VmLost) {
                    lost.push(format!("{receiver} {name:?}"));
                }
                opened = vm(limits, Library::new());
                script = opened.compile("calls.rb", &text).expect("the text is Ruby");
            }
        }
    }
    assert!(calls > 2_000, "{calls} methods");
    assert!(lost.len() < 20, "{} VMs are lost: {lost:?}", lost.len());
}
