//! Texts, their values and their errors.

use std::rc::Rc;

use imori_ruby::{SCRIPT_LINES_MAX, Step, Value};

use crate::{plain_vm, raised, value};

#[test]
fn script_has_the_value_of_its_last_expression() {
    let vm = plain_vm();
    for (text, expected) in [
        ("nil", Value::Nil),
        ("1 == 1", Value::Boolean(true)),
        ("2**40", Value::Integer(1 << 40)),
        ("0.1", Value::Float(0.1)),
        ("'ä' + \"\\xff\"", Value::string([0xc3, 0xa4, 0xff])),
        (":a", Value::Symbol(b"a".to_vec())),
        ("[1, [2]]", Value::Array(vec![1.into(), Value::Array(vec![2.into()])])),
        (
            "{'b' => 1, a: 2}",
            Value::Hash(vec![("b".into(), 1.into()), (Value::Symbol(b"a".to_vec()), 2.into())]),
        ),
        ("Object.new", Value::Object("Object".to_owned())),
        ("return 3; 4", Value::Integer(3)),
        ("[1, 2].each { |x| return x }", Value::Integer(1)),
        ("format('%05.1f', 2.5)", "002.5".into()),
        (
            "[3, 1, 2].lazy.map { |x| x * 2 }.select { |x| x > 2 }.first(2)",
            Value::Array(vec![6.into(), 4.into()]),
        ),
        ("e = [1, 2].each; [e.next, e.next]", Value::Array(vec![1.into(), 2.into()])),
        ("catch(:a) { throw :a, 7 }", Value::Integer(7)),
    ] {
        assert_eq!(value(&vm, text), expected, "{text}");
    }
}

#[test]
fn script_reads_its_arguments() {
    let vm = plain_vm();
    let script = vm.compile("test.rb", "Imori.arguments.map { |x| x * 2 }").expect("the text is Ruby");
    for number in [1, 2] {
        match vm.start(&script, vec![number.into(), "a".into()], Rc::new(())) {
            Step::Done(value) => assert_eq!(value, Value::Array(vec![(2 * number).into(), "aa".into()])),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn local_variables_of_one_run_are_not_there_in_the_next() {
    let vm = plain_vm();
    let script =
        vm.compile("test.rb", "a = (a || 0) + 1; $b = ($b || 0) + 1; [a, $b]").expect("the text is Ruby");
    for run in 1..=3 {
        match vm.start(&script, Vec::new(), Rc::new(())) {
            Step::Done(value) => assert_eq!(value, Value::Array(vec![1.into(), run.into()])),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn syntax_error_names_file_line_and_column() {
    let vm = plain_vm();
    let error = vm.compile("routes/a.rb", "x = 1\ny = (2 +\nz = ]\n").err().expect("the text is no Ruby");
    assert_eq!((error.file.as_str(), error.line), ("routes/a.rb", 3), "{error}");
    assert!(error.column > 0 && error.message.contains("syntax error"), "{error}");
    // The VM compiles and runs as before.
    assert_eq!(value(&vm, "1 + 1"), Value::Integer(2));
}

#[test]
fn text_of_too_many_lines_is_refused() {
    let vm = plain_vm();
    let text = "\n".repeat(SCRIPT_LINES_MAX - 1);
    assert!(vm.compile("long.rb", &text).is_ok());
    let error = vm.compile("long.rb", &(text + "\n")).err().expect("the text is too long");
    assert!(error.message.contains("split it"), "{error}");
}

#[test]
fn exception_has_class_message_and_lines() {
    let vm = plain_vm();
    let exception = raised(
        &vm,
        "module A\n  class Failed < StandardError; end\nend\ndef f\n  raise A::Failed, 'no'\nend\n\nf\n",
    );
    assert_eq!((exception.class.as_str(), exception.message.as_str()), ("A::Failed", "no"));
    assert_eq!(exception.backtrace, ["test.rb:5:in f", "test.rb:8"]);
    assert_eq!(exception.to_string(), "test.rb:5:in f: no (A::Failed)");
}

#[test]
fn message_may_be_a_method_of_the_exception() {
    let vm = plain_vm();
    let exception = raised(&vm, "class Own < StandardError; def message; 'mine'; end; end; raise Own");
    assert_eq!(exception.message, "mine");
    let exception = raised(&vm, "class Bad < StandardError; def message; raise 'again'; end; end; raise Bad");
    assert_eq!((exception.class.as_str(), exception.message.as_str()), ("Bad", ""));
}

#[test]
fn scripts_cannot_evaluate_text_or_load_or_leave() {
    let vm = plain_vm();
    for name in [
        "eval", "require", "load", "exit", "exit!", "abort", "fork", "system", "open", "puts", "sleep",
        "binding",
    ] {
        assert_eq!(value(&vm, &format!("respond_to?(:{name:?}, true)")), Value::Boolean(false), "{name}");
    }
    for text in ["instance_eval('1')", "Object.class_eval('1')"] {
        assert_eq!(raised(&vm, text).class, "NotImplementedError", "{text}");
    }
    for name in ["File", "IO", "Dir", "Socket", "ObjectSpace", "Process", "Mrb", "Binding"] {
        assert_eq!(value(&vm, &format!("Object.const_defined?(:{name})")), Value::Boolean(false), "{name}");
    }
}
