//! Paths to handlers, and the order of layers.

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use http::StatusCode;
use tower_http::catch_panic::CatchPanicLayer;

use super::{
    auth::authenticate,
    error::Problem,
    layers::{cors, identify, panicked},
    routes::{agents, connect, health, run, threads},
    state::AppState,
};

/// The whole surface.
pub(super) fn build(state: AppState) -> Router {
    // No nesting: handlers and resolvers must see the path as the client sent it.
    let prefix = state.agui().path_prefix.as_str();
    let mut router = Router::new()
        .route(prefix, post(run::without_path))
        .route(&format!("{prefix}/run"), post(run::without_path))
        .route(&format!("{prefix}/connect"), post(connect::without_path))
        .route(&format!("{prefix}/agents"), get(agents::list))
        .route(&format!("{prefix}/threads"), get(threads::list))
        .route(
            &format!("{prefix}/threads/{{thread}}"),
            get(threads::detail).delete(threads::delete),
        )
        .route(&format!("{prefix}/threads/{{thread}}/cancel"), post(threads::cancel))
        .route(&format!("{prefix}/{{agent}}/capabilities"), get(agents::capabilities));
    if state.agui().enable_path_routing {
        router = router
            .route(&format!("{prefix}/{{agent}}"), post(run::with_path))
            .route(&format!("{prefix}/{{agent}}/connect"), post(connect::with_path))
            .route(&format!("{prefix}/run/{{agent}}"), post(run::with_path));
    }
    let cors = cors(state.agui());
    // What stands above is for callers who are known; what stands below is for everybody.
    let router = router
        .route_layer(from_fn_with_state(state.clone(), authenticate))
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(state);
    // The last layer is the outermost: CORS sees every answer, problems of all kinds included;
    // the id is known before a handler can panic.
    let router = router.layer(CatchPanicLayer::custom(panicked)).layer(from_fn(identify));
    match cors {
        Some(cors) => router.layer(cors),
        None => router,
    }
}

async fn not_found() -> Response {
    Problem::new(StatusCode::NOT_FOUND, "There is nothing at this path.").into_response()
}

async fn method_not_allowed() -> Response {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "This path does not take this method; see the header Allow.",
    )
    .into_response()
}
