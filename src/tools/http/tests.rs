use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

use agui_adapter::{
    model::msg::{Block, MediaKind, MediaSource},
    runtime_context::RuntimeContext,
};
use futures_util::StreamExt as _;
use proptest::prelude::*;
use reqwest::Url;
use serde_json::{Value, json};

use super::*;
use crate::config::{models::Secret, react::Declared};

fn client() -> reqwest::Client {
    // Another test may have been first.
    drop(rustls::crypto::ring::default_provider().install_default());
    reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap()
}

fn config(method: &str, url: &str) -> HttpToolConfig {
    let property = json!({});
    let parameters = json!({
        "type": "object",
        "properties": {"city": property, "day": property, "tags": property},
    });
    let declared = Declared {
        name: "weather".to_owned(),
        description: "tells the weather".to_owned(),
        parameters: Arc::new(parameters),
    };
    HttpToolConfig {
        declared,
        method: method.to_owned(),
        url: url.to_owned(),
        headers: BTreeMap::new(),
        timeout: None,
        response_limit: 1024,
    }
}

fn call(arguments: Value, resolved: Value) -> ToolCall {
    let resolved = resolved.as_object().unwrap().clone();
    let context = ToolContext {
        thread_id: serde_json::from_value(json!("t ü%")).unwrap(),
        run_id: serde_json::from_value(json!("r1")).unwrap(),
        request_id: "q".into(),
        runtime: Arc::new(RuntimeContext::from(resolved)),
    };
    let arguments = arguments.as_object().unwrap().clone();
    ToolCall {
        id: "c".to_owned(),
        arguments,
        state: Arc::new(json!({})),
        context: Arc::new(context),
        answer: None,
    }
}

/// A service that answers one request with these bytes, and tells what it was asked.
fn service(answer: impl Into<Vec<u8>>) -> (String, JoinHandle<Asked>) {
    let answer = answer.into();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let asked = Asked::read(&socket);
        socket.write_all(&answer).unwrap();
        asked
    });
    (base, served)
}

/// A request as it came in.
struct Asked {
    line: String,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Asked {
    fn read(socket: &TcpStream) -> Self {
        let mut reader = BufReader::new(socket);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let line = lines.remove(0);
        let headers: BTreeMap<String, String> = lines
            .iter()
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        Self { line, headers, body: String::from_utf8(body).unwrap() }
    }
}

fn answer(status: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

async fn end(config: &HttpToolConfig, call: ToolCall) -> ToolEnd {
    let tool = http_tool(config, client()).unwrap();
    let events: Vec<ToolEvent> = tool.call(call).collect().await;
    match events.as_slice() {
        [ToolEvent::End(end)] => end.clone(),
        other => panic!("{other:?}"),
    }
}

fn ok(text: &str) -> ToolEnd {
    ToolEnd::text(text, ResultState::Success)
}

fn failed(text: &str) -> ToolEnd {
    ToolEnd::text(text, ResultState::Error)
}

/// The request that these arguments make.
async fn asked(method: &str, path: &str, arguments: Value) -> Asked {
    let (base, served) = service(answer("200 OK", "text/plain", b"fine"));
    let config = config(method, &format!("{base}{path}"));
    assert_eq!(end(&config, call(arguments, json!({}))).await, ok("fine"));
    served.join().unwrap()
}

/// The result that an answer makes.
async fn read(status: &str, media_type: &str, body: &[u8]) -> ToolEnd {
    let (base, served) = service(answer(status, media_type, body));
    let end = end(&config("GET", &base), call(json!({}), json!({}))).await;
    served.join().unwrap();
    end
}

#[tokio::test]
async fn arguments_stand_where_the_url_names_them_and_the_others_follow() {
    let arguments = json!({"city": "São Paulo/x", "day": 3, "tags": ["a", "b&c"]});
    let get = asked("GET", "/of/{city}?day={day}", arguments.clone()).await;
    assert_eq!(
        get.line,
        "GET /of/S%C3%A3o%20Paulo%2Fx?day=3&tags=%5B%22a%22%2C%22b%26c%22%5D HTTP/1.1"
    );
    assert_eq!(get.body, "");
    let delete = asked("delete", "/of/{city}", json!({"city": "a", "day": null})).await;
    assert_eq!(delete.line, "DELETE /of/a HTTP/1.1");
    let post = asked("POST", "/of/{city}", arguments).await;
    assert_eq!(post.line, "POST /of/S%C3%A3o%20Paulo%2Fx HTTP/1.1");
    assert_eq!(post.body, r#"{"day":3,"tags":["a","b&c"]}"#);
    assert_eq!(post.headers["content-type"], "application/json");
    let put = asked("PUT", "/", json!({})).await;
    assert_eq!((put.line.as_str(), put.body.as_str()), ("PUT / HTTP/1.1", "{}"));
}

#[tokio::test]
async fn a_parameter_of_the_query_may_be_missing() {
    let asked = asked("GET", "/?city={city}&d={day}", json!({"day": "?&#=+"})).await;
    assert_eq!(asked.line, "GET /?city=&d=%3F%26%23%3D%2B HTTP/1.1");
}

#[tokio::test]
async fn an_argument_cannot_leave_its_place_in_the_path() {
    let fill = |arguments: Value| async move {
        let config = config("GET", "http://127.0.0.1:9/of/{city}/{day}");
        end(&config, call(arguments, json!({}))).await
    };
    for city in ["..", ".", "%2e%2e"] {
        let day = if city == "%2e%2e" { ".." } else { "1" };
        let text = "The arguments do not make a valid address.";
        assert_eq!(fill(json!({"city": city, "day": day})).await, failed(text), "{city}");
    }
    // Servers read escapes before they look for segments.
    for city in ["../admin", "a/../../admin", "..\\admin", "a/.", "/..", "./admin"] {
        let text = "The arguments do not make a valid address.";
        assert_eq!(fill(json!({"city": city, "day": 1})).await, failed(text), "{city}");
        let root = config("GET", "http://127.0.0.1:9/{city}");
        let root = end(&root, call(json!({"city": city}), json!({}))).await;
        assert_eq!(root, failed(text), "{city}");
    }
    let root = config("GET", "http://127.0.0.1:9/{city}");
    let root = end(&root, call(json!({"city": ".."}), json!({}))).await;
    assert_eq!(root, failed("The arguments do not make a valid address."));
    for missing in
        [json!({"city": "a"}), json!({"city": "a", "day": ""}), json!({"city": "a", "day": null})]
    {
        assert_eq!(fill(missing).await, failed("The argument day is needed and may not be empty."));
    }
}

#[tokio::test]
async fn the_service_is_told_whose_run_it_is() {
    let (base, served) = service(answer("200 OK", "text/plain", b"fine"));
    let mut config = config("GET", &base);
    config.headers.insert("X-Api-Key".to_owned(), Secret::new("k"));
    config.headers.insert("X-Context-Mine".to_owned(), Secret::new("configured"));
    let resolved = json!({
        "tenant.id": "a b", "level": 3, "beta": true, "mine": "resolved", "list": [1], "none": null,
        "line": "a\r\nx-evil: 1", "long": "x".repeat(5000),
    });
    assert_eq!(end(&config, call(json!({}), resolved)).await, ok("fine"));
    let headers = served.join().unwrap().headers;
    let ours: Vec<(&str, &str)> = headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-"))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        ours,
        [
            ("x-api-key", "k"),
            ("x-context-beta", "true"),
            ("x-context-level", "3"),
            ("x-context-line", "a%0D%0Ax-evil:%201"),
            ("x-context-mine", "configured"),
            ("x-context-tenant-id", "a%20b"),
            ("x-run-id", "r1"),
            ("x-thread-id", "t%20%C3%BC%25"),
        ]
    );
}

#[tokio::test]
async fn text_and_json_come_back_as_text() {
    for media_type in [
        "text/plain; charset=utf-8",
        "application/json",
        "application/problem+json",
        "image/svg+xml",
    ] {
        assert_eq!(
            read("200 OK", media_type, b"{\"a\": 1}").await,
            ok("{\"a\": 1}"),
            "{media_type}"
        );
    }
    assert_eq!(
        read("201 Created", "text/plain", b"").await,
        ok("The service answered with status 201 Created and nothing else.")
    );
}

#[tokio::test]
async fn images_and_audio_stay_what_they_are() {
    for (media_type, kind) in [("image/png", MediaKind::Image), ("audio/wav", MediaKind::Audio)] {
        let source =
            MediaSource::Base64 { media_type: media_type.to_owned(), data: "/wA=".to_owned() };
        let output = vec![Block::Media { kind, source, name: None, metadata: None }];
        assert_eq!(
            read("200 OK", media_type, b"\xff\x00").await,
            ToolEnd::Result { output, state: ResultState::Success }
        );
    }
    assert_eq!(
        read("200 OK", "application/pdf", b"%PDF").await,
        ok("The answer is 4 bytes of application/pdf, which cannot be shown.")
    );
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_limit() {
    assert_eq!(read("200 OK", "text/plain", &[b'a'; 1024]).await, ok(&"a".repeat(1024)));
    let cut = format!("{}\n[cut: the answer is longer than 1024 bytes]", "a".repeat(1024));
    assert_eq!(read("200 OK", "text/plain", &[b'a'; 1025]).await, ok(&cut));
    let umlauts = "ü".repeat(600);
    let cut = format!("{}\n[cut: the answer is longer than 1024 bytes]", "ü".repeat(512));
    assert_eq!(read("200 OK", "text/plain", umlauts.as_bytes()).await, ok(&cut));
    let shifted = format!("a{umlauts}");
    let cut = format!("a{}\n[cut: the answer is longer than 1024 bytes]", "ü".repeat(511));
    assert_eq!(read("200 OK", "text/plain", shifted.as_bytes()).await, ok(&cut));
    assert_eq!(read("200 OK", "text/plain", b"caf\xe9").await, ok("caf\u{fffd}"));
    assert_eq!(
        read("200 OK", "image/png", &[0; 1025]).await,
        failed("The answer is longer than 1024 bytes.")
    );
    assert_eq!(
        read("200 OK", "font/woff", &[255; 1025]).await,
        ok("The answer is more than 1024 bytes of font/woff, which cannot be shown.")
    );
}

#[tokio::test]
async fn a_failure_is_an_error_that_the_model_reads() {
    assert_eq!(
        read("404 Not Found", "application/json", b" {\"error\":\"no such city\"}\n").await,
        failed("The service answered with status 404 Not Found: {\"error\":\"no such city\"}")
    );
    assert_eq!(
        read("500 Internal Server Error", "image/png", b"\xff").await,
        failed("The service answered with status 500 Internal Server Error.")
    );
    assert_eq!(
        read("302 Found", "text/plain", b"elsewhere").await,
        failed("The service answered with status 302 Found: a redirect that is not followed.")
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_an_error() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nhalf";
    let (base, served) = service(head);
    let said = end(&config("GET", &base), call(json!({}), json!({}))).await;
    served.join().unwrap();
    assert_eq!(said, failed("The answer of the service broke off."));
}

#[tokio::test]
async fn who_cannot_be_reached_is_not_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let said = end(&config("GET", &url), call(json!({}), json!({}))).await;
    assert_eq!(said, failed("The service could not be reached."));
}

#[tokio::test]
async fn a_service_that_is_silent_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config("GET", &format!("http://{}", listener.local_addr().unwrap()));
    config.timeout = Some(Duration::from_millis(50));
    let said = end(&config, call(json!({}), json!({}))).await;
    assert_eq!(said, failed("The service did not answer within 0.05 seconds."));
}

#[tokio::test]
async fn dropping_a_call_closes_its_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = config("GET", &format!("http://{}", listener.local_addr().unwrap()));
    let mut running = http_tool(&config, client()).unwrap().call(call(json!({}), json!({})));
    let (mut socket, _) = tokio::select! {
        event = running.next() => panic!("{event:?}"),
        socket = listener.accept() => socket.unwrap(),
    };
    let mut request = Vec::new();
    tokio::select! {
        event = running.next() => panic!("{event:?}"),
        () = async {
            while !request.ends_with(b"\r\n\r\n") {
                tokio::io::AsyncReadExt::read_buf(&mut socket, &mut request).await.unwrap();
            }
        } => {}
    }
    drop(running);
    assert_eq!(tokio::io::AsyncReadExt::read_buf(&mut socket, &mut request).await.unwrap(), 0);
}

fn refused(method: &str, url: &str) -> String {
    http_tool(&config(method, url), client()).map(|_| ()).unwrap_err()
}

#[test]
fn a_configuration_that_cannot_work_is_refused() {
    let front = "a parameter of `url` may not stand in front of the path";
    for (url, fault) in [
        ("http://{city}/", front),
        ("http://a.{city}", front),
        ("http://a:{day}/", front),
        ("http://u:{city}@a/", front),
        ("{city}://a/", front),
        ("/of/{city}", "`url` must begin with http:// or https://"),
        ("ftp://a/", "`url` must begin with http:// or https://"),
        ("http://a/#{city}", "`url` may have neither a fragment nor backslashes"),
        ("http://a\\{city}", "`url` may have neither a fragment nor backslashes"),
        ("http://a/../{city}", "`url` may not have segments of dots"),
        ("http://a/%2E./{city}", "`url` may not have segments of dots"),
        ("http://a/{town}", "`url` names {town}, which is not among the parameters"),
        ("http://a/{}", "a `{` of `url` has no parameter and `}` behind it"),
        ("http://a/{city", "a `{` of `url` has no parameter and `}` behind it"),
        ("http://a/city}", "a `}` of `url` has no `{` in front of it"),
        ("http://a b/", "`url` is no URL: invalid international domain name"),
    ] {
        assert_eq!(refused("GET", url), fault, "{url}");
    }
    assert_eq!(refused("HEAD", "http://a/"), "`method` is one of GET, POST, PUT, PATCH and DELETE");
    let mut misdeclared = config("GET", "http://a/");
    misdeclared.declared.parameters = Arc::new(json!({"type": 5}));
    assert_eq!(
        http_tool(&misdeclared, client()).map(|_| ()).unwrap_err(),
        "`parameters` is no JSON Schema: at /type: 5 is not valid under any of the schemas listed \
         in the 'anyOf' keyword"
    );
    for (name, value, fault) in [
        ("a b", "secret", "the header a b has a name that HTTP does not take"),
        ("a", "sec\nret", "the header a has a value that HTTP does not take"),
    ] {
        let mut config = config("GET", "http://a/");
        config.headers.insert(name.to_owned(), Secret::new(value));
        assert_eq!(http_tool(&config, client()).map(|_| ()).unwrap_err(), fault);
    }
}

#[test]
fn only_a_get_is_read_only() {
    for (method, read_only) in
        [("", true), ("get", true), ("POST", false), ("PUT", false), ("DELETE", false)]
    {
        let tool = http_tool(&config(method, "https://a/{city}"), client()).unwrap();
        let spec = tool.spec();
        assert_eq!(
            (spec.name.as_str(), spec.read_only, spec.destructive),
            ("weather", read_only, false)
        );
    }
}

proptest! {
    #[test]
    fn no_argument_changes_where_a_url_leads(
        city in "(\\PC|[./\\\\%?#@:&=+ \t\r\n]|%2[eEfF]|\\.\\.){0,12}",
        day in "(\\PC|[./\\\\%?#@:&=+ \t\r\n]|%2[eEfF]|\\.\\.){0,12}",
        tail in "(|/end|\\.x|/\\{day\\}|-\\{day\\}/)",
    ) {
        let text = format!("https://user:pw@example.invalid:8443/a/{{city}}{tail}?x=1&y={{day}}&z=2");
        let template = Template::parse(&text).unwrap();
        let mut arguments = Object::from_iter([
            ("city".to_owned(), json!(city)),
            ("day".to_owned(), json!(day)),
            ("other".to_owned(), json!(1)),
        ]);
        let Ok(url) = template.fill(&mut arguments) else { return Ok(()) };
        let sample = Url::parse(&text.replace("{city}", "x").replace("{day}", "x")).unwrap();
        prop_assert_eq!(url.origin(), sample.origin());
        prop_assert_eq!((url.username(), url.password()), ("user", Some("pw")));
        prop_assert_eq!(url.fragment(), None);
        let segments: Vec<&str> = url.path_segments().unwrap().collect();
        prop_assert_eq!(segments.len(), sample.path_segments().unwrap().count());
        prop_assert_eq!(segments[0], "a");
        let decoded = percent_encoding::percent_decode_str(segments[1]).decode_utf8().unwrap();
        prop_assert!(decoded.starts_with(&city));
        let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        prop_assert_eq!(pairs, vec![pair("x", "1"), pair("y", &day), pair("z", "2")]);
        prop_assert_eq!(arguments.len(), 1);
    }
}
