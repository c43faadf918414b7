//! The library of the gateway's scripts: all topics, in the order in which their classes need each other.

use imori_ruby::Library;

use super::{core, digest, flow, json, messages, regexp, request, requests, socket, storage};

/// Everything that scripts can use beside mruby's own library.
pub(super) fn library() -> Library {
    let mut library = Library::new();
    core::declare(&mut library);
    flow::declare(&mut library);
    request::declare(&mut library);
    json::declare(&mut library);
    requests::declare(&mut library);
    messages::declare(&mut library);
    storage::declare(&mut library);
    digest::declare(&mut library);
    regexp::declare(&mut library);
    socket::declare(&mut library);
    library.prelude("<imori>/rack.rb", include_str!("../ruby/rack.rb"));
    // The last one: it says which names are missing.
    library.prelude("<imori>/absent.rb", include_str!("../ruby/absent.rb"));
    library
}
