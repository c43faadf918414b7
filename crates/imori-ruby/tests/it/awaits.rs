//! Runs that wait for operations.

use std::rc::Rc;

use imori_ruby::{Error, Fiber, Library, Limits, Operation, Reply, Step, Value, Vm};

use crate::{raised, run, value, vm};

/// A VM whose `Host.get(x)` waits: the operation is `x`. `Host.log(x)` appends to a global list.
fn waiting_vm() -> Vm {
    let mut library = Library::new();
    library.module("Host").class("Host::Failed", "StandardError");
    library.awaiting_singleton_method("Host", "get", |call| {
        Ok(Reply::Operation(Box::new(call.argument(0)?.clone())))
    });
    library.prelude("log.rb", "$log = []\ndef log(x)\n  $log << x\nend");
    vm(Limits::default(), library)
}

fn awaiting(step: Step) -> (Fiber, Value) {
    match step {
        Step::Awaiting(fiber, operation) => (fiber, asked(operation)),
        other => panic!("{other:?}"),
    }
}

fn asked(operation: Operation) -> Value {
    *operation.downcast().expect("the function returns values")
}

fn done(step: Step) -> Value {
    match step {
        Step::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn script_waits_and_goes_on_with_the_outcome() {
    let vm = waiting_vm();
    let (fiber, operation) = awaiting(run(&vm, "a = Host.get(1)\nb = Host.get(a + 1)\n[a, b]"));
    assert_eq!(operation, Value::Integer(1));
    let (fiber, operation) = awaiting(vm.resume(fiber, Ok(10.into())));
    assert_eq!(operation, Value::Integer(11));
    assert_eq!(done(vm.resume(fiber, Ok("b".into()))), Value::Array(vec![10.into(), "b".into()]));
}

#[test]
fn outcome_may_be_an_error() {
    let vm = waiting_vm();
    let text = "begin\n  Host.get(1)\nrescue Host::Failed => e\n  e.message\nend";
    let (fiber, _) = awaiting(run(&vm, text));
    assert_eq!(done(vm.resume(fiber, Err(Error::new("Host::Failed", "no")))), "no".into());
    let (fiber, _) = awaiting(run(&vm, "def f\n  Host.get(1)\nend\nf"));
    match vm.resume(fiber, Err(Error::new("Host::Failed", "no"))) {
        Step::Raised(exception) => {
            assert_eq!((exception.class.as_str(), exception.message.as_str()), ("Host::Failed", "no"));
            assert!(exception.backtrace.contains(&"test.rb:2:in f".to_owned()), "{exception:?}");
            assert!(exception.backtrace.contains(&"test.rb:4".to_owned()), "{exception:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn hundred_runs_wait_at_once_and_end_in_any_order() {
    let vm = waiting_vm();
    let text = "id = Imori.arguments[0]\nsum = 0\n5.times { |i| sum += Host.get([id, i]) }\nsum + id";
    let script = vm.compile("test.rb", text).expect("the text is Ruby");
    let mut waiting: Vec<(Fiber, i64, i64)> = (0..100)
        .map(|id| {
            let (fiber, operation) = awaiting(vm.start(&script, vec![id.into()], Rc::new(())));
            assert_eq!(operation, Value::Array(vec![id.into(), 0.into()]));
            (fiber, id, 0)
        })
        .collect();
    let mut ended = 0;
    // A fixed order that mixes all runs.
    let mut at = 0;
    while !waiting.is_empty() {
        at = (at * 31 + 17) % waiting.len();
        let (fiber, id, turn) = waiting.swap_remove(at);
        match vm.resume(fiber, Ok((id * 10).into())) {
            Step::Awaiting(fiber, operation) => {
                assert_eq!(asked(operation), Value::Array(vec![id.into(), (turn + 1).into()]));
                waiting.push((fiber, id, turn + 1));
            }
            Step::Done(value) => {
                assert_eq!((value, turn), (Value::Integer(id * 51), 4));
                ended += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ended, 100);
}

#[test]
fn script_may_wait_in_blocks_and_fibers_of_its_own() {
    let vm = waiting_vm();
    for (text, expected) in [
        ("[1, 2].map { |x| Host.get(x) }", Value::Array(vec![2.into(), 4.into()])),
        ("{a: 1}.each { |k, v| $v = Host.get(v) }; $v", 2.into()),
        ("def f(x) = yield(Host.get(x)); f(1) { |x| x + Host.get(2) }", 6.into()),
        (
            "f = Fiber.new { |x| a = Host.get(x); b = Fiber.yield(a); a + Host.get(b) }; [f.resume(1), f.resume(3)]",
            Value::Array(vec![2.into(), 8.into()]),
        ),
        (
            "e = Enumerator.new { |y| y << Host.get(1); y << Host.get(2) }; [e.next, e.next]",
            Value::Array(vec![2.into(), 4.into()]),
        ),
        ("Fiber.new { Fiber.new { Host.get(4) }.resume + 1 }.resume", 9.into()),
        ("begin; raise 'a'; rescue; Host.get(1); ensure; Host.get(2); end", 2.into()),
        ("class A; def initialize; @a = Host.get(3); end; attr_reader :a; end; A.new.a", 6.into()),
        ("Object.new.instance_eval { Host.get(5) }", 10.into()),
        ("Host.send(:get, 6)", 12.into()),
    ] {
        let mut step = run(&vm, text);
        loop {
            match step {
                Step::Awaiting(fiber, operation) => match asked(operation) {
                    Value::Integer(number) => step = vm.resume(fiber, Ok((number * 2).into())),
                    other => panic!("{other:?}"),
                },
                Step::Done(value) => {
                    assert_eq!(value, expected, "{text}");
                    break;
                }
                other => panic!("{text}\nis {other:?}"),
            }
        }
    }
}

#[test]
fn waiting_in_a_block_that_c_calls_is_refused() {
    let vm = waiting_vm();
    let text = "class A; def to_s; Host.get(1); end; end\nbegin; \"#{A.new}\"; rescue FiberError => e; e.message; end";
    assert!(value(&vm, text).text().is_some_and(|message| message.contains("cannot wait here")));
    let (fiber, _) = awaiting(run(&vm, "Host.get(2)"));
    assert_eq!(done(vm.resume(fiber, Ok(3.into()))), Value::Integer(3), "the run after it waits as ever");
}

#[test]
fn yield_outside_of_a_fiber_of_its_own_is_an_error() {
    let vm = waiting_vm();
    assert_eq!(raised(&vm, "Fiber.yield(1)").class, "FiberError");
    assert_eq!(
        value(&vm, "f = Fiber.new { Fiber.yield 1; 2 }; [f.resume, f.resume]"),
        Value::Array(vec![1.into(), 2.into()])
    );
    assert_eq!(raised(&vm, "Fiber.__yield").class, "FiberError");
    assert_eq!(value(&vm, "3"), Value::Integer(3));
}

#[test]
fn dropped_fiber_runs_its_ensure_blocks() {
    let vm = waiting_vm();
    let text = "begin\n  begin\n    Host.get(1)\n  rescue => e\n    log(:rescued)\n  ensure\n    log(:inner)\n  end\nensure\n  log(:outer)\nend\nlog(:end)";
    let (fiber, _) = awaiting(run(&vm, text));
    drop(fiber);
    let names = |names: &[&str]| {
        Value::Array(names.iter().map(|name| Value::Symbol(name.as_bytes().to_vec())).collect())
    };
    assert_eq!(value(&vm, "$log"), names(&["inner", "outer"]));
    // One that waits in its `ensure` again and again is left to the collector.
    let text = "$log = []\ndef again\n  Host.get(1)\nensure\n  log(:again)\n  again\nend\nagain";
    let (fiber, _) = awaiting(run(&vm, text));
    drop(fiber);
    assert_eq!(value(&vm, "$log"), names(&["again"; 4]));
}

#[test]
fn ended_fibers_are_used_again() {
    let vm = waiting_vm();
    let script = vm.compile("test.rb", "Host.get(1)").expect("the text is Ruby");
    let run_once = || {
        let (fiber, _) = awaiting(vm.start(&script, Vec::new(), Rc::new(())));
        done(vm.resume(fiber, Ok(Value::Nil)))
    };
    for _ in 0..1000 {
        run_once();
    }
    vm.collect();
    let before = vm.heap().bytes;
    for _ in 0..3000 {
        run_once();
    }
    vm.collect();
    let after = vm.heap().bytes;
    assert!(after <= before + 1024, "the heap has grown from {before} to {after} bytes");
}

#[test]
fn fiber_outlives_its_vm() {
    let vm = waiting_vm();
    let (fiber, _) = awaiting(run(&vm, "begin; Host.get(1); ensure; log(1); end"));
    drop(vm);
    drop(fiber);
}
