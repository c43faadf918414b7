//! The OpenAPI document of `/v1`, which is published as the handlers describe it.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

use imori_admin::for_tests::{description, v1_endpoints};
use utoipa::openapi::path::Operation;

/// The method and path of each described operation.
fn operations() -> Vec<(&'static str, String, Operation)> {
    let mut operations = Vec::new();
    for (path, item) in description().paths.paths {
        let all = [("GET", item.get), ("PUT", item.put), ("POST", item.post), ("DELETE", item.delete)];
        assert!(
            item.patch.is_none() && item.head.is_none() && item.options.is_none() && item.trace.is_none()
        );
        let described = all.into_iter().filter_map(|(method, operation)| Some((method, operation?)));
        operations.extend(described.map(|(method, operation)| (method, path.clone(), operation)));
    }
    operations
}

#[test]
fn openapi_operations_have_names_of_their_own() {
    let mut names: Vec<String> =
        operations().into_iter().filter_map(|(_, _, operation)| operation.operation_id).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(names.iter().any(|name| name == "get_queues_vhost_name"), "{names:?}");
}

#[test]
fn the_openapi_document_describes_each_endpoint_of_the_table() {
    let described: Vec<_> =
        operations().into_iter().map(|(method, path, _)| (method.to_owned(), path)).collect();
    let listed: Vec<_> = v1_endpoints()
        .into_iter()
        .map(|endpoint| (endpoint.method.to_string(), endpoint.path.to_owned()))
        .filter(|(_, path)| path != "/v1/openapi.json")
        .collect();
    let (once, in_table) = (BTreeSet::from_iter(&described), BTreeSet::from_iter(&listed));
    assert_eq!(once, in_table);
    assert_eq!((once.len(), in_table.len()), (described.len(), listed.len()), "no row comes twice");
}

#[test]
fn the_openapi_document_is_that_of_this_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let expected = format!("{}\n", description().to_pretty_json().unwrap());
    if env::var_os("IMORI_BLESS").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    let written = fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == expected,
        "the file is stale; run `IMORI_BLESS=1 cargo test -p imori-admin --test it openapi`"
    );
}
