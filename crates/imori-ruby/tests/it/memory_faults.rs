//! Faults of mruby 3.2.0 that scripts could reach, which build/patches.rs mends.

use std::time::Duration;

use imori_ruby::{Library, Limits, Value};

use crate::{raised, run, value, vm};

fn slow() -> Limits {
    Limits {
        slice_cpu: Duration::from_secs(5),
        run_cpu: Duration::from_secs(5),
        heap_bytes: 16 << 20,
        ..Limits::default()
    }
}

#[test]
fn mended_faults_are_values() {
    let vm = vm(slow(), Library::new());
    for (text, expected) in [
        ("1.instance_exec { 2 } + 1", Value::Integer(3)),
        (
            "class M; def method_missing(n, *a, **k) = [n, a, k]; end\nM.new.x(k: 1) == [:x, [], { k: 1 }]",
            true.into(),
        ),
        (
            "M.new.x(*(1..20), k: 1) == [:x, (1..20).to_a, { k: 1 }] && M.new.y(1, k: 2) == [:y, [1], { k: 2 }]",
            true.into(),
        ),
        ("def f(*a) = a\nf(*(1..13), **{}) == (1..13).to_a && f(*(1..14), a: 1).size", 15.into()),
        ("5.divmod(2.5) == [2, 0.0] && -7.divmod(2.0) == [-4, 1.0]", true.into()),
        ("a = (1..31).to_a; a[3, 2] = a; a.size", 60.into()),
        (
            "class D; def initialize(h) = @h = h; def ==(o) = (@h.keys.each { |k| @h.delete(k) }; false); end\nh = {}; 40.times { |i| h[i] = 0 }; h.value?(D.new(h))",
            false.into(),
        ),
        (
            "h = {}; 4.times { |i| h[i] = 0 }; begin; h.value?(D.new(h)); rescue RuntimeError => e; e.message; end",
            "hash modified".into(),
        ),
        ("('a' * 2_000_000).index('a' * 1_000_000 + 'b')", Value::Nil),
        ("('ab' * 30 + 'xyz').index('bx')", 59.into()),
        ("->(a, b, c, d, e, f, g, h, *i, j: 1, **k, &l) {}.call(1, 2, 3, 4, 5, 6, 7, 8)", Value::Nil),
        (
            "class T; def initialize(s) = @s = s; def to_s = (@s.replace('x' * 1000); 'y'); end\ns = '%s' + 'z' * 200 + '%d'; format(s, T.new(s), 7).size",
            202.into(),
        ),
        ("begin; 'abc'.__sub_replace('\\\\`', 'b', 100_000_000); rescue RuntimeError; 1; end", 1.into()),
        ("begin; format('%.2147483647e', 1.0); rescue ArgumentError; 1; end", 1.into()),
        ("a = []; 400.times { a = [a] }; begin; a.join; rescue ArgumentError; 1; end", 1.into()),
        (
            "'äöü' * 1000 + 'x' == 'x' ? 0 : [('äö' * 9 + 'üx').index('üx'), 'äöü'.index('ü', 1), 'äöü'.index('ö', 2)]",
            Value::Array(vec![18.into(), 2.into(), Value::Nil]),
        ),
        ("2.5 << 2**62 == 1.0 / 0", true.into()),
        ("begin; Random.new(1).bytes(-1); rescue ArgumentError; 1; end", 1.into()),
        ("S = Struct.new(:a, :b); S.new(*[1, 2]).to_a == [1, 2]", true.into()),
    ] {
        assert_eq!(value(&vm, text), expected, "{text}");
    }
}

#[test]
fn blocks_keep_their_variables_when_the_heap_is_full() {
    let vm = vm(slow(), Library::new());
    let text = "$blocks = []\n$all = []\ndef m(i) = proc { i }\nbegin\n  while true\n    $blocks << m(1)\n    $all << 'x' * 300\n  end\nrescue NoMemoryError\n  $all = nil\nend\n$blocks.all? { |block| block.call == 1 }";
    assert_eq!(value(&vm, text), Value::Boolean(true));
}

#[test]
fn fiber_without_memory_is_not_half_made() {
    let vm = vm(slow(), Library::new());
    let text = "class F < Fiber\n  def initialize(&block)\n    super\n  rescue NoMemoryError\n    $failed = self\n    raise NoMemoryError\n  end\nend\n\
                all = []\nbegin\n  while true\n    all << F.new { 1 }\n  end\nrescue NoMemoryError\n  all = nil\nend\n$failed.resume";
    let exception = raised(&vm, text);
    assert_eq!(exception.class, "FiberError", "{exception:?}");
    drop(run(&vm, "$failed = nil"));
    vm.collect();
    assert_eq!(value(&vm, "F.new { 3 }.resume"), Value::Integer(3));
}
