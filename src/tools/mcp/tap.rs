//! What passes between this process and an MCP server, looked at on its way.
//!
//! `rmcp` hands every notification to a task of its own, so progress would come out of order and
//! even behind the result. Here it is taken where it arrives.

use std::{
    borrow::Cow,
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleClient,
    model::{
        ClientRequest, GetMeta, JsonRpcMessage, ProgressNotificationParam, ProgressToken,
        RequestId, ServerNotification,
    },
    service::{InboundStreamOrigin, RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, common::client_side_sse::SseRetryPolicy},
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{call::Held, content, questions::Question};

/// What a call may have waiting that nobody has read. Progress beyond is left out.
const WAITING: usize = 256;

/// The longest message of progress, in bytes.
const MAX_MESSAGE: usize = 2_000;

/// How long a stream that broke rests before it is opened again; each time twice as long.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// What comes for a call before its result.
#[derive(Debug)]
pub(super) enum Signal {
    /// How far it is.
    Progress(ProgressNotificationParam),
    /// The server asks the person, and the call waits.
    Asks(Question),
}

/// Where a call's signals go; travels with its request, out of sight of the wire.
#[derive(Clone, Debug)]
pub(super) struct Signals(mpsc::Sender<Signal>);

impl Signals {
    pub(super) fn new() -> (Self, mpsc::Receiver<Signal>) {
        let (signals, heard) = mpsc::channel(WAITING);
        (Self(signals), heard)
    }

    /// Gives it to the call, unless the call is gone or does not read.
    pub(super) fn send(&self, signal: Signal) -> bool {
        self.0.try_send(signal).is_ok()
    }
}

/// What is known of one connection.
#[derive(Debug, Default)]
pub(super) struct Tap {
    calls: Mutex<HashMap<ProgressToken, (RequestId, Signals)>>,
    held: Mutex<HashMap<String, Held>>,
    /// The list of tools has to be asked for again.
    pub(super) relist: Notify,
    /// The connection is over.
    pub(super) gone: CancellationToken,
}

impl Tap {
    /// The call has ended, or nobody waits for it.
    pub(super) fn forget(&self, token: &ProgressToken) {
        lock(&self.calls).remove(token);
    }

    /// Keeps a call until its question is answered; one whose question is over already is given
    /// up.
    pub(super) fn hold(&self, question: String, held: Held) {
        let mut all = lock(&self.held);
        if !held.is_over() {
            all.insert(question, held);
        }
    }

    /// The call that waits for this answer, if it still does.
    pub(super) fn take(&self, question: &str) -> Option<Held> {
        lock(&self.held).remove(question)
    }

    /// The call in whose middle the server asks: the one whose stream brought the question, else
    /// the only one there is. Of several, nobody knows whom the question is for.
    pub(super) fn asking(&self, origin: Option<&InboundStreamOrigin>) -> Option<Signals> {
        let calls = lock(&self.calls);
        if let Some(InboundStreamOrigin::OutboundRequest(wanted)) = origin {
            let mut all = calls.values();
            return all.find(|(id, _)| id == wanted).map(|(_, signals)| signals.clone());
        }
        let mut all = calls.values();
        let only = all.next().filter(|_| calls.len() == 1);
        only.map(|(_, signals)| signals.clone())
    }

    fn sent(&self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(request) = message else { return };
        let ClientRequest::CallToolRequest(call) = &request.request else { return };
        let token = request.request.get_meta().get_progress_token();
        if let (Some(token), Some(signals)) = (token, call.extensions.get::<Signals>()) {
            lock(&self.calls).insert(token, (request.id.clone(), signals.clone()));
        }
    }

    fn received(&self, message: &RxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Notification(notification) = message else { return };
        match &notification.notification {
            ServerNotification::ProgressNotification(progress) => {
                let calls = lock(&self.calls);
                if let Some((_, signals)) = calls.get(&progress.params.progress_token) {
                    let mut params = progress.params.clone();
                    params.message = params.message.map(|text| content::cut(text, MAX_MESSAGE));
                    signals.send(Signal::Progress(params));
                }
            }
            ServerNotification::ToolListChangedNotification(_) => self.relist.notify_one(),
            _ => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The rule by which a stream of a server over HTTP that broke is opened again: for ever, since
/// this never gives a call up. So whenever one breaks, the connection itself is looked at.
#[derive(Debug)]
pub(super) struct Broken(pub(super) Arc<Tap>);

impl SseRetryPolicy for Broken {
    fn retry(&self, times: usize) -> Option<Duration> {
        self.0.relist.notify_one();
        let doubled = u32::try_from(times).ok().and_then(|times| 2_u32.checked_pow(times));
        let rest = doubled.and_then(|factor| FIRST_REST.checked_mul(factor));
        Some(rest.unwrap_or(LONGEST_REST).min(LONGEST_REST))
    }
}

/// A transport with a [`Tap`].
#[derive(Debug)]
pub(super) struct Tapped<T> {
    inner: T,
    tap: Arc<Tap>,
}

impl<T> Tapped<T> {
    pub(super) fn new(inner: T, tap: Arc<Tap>) -> Self {
        Self { inner, tap }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Tapped<T> {
    type Error = T::Error;

    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.tap.sent(&item);
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = self.inner.receive().await;
        match &message {
            Some(message) => self.tap.received(message),
            None => self.tap.gone.cancel(),
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolRequest, CallToolRequestParams, NumberOrString, RequestMetaObject};

    use super::*;

    fn token(id: i64) -> ProgressToken {
        ProgressToken(NumberOrString::Number(id))
    }

    /// A call leaves; gives what comes for it.
    fn leaves(tap: &Tap, id: i64) -> mpsc::Receiver<Signal> {
        let (signals, heard) = Signals::new();
        let mut request = CallToolRequest::new(CallToolRequestParams::new("t"));
        request.extensions.insert(RequestMetaObject::with_progress_token(token(id)));
        request.extensions.insert(signals);
        let request = ClientRequest::CallToolRequest(request);
        tap.sent(&JsonRpcMessage::request(request, RequestId::Number(id)));
        heard
    }

    /// Which of the calls is asked when a question comes from there.
    fn asked(
        tap: &Tap,
        origin: Option<&InboundStreamOrigin>,
        calls: &mut [&mut mpsc::Receiver<Signal>],
    ) -> Vec<bool> {
        if let Some(signals) = tap.asking(origin) {
            let params = ProgressNotificationParam::new(token(0), 1.0);
            assert!(signals.send(Signal::Progress(params)));
        }
        calls.iter_mut().map(|call| call.try_recv().is_ok()).collect()
    }

    #[test]
    fn a_question_belongs_to_the_call_that_it_came_with_or_to_the_only_one() {
        let tap = Tap::default();
        assert!(tap.asking(None).is_none());
        let (mut first, mut second) = (leaves(&tap, 1), leaves(&tap, 2));
        let mut calls = [&mut first, &mut second];
        // Whom it is for nobody knows, and it must not be shown to the wrong person.
        assert_eq!(asked(&tap, None, &mut calls), [false, false]);
        let unassociated = InboundStreamOrigin::Unassociated;
        assert_eq!(asked(&tap, Some(&unassociated), &mut calls), [false, false]);
        let of = |id| InboundStreamOrigin::OutboundRequest(RequestId::Number(id));
        assert_eq!(asked(&tap, Some(&of(2)), &mut calls), [false, true]);
        assert_eq!(asked(&tap, Some(&of(3)), &mut calls), [false, false]);
        tap.forget(&token(2));
        assert_eq!(asked(&tap, Some(&of(2)), &mut calls), [false, false]);
        assert_eq!(asked(&tap, None, &mut calls), [true, false]);
    }
}
