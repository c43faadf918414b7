//! Scripts that want too much.

use std::{
    rc::Rc,
    thread,
    time::{Duration, Instant},
};

use imori_ruby::{ARRAY_ITEMS_MAX, Library, Limits, Reply, STRING_BYTES_MAX, Step, Value};

use crate::{plain_vm, raised, run, value, vm};

fn quick() -> Limits {
    Limits { slice_cpu: Duration::from_millis(20), run_cpu: Duration::from_millis(60), ..Limits::default() }
}

#[test]
fn endless_loop_is_ended() {
    let vm = vm(quick(), Library::new());
    for text in
        ["while true; end", "loop { }", "def f; g; end; def g; end; f while true", "[1].cycle { |x| x }"]
    {
        let began = Instant::now();
        let exception = raised(&vm, text);
        assert_eq!(exception.class, "Imori::CpuLimitError", "{text}: {exception:?}");
        assert!(exception.backtrace.iter().any(|line| line == "test.rb:1"), "{exception:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{text}");
    }
    assert_eq!(value(&vm, "1"), Value::Integer(1));
}

#[test]
fn time_out_is_no_standard_error_and_runs_ensure() {
    let vm = vm(quick(), Library::new());
    assert_eq!(
        raised(&vm, "begin; while true; end; rescue => e; 1; ensure; $ended = true; end").class,
        "Imori::CpuLimitError"
    );
    assert_eq!(value(&vm, "$ended"), Value::Boolean(true));
    let text = "begin; while true; end; rescue Imori::CpuLimitError => e; e.message; end";
    assert!(value(&vm, text).text().is_some_and(|message| message.contains("CPU time")));
}

#[test]
fn script_that_rescues_every_time_out_loses_its_vm() {
    for text in [
        "while true; begin; while true; end; rescue Exception; end; end",
        "def f; while true; end; ensure; f; end; f",
    ] {
        let vm = vm(quick(), Library::new());
        let script = vm.compile("other.rb", "1").expect("the text is Ruby");
        let step = run(&vm, text);
        assert!(matches!(step, Step::VmLost) && vm.is_lost(), "{text}: {step:?}");
        assert!(matches!(vm.start(&script, Vec::new(), Rc::new(())), Step::VmLost));
        assert!(vm.compile("other.rb", "1").is_err());
    }
}

#[test]
fn runs_that_wait_are_lost_with_their_vm() {
    let mut library = Library::new();
    library.module("Host").awaiting_singleton_method("Host", "wait", |_| Ok(Reply::Operation(Box::new(()))));
    let vm = vm(quick(), library);
    // Fibers that are idle when the VM is lost.
    let script = vm.compile("other.rb", "Host.wait").expect("the text is Ruby");
    let waiting: Vec<Step> = (0..3).map(|_| vm.start(&script, Vec::new(), Rc::new(()))).collect();
    drop(waiting);
    let Step::Awaiting(first, _) = run(&vm, "Host.wait") else { panic!("the script waits") };
    let Step::Awaiting(second, _) = run(&vm, "begin; Host.wait; ensure; 1; end") else {
        panic!("the script waits")
    };
    assert!(matches!(
        run(&vm, "while true; begin; while true; end; rescue Exception; end; end"),
        Step::VmLost
    ));
    assert!(matches!(vm.resume(first, Ok(Value::Nil)), Step::VmLost));
    drop(second);
    for _ in 0..4 {
        assert!(matches!(vm.start(&script, Vec::new(), Rc::new(())), Step::VmLost));
    }
}

#[test]
fn slices_count_against_their_run() {
    let mut library = Library::new();
    library.module("Host").awaiting_singleton_method("Host", "wait", |_| Ok(Reply::Operation(Box::new(()))));
    let vm = vm(
        Limits { run_cpu: Duration::from_millis(100), slice_cpu: Duration::from_secs(5), ..quick() },
        library,
    );
    let mut step = run(&vm, "while true; Host.wait; 10_000.times { |x| x + 1 }; end");
    let mut slices = 0;
    let exception = loop {
        match step {
            Step::Awaiting(fiber, _) => step = vm.resume(fiber, Ok(Value::Nil)),
            Step::Raised(exception) => break exception,
            other => panic!("{other:?}"),
        }
        slices += 1;
    };
    assert_eq!(exception.class, "Imori::CpuLimitError");
    assert!(slices > 5, "{slices} slices");
}

#[test]
fn waiting_for_the_cpu_is_not_counted() {
    let mut library = Library::new();
    library.module("Host").singleton_method("Host", "sleep", |_| {
        thread::sleep(Duration::from_millis(150));
        Ok(Value::Nil)
    });
    let vm = vm(quick(), library);
    assert_eq!(value(&vm, "Host.sleep; 1000.times { |x| x }; 1"), Value::Integer(1));
}

#[test]
fn allocation_bomb_raises_no_memory_error() {
    let seconds = Duration::from_secs(20);
    let limits = Limits { heap_bytes: 16 << 20, slice_cpu: seconds, run_cpu: seconds, ..Limits::default() };
    let vm = vm(limits, Library::new());
    for text in [
        "a = []; while true; a << 'x' * 100_000; end",
        "a = []; while true; a << [a.size]; end",
        "h = {}; i = 0; while true; h[i] = 'x' * 1000 + i.to_s; i += 1; end",
        "s = 'x' * 4_000_000; a = []; while true; a << s + 'y'; end",
        "f = []; while true; x = Fiber.new { Fiber.yield }; x.resume; f << x; end",
    ] {
        let exception = raised(&vm, text);
        assert_eq!(exception.class, "NoMemoryError", "{text}: {exception:?}");
        assert!(vm.heap().bytes <= 16 << 20, "{:?}", vm.heap());
        vm.collect();
        assert_eq!(value(&vm, "[1, 2].map { |x| x.to_s }.join"), "12".into(), "after {text}");
    }
}

#[test]
fn names_fill_the_heap_or_take_too_long() {
    let vm = vm(Limits { heap_bytes: 4 << 20, ..Limits::default() }, Library::new());
    // Names are kept for the life of a VM.
    let exception = raised(&vm, "i = 0; while true; ('a' * 1000 + i.to_s).to_sym; i += 1; end");
    assert!(["NoMemoryError", "Imori::CpuLimitError"].contains(&exception.class.as_str()), "{exception:?}");
}

#[test]
fn strings_and_arrays_have_a_largest_size() {
    // What a busy machine needs for strings of 16 MiB must not end the script first.
    let patience = Duration::from_secs(60);
    let vm = vm(Limits { slice_cpu: patience, run_cpu: patience, ..Limits::default() }, Library::new());
    assert_eq!(
        value(&vm, &format!("('x' * {}).size", STRING_BYTES_MAX - 1)),
        Value::Integer(STRING_BYTES_MAX as i64 - 1)
    );
    for text in [
        format!("'x' * {STRING_BYTES_MAX}"),
        format!("s = 'x' * {}; s << 'yy'", STRING_BYTES_MAX - 1),
        "s = 'x'; s += s while true".to_owned(),
        format!("Array.new({})", ARRAY_ITEMS_MAX + 1),
        "'x'.ljust(1 << 40)".to_owned(),
        "[1] * (1 << 40)".to_owned(),
    ] {
        let exception = raised(&vm, &text);
        assert!(
            ["ArgumentError", "NoMemoryError", "RangeError"].contains(&exception.class.as_str()),
            "{text}: {exception:?}"
        );
    }
}

#[test]
fn deep_recursion_raises_on_a_small_stack() {
    let texts = [
        "def f(n) = f(n + 1) + 1\nf(0)",
        "def f(*a, **k, &b) = f(*a, 1, **k, &b)\nf",
        "class A; def to_s = \"#{A.new}\"; end\nA.new.to_s",
        "class B; def ==(other) = B.new == other; end\n[B.new] == [B.new]",
        "class C; def method_missing(name, *rest) = other(*rest); def respond_to_missing?(*) = true; end\nC.new.x",
        "class D; def <=>(other) = [D.new, D.new].sort; end\n[D.new, D.new].sort",
        "class E; def hash = {E.new => 1}.size; def eql?(o) = true; end\n{E.new => 1}",
        "class F; def coerce(o) = [F.new, F.new]; def inspect = [F.new].inspect; end\nF.new.inspect",
        "f = proc { |x| [x].each(&f) }\nf.call(1)",
        "def g = Fiber.new { g }.resume\ng",
        "class G; def to_str = [G.new].join; def respond_to?(*) = true; end\n[G.new].join",
        "class H; def initialize = H.new; end\nH.new",
        "a = []; 5_000.times { a = [a] }; a.inspect",
        "a = []; 5_000.times { a = [a] }; a.join",
        "a = []; 5_000.times { a = [a] }; a.hash",
        "a = []; 5_000.times { a = [a] }; b = []; 5_000.times { b = [b] }; a == b",
        "a = []; 5_000.times { a = [a] }; a.flatten",
        "h = {}; 5_000.times { h = {h => h} }",
    ];
    let check = move || {
        let vm = vm(Limits { slice_cpu: Duration::from_millis(500), ..Limits::default() }, Library::new());
        for text in texts {
            match run(&vm, text) {
                Step::Raised(exception) => {
                    let classes = [
                        "SystemStackError",
                        "FiberError",
                        "ArgumentError",
                        "NoMemoryError",
                        "NoMethodError",
                        "Imori::CpuLimitError",
                    ];
                    assert!(classes.contains(&exception.class.as_str()), "{text}: {exception:?}");
                }
                Step::Done(_) => {}
                other => panic!("{text}\nis {other:?}"),
            }
        }
        assert_eq!(raised(&vm, "def f(n) = f(n + 1) + 1\nf(0)").class, "SystemStackError");
        assert_eq!(value(&vm, "def g(n) = n == 0 ? 0 : 1 + g(n - 1)\ng(400)"), Value::Integer(400));
    };
    let thread =
        thread::Builder::new().stack_size(stack_bytes()).spawn(check).expect("the system starts a thread");
    thread.join().expect("the stack is large enough");
}

/// The stack that a VM's thread needs at least, and more where every frame has guards around its variables.
fn stack_bytes() -> usize {
    if std::env::var_os("IMORI_MRUBY_SANITIZE").is_some() { 16 << 20 } else { 1 << 20 }
}

#[test]
fn deep_texts_are_errors() {
    let vm = plain_vm();
    for (open, close) in [
        ("[", "]"),
        ("(", ")"),
        ("{a: ", "}"),
        ("->{", "}"),
        ("!", "1"),
        ("-", "1"),
        ("\"#{", "}\""),
        ("a[", "]"),
        ("f ", ""),
        ("if 1; ", "; end"),
    ] {
        for depth in [200, 2_000, 20_000] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            if let Err(error) = vm.compile("deep.rb", &text) {
                assert!(!error.message.is_empty(), "{open} {depth}");
            }
        }
    }
    assert_eq!(value(&vm, "1 + 1"), Value::Integer(2));
}

#[test]
fn every_allocation_may_fail() {
    let text = "class A < StandardError; def initialize(x); @x = [x] * 3; super('m'); end; end\n\
                h = {}; 20.times { |i| h[\"k#{i}\"] = [i, i.to_s * 40, :sym, 1.5 * i] }\n\
                f = Fiber.new { |x| Fiber.yield x; format('%s %d', 'a' * 200, 3) }\n\
                a = [f.resume(1), f.resume]\n\
                e = [1, 2, 3].each; e.next\n\
                begin; raise A.new(2); rescue A => e; a << e.message << e.backtrace.size; end\n\
                a << h.map { |k, v| v.join('-') }.sort.join.size\n\
                def r(n) = n == 0 ? [] : r(n - 1) + [n]\n\
                a + r(60) + [[1, [2]].flatten, 'a,b'.split(','), { a: 1 }.merge({ b: 2 }).to_a]";
    let step = if soaks() { 1 } else { 17 };
    let vm = plain_vm();
    let expected = value(&vm, text);
    let mut failures = 0;
    let mut number = 1;
    loop {
        let vm = plain_vm();
        let Ok(script) = vm.compile("test.rb", text) else { panic!("the text is Ruby") };
        vm.fail_allocation(number);
        match vm.start(&script, Vec::new(), Rc::new(())) {
            Step::Done(value) if value == expected => break,
            // A rescue of the script, or of the library, may take the error for its own.
            Step::Done(_) => {}
            Step::Raised(exception) => {
                assert!(!exception.class.is_empty());
                failures += 1;
            }
            other => panic!("allocation {number}: {other:?}"),
        }
        vm.fail_allocation(0);
        assert_eq!(value(&vm, "[1, 2].map { |x| x.to_s }.join"), "12".into(), "after allocation {number}");
        number += step;
    }
    assert!(failures > 10, "{failures} failures up to allocation {number}");
}

#[test]
fn compiling_may_lack_memory() {
    let text = "def f(x) = x.map { |y| [y, \"a#{y}\", :b, 2.5] }\nclass A; attr_reader :b; end\nf([1, 2])\n"
        .repeat(5);
    let step = if soaks() { 1 } else { 13 };
    let mut number = 1;
    loop {
        let vm = plain_vm();
        vm.fail_allocation(number);
        let result = vm.compile("test.rb", &text);
        vm.fail_allocation(0);
        match result {
            Ok(_) if number > 1_000 => break,
            Ok(_) => {}
            Err(error) => assert!(!error.message.is_empty()),
        }
        assert_eq!(value(&vm, "1 + 1"), Value::Integer(2), "after allocation {number}");
        number += step;
        if number > 20_000 {
            break;
        }
    }
}

fn soaks() -> bool {
    std::env::var_os("IMORI_RUBY_RUNS").is_some()
}

#[test]
fn hook_costs_nothing_until_it_is_needed() {
    // A slice without a time-out never has the hook: the loop runs in the same time with any limit.
    let vm = vm(
        Limits { slice_cpu: Duration::from_secs(10), run_cpu: Duration::from_secs(10), ..Limits::default() },
        Library::new(),
    );
    assert_eq!(value(&vm, "i = 0; while i < 300_000; i += 1; end; i"), Value::Integer(300_000));
}
