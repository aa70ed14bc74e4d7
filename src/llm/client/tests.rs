//! The client against a server on this machine.

use std::{sync::Mutex, time::Duration};

use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::*;
use crate::{
    config::models::Secret,
    http_client::{Redirects, build},
    llm::{FinishReason, ModelError, gemini::Gemini, openai::OpenAi},
};

/// A server that answers each request with the next of its answers, one connection at a time.
struct Server {
    url: String,
    /// Head and body of each request.
    requests: mpsc::UnboundedReceiver<(String, Value)>,
    /// Says when a client closed its connection.
    closed: mpsc::UnboundedReceiver<()>,
}

/// What the server does with a request.
#[derive(Clone)]
enum Reply {
    /// Writes these pieces, each by itself, and closes the connection.
    Pieces(Vec<Vec<u8>>),
    /// Writes this and waits until the client closes.
    Hold(Vec<u8>),
}

fn whole(text: impl Into<String>) -> Reply {
    Reply::Pieces(vec![text.into().into_bytes()])
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{body}")
}

fn status(status: u16, headers: &str, body: &str) -> Reply {
    whole(format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    ))
}

const HI: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"你好😀é\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn hello() -> String {
    format!("{HI}{STOP}{DONE}")
}

async fn serve(replies: Vec<Reply>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (seen, requests) = mpsc::unbounded_channel();
    let (gone, closed) = mpsc::unbounded_channel();
    tokio::task::spawn_local(async move {
        for reply in replies {
            let (mut stream, _) = listener.accept().await.unwrap();
            seen.send(request_of(&mut stream).await).unwrap();
            match reply {
                Reply::Pieces(pieces) => {
                    stream.set_nodelay(true).unwrap();
                    for piece in pieces {
                        // A client that has all it needs may have left.
                        if stream.write_all(&piece).await.is_err() {
                            break;
                        }
                        tokio::task::yield_now().await;
                    }
                }
                Reply::Hold(head) => {
                    stream.write_all(&head).await.unwrap();
                    let mut rest = [0; 16];
                    let left = stream.read(&mut rest).await;
                    assert!(matches!(left, Ok(0) | Err(_)), "{left:?}");
                    gone.send(()).unwrap();
                }
            }
        }
    });
    Server { url, requests, closed }
}

async fn request_of(stream: &mut TcpStream) -> (String, Value) {
    let mut read = Vec::new();
    let end = loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "the request broke off");
        read.extend_from_slice(&piece[..length]);
        if let Some(end) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8(read[..end].to_vec()).unwrap();
    let lower = head.to_lowercase();
    let (_, length) = lower.split_once("content-length: ").unwrap();
    let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
    let mut body = read.split_off(end + 4);
    let had = body.len();
    body.resize(length, 0);
    stream.read_exact(&mut body[had..]).await.unwrap();
    (head, serde_json::from_slice(&body).unwrap())
}

fn config(url: &str) -> ModelConfig {
    ModelConfig {
        base_url: url.to_owned(),
        model: "m".to_owned(),
        api_key: Some(Secret::new("sk-test-ABCDEF123")),
        ..ModelConfig::default()
    }
}

fn model(config: &ModelConfig) -> HttpModel {
    let client = build(&[], Redirects::None).unwrap();
    HttpModel::impatient(config, Box::new(OpenAi::new(config)), client)
}

/// All that a call says.
async fn say(config: &ModelConfig) -> Vec<Result<ModelEvent, ModelError>> {
    model(config).stream(ModelRequest::default()).collect().await
}

/// Runs a test beside its servers.
async fn local(test: impl Future<Output = ()>) {
    tokio::task::LocalSet::new().run_until(test).await;
}

fn said() -> Vec<Result<ModelEvent, ModelError>> {
    vec![Ok(ModelEvent::Text("你好😀é".to_owned())), Ok(ModelEvent::Finish(FinishReason::Stop))]
}

fn error(kind: ModelErrorKind, cause: &str) -> Vec<Result<ModelEvent, ModelError>> {
    vec![Err(ModelError { kind, cause: cause.to_owned() })]
}

#[tokio::test]
async fn a_request_goes_where_it_is_configured_to_with_its_headers() {
    local(async {
        let mut server = serve(vec![whole(ok(&hello())), whole(ok(&hello()))]).await;
        let mut config = config(&format!("{}/?api-version=2", server.url));
        config.headers.insert("X-Team".to_owned(), Secret::new("blue"));
        assert_eq!(say(&config).await, said());
        let (head, body) = server.requests.recv().await.unwrap();
        assert!(head.starts_with("POST /v1/chat/completions?api-version=2 HTTP/1.1\r\n"), "{head}");
        for line in [
            "authorization: Bearer sk-test-ABCDEF123",
            "content-type: application/json",
            "accept: text/event-stream, application/json",
            concat!("user-agent: agentscope-agui/", env!("CARGO_PKG_VERSION")),
            "x-team: blue",
        ] {
            assert!(head.lines().any(|found| found == line), "{line} in {head}");
        }
        let expected = json!({"model": "m", "messages": [], "stream": true,
            "stream_options": {"include_usage": true}});
        assert_eq!(body, expected);
        config.headers.insert("Authorization".to_owned(), Secret::new("Custom x"));
        assert_eq!(say(&config).await, said());
        let (head, _) = server.requests.recv().await.unwrap();
        assert_eq!(head.matches("uthorization").count(), 1);
        assert!(head.contains("\r\nauthorization: Custom x\r\n"), "{head}");
    })
    .await;
}

#[tokio::test]
async fn every_framing_says_the_same() {
    let crlf = hello().replace('\n', "\r\n");
    let cr = hello().replace('\n', "\r");
    let tight = hello().replace("data: ", "data:");
    let noisy = format!(": keep-alive\n\nevent: message\nid: 1\nretry: 5\n{}: bye\n\n", hello());
    let unended = format!("{HI}{}", STOP.trim_end());
    let bom = format!("\u{feff}{}", hello());
    local(async {
        for body in [hello(), crlf, cr, tight, noisy, unended, bom] {
            let answer = ok(&body);
            let head = answer.len() - body.len();
            let (head, bytes) = answer.as_bytes().split_at(head);
            let mut pieces = vec![head.to_vec()];
            pieces.extend(bytes.iter().map(|byte| vec![*byte]));
            let server = serve(vec![whole(answer.clone()), Reply::Pieces(pieces)]).await;
            assert_eq!(say(&config(&server.url)).await, said(), "{body:?}");
            assert_eq!(say(&config(&server.url)).await, said(), "{body:?} byte by byte");
        }
    })
    .await;
}

#[tokio::test]
async fn what_passes_is_tried_again_and_counted() {
    local(async {
        let passing = || status(503, "", "");
        let mut server = serve(vec![passing(), passing(), whole(ok(&hello()))]).await;
        assert_eq!(say(&config(&server.url)).await, said());
        let mut requests = Vec::new();
        while let Ok((_, body)) = server.requests.try_recv() {
            requests.push(body);
        }
        assert_eq!(requests.len(), 3);
        assert_eq!(requests[0], requests[2]);
        let server = serve(vec![passing(), passing(), passing()]).await;
        let failed = error(ModelErrorKind::Unavailable, "status 503");
        assert_eq!(say(&config(&server.url)).await, failed);
        let mut server = serve(vec![passing(), whole(ok(&hello()))]).await;
        let once = ModelConfig { max_retries: 0, ..config(&server.url) };
        assert_eq!(say(&once).await, failed);
        assert!(server.requests.recv().await.is_some());
        assert!(server.requests.try_recv().is_err());
    })
    .await;
}

#[tokio::test]
async fn a_limit_says_how_long_it_lasts() {
    local(async {
        let limited = |seconds: &str| status(429, &format!("Retry-After: {seconds}\r\n"), "");
        let server = serve(vec![limited("0"), whole(ok(&hello()))]).await;
        assert_eq!(say(&config(&server.url)).await, said());
        // Longer than anybody waits.
        let server = serve(vec![limited("3600")]).await;
        let retry_after = Some(Duration::from_secs(3600));
        let expected = error(ModelErrorKind::RateLimited { retry_after }, "status 429");
        assert_eq!(say(&config(&server.url)).await, expected);
        // So does one that is overloaded.
        let server = serve(vec![status(503, "Retry-After: 3600\r\n", "")]).await;
        let expected = error(ModelErrorKind::Unavailable, "status 503");
        assert_eq!(say(&config(&server.url)).await, expected);
        let quota = r#"{"error":{"message":"quota","type":"insufficient_quota"}}"#;
        let server = serve(vec![status(429, "", quota)]).await;
        let kind = ModelErrorKind::RateLimited { retry_after: None };
        let expected = error(kind, "status 429, type insufficient_quota");
        assert_eq!(say(&config(&server.url)).await, expected);
    })
    .await;
}

#[tokio::test]
async fn a_limit_that_stands_in_the_body_counts() {
    local(async {
        let info = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo",
            "retryDelay": "3600s"});
        let body = json!({"error": {"code": 429, "details": [info]}}).to_string();
        let server = serve(vec![status(429, "", &body)]).await;
        let config = config(&server.url);
        let client = build(&[], Redirects::None).unwrap();
        let model = HttpModel::impatient(&config, Box::new(Gemini::new(&config)), client);
        let said: Vec<_> = model.stream(ModelRequest::default()).collect().await;
        let retry_after = Some(Duration::from_secs(3600));
        let kind = ModelErrorKind::RateLimited { retry_after };
        assert_eq!(said, error(kind, "status 429, code 429"));
    })
    .await;
}

#[tokio::test]
async fn a_refusal_quotes_nothing_that_the_provider_says_to_people() {
    local(async {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-test-ABCDEF123",
            "type":"invalid_request_error","code":"invalid_api_key"}}"#;
        let server = serve(vec![status(401, "X-Request-Id: req_7\r\n", body)]).await;
        let cause =
            "status 401, type invalid_request_error, code invalid_api_key, request id req_7";
        assert_eq!(say(&config(&server.url)).await, error(ModelErrorKind::Auth, cause));
        let long = format!("sk-test-ABCDEF123 {}", "x".repeat(1_000_000));
        let server = serve(vec![status(400, "X-Request-Id: not a word\r\n", &long)]).await;
        assert_eq!(say(&config(&server.url)).await, error(ModelErrorKind::Other, "status 400"));
        let server = serve(vec![status(302, "Location: http://127.0.0.1:1/\r\n", "")]).await;
        assert_eq!(say(&config(&server.url)).await, error(ModelErrorKind::Other, "status 302"));
    })
    .await;
}

#[tokio::test]
async fn behind_the_first_event_nothing_is_tried_again() {
    local(async {
        let overloaded = "data: {\"error\":{\"code\":503}}\n\n";
        let server = serve(vec![whole(ok(overloaded)), whole(ok(&hello()))]).await;
        assert_eq!(say(&config(&server.url)).await, said());
        let mut server =
            serve(vec![whole(ok(&format!("{HI}{overloaded}"))), whole(ok(&hello()))]).await;
        let failed = ModelError {
            kind: ModelErrorKind::Unavailable,
            cause: "the answer holds an error, code 503".to_owned(),
        };
        let expected = vec![Ok(ModelEvent::Text("你好😀é".to_owned())), Err(failed)];
        assert_eq!(say(&config(&server.url)).await, expected);
        assert!(server.requests.recv().await.is_some());
        assert!(server.requests.try_recv().is_err());
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_cut_is_a_failure() {
    local(async {
        let cut =
            |body: &str| whole(format!("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{body}"));
        let server = serve(vec![cut(HI)]).await;
        let read = say(&config(&server.url)).await;
        assert_eq!(read.len(), 2, "{read:?}");
        let failed = read[1].as_ref().unwrap_err();
        assert_eq!(failed.kind, ModelErrorKind::Other);
        assert!(failed.cause.starts_with("the answer broke off: "), "{}", failed.cause);
        // Before the first event it passes.
        let server = serve(vec![cut(": x\n\n"), whole(""), whole(ok(&hello()))]).await;
        assert_eq!(say(&config(&server.url)).await, said());
        // A clean end without a reason is one too.
        let server = serve(vec![whole(ok(HI))]).await;
        let failed = say(&config(&server.url)).await.pop().unwrap().unwrap_err();
        assert_eq!(failed.cause, "the answer ends without a reason");
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_is_no_stream_is_told_apart() {
    local(async {
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n <html>";
        let server = serve(vec![whole(page)]).await;
        let cause = "the answer is no stream of events, but text/html";
        assert_eq!(say(&config(&server.url)).await, error(ModelErrorKind::Other, cause));
        let json =
            "{\"choices\":[{\"message\":{\"content\":\"你好😀é\"},\"finish_reason\":\"stop\"}]}";
        let server = serve(vec![status(200, "Content-Type: application/json\r\n", json)]).await;
        assert_eq!(say(&config(&server.url)).await, said());
        let refused = "{\"error\":{\"code\":\"context_length_exceeded\"}}";
        let server = serve(vec![status(200, "", refused)]).await;
        let cause = "the answer holds an error, code context_length_exceeded";
        let expected = error(ModelErrorKind::ContextExceeded, cause);
        assert_eq!(say(&config(&server.url)).await, expected);
        let packed = status(200, "Content-Encoding: gzip\r\n", &hello());
        let cause = "the answer is compressed, which nobody asked for";
        let server = serve(vec![packed]).await;
        assert_eq!(say(&config(&server.url)).await, error(ModelErrorKind::Other, cause));
        let server = serve(vec![status(200, "Content-Encoding: identity\r\n", &hello())]).await;
        assert_eq!(say(&config(&server.url)).await, said());
        let server = serve(vec![status(200, "", "")]).await;
        let cause = "the answer ends without a reason";
        assert_eq!(say(&config(&server.url)).await, error(ModelErrorKind::Other, cause));
    })
    .await;
}

#[tokio::test]
async fn nobody_there_is_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let failed = say(&config(&url)).await.pop().unwrap().unwrap_err();
    assert_eq!(failed.kind, ModelErrorKind::Unavailable);
    assert!(failed.cause.contains("refused"), "{}", failed.cause);
    assert!(!failed.cause.contains("chat/completions"), "{}", failed.cause);
}

#[tokio::test]
async fn what_cannot_be_sent_says_why() {
    let cause = "the base URL is no HTTP URL";
    for url in ["", "nonsense", "ftp://example.invalid"] {
        assert_eq!(say(&config(url)).await, error(ModelErrorKind::Other, cause));
    }
    let mut config = config("http://127.0.0.1:1");
    config.headers.insert("X-Bad".to_owned(), Secret::new("a\nb"));
    let cause = "the header X-Bad cannot be sent";
    assert_eq!(say(&config).await, error(ModelErrorKind::Other, cause));
}

#[tokio::test]
async fn silence_ends_a_call_and_closes_its_connection() {
    local(async {
        let quick =
            |url: &str| ModelConfig { timeout: Some(Duration::from_millis(50)), ..config(url) };
        for (head, cause) in [
            (String::new(), "no answer for 50 ms"),
            (ok(": nothing yet\n"), "nothing came for 50 ms"),
        ] {
            let mut server = serve(vec![Reply::Hold(head.into_bytes())]).await;
            let expected = error(ModelErrorKind::Unavailable, cause);
            assert_eq!(say(&quick(&server.url)).await, expected);
            assert_eq!(server.closed.recv().await, Some(()));
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_stops_listening_closes_the_connection() {
    local(async {
        let mut server =
            serve(vec![Reply::Hold(ok(HI).into_bytes()), Reply::Hold(Vec::new())]).await;
        let model = model(&config(&server.url));
        let mut stream = model.stream(ModelRequest::default());
        assert_eq!(stream.next().await, said().into_iter().next());
        drop(stream);
        assert_eq!(server.closed.recv().await, Some(()));
        assert!(server.requests.recv().await.is_some());
        // Before the answer begins.
        let mut stream = model.stream(ModelRequest::default());
        tokio::select! {
            _ = stream.next() => panic!("nothing was said"),
            request = server.requests.recv() => assert!(request.is_some()),
        }
        drop(stream);
        assert_eq!(server.closed.recv().await, Some(()));
    })
    .await;
}

#[tokio::test]
async fn all_that_came_in_one_read_is_ready_at_once() {
    local(async {
        let many: String = (0..100).map(|_| HI).collect();
        let server = serve(vec![Reply::Hold(ok(&many).into_bytes())]).await;
        let mut stream = model(&config(&server.url)).stream(ModelRequest::default());
        assert!(stream.next().await.is_some());
        let waker = futures_util::task::noop_waker();
        let mut context = std::task::Context::from_waker(&waker);
        let mut ready = 1;
        while stream.as_mut().poll_next(&mut context).is_ready() {
            ready += 1;
        }
        assert_eq!(ready, 100);
    })
    .await;
}

#[tokio::test]
async fn a_connection_whose_answer_is_read_to_its_end_is_used_again() {
    local(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&served);
        tokio::task::spawn_local(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for _ in 0..3 {
                request_of(&mut stream).await;
                let body = hello();
                let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let answer = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
                *counted.lock().unwrap() += 1;
            }
        });
        let model = model(&config(&url));
        for _ in 0..3 {
            let mut stream = model.stream(ModelRequest::default());
            // Nobody asks behind the end.
            let read: Vec<_> = stream.by_ref().take(said().len()).collect().await;
            assert_eq!(read, said());
            // The pool has tasks of its own.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(*served.lock().unwrap(), 3);
    })
    .await;
}

#[tokio::test]
async fn usage_says_how_long_the_call_took() {
    local(async {
        let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\n";
        let server = serve(vec![whole(ok(&format!("{HI}{STOP}{usage}{DONE}")))]).await;
        let read = say(&config(&server.url)).await;
        let Some(Ok(ModelEvent::Usage(usage))) = read.get(1) else { panic!("{read:?}") };
        assert_eq!(usage.input, Some(1));
        assert!(usage.seconds.is_some_and(|seconds| seconds > 0.0));
    })
    .await;
}

#[test]
fn a_path_goes_behind_the_base_url() {
    for (base, path, expected) in [
        ("https://h/v1", "/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/v1/", "/chat/completions", "https://h/v1/chat/completions"),
        ("https://h", "/chat/completions", "https://h/chat/completions"),
        ("https://h/v1/chat/completions", "/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/d?api-version=1", "/c", "https://h/d/c?api-version=1"),
        ("https://h/d?k=1", "/m/x:stream?alt=sse", "https://h/d/m/x:stream?k=1&alt=sse"),
    ] {
        let target = Target::of(&config(base)).unwrap();
        assert_eq!(target.url(path).as_str(), expected);
    }
}
