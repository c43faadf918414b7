//! Any template, schema and parameters are rendered and checked, or refused: never a panic, and never without end.
//!
//! Input: a text that is a template, a parameter of an action and a default, in which `<` and `>` stand for braces, so
//! that they are found sooner.

use imori_automation::limits::TEMPLATE_OUTPUT_BYTES_MAX;
use imori_automation::parameters::{
    Defaults, ParameterContext, Schema, cast, mask_parameters, positional_arguments, render_final_parameters,
    render_live_parameters,
};
use imori_automation::templates::{Context, Template, render_value};
use imori_automation::value::{Map, Value};

use crate::planted::fail_if_planted;

const NAMES: &str =
    r#"{"s": "a text", "i": 7, "f": 1.5, "n": null, "l": [3, 1], "d": {"a": {"b": "c"}}, "e": ""}"#;

/// Runs one input.
pub(crate) fn test_one_input(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let source = text.replace('<', "{{").replace('>', "}}");
    let names = Value::from_json(NAMES.as_bytes()).expect("the names are JSON");
    let names = names.as_map().expect("the names are an object");
    let context = names.iter().fold(Context::new(), |context, (name, value)| context.with(name, value));
    if let Ok(template) = Template::compile(&source) {
        let _ = template.names();
        if let Ok(rendered) = template.render(&context) {
            assert!(rendered.len() <= TEMPLATE_OUTPUT_BYTES_MAX);
            fail_if_planted(rendered == "7" && source.contains("{{"));
        }
    }
    let value = Value::from_json(source.as_bytes()).unwrap_or_else(|_| Value::from(source.as_str()));
    let _ = render_value(&value, &context);
    for kind in ["array", "boolean", "integer", "number", "object", "string"] {
        let _ = cast(&value, Some(kind));
    }
    if let Ok(schema) = Schema::compile(&value) {
        for defaults in [Defaults::Ignored, Defaults::Assigned, Defaults::AssignedOrNone] {
            let _ = schema.validate(&Value::Map(names.clone()), defaults);
        }
    }
    let schemas = match &value {
        Value::Map(map) => map.clone(),
        value => Map::from_iter([("s", Value::Map(Map::from_iter([("default", value.clone())])))]),
    };
    let given = Map::from_iter([("p", value.clone())]);
    let context = ParameterContext { additional: names.clone(), ..ParameterContext::default() };
    let _ = render_live_parameters(&Map::new(), &schemas, &given, &context);
    let _ = render_final_parameters(&schemas, &Map::new(), &given, &context);
    let _ = positional_arguments(&schemas, names);
    let _ = mask_parameters(names, &schemas);
}
