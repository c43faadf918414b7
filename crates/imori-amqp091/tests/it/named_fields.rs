//! The specification's list of methods, which knows nothing of the codec's table.

use imori_amqp091::codec::method::MethodId;

const TABLE: &str = include_str!("methods.txt");

/// Every method with its name and its fields, each as `type:name`.
pub(crate) fn named_fields() -> Vec<(MethodId, String, Vec<&'static str>)> {
    let mut methods = Vec::new();
    let mut class = (0, "");
    for line in TABLE.lines() {
        let words: Vec<&str> = line.split('#').next().unwrap().split_whitespace().collect();
        match *words.as_slice() {
            [] => {}
            ["class", id, name] => class = (id.parse().unwrap(), name),
            [id, name, _sender, ref fields @ ..] => {
                let id = MethodId { class: class.0, method: id.parse().unwrap() };
                methods.push((id, format!("{}.{name}", class.1), fields.to_vec()));
            }
            _ => panic!("{line}"),
        }
    }
    methods
}
