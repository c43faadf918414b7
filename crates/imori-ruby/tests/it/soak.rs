//! Many runs in one VM: the heap stays flat.

use std::rc::Rc;

use imori_ruby::{Error, Library, Limits, Reply, Step, Value};

use crate::vm;

#[test]
fn heap_is_flat_over_many_runs() {
    let runs: usize =
        std::env::var("IMORI_RUBY_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(20_000);
    let mut library = Library::new();
    library.module("Host").awaiting_singleton_method("Host", "get", |_| Ok(Reply::Operation(Box::new(()))));
    let vm = vm(Limits::default(), library);
    let text = "headers = { 'Host' => 'a', 'X' => Imori.arguments[0].to_s }\n\
                body = Host.get(headers['X'])\n\
                raise ArgumentError, 'odd' if body == 'raise'\n\
                headers.map { |name, value| \"#{name}: #{value}\" }.join(\"\\n\") + body.upcase";
    let script = vm.compile("soak.rb", text).expect("the text is Ruby");
    let mut heaps = Vec::new();
    for number in 0..runs {
        let Step::Awaiting(fiber, _) = vm.start(&script, vec![(number as i64).into()], Rc::new(())) else {
            panic!("the script waits")
        };
        match number % 10 {
            7 => assert!(matches!(vm.resume(fiber, Ok("raise".into())), Step::Raised(_))),
            8 => assert!(matches!(vm.resume(fiber, Err(Error::new("IOError", "gone"))), Step::Raised(_))),
            9 => drop(fiber),
            _ => match vm.resume(fiber, Ok("body".into())) {
                Step::Done(Value::String(text)) => assert!(text.ends_with(b"BODY")),
                other => panic!("{other:?}"),
            },
        }
        if (number + 1) % (runs / 4).max(1) == 0 {
            vm.collect();
            heaps.push(vm.heap().bytes);
        }
    }
    let (first, last) = (heaps[0], heaps[heaps.len() - 1]);
    // A page of the heap is freed only once all of its 1,024 objects are, so that one more or less is no growth.
    assert!(last <= first + (64 << 10), "the heap has grown: {heaps:?}");
}

#[test]
fn compiling_again_and_again_leaks_nothing() {
    let vm = vm(Limits::default(), Library::new());
    let mut heaps = Vec::new();
    for number in 0..2_000 {
        let text = if number % 2 == 0 { "[1, 2].map { |x| x + 1 }" } else { "x = ] (" };
        drop(vm.compile("test.rb", text));
        if number % 500 == 499 {
            vm.collect();
            heaps.push(vm.heap().bytes);
        }
    }
    assert!(heaps[3] <= heaps[0] + 4096, "the heap has grown: {heaps:?}");
}
