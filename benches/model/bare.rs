//! The least that shows a model's stream to a front end: one handler, one struct per frame.

use std::{
    convert::Infallible,
    io::Write,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
    routing::post,
};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, stream::BoxStream};
use http_body::Frame;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sse_stream::SseByteStream;
use tokio::{net::TcpListener, runtime::Runtime};

use super::Done;

/// The argument with which this process is one.
pub(super) const WORD: &str = "bare";

/// Serves `POST /agui/{way}`; says on stdout where.
pub(super) fn serve(model: &str) -> Done<()> {
    let client =
        agentscope_agui::http_client::build(&[], agentscope_agui::http_client::Redirects::None)?;
    let app =
        Router::new().route("/agui/{way}", post(answer)).with_state((client, model.to_owned()));
    Runtime::new()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut out = std::io::stdout();
        writeln!(out, "http://{}/", listener.local_addr()?)?;
        out.flush()?;
        let listener = axum::serve::ListenerExt::tap_io(listener, |io| drop(io.set_nodelay(true)));
        axum::serve(listener, app).await?;
        Ok(())
    })
}

async fn answer(
    State((client, model)): State<(reqwest::Client, String)>,
    Path(way): Path<String>,
    body: Bytes,
) -> Response {
    let Ok(input) = serde_json::from_slice::<Value>(&body) else {
        return "no JSON".into_response();
    };
    let request = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": input["messages"][0]["content"]},
        ],
    });
    let sent = client.post(format!("{model}/{way}/chat/completions")).json(&request).send().await;
    let Ok(response) = sent else { return "no answer".into_response() };
    let frames = Box::pin(SseByteStream::new(response.bytes_stream()));
    let frames = frames.filter_map(|frame| async move { said(&frame.ok()?.data?) }).boxed();
    let mut buffer = BytesMut::new();
    let (thread, run) = (&input["threadId"], &input["runId"]);
    write(&mut buffer, &json!({"type": "RUN_STARTED", "threadId": thread, "runId": run}));
    write(
        &mut buffer,
        &json!({"type": "TEXT_MESSAGE_START", "messageId": ID, "role": "assistant"}),
    );
    let end = [
        json!({"type": "TEXT_MESSAGE_END", "messageId": ID}),
        json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run}),
    ];
    let body = Body::new(Frames { frames, buffer, end: Some(end) });
    ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
}

const ID: &str = "6f0c4f0de4a14b39-1";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    r#type: &'a str,
    message_id: &'a str,
    delta: &'a str,
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Said,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
}

/// The text of an event of the model.
fn said(data: &str) -> Option<String> {
    let chunk: Chunk = serde_json::from_str(data).ok()?;
    chunk.choices.into_iter().next()?.delta.content
}

fn write(buffer: &mut BytesMut, frame: &impl Serialize) {
    buffer.extend_from_slice(b"data: ");
    // What cannot be written is missed by whoever reads.
    buffer.extend_from_slice(&serde_json::to_vec(frame).unwrap_or_default());
    buffer.extend_from_slice(b"\n\n");
}

/// What is ready leaves in one write.
struct Frames {
    frames: BoxStream<'static, String>,
    buffer: BytesMut,
    /// `None` = sent.
    end: Option<[Value; 2]>,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.end.is_none() {
            return Poll::Ready(None);
        }
        while let Poll::Ready(delta) = Pin::new(&mut self.frames).poll_next(cx) {
            let Some(delta) = delta else {
                for event in self.end.take().into_iter().flatten() {
                    write(&mut self.buffer, &event);
                }
                break;
            };
            let delta = Delta { r#type: "TEXT_MESSAGE_CONTENT", message_id: ID, delta: &delta };
            write(&mut self.buffer, &delta);
        }
        if self.buffer.is_empty() {
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(self.buffer.split().freeze()))))
    }
}
