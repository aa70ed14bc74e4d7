//! What happens around every handler: request ids, problems, panics, CORS.

use std::{any::Any, sync::Arc, time::Duration};

use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, Method};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer, ExposeHeaders};

use super::error::Problem;
use crate::config::AguiConfig;

/// Header that names a request, in both directions.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id that is taken from a client.
const MAX_REQUEST_ID: usize = 128;

/// Id of a request: the client's if it is sane, else a minted one.
#[derive(Clone, Debug)]
pub(super) struct RequestId(pub(super) Arc<str>);

impl RequestId {
    fn of(request: &Request) -> Self {
        let sent = request.headers().get(REQUEST_ID).and_then(|value| value.to_str().ok());
        let sane = |id: &&str| {
            (1..=MAX_REQUEST_ID).contains(&id.len())
                && id.bytes().all(|byte| byte.is_ascii_graphic())
        };
        match sent.filter(sane) {
            Some(id) => Self(id.into()),
            None => Self(uuid::Uuid::new_v4().to_string().into()),
        }
    }
}

/// Names the request, and writes out the problem that a handler answered with.
pub(super) async fn identify(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(&request);
    let method = request.method().clone();
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        tracing::info!(request.id = %id.0, status = response.status().as_u16(), "request refused");
        let allow = response.headers_mut().remove(http::header::ALLOW);
        response = problem.into_response_for(&id.0);
        if let Some(allow) = allow {
            response.headers_mut().insert(http::header::ALLOW, allow);
        }
    }
    if method == Method::HEAD {
        *response.body_mut() = axum::body::Body::empty();
    }
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

/// A panic in a handler; the panic hook has logged it.
pub(super) fn panicked(_panic: Box<dyn Any + Send + 'static>) -> Response {
    Problem::internal().into_response()
}

/// CORS for every answer, errors included; `None` = switched off.
pub(super) fn cors(config: &AguiConfig) -> Option<CorsLayer> {
    if !config.cors_enabled {
        return None;
    }
    let origins = &config.cors_allowed_origins;
    let any = origins.iter().any(|origin| origin == "*");
    // With `*` the answer is the same for every origin, so caches need not tell them apart.
    let (allowed, vary) = if any {
        (AllowOrigin::any(), Vec::new())
    } else {
        let origins = origins.iter().filter_map(|origin| origin.parse().ok());
        (AllowOrigin::list(origins), vec![http::header::ORIGIN])
    };
    Some(
        CorsLayer::new()
            .allow_origin(allowed)
            .vary(vary)
            .allow_credentials(config.cors_allow_credentials && !any)
            .allow_methods([Method::GET, Method::POST, Method::DELETE, Method::OPTIONS])
            .allow_headers(AllowHeaders::mirror_request())
            .expose_headers(ExposeHeaders::list([REQUEST_ID, http::header::RETRY_AFTER]))
            .max_age(Duration::from_secs(600)),
    )
}
