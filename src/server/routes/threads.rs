//! The caller's threads: list, one, cancel, forget.

use agui_protocol::{Interrupt, ThreadId};
use axum::{
    Json,
    extract::{
        Extension, Path, Query, State,
        rejection::{PathRejection, QueryRejection},
    },
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, Uri, header};
use serde::{Deserialize, Serialize};

use crate::{
    runs::{
        Principal,
        ledger::{Cancelled, Deleted},
    },
    server::{error::Problem, state::AppState},
    store::{AgentId, Listed, Millis, Page, Position, StoreError, Thread, ThreadKey},
};

/// Threads of a page when the query does not say.
const DEFAULT_LIMIT: usize = 50;
/// Most threads of a page.
const MAX_LIMIT: usize = 200;

/// The query of the list.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::server) struct Wanted {
    limit: Option<usize>,
    cursor: Option<String>,
    agent_id: Option<String>,
}

/// A page of the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Listing {
    threads: Vec<Summary>,
    /// For the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// What the list tells of a thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Summary {
    thread_id: ThreadId,
    /// The first words of the person.
    name: String,
    agent_id: Option<AgentId>,
    status: Status,
    /// Milliseconds since the Unix epoch.
    created_at: Millis,
    /// When its last run began or ended.
    updated_at: Millis,
}

/// What happens on a thread.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Idle,
    Running,
    Interrupted,
}

/// One thread.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Detail {
    #[serde(flatten)]
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    active_run_id: Option<agui_protocol::RunId>,
    open_interrupts: Vec<Interrupt>,
    message_count: usize,
}

/// `GET {prefix}/threads`.
pub(in crate::server) async fn list(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<Listing>, Problem> {
    own_pages_only(&state, &uri, &headers)?;
    let Query(wanted) = wanted.map_err(|_rejection| {
        bad_query("the query takes `limit`, `cursor` and `agentId`, each once")
    })?;
    let limit = wanted.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(bad_query(&format!("`limit` is between 1 and {MAX_LIMIT}")));
    }
    let after = match wanted.cursor.as_deref().map(position) {
        Some(None) => return Err(bad_query("`cursor` is none that this server gave")),
        cursor => cursor.flatten(),
    };
    // One more, to know whether there is a next page.
    let page = Page { limit: limit + 1, after, agent: wanted.agent_id.map(AgentId::new) };
    let mut found =
        state.runs().ledger().store().list(&principal, &page).await.map_err(unavailable)?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next_cursor = found.last().filter(|_| more).map(|last| cursor(&last.position()));
    let threads = found.iter().map(|Listed { thread_id, thread }| summary(thread_id, thread));
    Ok(Json(Listing { threads: threads.collect(), next_cursor }))
}

/// `GET {prefix}/threads/{threadId}`.
pub(in crate::server) async fn detail(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Result<Json<Detail>, Problem> {
    own_pages_only(&state, &uri, &headers)?;
    let key = key(principal, path)?;
    let found = state.runs().ledger().store().load(&key).await.map_err(unavailable)?;
    let thread = found.ok_or_else(unknown)?;
    let parked = thread.parked.as_ref().filter(|parked| parked.raised);
    let open = parked.into_iter().flat_map(|parked| &parked.open);
    Ok(Json(Detail {
        summary: summary(&key.thread, &thread),
        active_run_id: thread.active.as_ref().map(|run| run.run_id.clone()),
        open_interrupts: open.map(|open| open.interrupt.clone()).collect(),
        message_count: thread.messages.len(),
    }))
}

/// `DELETE {prefix}/threads/{threadId}`.
pub(in crate::server) async fn delete(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    uri: Uri,
    headers: HeaderMap,
    path: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    own_pages_only(&state, &uri, &headers)?;
    let key = key(principal, path)?;
    match state.runs().ledger().delete(&key).await.map_err(unavailable)? {
        Deleted::Gone => Ok(StatusCode::NO_CONTENT),
        Deleted::Unknown => Err(unknown()),
        Deleted::StillRunning => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "The thread's run was told to stop and has not ended yet; try again.",
        )
        .retry_after(1)),
    }
}

/// `POST {prefix}/threads/{threadId}/cancel`.
pub(in crate::server) async fn cancel(
    State(state): State<AppState>,
    Extension(principal): Extension<Principal>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let key = key(principal, path)?;
    match state.runs().ledger().cancel(&key).await.map_err(unavailable)? {
        Cancelled::Run => Ok(StatusCode::ACCEPTED.into_response()),
        Cancelled::Interrupts => Ok(StatusCode::OK.into_response()),
        Cancelled::Nothing | Cancelled::Unknown => Err(Problem::new(
            StatusCode::NOT_FOUND,
            "This thread has neither a run nor open interrupts.",
        )),
    }
}

fn summary(thread_id: &ThreadId, thread: &Thread) -> Summary {
    let status = match (&thread.active, &thread.parked) {
        (Some(_), _) => Status::Running,
        (None, Some(parked)) if parked.raised && !parked.open.is_empty() => Status::Interrupted,
        (None, _) => Status::Idle,
    };
    Summary {
        thread_id: thread_id.clone(),
        name: thread.name.clone(),
        agent_id: thread.agent.clone(),
        status,
        created_at: thread.created_ms,
        updated_at: thread.updated_ms,
    }
}

/// Without authentication any page that a browser has open could read the threads of this
/// machine: only pages of the server itself and of origins that the configuration names may.
fn own_pages_only(state: &AppState, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN).filter(|_| state.is_open()) else {
        return Ok(());
    };
    let origin = origin.to_str().unwrap_or_default();
    let named = |allowed: &String| allowed != "*" && allowed == origin;
    if is_own(origin, uri, headers) || state.agui().cors_allowed_origins.iter().any(named) {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        "Without authentication only origins that `cors-allowed-origins` names may see threads.",
    ))
}

/// Whether a page was served by the address that it asks.
fn is_own(origin: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    // HTTP/2 has the host in the address.
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let own = host.or_else(|| Some(uri.authority()?.as_str()));
    let page = origin.split_once("://").map(|(_, authority)| authority);
    page.is_some() && page == own
}

fn key(
    principal: Principal,
    path: Result<Path<String>, PathRejection>,
) -> Result<ThreadKey, Problem> {
    // A path that is not UTF-8 names no thread.
    let Path(thread) = path.map_err(|_rejection| unknown())?;
    Ok(ThreadKey { principal, thread: ThreadId::from(thread) })
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "There is no thread of this id.")
}

fn bad_query(detail: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("The query is wrong: {detail}."))
}

/// The text of the error may name hosts.
fn unavailable(error: StoreError) -> Problem {
    tracing::error!(error = %error, "threads cannot be read");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "The threads cannot be read now; try again.")
        .retry_after(1)
}

/// `<time>.<thread id in hexadecimal>`: opaque to clients, and safe in a URL.
fn cursor(position: &Position) -> String {
    let thread = position.thread.as_str().bytes();
    let hex: String = thread.map(|byte| format!("{byte:02x}")).collect();
    format!("{}.{hex}", position.updated_ms)
}

fn position(cursor: &str) -> Option<Position> {
    let (time, hex) = cursor.split_once('.')?;
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let bytes = hex.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    let thread = ThreadId::from(String::from_utf8(bytes).ok()?);
    Some(Position { updated_ms: time.parse().ok()?, thread })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_the_servers_own_on_either_version_of_http() {
        let host = HeaderMap::from_iter([(header::HOST, "a.example:80".parse().unwrap())]);
        let (path, whole) = ("/t".parse().unwrap(), "http://a.example:80/t".parse().unwrap());
        let requests: [(&Uri, HeaderMap); 2] = [(&path, host), (&whole, HeaderMap::new())];
        for (uri, headers) in requests {
            assert!(is_own("http://a.example:80", uri, &headers));
            for other in ["http://a.example", "http://b.example:80", "null", ""] {
                assert!(!is_own(other, uri, &headers), "{other}");
            }
        }
        assert!(!is_own("null", &path, &HeaderMap::new()));
    }

    #[test]
    fn a_cursor_is_read_back() {
        let at = Position { updated_ms: -5, thread: "Ä b/c".into() };
        assert_eq!(cursor(&at), "-5.c38420622f63");
        assert_eq!(position(&cursor(&at)), Some(at));
        for bad in ["", "5", "5.c", "5.zz", "x.00", "5.ff", "5.+1"] {
            assert_eq!(position(bad), None, "{bad}");
        }
    }
}
