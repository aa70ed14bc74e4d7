//! One request in the air: what comes back, and what becomes of it when nobody waits any more.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolResult, ClientRequest, InputRequiredResult,
        ProgressNotificationParam, RequestMetaObject, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle},
};
use tokio::{sync::mpsc, time::sleep};

use super::{
    connection::Live,
    link::Use,
    questions::Question,
    tap::{Signal, Signals, Tap},
};

/// Why a call has no result.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection.
    NotReady(String),
    /// The connection broke.
    Lost(ServiceError),
    /// Nothing came for so long.
    TimedOut(Duration),
    /// The server said no.
    Refused(ErrorData),
    /// The call that an answer belongs to is gone.
    Forgotten,
    /// The answer is none.
    Strange,
}

/// What comes back.
#[derive(Debug)]
pub(super) enum Heard {
    Progress(ProgressNotificationParam),
    Asks(Question),
    Result(CallToolResult),
    InputRequired(InputRequiredResult),
}

type Answer = Result<ServerResult, ServiceError>;

/// A request in the air. Dropped before its answer came, it is cancelled at the server.
#[derive(Debug)]
pub(super) struct Flight {
    /// `None` = the answer came.
    handle: Option<RequestHandle<RoleClient>>,
    /// It came, and what came before it has to be told first.
    answer: Option<Answer>,
    signals: mpsc::Receiver<Signal>,
    live: Arc<Live>,
    used: Use,
}

impl Flight {
    pub(super) async fn send(
        used: Use,
        live: Arc<Live>,
        mut request: CallToolRequest,
        meta: RequestMetaObject,
    ) -> Result<Self, Failure> {
        let (sender, signals) = Signals::new();
        request.extensions.insert(sender);
        let request = ClientRequest::CallToolRequest(request);
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let sent = live.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|error| lost(&used, &live, error))?;
        Ok(Self { handle: Some(handle), answer: None, signals, live, used })
    }

    pub(super) fn tap(&self) -> &Arc<Tap> {
        &self.live.tap
    }

    /// What comes next; a failure if nothing does for `patience`.
    pub(super) async fn heard(&mut self, patience: Duration) -> Result<Heard, Failure> {
        if let Some(handle) = &mut self.handle {
            let answer = tokio::select! {
                biased;
                Some(signal) = self.signals.recv() => return Ok(told(signal)),
                answer = &mut handle.rx => answer.unwrap_or(Err(ServiceError::TransportClosed)),
                () = self.live.tap.gone.cancelled() => {
                    handle.rx.try_recv().unwrap_or(Err(ServiceError::TransportClosed))
                }
                () = sleep(patience) => {
                    // It may be this call that hangs, or the server: then it is started again.
                    self.live.doubt();
                    return Err(Failure::TimedOut(patience));
                }
            };
            self.live.tap.forget(&handle.progress_token);
            self.handle = None;
            self.answer = Some(answer);
        }
        if let Ok(signal) = self.signals.try_recv() {
            return Ok(told(signal));
        }
        match self.answer.take() {
            Some(Ok(result)) => understood(result),
            Some(Err(ServiceError::McpError(error))) => Err(Failure::Refused(error)),
            Some(Err(error)) => Err(lost(&self.used, &self.live, error)),
            None => Err(Failure::Strange),
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.live.tap.forget(&handle.progress_token);
            self.live.give_up(handle);
        }
    }
}

fn told(signal: Signal) -> Heard {
    match signal {
        Signal::Progress(progress) => Heard::Progress(progress),
        Signal::Asks(question) => Heard::Asks(question),
    }
}

fn lost(used: &Use, live: &Arc<Live>, error: ServiceError) -> Failure {
    used.link().doubt(live);
    Failure::Lost(error)
}

/// An answer without content is an empty one, and to `rmcp` one of another kind.
fn understood(result: ServerResult) -> Result<Heard, Failure> {
    match result {
        ServerResult::CallToolResult(result) => Ok(Heard::Result(result)),
        ServerResult::InputRequiredResult(result) => Ok(Heard::InputRequired(result)),
        ServerResult::EmptyResult(_) | ServerResult::TaskAckResult(_) => {
            Ok(Heard::Result(CallToolResult::success(Vec::new())))
        }
        _ => Err(Failure::Strange),
    }
}
