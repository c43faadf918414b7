//! What the scripts of one request need: its body, its user's client, and other routes.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use imori_core::authorize::Identity;
use imori_server::{InternalClient, InternalError};
use percent_encoding::utf8_percent_encode;

use crate::asking::Asking;
use crate::facts::{ConnectionOrigin, PATH};
use crate::limits::REDIRECTS_MAX;
use crate::outgoing::{Answer, FetchError};
use crate::request_body::RequestBody;
use crate::request_context::RequestContext;
use crate::respond::{Body, problem};
use crate::scripts::{LogLevel, Services, Subrequest, Tools};
use crate::worker::{Served, Worker};

/// The gateway as the scripts of one request see it.
pub(crate) struct ScriptServices {
    worker: Rc<Worker>,
    place: Rc<ConnectionOrigin>,
    served: Rc<Served>,
    body: RefCell<Option<RequestBody>>,
    /// Why the body cannot be read, once that is known.
    body_fault: RefCell<Option<BodyFault>>,
    caller: RefCell<Caller>,
    depth: u32,
}

/// Why a body cannot be read, for the client and for the script.
#[derive(Clone)]
struct BodyFault {
    status: StatusCode,
    message: String,
}

/// Who the scripts act for, once the route is known.
struct Caller {
    identity: Option<Identity>,
    vhost: String,
    body_bytes: u64,
}

impl ScriptServices {
    pub(super) fn new(
        worker: &Rc<Worker>,
        place: &Rc<ConnectionOrigin>,
        served: &Rc<Served>,
        body: RequestBody,
        depth: u32,
    ) -> Rc<ScriptServices> {
        let caller = Caller { identity: None, vhost: String::new(), body_bytes: 1 << 20 };
        Rc::new(ScriptServices {
            worker: Rc::clone(worker),
            place: Rc::clone(place),
            served: Rc::clone(served),
            body: RefCell::new(Some(body)),
            body_fault: RefCell::new(None),
            caller: RefCell::new(caller),
            depth,
        })
    }

    /// Sets the user of the request, and the limit of its body.
    pub(super) fn act_for(&self, identity: Option<Identity>, vhost: &str, body_bytes: u64) {
        self.caller.replace(Caller { identity, vhost: vhost.to_owned(), body_bytes });
    }

    /// The response to a request whose body cannot be read, if a script has tried: it is the client's fault.
    pub(super) fn refusal(&self) -> Option<Response<Body>> {
        self.body_fault.borrow().as_ref().map(|fault| problem(fault.status, &fault.message))
    }

    /// Takes the body, which a script may have read.
    pub(super) fn take_body(&self) -> RequestBody {
        self.body.take().unwrap_or(RequestBody::Read(Bytes::new()))
    }

    async fn answer(&self, context: &RequestContext, asked: Subrequest) -> Result<Answer, FetchError> {
        if self.depth >= REDIRECTS_MAX {
            return Err(FetchError::Request(String::from("requests of scripts are nested too deep")));
        }
        let path = utf8_percent_encode(&asked.path, PATH).to_string();
        let uri = match &asked.query {
            Some(query) => format!("{path}?{query}"),
            None => path,
        };
        let uri: Uri = uri.parse().map_err(|_| FetchError::Request(format!("`{uri}` is no path")))?;
        let mut request = Request::new(());
        *request.method_mut() = asked.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = context.request.borrow().headers.clone();
        let headers = request.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.remove(TRANSFER_ENCODING);
        for name in asked.headers.keys() {
            headers.remove(name);
            for value in asked.headers.get_all(name) {
                headers.append(name, value.clone());
            }
        }
        let (parts, ()) = request.into_parts();
        let place = Rc::clone(&self.place);
        let body = RequestBody::Read(asked.body);
        let asking = Asking { place, parts, body, upgrade: None, depth: self.depth + 1 };
        let response = (self.worker.respond)(&self.worker, asking).await;
        let (parts, body) = response.into_parts();
        let bytes_max = context.limits.get().answer_bytes;
        match Limited::new(body, bytes_max).collect().await {
            Ok(body) => Ok(Answer { status: parts.status, headers: parts.headers, body: body.to_bytes() }),
            Err(error) if error.is::<LengthLimitError>() => Err(FetchError::TooLarge(bytes_max)),
            Err(error) => Err(FetchError::Broken(error.to_string())),
        }
    }
}

impl Services for ScriptServices {
    fn tools(&self) -> &Tools {
        &self.served.tools
    }

    fn client<'a>(
        &'a self,
        _: &'a RequestContext,
    ) -> LocalBoxFuture<'a, Result<InternalClient, InternalError>> {
        Box::pin(async move {
            let (identity, vhost) = {
                let caller = self.caller.borrow();
                (caller.identity.clone(), caller.vhost.clone())
            };
            let identity = identity.ok_or(InternalError::LoginRefused)?;
            self.worker.callers.client(&identity, &vhost).await
        })
    }

    fn subrequest<'a>(
        &'a self,
        context: &'a Rc<RequestContext>,
        request: Subrequest,
    ) -> LocalBoxFuture<'a, Result<Answer, FetchError>> {
        Box::pin(self.answer(context, request))
    }

    fn read_body<'a>(&'a self, context: &'a RequestContext) -> LocalBoxFuture<'a, Result<Bytes, String>> {
        Box::pin(async move {
            if let Some(body) = context.request.borrow().body.clone() {
                return Ok(body);
            }
            if let Some(fault) = self.body_fault.borrow().as_ref() {
                return Err(fault.message.clone());
            }
            let body = self.take_body();
            let bytes_max = self.caller.borrow().body_bytes;
            let read = body.read(bytes_max).await;
            let bytes = read.map_err(|response| {
                let (status, message) = match response.status() {
                    StatusCode::PAYLOAD_TOO_LARGE => {
                        (StatusCode::PAYLOAD_TOO_LARGE, format!("the body has more than {bytes_max} bytes"))
                    }
                    status => (status, String::from("the body has not come to its end")),
                };
                self.body_fault.replace(Some(BodyFault { status, message: message.clone() }));
                message
            })?;
            context.request.borrow_mut().body = Some(bytes.clone());
            self.body.replace(Some(RequestBody::Read(bytes.clone())));
            Ok(bytes)
        })
    }

    fn log(&self, context: &RequestContext, level: LogLevel, line: &str) {
        let path = context.request.borrow().path.clone();
        match level {
            LogLevel::Error => tracing::error!(target: "imori_gateway::script", path, "{line}"),
            LogLevel::Warn => tracing::warn!(target: "imori_gateway::script", path, "{line}"),
            LogLevel::Info => tracing::info!(target: "imori_gateway::script", path, "{line}"),
            LogLevel::Debug => tracing::debug!(target: "imori_gateway::script", path, "{line}"),
        }
    }
}
