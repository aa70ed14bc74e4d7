//! A call of a tool, from its request to its result or its question.

use std::{sync::Arc, time::Duration};

use agui_adapter::model::event::{Object, ResultState};
use rmcp::{
    ErrorData,
    model::{
        CallToolRequest, CallToolRequestParams, ElicitResult, ProgressNotificationParam,
        RequestMetaObject,
    },
};
use serde_json::json;
use tokio::{sync::oneshot, time::sleep};

use super::{
    content, fault,
    flight::{Failure, Flight, Heard},
    questions::{self, Needs, Parked, Question},
    server::Server,
};
use crate::tools::{Tool, ToolCall, ToolContext, ToolEnd, ToolEvent, ToolSpec, ToolStream};

/// How often a server may ask for the same call again without asking anybody anything.
const MAX_ROUNDS: u32 = 10;
/// How much of the words of a refusal is told, in bytes.
const MAX_REFUSAL: usize = 2_000;
/// The wait before the first of these rounds; each is longer by as much.
const ROUND: Duration = Duration::from_millis(200);

/// A tool of an MCP server, for one session.
#[derive(Clone, Debug)]
pub(super) struct McpTool {
    server: Arc<Server>,
    session: Arc<str>,
    spec: ToolSpec,
}

impl McpTool {
    pub(super) fn new(server: Arc<Server>, session: Arc<str>, spec: ToolSpec) -> Self {
        Self { server, session, spec }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        let tool = self.clone();
        Box::pin(async_stream::stream! {
            let mut talk = match tool.begin(&call).await {
                Ok(flight) => Talk { tool, call, flight, rounds: 0 },
                Err(failure) => {
                    yield ToolEvent::End(tool.failed(&call, failure));
                    return;
                }
            };
            loop {
                match talk.next().await {
                    Step::Progress(told) => yield progress(told),
                    Step::End(end) => {
                        yield ToolEvent::End(end);
                        return;
                    }
                    Step::Asks(question) => {
                        yield ToolEvent::End(talk.hold(question));
                        return;
                    }
                }
            }
        })
    }
}

impl McpTool {
    /// Makes the call, or goes on with it.
    async fn begin(&self, call: &ToolCall) -> Result<Flight, Failure> {
        let Some(answer) = &call.answer else { return self.send(call, self.params(call)).await };
        let payload = answer.payload.clone();
        match answer.parked.as_deref().and_then(Parked::read).ok_or(Failure::Forgotten)? {
            Parked::Again { request_state, input_requests } => {
                let mut params = self.params(call);
                params.input_responses = Some(questions::answers(&input_requests, payload));
                params.request_state = request_state;
                self.send(call, params).await
            }
            Parked::Held { elicitation } => {
                let used = self.server.link(&self.session).map_err(Failure::NotReady)?;
                // The call waits in the connection in which it was made, or nowhere.
                let held = used.link().current().and_then(|live| live.tap.take(&elicitation));
                let Held { flight, answer } = held.ok_or(Failure::Forgotten)?;
                answer.send(questions::answer(payload)).map_err(|_gone| Failure::Forgotten)?;
                Ok(flight)
            }
        }
    }

    fn params(&self, call: &ToolCall) -> CallToolRequestParams {
        CallToolRequestParams::new(self.spec.name.clone()).with_arguments(call.arguments.clone())
    }

    async fn send(
        &self,
        call: &ToolCall,
        params: CallToolRequestParams,
    ) -> Result<Flight, Failure> {
        let used = self.server.link(&self.session).map_err(Failure::NotReady)?;
        let patience = self.server.setup.config.timeout;
        let ready = used.link().ready(patience, false).await.map_err(Failure::NotReady)?;
        Flight::send(used, ready.live, CallToolRequest::new(params), meta(&call.context)).await
    }

    /// What the model reads of a failure; the log reads more.
    fn failed(&self, call: &ToolCall, failure: Failure) -> ToolEnd {
        let name = &self.spec.name;
        let text = match &failure {
            Failure::NotReady(_) => {
                format!("The tool `{name}` is unavailable: its server is not connected.")
            }
            Failure::Lost(_) => format!(
                "The tool `{name}` failed: the connection to its server was lost. Whether it did \
                 its work is not known."
            ),
            Failure::TimedOut(after) => format!(
                "The tool `{name}` did not answer within {} and was cancelled.",
                words(*after)
            ),
            Failure::Refused(ErrorData { message, .. }) => {
                let message = content::cut(message.to_string(), MAX_REFUSAL);
                format!("The tool `{name}` failed: {message}")
            }
            Failure::Forgotten => format!(
                "The tool `{name}` failed: it waited for an answer that came too late. It can be \
                 called again."
            ),
            Failure::Strange => {
                format!("The tool `{name}` failed: its server's answer is not understood.")
            }
        };
        if let Some(cause) = failure.cause() {
            let (server, request) = (&*self.server.setup.name, &*call.context.request_id);
            tracing::warn!(
                request.id = request,
                mcp.server = server,
                tool = name,
                cause,
                "a tool failed"
            );
        }
        ToolEnd::text(text, ResultState::Error)
    }
}

/// A call that was made.
struct Talk {
    tool: McpTool,
    call: ToolCall,
    flight: Flight,
    rounds: u32,
}

enum Step {
    Progress(ProgressNotificationParam),
    End(ToolEnd),
    Asks(Question),
}

impl Talk {
    async fn next(&mut self) -> Step {
        match self.round().await {
            Ok(step) => step,
            Err(failure) => Step::End(self.tool.failed(&self.call, failure)),
        }
    }

    async fn round(&mut self) -> Result<Step, Failure> {
        loop {
            let patience = self.tool.server.setup.config.timeout;
            match self.flight.heard(patience).await? {
                Heard::Progress(progress) => return Ok(Step::Progress(progress)),
                // The run was slow to read, and the server was told already that nobody answers.
                Heard::Asks(question) if question.is_over() => {}
                Heard::Asks(question) => return Ok(Step::Asks(question)),
                Heard::Result(result) => return Ok(Step::End(content::end(result))),
                Heard::InputRequired(result) => match questions::needs(result) {
                    Needs::Person(question) => return Ok(Step::End(question)),
                    Needs::Again(state) if self.rounds < MAX_ROUNDS => self.again(state).await?,
                    Needs::Again(_) | Needs::Else => return Err(Failure::Strange),
                },
            }
        }
    }

    /// The server wants the same call once more, a little later.
    async fn again(&mut self, request_state: String) -> Result<(), Failure> {
        self.rounds += 1;
        sleep(ROUND * self.rounds).await;
        let params = self.tool.params(&self.call).with_request_state(request_state);
        self.flight = self.tool.send(&self.call, params).await?;
        Ok(())
    }

    /// Keeps the call in its connection until the question is answered.
    fn hold(self, question: Question) -> ToolEnd {
        let (end, id, answer) = question.ask();
        let tap = Arc::clone(self.flight.tap());
        tap.hold(id, Held { flight: self.flight, answer });
        end
    }
}

/// A call that waits for an answer.
#[derive(Debug)]
pub(super) struct Held {
    flight: Flight,
    answer: oneshot::Sender<ElicitResult>,
}

impl Held {
    /// Nobody waits for the answer any more.
    pub(super) fn is_over(&self) -> bool {
        self.answer.is_closed()
    }
}

fn progress(told: ProgressNotificationParam) -> ToolEvent {
    let ProgressNotificationParam { progress, total, message, .. } = told;
    ToolEvent::Progress { progress, total, message }
}

/// What a server is told of the run.
fn meta(context: &ToolContext) -> RequestMetaObject {
    let mut meta = Object::new();
    meta.insert("agentscope.agui/threadId".to_owned(), context.thread_id.as_str().into());
    meta.insert("agentscope.agui/runId".to_owned(), context.run_id.as_str().into());
    let resolved = context.runtime.resolved();
    if !resolved.is_empty() {
        meta.insert("agentscope.agui/context".to_owned(), json!(resolved));
    }
    meta.into()
}

/// A time for people.
fn words(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}

impl Failure {
    /// For the log; what the model is told needs no more.
    fn cause(&self) -> Option<String> {
        match self {
            Self::NotReady(cause) => Some(cause.clone()),
            Self::Lost(error) => Some(fault::service(error)),
            Self::Refused(error) => Some(format!("it refused with code {}", error.code.0)),
            Self::TimedOut(_) => Some("it did not answer in time".to_owned()),
            Self::Forgotten => Some("its question is not open any more".to_owned()),
            Self::Strange => Some("its answer is not understood".to_owned()),
        }
    }
}
