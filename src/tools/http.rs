//! Tools that are an HTTP request.
//!
//! Arguments that the URL names stand there, escaped; of the others `GET` and `DELETE` make query
//! parameters (lists and objects as JSON text), the other methods a JSON body. Texts and JSON come
//! back as text, images and audio as such. What is longer than `response-limit` is cut, and the
//! text says so; media that are longer are an error. So is a status from 300 on: redirects are
//! followed by the client, where they stay on the host.

mod answer;
mod template;

use std::{sync::Arc, time::Duration};

use agui_adapter::model::event::{Object, ResultState};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use self::template::Template;
use super::{
    Tool, ToolCall, ToolContext, ToolEnd, ToolEvent, ToolSpec, ToolStream, schema::Arguments,
};
use crate::config::react::HttpToolConfig;

/// What a header's value cannot hold, and `%`, so that what is escaped can be told.
const NOT_IN_HEADERS: &AsciiSet = &CONTROLS.add(b' ').add(b'%');

/// The longest value of the context that is sent as a header.
const MAX_CONTEXT: usize = 4096;

/// A tool of the configuration. `client` follows redirects on one host only.
///
/// # Errors
///
/// What is wrong with the configuration; no values of headers.
pub fn http_tool(
    config: &HttpToolConfig,
    client: reqwest::Client,
) -> Result<Arc<dyn Tool>, String> {
    let declared = &config.declared;
    let method = match config.method.to_ascii_uppercase().as_str() {
        "" | "GET" => Method::GET,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        _ => return Err("`method` is one of GET, POST, PUT, PATCH and DELETE".to_owned()),
    };
    Arguments::compile(&declared.parameters)
        .map_err(|fault| format!("`parameters` is no JSON Schema: {fault}"))?;
    let template = Template::parse(&config.url)?;
    let properties = declared.parameters.get("properties");
    for name in template.parameters() {
        if properties.and_then(|properties| properties.get(name)).is_none() {
            return Err(format!("`url` names {{{name}}}, which is not among the parameters"));
        }
    }
    let spec = ToolSpec {
        name: declared.name.clone(),
        description: declared.description.clone(),
        parameters: Arc::clone(&declared.parameters),
        read_only: method == Method::GET,
        destructive: false,
    };
    let (timeout, limit) = (config.timeout, config.response_limit);
    let request = Request { client, method, template, headers: headers(config)?, timeout, limit };
    Ok(Arc::new(HttpTool { spec, request: Arc::new(request) }))
}

fn headers(config: &HttpToolConfig) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.headers {
        let fault = |what: &str| format!("the header {name} has {what} that HTTP does not take");
        let header = HeaderName::try_from(name).map_err(|_| fault("a name"))?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| fault("a value"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    Ok(headers)
}

struct HttpTool {
    spec: ToolSpec,
    request: Arc<Request>,
}

impl Tool for HttpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        let request = Arc::clone(&self.request);
        Box::pin(stream::once(async move {
            let end = Box::pin(request.make(call)).await;
            ToolEvent::End(end.unwrap_or_else(|text| ToolEnd::text(text, ResultState::Error)))
        }))
    }
}

/// What all calls of a tool have in common.
struct Request {
    client: reqwest::Client,
    method: Method,
    template: Template,
    headers: HeaderMap,
    timeout: Option<Duration>,
    limit: usize,
}

impl Request {
    /// # Errors
    ///
    /// For the model: why there is no answer.
    async fn make(&self, call: ToolCall) -> Result<ToolEnd, String> {
        let request = self.request(call.arguments, &call.context)?;
        let answer = self.exchange(request, &call.context.request_id);
        let Some(timeout) = self.timeout else { return answer.await };
        let late =
            |_| format!("The service did not answer within {} seconds.", timeout.as_secs_f64());
        tokio::time::timeout(timeout, answer).await.map_err(late)?
    }

    fn request(
        &self,
        mut arguments: Object,
        context: &ToolContext,
    ) -> Result<reqwest::RequestBuilder, String> {
        let mut url = self.template.fill(&mut arguments)?;
        let has_body = self.method != Method::GET && self.method != Method::DELETE;
        if !has_body {
            add_query(&mut url, &arguments);
        }
        let mut headers = self.headers.clone();
        add_context(&mut headers, context);
        let request = self.client.request(self.method.clone(), url).headers(headers);
        Ok(if has_body { request.json(&arguments) } else { request })
    }

    async fn exchange(
        &self,
        request: reqwest::RequestBuilder,
        request_id: &str,
    ) -> Result<ToolEnd, String> {
        let response = request.send().await.map_err(|error| {
            tracing::warn!(
                request.id = request_id,
                // The URL holds arguments.
                error = ?error.without_url(),
                "an HTTP tool could not reach its service"
            );
            "The service could not be reached.".to_owned()
        })?;
        answer::read(response, self.limit, request_id).await
    }
}

/// What the URL does not name.
fn add_query(url: &mut reqwest::Url, arguments: &Object) {
    let given: Vec<(&String, String)> =
        arguments.iter().filter_map(|(key, value)| Some((key, template::text(value)?))).collect();
    if !given.is_empty() {
        url.query_pairs_mut().extend_pairs(given);
    }
}

/// Whose run it is. What is configured under the same name stays.
fn add_context(headers: &mut HeaderMap, context: &ToolContext) {
    let mut add = |name: &str, value: &str| {
        let value = utf8_percent_encode(value, NOT_IN_HEADERS).to_string();
        let (name, value) = (HeaderName::try_from(name), HeaderValue::try_from(value));
        if let (Ok(name), Ok(value)) = (name, value)
            && value.len() <= MAX_CONTEXT
        {
            headers.entry(name).or_insert(value);
        }
    };
    add("x-thread-id", context.thread_id.as_str());
    add("x-run-id", context.run_id.as_str());
    for (key, value) in context.runtime.resolved() {
        let key = key.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-");
        // Lists, objects and nothing have no form in a header.
        if let Some(value) =
            template::text(value).filter(|_| !value.is_array() && !value.is_object())
        {
            add(&format!("x-context-{key}"), &value);
        }
    }
}

#[cfg(test)]
mod tests;
