//! Rows that Jinja2 3.1.6 rendered, in its sandbox with strict names and with StackStorm's filters.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use imori_automation::limits::TEMPLATE_BYTES_MAX;
use imori_automation::templates::{Context, Lookup, Template, render_value};
use imori_automation::value::Value;

use crate::json;

const CONTEXT: &str = "{\"s\": \"Hello World\", \"e\": \"\", \"i\": 7, \"z\": 0, \"n\": null, \"t\": true, \"f\": 1.5, \"g\": 1e+16, \"h\": -0.0, \"l\": [3, 1, 2], \"ls\": [\"b\", \"A\", \"c\"], \"d\": {\"a\": 1, \"b\": [1, \"x\", null, true, 2.0], \"c\": {\"k\": \"v\"}}, \"u\": \"it's \\\"q\\\" \\n é\u{200b}\", \"m\": [{\"n\": \"x\", \"v\": 2}, {\"n\": \"y\", \"v\": 1}, {\"n\": \"x\", \"v\": 3}], \"dd\": {\"B\": 1, \"a\": \"z\"}, \"el\": [], \"ed\": {}}";

fn context() -> Context {
    let names = json(CONTEXT);
    names.as_map().unwrap().iter().fold(Context::new(), |context, (name, value)| context.with(name, value))
}

const ROWS: &[(&str, &str)] = &[
    ("{{ s }}", "Hello World"),
    ("{{ e }}", ""),
    ("{{ i }}", "7"),
    ("{{ n }}", "None"),
    ("{{ t }}", "True"),
    ("{{ f }}", "1.5"),
    ("{{ g }}", "1e+16"),
    ("{{ h }}", "-0.0"),
    ("{{ l }}", "[3, 1, 2]"),
    ("{{ d }}", "{'a': 1, 'b': [1, 'x', None, True, 2.0], 'c': {'k': 'v'}}"),
    ("{{ u }}", "it's \"q\" \n é\u{200b}"),
    ("{{ [u] }}", "['it\\'s \"q\" \\n é\\u200b']"),
    ("{{ s.upper() }}", "HELLO WORLD"),
    ("{{ s.split() }}", "['Hello', 'World']"),
    ("{{ s.split('o') }}", "['Hell', ' W', 'rld']"),
    ("{{ s.replace('l','L') }}", "HeLLo WorLd"),
    ("{{ s.title() }}", "Hello World"),
    ("{{ s.startswith('He') }}", "True"),
    ("{{ d.items() }}", "dict_items([('a', 1), ('b', [1, 'x', None, True, 2.0]), ('c', {'k': 'v'})])"),
    ("{{ d.keys() }}", "dict_keys(['a', 'b', 'c'])"),
    ("{{ d.values() }}", "dict_values([1, [1, 'x', None, True, 2.0], {'k': 'v'}])"),
    ("{{ d.get('q') }}", "None"),
    ("{{ d.get('q', 5) }}", "5"),
    (
        "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
        "a=1;b=[1, 'x', None, True, 2.0];c={'k': 'v'};",
    ),
    ("{{ '%s-%s'|format(s, i) }}", "Hello World-7"),
    ("{{ '{} {x}'.format(1, x=2) }}", "1 2"),
    ("{{ '%s-%d' % (s, i) }}", "Hello World-7"),
    ("{{ 1/2 }}", "0.5"),
    ("{{ 4/2 }}", "2.0"),
    ("{{ 7//2 }}", "3"),
    ("{{ -7//2 }}", "-4"),
    ("{{ -7%3 }}", "2"),
    ("{{ 2**10 }}", "1024"),
    ("{{ 2**-1 }}", "0.5"),
    ("{{ 2**0.5 }}", "1.4142135623730951"),
    ("{{ s ~ i ~ n ~ f ~ t ~ l }}", "Hello World7None1.5True[3, 1, 2]"),
    ("{{ s * 2 }}", "Hello WorldHello World"),
    ("{{ l * 2 }}", "[3, 1, 2, 3, 1, 2]"),
    ("{{ l + [1] }}", "[3, 1, 2, 1]"),
    ("{{ 'a' in s }}", "False"),
    ("{{ 3 in l }}", "True"),
    ("{{ 'a' in d }}", "True"),
    ("{{ 'a' not in d }}", "False"),
    ("{{ missing is defined }}", "False"),
    ("{{ d.missing is defined }}", "False"),
    ("{{ missing|default('x') }}", "x"),
    ("{{ d.x|default('y') }}", "y"),
    ("{{ l[0] }}", "3"),
    ("{{ l[-1] }}", "2"),
    ("{{ l[0:2] }}", "[3, 1]"),
    ("{{ s[1:3] }}", "el"),
    ("{{ s[::-1] }}", "dlroW olleH"),
    ("{{ l[::-1] }}", "[2, 1, 3]"),
    ("{{ l[1:] }}", "[1, 2]"),
    ("{{ l|sort }}", "[1, 2, 3]"),
    ("{{ ls|sort }}", "['A', 'b', 'c']"),
    ("{{ l|sort(reverse=true) }}", "[3, 2, 1]"),
    ("{{ m|sort(attribute='v')|map(attribute='n')|list }}", "['y', 'x', 'x']"),
    (
        "{{ m|groupby('n') }} {% for g in m|groupby('n') %}{{ g.grouper }}:{{ g.list|length }};{% endfor %}{% for a, b in m|groupby('n') %}{{ a }}{{ b }}{% endfor %}",
        "[('x', [{'n': 'x', 'v': 2}, {'n': 'x', 'v': 3}]), ('y', [{'n': 'y', 'v': 1}])] x:2;y:1;x[{'n': 'x', 'v': 2}, {'n': 'x', 'v': 3}]y[{'n': 'y', 'v': 1}]",
    ),
    ("{{ m|selectattr('n','equalto','x')|list }}", "[{'n': 'x', 'v': 2}, {'n': 'x', 'v': 3}]"),
    ("{{ m|rejectattr('n','equalto','x')|list }}", "[{'n': 'y', 'v': 1}]"),
    ("{{ l|select('odd')|list }}", "[3, 1]"),
    ("{{ l|reject('odd')|list }}", "[2]"),
    ("{{ l|select('gt',1)|list }}", "[3, 2]"),
    ("{{ l|map('string')|join(',') }}", "3,1,2"),
    ("{{ l|map('int')|list }}", "[3, 1, 2]"),
    ("{{ m|map(attribute='q', default=9)|list }}", "[9, 9, 9]"),
    ("{{ ls|map('upper')|list }}", "['B', 'A', 'C']"),
    ("{{ l|batch(2)|list }}", "[[3, 1], [2]]"),
    ("{{ l|batch(2,'x')|list }}", "[[3, 1], [2, 'x']]"),
    ("{{ l|slice(2)|list }}", "[[3, 1], [2]]"),
    ("{{ l|slice(2,'x')|list }}", "[[3, 1], [2, 'x']]"),
    ("{{ l|first }}", "3"),
    ("{{ l|last }}", "2"),
    ("{{ l|length }}", "3"),
    ("{{ l|sum }}", "6"),
    ("{{ l|min }}", "1"),
    ("{{ l|max }}", "3"),
    ("{{ m|sum('v') }}", "6"),
    ("{{ l|join('-') }}", "3-1-2"),
    ("{{ m|join(',', 'n') }}", "x,y,x"),
    ("{{ l|unique|list }}", "[3, 1, 2]"),
    ("{{ ['a','A','b']|unique|list }}", "['a', 'b']"),
    ("{{ l|reverse|list }}", "[2, 1, 3]"),
    ("{{ s|reverse }}", "dlroW olleH"),
    ("{{ dd|dictsort }}", "[('a', 'z'), ('B', 1)]"),
    ("{{ dd|dictsort(true) }}", "[('B', 1), ('a', 'z')]"),
    ("{{ {'a':2,'b':1}|dictsort(by='value') }}", "[('b', 1), ('a', 2)]"),
    ("{{ s|lower }}", "hello world"),
    ("{{ s|upper }}", "HELLO WORLD"),
    ("{{ s|title }}", "Hello World"),
    ("{{ s|capitalize }}", "Hello world"),
    ("{{ 'foo-bar baz(qux)'|title }}", "Foo-Bar Baz(Qux)"),
    ("{{ \"it's\"|title }}", "It's"),
    ("{{ s|truncate(5) }}", "He..."),
    ("{{ s|truncate(5, true) }}", "He..."),
    ("{{ s|wordcount }}", "2"),
    ("{{ s|center(20) }}", "    Hello World     "),
    ("{{ s|indent }}", "Hello World"),
    ("{{ 'a\\nb'|indent }}", "a\n    b"),
    ("{{ 'a\\nb'|indent(2,true) }}", "  a\n  b"),
    ("{{ s|trim }}", "Hello World"),
    ("{{ ' x '|trim }}", "x"),
    ("{{ s|trim('Hd') }}", "ello Worl"),
    ("{{ s|replace('o','0') }}", "Hell0 W0rld"),
    ("{{ s|replace('o','0',1) }}", "Hell0 World"),
    ("{{ '42'|int }}", "42"),
    ("{{ '42.7'|int }}", "42"),
    ("{{ 'x'|int }}", "0"),
    ("{{ 'x'|int(5) }}", "5"),
    ("{{ '0x1f'|int(0,16) }}", "31"),
    ("{{ '42'|float }}", "42.0"),
    ("{{ 'x'|float }}", "0.0"),
    ("{{ f|int }}", "1"),
    ("{{ t|int }}", "1"),
    ("{{ n|int }}", "0"),
    ("{{ f|round }}", "2.0"),
    ("{{ 2.5|round }}", "2.0"),
    ("{{ 42.55|round(1,'floor') }}", "42.5"),
    ("{{ 42.55|round(1) }}", "42.5"),
    ("{{ i|round }}", "7"),
    ("{{ 1.234|round(2,'ceil') }}", "1.24"),
    ("{{ -3|abs }}", "3"),
    ("{{ 12345|round(-2) }}", "12300"),
    ("{{ 12345.6|round(-2) }}", "12300.0"),
    ("{{ 1000|filesizeformat }}", "1.0 kB"),
    ("{{ 123456789|filesizeformat }}", "123.5 MB"),
    ("{{ 123456789|filesizeformat(true) }}", "117.7 MiB"),
    ("{{ 1|filesizeformat }}", "1 Byte"),
    ("{{ d|tojson }}", "{\"a\": 1, \"b\": [1, \"x\", null, true, 2.0], \"c\": {\"k\": \"v\"}}"),
    ("{{ d|to_json_string }}", "{\"a\": 1,\"b\": [1,\"x\",null,true,2.0],\"c\": {\"k\": \"v\"}}"),
    ("{{ d|to_complex }}", "{\"a\": 1, \"b\": [1, \"x\", null, true, 2.0], \"c\": {\"k\": \"v\"}}"),
    ("{{ u|json_escape }}", "it's \\\"q\\\" \\n \\u00e9\\u200b"),
    (
        "{{ d|to_json_string(indent=2) }}",
        "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    \"x\",\n    null,\n    true,\n    2.0\n  ],\n  \"c\": {\n    \"k\": \"v\"\n  }\n}",
    ),
    (
        "{{ d|tojson(2) }}",
        "{\n  \"a\": 1,\n  \"b\": [\n    1,\n    \"x\",\n    null,\n    true,\n    2.0\n  ],\n  \"c\": {\n    \"k\": \"v\"\n  }\n}",
    ),
    ("{{ d|to_yaml_string }}", "a: 1\nb:\n- 1\n- x\n- null\n- true\n- 2.0\nc:\n  k: v\n"),
    ("{{ '{\"a\":[1,2.5,null]}'|from_json_string }}", "{'a': [1, 2.5, None]}"),
    ("{{ 'a: [1, yes, ~]\\nb: 0x10'|from_yaml_string }}", "{'a': [1, True, None], 'b': 16}"),
    ("{{ d|jsonpath_query('b[*]') }}", "[1, 'x', None, True, 2.0]"),
    ("{{ m|jsonpath_query('[*].n') }}", "['x', 'y', 'x']"),
    ("{{ d|jsonpath_query('q') }}", "None"),
    ("{{ d|jsonpath_query('$..k') }}", "['v']"),
    ("{{ s|regex_match('Hel+o') }}", "True"),
    ("{{ s|regex_search('wor', true) }}", "True"),
    ("{{ s|regex_replace('(o)', '<\\\\1>') }}", "Hell<o> W<o>rld"),
    ("{{ s|regex_substring('[A-Z]\\\\w') }}", "He"),
    ("{{ s|regex_substring('(\\\\w)(\\\\w)', 1) }}", "('l', 'l')"),
    ("{{ '1.2.3'|version_compare('1.3.0') }}", "-1"),
    ("{{ '1.2.3'|version_more_than('1.0.0') }}", "True"),
    ("{{ '1.2.3'|version_match('>=1.0.0') }}", "True"),
    ("{{ '1.2.3'|version_bump_minor }}", "1.3.0"),
    ("{{ '1.2.3-a+b'|version_strip_patch }}", "1.2"),
    ("{{ '1.2.3'|version_equal('1.2.3') }}", "True"),
    ("{{ 3661|to_human_time_from_seconds }}", "1h1m1s"),
    ("{{ 0|to_human_time_from_seconds }}", "0s"),
    ("{{ 0.5|to_human_time_from_seconds }}", "0.5μs"),
    ("{{ 12.5|to_human_time_from_seconds }}", "12s"),
    ("{{ 100000000|to_human_time_from_seconds }}", "3y2d9h46m40s"),
    ("{{ '/a/b/c.txt'|basename }}", "c.txt"),
    ("{{ '/a/b/c.txt'|dirname }}", "/a/b"),
    ("{{ '/'|dirname }}", "/"),
    ("{{ 'x'|dirname }}", ""),
    ("{{ '//'|dirname }}", "//"),
    ("{{ '//a'|dirname }}", "//"),
    ("{{ n|use_none }}", "%*****__%NONE%__*****%"),
    ("{{ s|use_none }}", "Hello World"),
    (
        "{{ range(5) }} {{ range(5)|list }} {{ range(1,10,3)|list }} {{ range(5,0,-2)|list }} {% for i in range(3) %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.length }},{% endfor %}",
        "range(0, 5) [0, 1, 2, 3, 4] [1, 4, 7] [5, 3, 1] 1TrueFalse3,2FalseFalse3,3FalseTrue3,",
    ),
    (
        "{% for x in l if x > 1 %}{{ x }}{% else %}none{% endfor %}{% for x in el %}{{ x }}{% else %}none{% endfor %}",
        "32none",
    ),
    (
        "{% set x = 5 %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set y %}cap{{ x }}{% endset %}{{ y }}",
        "512cap5",
    ),
    ("{% macro f(a, b=2) %}{{ a }}-{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, b=3) }}", "1-2 1-3"),
    ("{% set ns = namespace(n=0) %}{% for x in l %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}", "6"),
    ("{% filter upper %}abc{% endfilter %} {% raw %}{{ x }}{% endraw %} {# comment #}", "ABC {{ x }} "),
    (
        "{% if i > 3 and not n %}yes{% elif i %}mid{% else %}no{% endif %} {{ 'a' if t else 'b' }} {{ 'a' if n }}|",
        "yes a |",
    ),
    ("{{ s is string }}", "True"),
    ("{{ i is number }}", "True"),
    ("{{ t is number }}", "True"),
    ("{{ l is sequence }}", "True"),
    ("{{ d is mapping }}", "True"),
    ("{{ d is sequence }}", "True"),
    ("{{ n is none }}", "True"),
    ("{{ i is odd }}", "True"),
    ("{{ i is divisibleby(7) }}", "True"),
    ("{{ l is iterable }}", "True"),
    ("{{ s is iterable }}", "True"),
    ("{{ f is float }}", "True"),
    ("{{ i is integer }}", "True"),
    ("{{ t is integer }}", "False"),
    ("{{ t is boolean }}", "True"),
    ("{{ t is true }}", "True"),
    ("{{ s is lower }}", "False"),
    ("{{ i is in(l) }}", "False"),
    ("{{ i is sameas(7) }}", "True"),
    ("{{ i is eq 7 }}", "True"),
    ("{{ 1 is in [1] }}", "True"),
    ("{{ (1,2) }}", "(1, 2)"),
    ("{{ (1,) }}", "(1,)"),
    ("{{ () }}", "()"),
    ("{{ {'a':1, 2:'b', none: 3} }}", "{'a': 1, 2: 'b', None: 3}"),
    ("{{ {} }}", "{}"),
    ("{{ [] }}", "[]"),
    ("{{ {1:2}[1] }}", "2"),
    ("{{ {1:2} }}", "{1: 2}"),
    ("{{ 1 == 1.0 }}", "True"),
    ("{{ true == 1 }}", "True"),
    ("{{ '1' == 1 }}", "False"),
    ("{{ none == false }}", "False"),
    ("{{ [1] == [1.0] }}", "True"),
    ("{{ {'a':1} == {'a':1} }}", "True"),
    ("{{ 1 != 2 }}", "True"),
    ("{{ 1 < 2 < 3 }}", "True"),
    ("{{ [1,2] < [1,3] }}", "True"),
    ("{{ 'a' 'b' }}", "ab"),
    ("{{ 12345678901234567890 }}", "12345678901234567890"),
    ("{{ 10**20 }}", "100000000000000000000"),
    ("{{ 1e5 }}", "100000.0"),
    ("{{ 1.0 }}", "1.0"),
    ("{{ 1e-7 }}", "1e-07"),
    ("{{ 123456789.123456789 }}", "123456789.12345679"),
    ("{{ 0.1+0.2 }}", "0.30000000000000004"),
    ("{{ 1_000 }}", "1000"),
    ("{{ \"a\\tb\\x41\\u00e9\" }}", "a\tbAé"),
    ("{{ 'it\\'s' }}", "it's"),
    ("{{ [\"a\\tb\\\\\"] }}", "['a\\tb\\\\']"),
    ("{{ s|escape }}", "Hello World"),
    ("{{ '<a href=\"x\">&</a>'|e }}", "&lt;a href=&#34;x&#34;&gt;&amp;&lt;/a&gt;"),
    ("{{ '<b>x</b> y'|striptags }}", "x y"),
    ("{{ 'a b&c=d/é'|urlencode }}", "a%20b%26c%3Dd/%C3%A9"),
    ("{{ {'a':'b c'}|urlencode }}", "a=b+c"),
    ("{{ s.find('o') }}", "4"),
    ("{{ s.index('W') }}", "6"),
    ("{{ s.count('l') }}", "3"),
    ("{{ s.center(20,'*') }}", "****Hello World*****"),
    ("{{ '7'.zfill(3) }}", "007"),
    ("{{ s.partition(' ') }}", "('Hello', ' ', 'World')"),
    ("{{ 'a,b'.split(',',1) }}", "['a', 'b']"),
    ("{{ ' a '.strip() }}", "a"),
    ("{{ 'a\\nb'.splitlines() }}", "['a', 'b']"),
    ("{{ ','.join(ls) }}", "b,A,c"),
    ("{{ s.swapcase() }}", "hELLO wORLD"),
    ("{{ s.isdigit() }}", "False"),
    ("{{ '12'.isdigit() }}", "True"),
    ("{{ s.endswith(('d','x')) }}", "True"),
    ("{{ s.rsplit('o',1) }}", "['Hello W', 'rld']"),
    ("{{ d.a }}", "1"),
    ("{{ d['a'] }}", "1"),
    ("{{ d['c'].k }}", "v"),
    ("{{ d.b.1 }}", "x"),
    ("{{ d.b[1] }}", "x"),
    ("{{ m[0].n }}", "x"),
    ("{{ m.0.n }}", "x"),
    ("{{ l.index(1) }}", "1"),
    ("{{ l.count(1) }}", "1"),
    ("{{ l|length > 2 }}", "True"),
    ("{{ not l }}", "False"),
    ("{{ l and s }}", "Hello World"),
    ("{{ el or 'x' }}", "x"),
    ("{{ -i }}", "-7"),
    ("{{ - f }}", "-1.5"),
    ("{{ dict(a=1) }}", "{'a': 1}"),
    ("{{ dict([('a', 2)]) }}", "{'a': 2}"),
    ("{{ dict({'b':1}, c=2) }}", "{'b': 1, 'c': 2}"),
    (
        "{% for a in [1,2,3] recursive %}{{ a }}{% endfor %} {% for x in [[1,[2]],[3]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}",
        "123 123",
    ),
    ("{{ l|list|string|length }}", "9"),
    ("{{ s|list }}", "['H', 'e', 'l', 'l', 'o', ' ', 'W', 'o', 'r', 'l', 'd']"),
    ("{{ d|list }}", "['a', 'b', 'c']"),
    ("{{ d|length }}", "3"),
    ("{{ i|string + 'x' }}", "7x"),
    ("{{ 1 if false }}", ""),
    ("{{ (1 if false) is defined }}", "False"),
    ("{{ [1,2,3,4]|sum / 3 }}", "3.3333333333333335"),
    ("{{ 10 % 3 }}", "1"),
    ("{{ 10.5 % 3 }}", "1.5"),
    ("{{ 5.0 // 2 }}", "2.0"),
    ("{{ s|wordwrap(5) }}", "Hello\nWorld"),
    ("{{ 'aaa bbb ccc ddd'|wordwrap(7) }}", "aaa bbb\nccc ddd"),
    ("{{ 'a-b-ccc dddddddddd'|wordwrap(6) }}", "a-b-\nccc dd\ndddddd\ndd"),
    ("{{ {'id':'x','n':none,'c':'a b'}|xmlattr }}", " id=\"x\" c=\"a b\""),
    ("{{ i|default }}", "7"),
    ("{{ n|default('x') }}", "None"),
    ("{{ n|default('x', true) }}", "x"),
    ("{{ e|d('y', boolean=True) }}", "y"),
    ("{{ missing|d }}", ""),
    ("{{ True }}", "True"),
    ("{{ False }}", "False"),
    ("{{ None }}", "None"),
    ("{{ true }}", "True"),
    ("{{ none }}", "None"),
    ("{{ loop is defined }}", "False"),
    ("{{ s|batch(3)|list }}", "[['H', 'e', 'l'], ['l', 'o', ' '], ['W', 'o', 'r'], ['l', 'd']]"),
    ("{{ d|items|list }}", "[('a', 1), ('b', [1, 'x', None, True, 2.0]), ('c', {'k': 'v'})]"),
    ("a\n{% if t %}\nb\n{% endif %}\nc\n", "a\nb\nc"),
    ("  {% for x in l %}\n  {{ x }}\n  {% endfor %}\n", "  3\n  1\n  2\n"),
    ("{%- if t -%} x {%- endif -%} y", "xy"),
    ("a {#- c -#} b", "ab"),
    ("{% if t +%}\n x\n{%+ endif %}z", "\n x\nz"),
    ("x\n\n", "x\n"),
    ("x\n", "x"),
    ("\n\n{{ i }}\n\n", "\n\n7\n"),
    ("  {%+ if t %}x{% endif %}", "  x"),
    ("{{ i -}}   z", "7z"),
    ("   {{- i }}", "7"),
    ("{% raw %}\n a {{ b }}\n{% endraw %}\nq", "\n a {{ b }}\nq"),
    ("a\n   {# c #}\nb", "a\nb"),
    ("{% raw -%}  a {%- endraw %} b", "a b"),
    ("a{% set x=1 %}\n{{x}}\n", "a1"),
    ("a\r\nb\r\n", "a\nb"),
    ("\ta\n\t{% if t %}\n\tb{% endif %}\n", "\ta\n\tb"),
    ("{{ '%(a)s' % {'a': 1} }}", "1"),
    ("{{ '%s' % s|upper }}", "HELLO WORLD"),
    ("{{ '%d%%' % i ~ '!' }}", "7%!"),
    ("{{ m|map(attribute='n')|sort|join }}", "xxy"),
    ("{{ l[1:]|to_json_string }}", "[1,2]"),
    ("{{ s|regex_replace('$', '!') }}", "Hello World!"),
    ("{{ 'a\nb\n'|regex_search('b$') }}", "True"),
    (
        "{{ ['yes','1','1.0','a: b','# x','','é','- x',' p ']|to_yaml_string }}",
        "- 'yes'\n- '1'\n- '1.0'\n- 'a: b'\n- '# x'\n- ''\n- é\n- '- x'\n- ' p '\n",
    ),
];

#[test]
fn templates_render_as_in_jinja2() {
    let context = context();
    for (source, expected) in ROWS {
        let rendered = Template::compile(source).and_then(|template| template.render(&context));
        assert_eq!(rendered.as_deref(), Ok(*expected), "{source}");
    }
}

/// A template that fails, and a part of its error.
const FAILURES: &[(&str, &str)] = &[
    ("{{ missing }}", "'missing' is undefined"),
    ("{{ missing.more }}", "'missing' is undefined"),
    ("{{ d.missing }}", "'dict object' has no attribute 'missing'"),
    ("{{ s.missing }}", "'str object' has no attribute 'missing'"),
    ("{{ n.missing }}", "'None' has no attribute 'missing'"),
    ("{{ s.missing() }}", "'str object' has no attribute 'missing'"),
    ("{{ s|missing }}", "filter missing is unknown"),
    ("{{ 5|list }}", "'int' object is not iterable"),
    ("{{ [1, 'a']|sort }}", "'<' not supported between instances of"),
    ("{{ [[1], ['a']]|sort }}", "'<' not supported between instances of"),
    ("{{ l.append(1) }}", "make a new list"),
    ("{{ d.update({'a': 2}) }}", "make a new dict"),
    ("{{ s|format(1) }}", "not all arguments converted"),
    ("{{ '[' | from_json_string }}", "the text is no JSON"),
    ("{{ '[' | from_yaml_string }}", "the text is no YAML"),
    ("{{ '!x y' | from_yaml_string }}", "the tag `!x` is unknown"),
    ("{{ d | jsonpath_query('[') }}", "the JSONPath `[` ends too early"),
    ("{{ '1.2' | version_compare('1.2.3') }}", "1.2 is not valid SemVer string"),
    ("{{ s | regex_search('(') }}", "the regular expression `(` is wrong"),
    ("{{ s | decrypt_kv }}", "no key to decrypt with"),
    ("{{ 1e308 | int }}", "the number is too large"),
    ("{% if %}", "unexpected end of block"),
];

#[test]
fn failing_templates_say_why() {
    let context = context();
    for (source, expected) in FAILURES {
        let error =
            Template::compile(source).and_then(|template| template.render(&context)).unwrap_err().to_string();
        assert!(error.contains(expected), "{source}: {error}");
    }
}

/// A template that would take too much, and a part of its error.
const GREEDY: &[(&str, &str)] = &[
    ("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}", "too long"),
    ("{{ 'a' * 100000000 }}", "too long"),
    ("{{ range(100001) }}", "Range too big"),
    (
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "too long",
    ),
    (
        "{% set ns = namespace(x=[]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
        "too deep",
    ),
    (
        "{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}",
        "too large",
    ),
    ("{% set ns = namespace() %}{% set ns.x = [ns] %}{{ ns }}", "a namespace cannot be a part"),
    ("{% macro f(x) %}{{ f([x, x]) }}{% endmacro %}{{ f(1) }}", "too large"),
    ("{% for x in [1] recursive %}{{ loop([[x, x]]) }}{% endfor %}", "too large"),
    ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion limit"),
    ("{{ '%99999999s' | format('x') }}", "above the limit"),
    ("{{ '{:99999999}'.format('x') }}", "above the limit"),
    ("{{ 'x'.ljust(99999999) }}", "above the limit"),
    ("{{ ('\\t' * 9999).expandtabs(99999) }}", "too long"),
    ("{{ ('a' * 9999).replace('', 'b' * 9999) }}", "too long"),
    ("{{ ('a' * 30) | regex_search('(a|aa)+\\\\1$b') }}", "gives up"),
    ("{% for i in range(99999) %}{{ i | regex_search('[a-z]{500}' ~ i) }}{% endfor %}", "too long"),
    ("{{ ('- ' * 9999) | from_yaml_string }}", "too deep"),
    ("{{ {} | jsonpath_query('(' * 500) }}", "too deep"),
    ("{{ 10 ** 10 ** 10 }}", "unable to calculate"),
];

#[test]
fn greedy_templates_end_with_an_error() {
    let context = context();
    for (source, expected) in GREEDY {
        let error =
            Template::compile(source).and_then(|template| template.render(&context)).unwrap_err().to_string();
        assert!(error.contains(expected), "{source}: {error}");
    }
    let long = "x".repeat(TEMPLATE_BYTES_MAX + 1);
    assert!(Template::compile(&long).unwrap_err().to_string().contains("at most"));
    let nested = "[".repeat(5_000) + &"]".repeat(5_000);
    assert!(Template::compile(&format!("{{{{ {nested} }}}}")).is_err());
}

/// A datastore that counts how often it is asked.
struct Datastore(AtomicUsize);

impl Lookup for Datastore {
    fn look_up(&self, path: &[&str]) -> Option<Value> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match path.join(".").as_str() {
            "system.host" => Some(Value::from("example.org")),
            "system.a.b" => Some(Value::from("deep")),
            "system.count" => Some(Value::from("7")),
            "system.list" => Some(Value::from(vec![Value::Int(1)])),
            _ => None,
        }
    }
}

#[test]
fn lookups_are_asked_only_when_used() {
    let datastore = Arc::new(Datastore(Default::default()));
    let lookup: Arc<dyn Lookup> = datastore.clone();
    let context = Context::new().with_lookup("st2kv", lookup).with_decrypt(Arc::new(|secret| match secret {
        "example.org" => Ok("plain".to_owned()),
        _ => Err("the secret is no secret".to_owned()),
    }));
    let render = |source: &str| Template::compile(source).and_then(|template| template.render(&context));
    assert_eq!(render("{{ 1 if true else st2kv.system.host }}").unwrap(), "1");
    assert_eq!(datastore.0.load(Ordering::Relaxed), 0);
    let rows = [
        ("{{ st2kv.system.host }}", "example.org"),
        ("{{ st2kv.system['host'] }}", "example.org"),
        ("{{ st2kv.system.a.b }}", "deep"),
        ("{{ st2kv.system.none }}", ""),
        ("{{ st2kv.system.host | upper }}", "EXAMPLE.ORG"),
        ("{{ st2kv.system.count | int + 1 }}", "8"),
        ("{{ st2kv.system.list[0] }}", "1"),
        ("{{ st2kv.system.host | decrypt_kv }}", "plain"),
        ("x{{ st2kv.system.host ~ '!' }}", "xexample.org!"),
    ];
    for (source, expected) in rows {
        assert_eq!(render(source).as_deref(), Ok(expected), "{source}");
    }
    let missing = render("{{ st2kv.system.none | decrypt_kv }}").unwrap_err().to_string();
    assert!(missing.contains("\"st2kv.system.none\" doesn't exist"), "{missing}");
    assert_eq!(render("{{ 'x' | decrypt_kv }}").unwrap_err().to_string(), "the secret is no secret");
}

#[test]
fn rendered_values_keep_their_type_where_nothing_changed() {
    let context = context();
    let rows = [
        ("5", "5"),
        ("true", "true"),
        ("null", "null"),
        ("\"plain\"", "\"plain\""),
        ("\"{{ i }}\"", "\"7\""),
        ("[1, \"a\"]", "[1,\"a\"]"),
        ("[1, \"{{ s }}\"]", "[1,\"Hello World\"]"),
        ("{\"a\": {\"b\": \"{{ i }}\"}, \"c\": 1.5}", "{\"a\":{\"b\":\"7\"},\"c\":1.5}"),
        ("\"{{ __context.i }}\"", "\"7\""),
    ];
    for (value, expected) in rows {
        let value = json(value);
        assert_eq!(render_value(&value, &context).unwrap().to_json(), expected);
    }
    let broken = Value::from(vec![Value::from("{{ '\"' }}")]);
    assert!(render_value(&broken, &context).unwrap_err().to_string().contains("is no JSON"));
}

#[test]
fn names_are_those_that_a_template_reads() {
    let rows = [
        ("{{ a.b }} {{ range(c) }}", "a c"),
        ("{% set a = 1 %}{{ a }}{{ b }}", "b"),
        ("{% for x in l %}{{ x }}{{ loop.index }}{% endfor %}", "l"),
        ("{{ '%s' % (q, r) }}", "q r"),
    ];
    for (source, expected) in rows {
        let names: Vec<String> = Template::compile(source).unwrap().names().into_iter().collect();
        assert_eq!(names.join(" "), expected, "{source}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_rendered_or_refused(source in "[a-z{}%#|()\\[\\]'\"=.,:0-9 ~*+\\-\n]{0,60}") {
        if let Ok(template) = Template::compile(&source) {
            let _ = template.render(&context());
        }
    }
}
