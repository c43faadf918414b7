//! Native functions, and what a library declares.

use std::{
    cell::Cell,
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use imori_ruby::{Error, Handle, Library, Limits, OpenError, Reply, Step, Value, Vm};

use crate::{raised, run, value, vm};

#[test]
fn library_declares_modules_classes_constants_and_methods() {
    let mut library = Library::new();
    library
        .module("Nginx")
        .class("Nginx::Base", "Object")
        .class("Nginx::Request", "Nginx::Base")
        .constant("Nginx::OK", Value::Integer(0))
        .constant("Nginx::NAMES", Value::Array(vec!["a#{1}".into()]))
        .singleton_method("Nginx", "echo", |call| Ok(Value::Array(call.arguments.clone())))
        .method("Nginx::Request", "uri", |_| Ok("/index".into()))
        .method("Nginx::Request", "[]", |call| Ok(format!("<{}>", call.text(0)?).as_str().into()))
        .method("Nginx::Request", "[]=", |call| Ok(call.argument(1)?.clone()))
        .method("Nginx::Request", "method_missing", |call| Ok(Value::Array(call.arguments.clone())))
        .prelude("nginx.rb", "class Nginx::Request\n  def twice = uri * 2\nend");
    let vm = vm(Limits::default(), library);
    for (text, expected) in [
        ("Nginx::OK", Value::Integer(0)),
        ("Nginx::NAMES[0]", "a#{1}".into()),
        ("Nginx.echo(1, :a, nil)", Value::Array(vec![1.into(), Value::Symbol(b"a".to_vec()), Value::Nil])),
        ("Nginx.echo(*(1..20)).size", Value::Integer(20)),
        (
            "Nginx.echo(1, key: 2)",
            Value::Array(vec![1.into(), Value::Hash(vec![(Value::Symbol(b"key".to_vec()), 2.into())])]),
        ),
        ("Nginx::Request.new.uri", "/index".into()),
        ("Nginx::Request.new['X']", "<X>".into()),
        ("Nginx::Request.new['X'] = 5", Value::Integer(5)),
        ("Nginx::Request.new.other(3)", Value::Array(vec![Value::Symbol(b"other".to_vec()), 3.into()])),
        ("Nginx::Request.new.twice", "/index/index".into()),
        ("Nginx::Request.superclass == Nginx::Base", Value::Boolean(true)),
    ] {
        assert_eq!(value(&vm, text), expected, "{text}");
    }
}

#[test]
fn errors_are_raised_with_class_and_message() {
    let mut library = Library::new();
    library.module("Host").class("Host::Failed", "StandardError");
    for (name, class) in [
        ("own", "Host::Failed"),
        ("argument", "ArgumentError"),
        ("unknown", "Host::Nowhere"),
        ("module", "Kernel"),
    ] {
        library.singleton_method("Host", name, move |_| Err(Error::new(class, "said")));
    }
    library.singleton_method("Host", "deep", |_| {
        Ok((0..100).fold(Value::Nil, |value, _| Value::Array(vec![value])))
    });
    let vm = vm(Limits::default(), library);
    for (name, class) in [
        ("own", "Host::Failed"),
        ("argument", "ArgumentError"),
        ("unknown", "RuntimeError"),
        ("module", "RuntimeError"),
    ] {
        let exception = raised(&vm, &format!("\nHost.{name}"));
        assert_eq!((exception.class.as_str(), exception.message.as_str()), (class, "said"));
        assert_eq!(exception.backtrace, [format!("test.rb:2:in {name}"), "test.rb:2".to_owned()]);
        assert_eq!(value(&vm, &format!("begin; Host.{name}; rescue => e; e.message; end")), "said".into());
    }
    assert_eq!(raised(&vm, "Host.deep").class, "ArgumentError");
    let nested = "a = nil; 100.times { a = [a] }; Host.own(a)";
    assert!(raised(&vm, nested).message.contains("64 levels"));
    assert!(raised(&vm, "a = []; a << a; a").message.contains("64 levels"));
}

#[test]
fn panic_of_a_native_function_is_an_error_of_its_script() {
    let mut library = Library::new();
    library.module("Host").singleton_method("Host", "panics", |_| panic!("this panic is part of the test"));
    // Printing the panic with its frames takes CPU time, which is the script's.
    let seconds = Duration::from_secs(20);
    let vm = vm(Limits { slice_cpu: seconds, run_cpu: seconds, ..Limits::default() }, library);
    let text = "begin; Host.panics; rescue RuntimeError => e; e.message; end";
    assert!(value(&vm, text).text().is_some_and(|message| message.contains("failed unexpectedly")));
}

#[test]
fn context_belongs_to_the_run() {
    let mut library = Library::new();
    library.module("Host").singleton_method("Host", "next", |call| {
        let counter = call.context::<Cell<i64>>().ok_or_else(|| Error::new("RuntimeError", "no counter"))?;
        counter.set(counter.get() + 1);
        Ok(counter.get().into())
    });
    let vm = vm(Limits::default(), library);
    let script = vm.compile("test.rb", "Host.next; Host.next").expect("the text is Ruby");
    let counters = [Rc::new(Cell::new(10)), Rc::new(Cell::new(20))];
    for counter in &counters {
        let step = vm.start(&script, Vec::new(), Rc::<Cell<i64>>::clone(counter));
        assert!(matches!(step, Step::Done(_)), "{step:?}");
    }
    assert_eq!([counters[0].get(), counters[1].get()], [12, 22]);
    assert_eq!(Rc::strong_count(&counters[0]), 1, "a run that has ended holds no context");
    assert_eq!(raised(&vm, "Host.next").message, "no counter");
}

#[test]
fn handle_keeps_its_object_as_long_as_ruby_does() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted(Mutex<u32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::SeqCst);
        }
    }
    let mut library = Library::new();
    library
        .module("Host")
        .handle_class("Host::Headers")
        .singleton_method("Host", "headers", |_| {
            Ok(Value::Handle(Handle::new("Host::Headers", Arc::new(Counted(Mutex::new(0))))))
        })
        .singleton_method("Host", "wrong", |_| Ok(Value::Handle(Handle::new("Host::Nothing", Arc::new(())))))
        .method("Host::Headers", "bump", |call| {
            let counted = call.receiver.as_ref().and_then(Handle::object::<Counted>);
            let counted = counted.ok_or_else(|| Error::new("TypeError", "this object has no data"))?;
            let mut number = counted.0.lock().expect("nothing panics with the lock");
            *number += 1;
            Ok(i64::from(*number).into())
        });
    let vm = vm(Limits::default(), library);
    assert_eq!(value(&vm, "$h = Host.headers; $h.bump; $h.bump"), Value::Integer(2));
    assert_eq!(
        value(&vm, "[$h.class.to_s, $h.is_a?(Imori::Handle)]"),
        Value::Array(vec!["Host::Headers".into(), true.into()])
    );
    match value(&vm, "$h") {
        Value::Handle(handle) => assert!(handle.object::<Counted>().is_some()),
        other => panic!("{other:?}"),
    }
    vm.collect();
    assert_eq!(DROPPED.load(Ordering::SeqCst), 0);
    assert_eq!(value(&vm, "$h = nil; 100.times { Host.headers }"), Value::Integer(100));
    vm.collect();
    assert_eq!((DROPPED.load(Ordering::SeqCst), vm.heap().handles), (101, 0));
    assert_eq!(raised(&vm, "Host::Headers.new").class, "NoMethodError");
    assert_eq!(raised(&vm, "Host.headers.dup.bump").class, "TypeError");
    assert_eq!(raised(&vm, "Host::Headers.instance_method(:bump)").class, "NoMethodError");
    assert!(raised(&vm, "Host.wrong").message.contains("declare it"));
    assert_eq!(value(&vm, "$kept = Host.headers; 1"), Value::Integer(1));
    drop(vm);
    assert_eq!(DROPPED.load(Ordering::SeqCst), 103, "the VM drops what it held, and the copy of `dup`");
}

type Case<'a> = (&'a dyn Fn(&mut Library), &'a str);

#[test]
fn wrong_declaration_says_what_is_wrong() {
    let open = |declare: &dyn Fn(&mut Library)| {
        let mut library = Library::new();
        declare(&mut library);
        Vm::new(Limits::default(), library).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let cases: [Case<'_>; 6] = [
        (&|library| _ = library.module("nginx"), "`nginx` is no full name"),
        (&|library| _ = library.module("A; raise"), "`A; raise` is no full name"),
        (
            &|library| _ = library.module("A").singleton_method("A", "a\"b", |_| Ok(Value::Nil)),
            "`a\"b` is no name of a method",
        ),
        (&|library| _ = library.class("A::B", "Object"), "uninitialized constant A"),
        (&|library| _ = library.prelude("p.rb", "\n1 +"), "p.rb:2:"),
        (&|library| _ = library.prelude("p.rb", "\nraise 'no'"), "p.rb:2: no (RuntimeError)"),
    ];
    for (declare, message) in cases {
        let said = open(declare);
        assert!(said.contains(message), "`{said}` has no `{message}`");
    }
    let small = Limits { heap_bytes: 1 << 20, ..Limits::default() };
    assert_eq!(Vm::new(small, Library::new()).err(), Some(OpenError::NoMemory));
}

#[test]
fn prelude_cannot_wait() {
    let mut library = Library::new();
    library.module("Host").awaiting_singleton_method("Host", "wait", |_| Ok(Reply::Operation(Box::new(()))));
    library.prelude("p.rb", "Host.wait");
    let error = Vm::new(Limits::default(), library).err().expect("a prelude cannot wait");
    assert!(error.to_string().contains("cannot wait here"), "{error}");
}

#[test]
fn value_of_a_method_that_may_wait_is_returned_at_once() {
    let mut library = Library::new();
    library.module("Host").awaiting_singleton_method("Host", "now", |_| Ok(Reply::Value(4.into())));
    let vm = vm(Limits::default(), library);
    assert!(matches!(run(&vm, "Host.now + 1"), Step::Done(Value::Integer(5))));
}

#[test]
fn global_variable_is_set_by_its_name() {
    let vm = vm(Limits::default(), Library::new());
    for (text, expected) in [
        ("Imori.set_global(:$a, 5); $a", Value::Integer(5)),
        ("Imori.set_global('$1', 'x'); $1", "x".into()),
        ("$b = 1; Imori.set_global(:$b, nil); global_variables.include?(:$b)", Value::Boolean(false)),
        ("begin; Imori.set_global(:a, 1); rescue ArgumentError; 1; end", Value::Integer(1)),
    ] {
        assert_eq!(value(&vm, text), expected, "{text}");
    }
}

#[test]
fn run_may_have_limits_of_its_own() {
    let vm = vm(Limits::default(), Library::new());
    let script = vm.compile("test.rb", "while true; end").expect("the text is Ruby");
    let short = Duration::from_millis(20);
    let step = vm.start_within(&script, Vec::new(), Rc::new(()), short, short);
    assert!(matches!(step, Step::Raised(exception) if exception.class == "Imori::CpuLimitError"));
    assert!(vm.last_slice() >= short && vm.last_slice() < Duration::from_millis(90), "{:?}", vm.last_slice());
    // No time is left for the next slice.
    let mut library = Library::new();
    library.module("Host").awaiting_singleton_method("Host", "wait", |_| Ok(Reply::Operation(Box::new(()))));
    let vm = self::vm(Limits::default(), library);
    let script = vm.compile("test.rb", "Host.wait; while true; end").expect("the text is Ruby");
    let Step::Awaiting(fiber, _) = vm.start(&script, Vec::new(), Rc::new(())) else { panic!("it waits") };
    let step = vm.resume_within(fiber, Ok(Value::Nil), Duration::ZERO);
    assert!(matches!(step, Step::Raised(exception) if exception.class == "Imori::CpuLimitError"));
    assert!(vm.last_slice() < Duration::from_millis(50), "{:?}", vm.last_slice());
}
