//! Who asks. Decided from the headers alone, before anything of the body is read; the body can
//! never say who somebody is. What a principal may see is the ledger's business.

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use super::{error::Problem, state::AppState};
use crate::{config::AuthConfig, runs::Principal};

/// Longest name of a user in bytes: it is part of the key of every thread.
const MAX_NAME: usize = 1024;

/// Establishes who asks.
#[derive(Clone, Debug)]
pub(super) enum Authenticator {
    /// Everybody is the same caller.
    Open,
    /// The proxy in front names the user in this header.
    TrustedHeader(HeaderName),
}

impl Authenticator {
    pub(super) fn new(config: &AuthConfig) -> Self {
        match config {
            AuthConfig::None => Self::Open,
            AuthConfig::TrustedHeader { header } => Self::TrustedHeader(header.clone()),
        }
    }

    /// The caller, or why the caller is not known.
    fn principal(&self, headers: &HeaderMap) -> Result<Principal, Unknown> {
        match self {
            Self::Open => Ok(Principal::anonymous()),
            Self::TrustedHeader(name) => {
                let mut values = headers.get_all(name).iter();
                match (values.next(), values.next()) {
                    (None, _) => Err(Unknown::Missing),
                    (Some(value), None) => user(value).map(Principal::named),
                    // A client's own header beside the proxy's: nobody can say which is which.
                    (Some(_), Some(_)) => Err(Unknown::Repeated),
                }
            }
        }
    }
}

fn user(value: &HeaderValue) -> Result<&str, Unknown> {
    let name = std::str::from_utf8(value.as_bytes()).map_err(|_bytes| Unknown::NotText)?;
    if name.trim().is_empty() {
        return Err(Unknown::Blank);
    }
    if name.len() > MAX_NAME {
        return Err(Unknown::TooLong);
    }
    Ok(name)
}

/// Why a caller is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Unknown {
    #[error("the header that names the user is missing")]
    Missing,
    #[error("the header that names the user is blank")]
    Blank,
    #[error("the header that names the user is not UTF-8 text")]
    NotText,
    #[error("the header that names the user stands twice")]
    Repeated,
    #[error("the name of the user is longer than {MAX_NAME} bytes")]
    TooLong,
}

/// Lets known callers through and tells handlers who they are.
pub(super) async fn authenticate(
    State(state): State<AppState>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let principal = state.authenticator().principal(request.headers()).map_err(|unknown| {
        let detail = format!("The server does not know who asks: {unknown}.");
        Problem::new(StatusCode::UNAUTHORIZED, detail)
    })?;
    request.extensions_mut().insert(principal);
    Ok(next.run(request).await)
}
