//! Runtime context: what agents, tools and extensions are told of a request.
//!
//! First the resolvers' values, in their order, then the protocol's own keys, which nobody can
//! override. What the client sends under `forwardedProps` is passed on and never trusted.

use std::{collections::BTreeMap, fmt, sync::Arc};

use agui_protocol::RunAgentInput;
use http::{HeaderMap, Method, request::Parts};
use serde_json::Value;

use crate::{
    agents::{ContextValues, RuntimeContext},
    config::ContextSource,
    runs::Principal,
};

/// What a resolver can read of a request.
#[derive(Debug)]
pub struct ContextRequest<'a> {
    /// The request without its body.
    pub parts: &'a Parts,
    /// How the request came; always `http`.
    pub transport: &'static str,
    /// The agent id in the path.
    pub path_agent_id: Option<&'a str>,
    /// The agent id in the header.
    pub header_agent_id: Option<&'a str>,
    /// Who asks, as established by authentication.
    pub principal: &'a Principal,
    /// The run input.
    pub input: &'a Arc<RunAgentInput>,
}

impl ContextRequest<'_> {
    /// The request's method.
    pub fn method(&self) -> &Method {
        &self.parts.method
    }

    /// The request's path.
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// All headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// The first value of a header, if it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.parts.headers.get(name)?.to_str().ok()
    }

    /// The first value of a query parameter.
    pub fn query(&self, name: &str) -> Option<String> {
        let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(&self.parts.uri);
        let pairs = pairs.ok()?;
        pairs.0.into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// Why a context cannot be made; the client sees a 500 without the reason.
#[derive(Clone, Debug, thiserror::Error)]
#[error("runtime context: {0}")]
pub struct ResolveError(
    /// For the log only.
    pub String,
);

/// Adds values to the runtime context of a run; registered on the
/// [`ServerBuilder`](super::ServerBuilder).
///
/// ```
/// use agentscope_agui::{
///     agents::ContextValues,
///     server::{ContextRequest, ResolveError, RuntimeContextResolver},
/// };
///
/// /// The tenant, as the proxy in front of the server names it.
/// struct Tenant;
///
/// impl RuntimeContextResolver for Tenant {
///     fn resolve(&self, request: &ContextRequest<'_>) -> Result<ContextValues, ResolveError> {
///         let tenant = request.header("x-tenant-id");
///         let tenant = tenant.ok_or_else(|| ResolveError("no tenant".to_owned()))?;
///         Ok(ContextValues::from_iter([("tenantId".to_owned(), tenant.into())]))
///     }
/// }
/// ```
pub trait RuntimeContextResolver: Send + Sync {
    /// The values for this request.
    ///
    /// # Errors
    ///
    /// An error refuses the request with a 500; its text goes to the log only.
    fn resolve(&self, request: &ContextRequest<'_>) -> Result<ContextValues, ResolveError>;
}

/// All resolvers, the configuration's first.
pub(super) struct Resolvers(Vec<(i32, Arc<dyn RuntimeContextResolver>)>);

impl Resolvers {
    pub(super) fn new(configured: &BTreeMap<String, ContextSource>) -> Self {
        if configured.is_empty() {
            return Self(Vec::new());
        }
        Self(vec![(i32::MIN, Arc::new(Configured(configured.clone())))])
    }

    pub(super) fn register(&mut self, order: i32, resolver: Arc<dyn RuntimeContextResolver>) {
        let at = self.0.partition_point(|(other, _)| *other <= order);
        self.0.insert(at, (order, resolver));
    }

    pub(super) fn resolve(
        &self,
        request: &ContextRequest<'_>,
    ) -> Result<RuntimeContext, ResolveError> {
        let mut values = ContextValues::new();
        for (_, resolver) in &self.0 {
            values.extend(resolver.resolve(request)?);
        }
        Ok(RuntimeContext::new(values, Arc::clone(request.input)))
    }
}

impl fmt::Debug for Resolvers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolvers").field(&self.0.len()).finish()
    }
}

/// `agentscope.agui.runtime-context`. A source that the request does not have gives no key.
struct Configured(BTreeMap<String, ContextSource>);

impl RuntimeContextResolver for Configured {
    fn resolve(&self, request: &ContextRequest<'_>) -> Result<ContextValues, ResolveError> {
        let value = |source: &ContextSource| match source {
            ContextSource::Header(name) => request.header(name).map(Value::from),
            ContextSource::Query(name) => request.query(name).map(Value::from),
            ContextSource::Principal => request.principal.name().map(Value::from),
            ContextSource::Value(value) => Some(value.clone()),
        };
        let entries = self.0.iter();
        Ok(entries.filter_map(|(key, source)| Some((key.clone(), value(source)?))).collect())
    }
}
