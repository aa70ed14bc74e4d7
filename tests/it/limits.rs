//! Large bodies, large events, and what the log must not hold.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::support::{log::Captured, saying, script, server::TestServer};

const HELLO: &[&str] = &[
    r#"{"type":"AGENT_START","replyId":"R"}"#,
    r#"{"type":"TEXT_BLOCK_DELTA","replyId":"R","blockId":"B","delta":"${lastUserText}"}"#,
    r#"{"type":"AGENT_END","replyId":"R"}"#,
];

/// Stands wherever a client can put content.
const MARKER: &str = "zebra-7731";

async fn hello() -> TestServer {
    TestServer::of_yaml(&script(HELLO)).await
}

/// One answer with a declared length: its status line and its body.
async fn answer(connection: &mut (impl AsyncReadExt + Unpin)) -> (String, Value) {
    let mut text = String::new();
    loop {
        text.push(char::from(connection.read_u8().await.expect("an answer")));
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() == length.expect("a length").parse::<usize>().expect("a number") {
            let status = head.lines().next().expect("a status line").to_owned();
            return (status, serde_json::from_str(body).expect("JSON"));
        }
    }
}

fn too_large() -> (String, Value) {
    let detail = "The body is longer than the 16777216 bytes that this server takes.";
    let problem = json!({"type":"about:blank","title":"Payload Too Large","status":413,
        "detail":detail,"instance":"q"});
    ("HTTP/1.1 413 Payload Too Large".to_owned(), problem)
}

const HEAD: &str = "POST /agui HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n\
                    X-Request-Id: q\r\n";

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_before_the_body_is_sent() {
    let server = hello().await;
    let mut connection = TcpStream::connect(server.address).await.expect("a connection");
    let head = format!("{HEAD}Content-Length: 209715200\r\n\r\n");
    connection.write_all(head.as_bytes()).await.expect("a request");
    assert_eq!(answer(&mut connection).await, too_large());
}

#[tokio::test]
async fn of_a_body_of_200_mebibytes_only_the_limit_is_read() {
    let server = hello().await;
    let connection = TcpStream::connect(server.address).await.expect("a connection");
    let (mut read, mut write) = connection.into_split();
    let head = format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n");
    write.write_all(head.as_bytes()).await.expect("a request");
    let sending = async move {
        let mut chunk = format!("{:x}\r\n", 1 << 20).into_bytes();
        chunk.resize(chunk.len() + (1 << 20), b' ');
        chunk.extend_from_slice(b"\r\n");
        let mut sent = 0;
        // The server closes the connection long before all of it is through.
        while sent < 200 && write.write_all(&chunk).await.is_ok() {
            sent += 1;
        }
        sent
    };
    let (sent, answer) = tokio::join!(sending, answer(&mut read));
    assert_eq!(answer, too_large());
    assert!(sent < 100, "{sent} MiB were taken");
    let events = server.run("/agui", &saying("t", "r", "still there")).await;
    assert_eq!(events[2]["delta"], "still there");
}

#[tokio::test]
async fn large_results_arguments_deltas_and_images_arrive_whole() {
    let piece = "x".repeat(5_000);
    let (long, image) = ("y".repeat(1 << 20), "A".repeat(2 << 20));
    let result = format!(
        r#"{{"@":"repeat","times":1000,"line":{{"type":"TOOL_RESULT_TEXT_DELTA","toolCallId":"c1","delta":"{piece}"}}}}"#
    );
    let delta =
        format!(r#"{{"type":"TEXT_BLOCK_DELTA","replyId":"R","blockId":"B","delta":"{long}"}}"#);
    let args = format!(r#"{{"type":"TOOL_CALL_DELTA","toolCallId":"c1","delta":"{long}"}}"#);
    let data = format!(
        r#"{{"type":"TOOL_RESULT_DATA_DELTA","toolCallId":"c2","data":{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{image}"}}}}}}"#
    );
    let lines: &[&str] = &[
        r#"{"type":"AGENT_START","replyId":"R"}"#,
        &delta,
        r#"{"type":"TOOL_CALL_START","replyId":"R","toolCallId":"c1","toolCallName":"f"}"#,
        &args,
        r#"{"type":"TOOL_CALL_START","replyId":"R","toolCallId":"c2","toolCallName":"f"}"#,
        &result,
        r#"{"type":"TOOL_RESULT_END","replyId":"R","toolCallId":"c1","state":"success"}"#,
        &data,
        r#"{"type":"TOOL_RESULT_END","replyId":"R","toolCallId":"c2","state":"success"}"#,
        r#"{"type":"AGENT_END","replyId":"R"}"#,
    ];
    let server = TestServer::of_yaml(&script(lines)).await;
    let events = server.run("/agui/a", &saying("t", "r", "x")).await;
    let joined = |kind: &str| {
        let deltas = events.iter().filter(|event| event["type"] == kind);
        deltas.map(|event| event["delta"].as_str().expect("text")).collect::<String>()
    };
    assert!(joined("TEXT_MESSAGE_CONTENT") == long, "the text is not whole");
    assert!(joined("TOOL_CALL_ARGS") == long, "the arguments are not whole");
    let results: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT").collect();
    assert_eq!(results.len(), 2);
    assert!(results[0]["content"] == piece.repeat(1000), "the result is not whole");
    let source = json!({"type":"data","value":image,"mimeType":"image/png"});
    assert!(results[1]["content"] == json!([{"type":"image","source":source}]), "no image");
}

#[tokio::test]
async fn nothing_that_a_client_sends_stands_in_the_log() {
    let log = Captured::start();
    let server = hello().await;
    let mut body = saying("t", "r", MARKER);
    body["messages"] = json!([
        {"id": "m1", "role": "system", "content": MARKER},
        {"id": "m2", "role": "user", "content": MARKER, "extra": MARKER},
        {"id": "m3", "role": "tool", "toolCallId": "c", "content": MARKER},
        {"id": "m4", "role": "novel", "content": MARKER},
    ]);
    body["state"] = json!({ MARKER: MARKER });
    body["forwardedProps"] = json!({ "k": MARKER });
    body["resume"] = json!([{ "interruptId": MARKER, "status": "resolved", "payload": MARKER }]);
    let events = server.run("/agui", &body).await;
    assert_eq!(events[2]["delta"], MARKER, "the agent repeats it");
    let wrong = json!({"threadId": {"k": MARKER}, "runId": MARKER, "messages": []});
    let wrong = server.post("/agui").json(&wrong);
    assert_eq!(wrong.send().await.unwrap().status(), 422);
    let broken = server.post("/agui").header("content-type", "application/json");
    let broken = broken.header("authorization", MARKER).body(format!("{{\"{MARKER}\" x"));
    assert_eq!(broken.send().await.unwrap().status(), 400);
    let text = log.text();
    assert_eq!(text.matches("run ended").count(), 1, "{text}");
    assert_eq!(text.matches("request refused").count(), 2, "{text}");
    assert!(!text.contains(MARKER), "{text}");
}
