//! The client of all wires: sends, repeats, and reads answers.

use std::{error::Error as _, sync::Arc, time::Duration};

use async_stream::stream;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE},
};
use jiff::Timestamp;
use reqwest::Url;
use tokio::time::Instant;

use super::{
    ChatModel, ModelErrorKind, ModelEvent, ModelRequest, ModelStream,
    answer::{Answer, beginning},
    failure::{ProviderError, is_word},
    retry::{Failure, Retries, passes, retry_after},
    wire::{Wire, WireRequest},
};
use crate::config::models::ModelConfig;

/// How much of a refusal is read.
const MAX_REFUSAL: usize = 64 * 1024;

/// How long a refusal may take.
const REFUSAL_TIME: Duration = Duration::from_secs(10);

/// The wait before the first repetition.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// Headers in which providers name a request.
const REQUEST_IDS: &[&str] = &["x-request-id", "request-id", "x-dashscope-request-id", "cf-ray"];

/// A model behind HTTP.
pub(super) struct HttpModel(Arc<Endpoint>);

/// What all calls of a model share.
struct Endpoint {
    name: String,
    wire: Box<dyn Wire>,
    client: reqwest::Client,
    /// Where it is; the text says why nowhere.
    target: Result<Target, String>,
    timeout: Option<Duration>,
    retries: Retries,
}

struct Target {
    base: Url,
    /// The configured ones, which win.
    headers: HeaderMap,
}

/// A call, ready to be sent as often as it takes.
struct Sent {
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl HttpModel {
    pub(super) fn new(config: &ModelConfig, wire: Box<dyn Wire>, client: reqwest::Client) -> Self {
        Self(Arc::new(Endpoint {
            name: config.model.clone(),
            wire,
            client,
            target: Target::of(config),
            timeout: config.timeout,
            retries: Retries { max: config.max_retries, first: FIRST_WAIT },
        }))
    }

    /// One that does not wait long before it tries again.
    #[cfg(test)]
    pub(super) fn impatient(
        config: &ModelConfig,
        wire: Box<dyn Wire>,
        client: reqwest::Client,
    ) -> Self {
        let Self(endpoint) = Self::new(config, wire, client);
        let mut endpoint = Arc::into_inner(endpoint).unwrap();
        endpoint.retries.first = Duration::from_millis(1);
        Self(Arc::new(endpoint))
    }
}

impl ChatModel for HttpModel {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let endpoint = Arc::clone(&self.0);
        Box::pin(stream! {
            let began = Instant::now();
            let sent = match endpoint.prepare(&request) {
                Ok(sent) => sent,
                Err(failure) => {
                    yield Err(failure.error);
                    return;
                }
            };
            let mut repeated = 0;
            loop {
                let mut given = false;
                let failure = match endpoint.open(&sent).await {
                    Err(failure) => failure,
                    Ok(response) => {
                        let decoder = endpoint.wire.decoder(&request);
                        let mut answer = Answer::new(response, decoder, endpoint.timeout);
                        loop {
                            let read = answer.read().await;
                            for event in answer.events() {
                                given = true;
                                yield Ok(timed(event, began));
                            }
                            match read {
                                Ok(true) => {}
                                Ok(false) => return,
                                Err(failure) => break failure,
                            }
                        }
                    }
                };
                let wait = endpoint.retries.wait(repeated, &failure, random());
                let Some(wait) = wait.filter(|_| !given) else {
                    yield Err(failure.error);
                    return;
                };
                repeated += 1;
                tracing::warn!(
                    request.id = %request.request_id,
                    model = endpoint.name,
                    cause = failure.error.cause,
                    wait_ms = wait.as_millis(),
                    repeated,
                    "the call of the model is repeated",
                );
                tokio::time::sleep(wait).await;
            }
        })
    }
}

impl Target {
    fn of(config: &ModelConfig) -> Result<Self, String> {
        let base = Url::parse(&config.base_url)
            .ok()
            .filter(|base| base.has_host() && matches!(base.scheme(), "http" | "https"))
            .ok_or("the base URL is no HTTP URL")?;
        let headers = config.headers.iter().map(|(name, value)| {
            let key = HeaderName::try_from(name).ok();
            let value = HeaderValue::from_str(value.expose()).ok();
            let (key, mut value) =
                key.zip(value).ok_or_else(|| format!("the header {name} cannot be sent"))?;
            value.set_sensitive(true);
            Ok((key, value))
        });
        Ok(Self { base, headers: headers.collect::<Result<_, String>>()? })
    }

    /// The base URL with the wire's path behind its own, and both queries.
    fn url(&self, path: &str) -> Url {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut url = self.base.clone();
        let base = url.path().trim_end_matches('/');
        // Who wrote down the whole URL means the same.
        let whole = if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") };
        url.set_path(&whole);
        if !query.is_empty() {
            let own = url.query().filter(|own| !own.is_empty());
            let both = own.map_or_else(|| query.to_owned(), |own| format!("{own}&{query}"));
            url.set_query(Some(&both));
        }
        url
    }
}

impl Endpoint {
    fn prepare(&self, request: &ModelRequest) -> Result<Sent, Failure> {
        let target = self.target.as_ref();
        let target =
            target.map_err(|reason| Failure::lasting(ModelErrorKind::Other, reason.as_str()))?;
        let WireRequest { path, headers, body } = self.wire.request(request);
        let mut all = HeaderMap::new();
        all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        all.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        for further in [headers, target.headers.clone()] {
            for (name, value) in further {
                if let Some(name) = name {
                    all.insert(name, value);
                }
            }
        }
        Ok(Sent { url: target.url(&path), headers: all, body: body.into() })
    }

    /// Sends the call; gives an answer whose status is a success.
    async fn open(&self, sent: &Sent) -> Result<reqwest::Response, Failure> {
        let sending = self
            .client
            .request(Method::POST, sent.url.clone())
            .headers(sent.headers.clone())
            .body(sent.body.clone())
            .send();
        let response = match self.timeout {
            None => sending.await,
            Some(limit) => tokio::time::timeout(limit, sending).await.map_err(|_| {
                let cause = format!("no answer for {} ms", limit.as_millis());
                Failure::lasting(ModelErrorKind::Unavailable, cause)
            })?,
        };
        let response = response.map_err(|error| unsent(&error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let encoding = response.headers().get(CONTENT_ENCODING);
        if encoding.is_some_and(|encoding| !encoding.is_empty() && encoding != "identity") {
            let cause = "the answer is compressed, which nobody asked for";
            return Err(Failure::lasting(ModelErrorKind::Other, cause));
        }
        Ok(response)
    }

    /// The failure of an answer whose status is no success.
    async fn refused(&self, response: reqwest::Response) -> Failure {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = beginning(response, MAX_REFUSAL, REFUSAL_TIME).await;
        let mut kind = self.wire.failure(status, &body);
        let mut asked = retry_after(&headers, Timestamp::now());
        if let ModelErrorKind::RateLimited { retry_after: wanted } = &mut kind {
            // Some say it in the body.
            asked = asked.or(*wanted);
            *wanted = asked;
        }
        let error = ProviderError::of_body(&body);
        let cause = format!("status {}{}{}", number(status), error.described(), named(&headers));
        if passes(status, &headers, &error) {
            Failure::passing(kind, cause).until(asked)
        } else {
            Failure::lasting(kind, cause)
        }
    }
}

fn number(status: StatusCode) -> u16 {
    status.as_u16()
}

/// The provider's name of the request, with a comma before it.
fn named(headers: &HeaderMap) -> String {
    let ids = REQUEST_IDS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    ids.filter(|id| is_word(id)).take(1).map(|id| format!(", request id {id}")).collect()
}

/// The failure of a call that got no answer.
fn unsent(error: &reqwest::Error) -> Failure {
    let cause = causes(error);
    if error.is_builder() || error.is_redirect() {
        return Failure::lasting(ModelErrorKind::Other, format!("cannot be sent: {cause}"));
    }
    Failure::passing(ModelErrorKind::Unavailable, format!("no answer: {cause}"))
}

/// What lies behind an error, without the URL, in which some have their keys.
pub(super) fn causes(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(error) = next {
        causes.push(error.to_string());
        next = error.source();
    }
    if causes.is_empty() { "unknown".to_owned() } else { causes.join(": ") }
}

/// A number below 1.
fn random() -> f64 {
    let bits = uuid::Uuid::new_v4().as_u64_pair().1 & 0xffff_ffff;
    f64::from(u32::try_from(bits).unwrap_or_default()) / (f64::from(u32::MAX) + 1.0)
}

/// Usage with the time that the call took.
fn timed(event: ModelEvent, began: Instant) -> ModelEvent {
    match event {
        ModelEvent::Usage(mut usage) => {
            usage.seconds = usage.seconds.or_else(|| Some(began.elapsed().as_secs_f64()));
            ModelEvent::Usage(usage)
        }
        event => event,
    }
}

#[cfg(test)]
mod tests;
