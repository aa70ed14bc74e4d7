//! Whether a call is made again, and when.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use jiff::{Timestamp, fmt::rfc2822};

use super::{ModelError, ModelErrorKind, failure::ProviderError};

/// Whoever wants more patience than this does not get it: a person waits for the answer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The longest wait of our own choice.
const LONGEST_BACKOFF: Duration = Duration::from_secs(8);

/// A failure, and whether the same call may do better.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) passing: bool,
    /// How long the provider wants one to wait.
    pub(super) retry_after: Option<Duration>,
}

impl Failure {
    /// One that another attempt does not mend.
    pub(super) fn lasting(kind: ModelErrorKind, cause: impl Into<String>) -> Self {
        Self { error: ModelError { kind, cause: cause.into() }, passing: false, retry_after: None }
    }

    /// One that may be gone a moment later.
    pub(super) fn passing(kind: ModelErrorKind, cause: impl Into<String>) -> Self {
        Self { error: ModelError { kind, cause: cause.into() }, passing: true, retry_after: None }
    }

    /// With the provider's word on when to come back.
    pub(super) fn until(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }
}

/// An error inside of an answer: limits and overload pass.
impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let (passing, retry_after) = match error.kind {
            ModelErrorKind::RateLimited { retry_after } => (true, retry_after),
            ModelErrorKind::Unavailable => (true, None),
            _ => (false, None),
        };
        Self { error, passing, retry_after }
    }
}

/// How often, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retries {
    /// The most.
    pub(super) max: u32,
    /// The wait before the first; each further one takes twice as long.
    pub(super) first: Duration,
}

impl Retries {
    /// How long to wait before another attempt; `None` = there is none. `random` is below 1: those
    /// who failed together must not come back together.
    pub(super) fn wait(self, made: u32, failure: &Failure, random: f64) -> Option<Duration> {
        if made >= self.max || !failure.passing {
            return None;
        }
        if let Some(asked) = failure.retry_after {
            let spread = (asked / 10).min(Duration::from_secs(1));
            return (asked <= LONGEST_WAIT).then(|| asked + spread.mul_f64(random));
        }
        let backoff = self.first.saturating_mul(2_u32.saturating_pow(made)).min(LONGEST_BACKOFF);
        Some(backoff.mul_f64(0.75 + random / 4.0))
    }
}

/// Whether a refusal may pass.
pub(super) fn passes(status: StatusCode, headers: &HeaderMap, error: &ProviderError) -> bool {
    let said = headers.get("x-should-retry").map(|value| value.as_bytes());
    match (said, status.as_u16()) {
        (Some(b"true"), _) => true,
        (Some(b"false"), _) => false,
        (_, 429) => !error.is_out_of_quota(),
        (_, 408 | 409 | 500 | 502 | 503 | 504 | 529) => {
            error.kind(Some(status)) != ModelErrorKind::ContextExceeded
        }
        _ => false,
    }
}

/// How long the provider wants one to wait.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let exact = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    if let Some(millis) = exact {
        return Duration::try_from_secs_f64(millis / 1000.0).ok();
    }
    let text = text(RETRY_AFTER.as_str())?;
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let date = rfc2822::parse(text).ok()?.timestamp();
            Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRIES: Retries = Retries { max: 2, first: Duration::from_millis(400) };

    fn limited(retry_after: Option<u64>) -> Failure {
        let retry_after = retry_after.map(Duration::from_secs);
        Failure::passing(ModelErrorKind::RateLimited { retry_after }, "").until(retry_after)
    }

    fn headers(name: &'static str, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    #[test]
    fn each_wait_is_twice_the_one_before_within_bounds_and_spread() {
        let failure = Failure::passing(ModelErrorKind::Unavailable, "");
        let wait = |made, random| RETRIES.wait(made, &failure, random);
        assert_eq!(wait(0, 0.0), Some(Duration::from_millis(300)));
        assert_eq!(wait(0, 1.0), Some(Duration::from_millis(400)));
        assert_eq!(wait(1, 0.0), Some(Duration::from_millis(600)));
        assert_eq!(wait(2, 0.0), None);
        let many = Retries { max: 100, ..RETRIES };
        assert_eq!(many.wait(99, &failure, 1.0), Some(LONGEST_BACKOFF));
    }

    #[test]
    fn what_the_provider_asks_for_is_granted_up_to_a_bound() {
        let wait = |asked, random| RETRIES.wait(0, &limited(Some(asked)), random);
        assert_eq!(wait(7, 0.0), Some(Duration::from_secs(7)));
        assert_eq!(wait(7, 1.0), Some(Duration::from_millis(7_700)));
        assert_eq!(wait(30, 1.0), Some(Duration::from_secs(31)));
        assert_eq!(wait(31, 0.0), None);
        assert_eq!(RETRIES.wait(0, &limited(None), 1.0), Some(Duration::from_millis(400)));
    }

    #[test]
    fn a_lasting_failure_is_not_tried_again() {
        let failure = Failure::lasting(ModelErrorKind::Other, "");
        assert_eq!(RETRIES.wait(0, &failure, 0.0), None);
        for (kind, passing) in [
            (ModelErrorKind::Unavailable, true),
            (ModelErrorKind::RateLimited { retry_after: None }, true),
            (ModelErrorKind::Auth, false),
            (ModelErrorKind::ContextExceeded, false),
            (ModelErrorKind::Other, false),
        ] {
            let failure = Failure::from(ModelError { kind, cause: String::new() });
            assert_eq!(failure.passing, passing, "{kind:?}");
        }
    }

    #[test]
    fn some_refusals_pass() {
        let none = ProviderError::default();
        let status = |status| StatusCode::from_u16(status).unwrap();
        for passing in [408, 409, 429, 500, 502, 503, 504, 529] {
            assert!(passes(status(passing), &HeaderMap::new(), &none), "{passing}");
        }
        for lasting in [302, 400, 401, 403, 404, 413, 422, 501] {
            assert!(!passes(status(lasting), &HeaderMap::new(), &none), "{lasting}");
        }
        assert!(passes(status(400), &headers("x-should-retry", "true"), &none));
        assert!(!passes(status(500), &headers("x-should-retry", "false"), &none));
        let quota = ProviderError::of_body(br#"{"error":{"code":"insufficient_quota"}}"#);
        assert!(!passes(status(429), &HeaderMap::new(), &quota));
        let long = ProviderError::of_body(b"exceeded max context length");
        assert!(!passes(status(500), &HeaderMap::new(), &long));
    }

    #[test]
    fn the_wait_is_read_in_every_form() {
        let now: Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
        let read = |name, value| retry_after(&headers(name, value), now);
        assert_eq!(read("retry-after", "7"), Some(Duration::from_secs(7)));
        assert_eq!(read("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("retry-after-ms", "1500"), Some(Duration::from_millis(1500)));
        let date = "Mon, 30 Nov 2026 12:00:20 GMT";
        assert_eq!(read("retry-after", date), Some(Duration::from_secs(20)));
        let past = "Mon, 30 Nov 2026 11:00:00 GMT";
        assert_eq!(read("retry-after", past), Some(Duration::ZERO));
        for odd in ["soon", "-3", "", "NaN", "1e300"] {
            assert_eq!(read("retry-after", odd), None, "{odd}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
