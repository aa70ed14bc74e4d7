//! A server of our own over HTTP, made with the library that the client is made with: what only a
//! server can tell that the test controls.

use std::{
    borrow::Cow,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use agentscope_agui::tools::mcp::McpStatus;
use axum::{Router, extract::Request, middleware, middleware::Next, response::Response};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest,
        ElicitRequestParams, ErrorCode, InputRequest, InputRequests, InputRequiredResult,
        ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion,
        ServerCapabilities, ServerConfig, SubscriptionFilter, Tool as McpTool,
    },
    service::{RequestContext, SubscriptionContext},
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use tokio::{
    net::TcpListener,
    sync::{Notify, watch},
    task::JoinHandle,
};

use super::*;

/// Which protocol the server speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Era {
    /// 2026-07-28.
    New,
    /// The ones before.
    Old,
}

pub(super) const ERAS: [Era; 2] = [Era::New, Era::Old];

#[derive(Clone)]
struct Handler(Arc<Shared>);

struct Shared {
    era: Era,
    grown: AtomicBool,
    changed: Notify,
    cancelled: Notify,
    /// Values of the header `x-key`, as they came.
    keys: Mutex<Vec<Option<String>>>,
    /// The states with which `later` was called.
    calls: Mutex<Vec<Option<String>>>,
    /// What questions in the middle of a call were answered with.
    answers: watch::Sender<Vec<String>>,
}

impl Handler {
    async fn count(&self, context: &RequestContext<RoleServer>) {
        let token = context.meta.get_progress_token().unwrap();
        for step in 1..=3 {
            let told = ProgressNotificationParam::new(token.clone(), f64::from(step))
                .with_total(3.0)
                .with_message(format!("step {step}"));
            context.peer.notify_progress(told).await.unwrap();
        }
    }
}

fn form(message: &str, field: &str) -> ElicitRequestParams {
    let schema = json!({
        "type": "object", "properties": {field: {"type": "string"}}, "required": [field],
    });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.to_owned(),
        requested_schema: serde_json::from_value(schema).unwrap(),
    }
}

pub(super) fn schema(field: &str) -> Value {
    json!({"type": "object", "properties": {field: {"type": "string"}}, "required": [field]})
}

fn said(words: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

fn needs(questions: &[(&str, &str, &str)], state: &str) -> CallToolResponse {
    let request = |(id, message, field): &(&str, &str, &str)| {
        let request = ElicitRequest::new(form(message, field));
        ((*id).to_owned(), InputRequest::Elicitation(request))
    };
    let requests: InputRequests = questions.iter().map(request).collect();
    InputRequiredResult::new(Some(requests), Some(state.to_owned())).into()
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(match self.0.era {
            Era::New => ProtocolVersion::KNOWN_VERSIONS,
            Era::Old => ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25),
        })
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        loop {
            tokio::select! {
                () = self.0.changed.notified() => {
                    context.sink().notify_tool_list_changed().await.unwrap();
                }
                () = context.cancelled() => return Ok(()),
            }
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut names = vec!["count", "wait", "ask", "both", "later", "elicit", "refuse", "grow"];
        if self.0.grown.load(Ordering::SeqCst) {
            names.push("grown");
        }
        let schema = json!({"type": "object"}).as_object().unwrap().clone();
        let tools = names.into_iter().map(|name| McpTool::new(name, "", schema.clone()));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (answers, state) = (request.input_responses, request.request_state);
        Ok(match (&*request.name, state.as_deref()) {
            ("count", _) => {
                self.count(&context).await;
                said("counted")
            }
            ("wait", _) => {
                self.count(&context).await;
                context.ct.cancelled().await;
                self.0.cancelled.notify_one();
                said("too late")
            }
            ("ask", None) => needs(&[("q", "Your name?", "name")], "first"),
            ("ask", Some("first")) if json!(answers)["q"]["content"]["name"] == "again" => {
                needs(&[("q2", "Really?", "name")], "second")
            }
            ("both", None) => needs(&[("a", "Name?", "name"), ("b", "Town?", "town")], "both"),
            ("ask" | "both", Some(state)) => said(format!("{state} {}", json!(answers))),
            ("later", state) => {
                self.0.calls.lock().unwrap().push(state.map(str::to_owned));
                match state {
                    Some("2") => said("now"),
                    state => {
                        let next = if state.is_none() { "1" } else { "2" };
                        InputRequiredResult::from_request_state(next).into()
                    }
                }
            }
            ("elicit", _) => {
                let answer = context.peer.create_elicitation(form("Your name?", "name")).await;
                let answer = json!(answer.unwrap()).to_string();
                self.0.answers.send_modify(|all| all.push(answer.clone()));
                said(answer)
            }
            ("grow", _) => {
                self.0.grown.store(true, Ordering::SeqCst);
                match self.0.era {
                    Era::New => self.0.changed.notify_one(),
                    Era::Old => context.peer.notify_tool_list_changed().await.unwrap(),
                }
                said("grown")
            }
            ("refuse", _) => {
                return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, "not like this", None));
            }
            (name, _) => said(name),
        })
    }
}

/// A server that listens.
pub(super) struct Ours {
    shared: Arc<Shared>,
    pub(super) address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<()>,
}

impl Ours {
    pub(super) async fn start(era: Era) -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), era).await
    }

    async fn at(address: SocketAddr, era: Era) -> Self {
        let shared = Arc::new(Shared {
            era,
            grown: AtomicBool::new(false),
            changed: Notify::new(),
            cancelled: Notify::new(),
            keys: Mutex::default(),
            calls: Mutex::default(),
            answers: watch::Sender::default(),
        });
        let stop = CancellationToken::new();
        let handler = Handler(Arc::clone(&shared));
        let service: StreamableHttpService<Handler, LocalSessionManager> =
            StreamableHttpService::new(
                move || Ok(handler.clone()),
                Arc::default(),
                StreamableHttpServerConfig::default().with_cancellation_token(stop.child_token()),
            );
        let seen = Arc::clone(&shared);
        let note = middleware::from_fn(move |request: Request, next: Next| {
            let key = request.headers().get("x-key").map(|key| key.to_str().unwrap().to_owned());
            seen.keys.lock().unwrap().push(key);
            async move { Response::from(next.run(request).await) }
        });
        let router = Router::new().nest_service("/mcp", service).layer(note);
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let ended = stop.clone();
        let served = TaskTracker::new().spawn(async move {
            tokio::select! {
                served = axum::serve(listener, router) => served.unwrap(),
                () = ended.cancelled() => {}
            }
        });
        Self { shared, address, stop, served }
    }

    fn config(&self) -> McpServerConfig {
        server(http(format!("http://{}/mcp", self.address)))
    }

    /// Resolves when the server's tool has seen that its call is cancelled.
    pub(super) async fn cancelled(&self) {
        self.shared.cancelled.notified().await;
    }

    /// Ends it with all its connections.
    pub(super) async fn end(self) -> SocketAddr {
        self.stop.cancel();
        self.served.await.unwrap();
        self.address
    }
}

fn step(step: i32) -> ToolEvent {
    ToolEvent::Progress {
        progress: f64::from(step),
        total: Some(3.0),
        message: Some(format!("step {step}")),
    }
}

fn asks(message: &str, schema: &Value, parked: Option<Value>) -> ToolEvent {
    let schema = schema.as_object().cloned();
    ToolEvent::End(ToolEnd::Asks { message: message.to_owned(), schema, parked })
}

/// The call that goes on with an answer.
fn answering(parked: Option<Value>, payload: Option<Value>) -> ToolCall {
    ToolCall {
        answer: Some(ToolAnswer { parked: parked.map(Arc::new), payload }),
        ..call(json!({}))
    }
}

async fn all(tool: &Arc<dyn Tool>, call: ToolCall) -> Vec<ToolEvent> {
    tool.call(call).collect().await
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_result() {
    for era in ERAS {
        let ours = Ours::start(era).await;
        let mcp = Mcp::start(ours.config());
        for _round in 0..20 {
            assert_eq!(
                mcp.call("count", json!({})).await,
                [step(1), step(2), step(3), success(vec![text("counted")])],
                "{era:?}"
            );
        }
        mcp.end().await;
        ours.end().await;
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_reaches_the_token_of_the_tool() {
    for era in ERAS {
        let ours = Ours::start(era).await;
        let mcp = Mcp::start(ours.config());
        let mut waits = mcp.start_call("wait", json!({})).await;
        assert_eq!(waits.next().await, Some(step(1)));
        drop(waits);
        ours.cancelled().await;
        mcp.end().await;
        ours.end().await;
    }
}

#[tokio::test]
async fn what_a_server_refuses_is_told_to_the_model() {
    for era in ERAS {
        let ours = Ours::start(era).await;
        let mcp = Mcp::start(ours.config());
        let expected = error("The tool `refuse` failed: not like this");
        assert_eq!(mcp.call("refuse", json!({})).await, [expected]);
        mcp.end().await;
        ours.end().await;
    }
}

#[tokio::test]
async fn every_request_has_the_headers() {
    let ours = Ours::start(Era::New).await;
    let url = format!("http://{}/mcp", ours.address);
    let headers = BTreeMap::from([("x-key".to_owned(), Secret::new("k1"))]);
    let mcp = Mcp::start(server(McpTransport::Http { url, headers }));
    assert_eq!(mcp.call("grow", json!({})).await, [success(vec![text("grown")])]);
    let mut keys = ours.shared.keys.lock().unwrap().clone();
    keys.dedup();
    assert_eq!(keys, [Some("k1".to_owned())]);
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn a_list_that_changes_is_asked_for_again() {
    for era in ERAS {
        let ours = Ours::start(era).await;
        let mcp = Mcp::start(ours.config());
        let before = mcp.names().await.len();
        assert_eq!(mcp.call("grow", json!({})).await, [success(vec![text("grown")])]);
        while mcp.names().await.len() == before {
            tokio::task::yield_now().await;
        }
        assert_eq!(mcp.names().await.last().map(String::as_str), Some("grown"));
        mcp.end().await;
        ours.end().await;
    }
}

#[tokio::test]
async fn a_call_that_needs_input_asks_and_is_made_again_with_the_answer() {
    let ours = Ours::start(Era::New).await;
    let mcp = Mcp::start(ours.config());
    let tool = mcp.tool("ask").await;
    let first = Some(json!({"requestState": "first", "inputRequests": ["q"]}));
    let question = asks("Your name?", &schema("name"), first.clone());
    assert_eq!(all(&tool, call(json!({}))).await, [question]);
    // Another process could do this as well: it knows nothing but what was parked.
    let elsewhere = Mcp::start(ours.config());
    let tool = elsewhere.tool("ask").await;
    let answer = Some(json!({"name": "Ada"}));
    let result = r#"first {"q":{"action":"accept","content":{"name":"Ada"}}}"#;
    assert_eq!(all(&tool, answering(first.clone(), answer)).await, [success(vec![text(result)])]);
    let declined = r#"first {"q":{"action":"decline"}}"#;
    assert_eq!(all(&tool, answering(first.clone(), None)).await, [success(vec![text(declined)])]);
    // An answer may lead to another question.
    let second = Some(json!({"requestState": "second", "inputRequests": ["q2"]}));
    assert_eq!(
        all(&tool, answering(first, Some(json!({"name": "again"})))).await,
        [asks("Really?", &schema("name"), second.clone())]
    );
    let result = r#"second {"q2":{"action":"accept","content":{"name":"yes"}}}"#;
    assert_eq!(
        all(&tool, answering(second, Some(json!({"name": "yes"})))).await,
        [success(vec![text(result)])]
    );
    elsewhere.end().await;
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn several_questions_of_one_call_are_one_form() {
    let ours = Ours::start(Era::New).await;
    let mcp = Mcp::start(ours.config());
    let tool = mcp.tool("both").await;
    let parked = Some(json!({"requestState": "both", "inputRequests": ["a", "b"]}));
    let with = |field: &str, question: &str| {
        let mut schema = schema(field);
        schema["description"] = question.into();
        schema
    };
    let form = json!({
        "type": "object",
        "properties": {"a": with("name", "Name?"), "b": with("town", "Town?")},
        "required": ["a", "b"],
    });
    assert_eq!(all(&tool, call(json!({}))).await, [asks("Name?\nTown?", &form, parked.clone())]);
    let answer = Some(json!({"a": {"name": "Ada"}, "b": {"town": "London"}}));
    let result = r#"both {"a":{"action":"accept","content":{"name":"Ada"}},"b":{"action":"accept","content":{"town":"London"}}}"#;
    assert_eq!(all(&tool, answering(parked, answer)).await, [success(vec![text(result)])]);
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn a_call_that_is_only_put_off_is_made_again() {
    let ours = Ours::start(Era::New).await;
    let mcp = Mcp::start(ours.config());
    assert_eq!(mcp.call("later", json!({})).await, [success(vec![text("now")])]);
    let calls = ours.shared.calls.lock().unwrap().clone();
    assert_eq!(calls, [None, Some("1".to_owned()), Some("2".to_owned())]);
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn a_question_in_the_middle_of_a_call_is_declined() {
    let ours = Ours::start(Era::Old).await;
    let mcp = Mcp::start(ours.config());
    let declined = success(vec![text(r#"{"action":"decline"}"#)]);
    assert_eq!(mcp.call("elicit", json!({})).await, [declined]);
    mcp.end().await;
    ours.end().await;
}

fn waiting(ours: &Ours, timeout: Duration) -> McpServerConfig {
    McpServerConfig { elicitation: Elicitation::Wait, timeout, ..ours.config() }
}

/// What a call parked that asks in its middle.
fn held(events: &[ToolEvent]) -> Option<Value> {
    let [ToolEvent::End(ToolEnd::Asks { message, schema: form, parked })] = events else {
        panic!("{events:?}");
    };
    assert_eq!(message, "Your name?");
    assert_eq!(json!(form), schema("name"));
    let parked = parked.clone().unwrap();
    assert!(parked["elicitation"].is_string(), "{parked}");
    Some(parked)
}

#[tokio::test]
async fn with_wait_the_call_stays_open_until_the_answer() {
    let ours = Ours::start(Era::Old).await;
    let mcp = Mcp::start(waiting(&ours, LONG));
    let tool = mcp.tool("elicit").await;
    let parked = held(&all(&tool, call(json!({}))).await);
    let answer = Some(json!({"name": "Ada"}));
    let result = r#"{"action":"accept","content":{"name":"Ada"}}"#;
    assert_eq!(
        all(&tool, answering(parked.clone(), answer.clone())).await,
        [success(vec![text(result)])]
    );
    // It has been answered.
    assert_eq!(all(&tool, answering(parked, answer)).await, [too_late()]);
    let parked = held(&all(&tool, call(json!({}))).await);
    let declined = success(vec![text(r#"{"action":"decline"}"#)]);
    assert_eq!(all(&tool, answering(parked, None)).await, [declined]);
    mcp.end().await;
    ours.end().await;
}

fn too_late() -> ToolEvent {
    error(
        "The tool `elicit` failed: it waited for an answer that came too late. It can be called \
         again.",
    )
}

#[tokio::test]
async fn with_wait_an_answer_after_a_restart_is_too_late() {
    let ours = Ours::start(Era::Old).await;
    let mcp = Mcp::start(waiting(&ours, LONG));
    let parked = held(&mcp.call("elicit", json!({})).await);
    mcp.end().await;
    let mcp = Mcp::start(waiting(&ours, LONG));
    let tool = mcp.tool("elicit").await;
    let answer = Some(json!({"name": "Ada"}));
    assert_eq!(all(&tool, answering(parked, answer)).await, [too_late()]);
    assert_eq!(all(&tool, answering(None, None)).await, [too_late()]);
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn with_wait_a_question_that_nobody_answers_is_declined_in_the_end() {
    let ours = Ours::start(Era::Old).await;
    let mcp = Mcp::start(waiting(&ours, Duration::from_secs(5)));
    let tool = mcp.tool("elicit").await;
    let parked = held(&all(&tool, call(json!({}))).await);
    let mut answers = ours.shared.answers.subscribe();
    let answers = answers.wait_for(|answers| !answers.is_empty()).await.unwrap().clone();
    assert_eq!(answers, [r#"{"action":"decline"}"#]);
    let answer = Some(json!({"name": "Ada"}));
    assert_eq!(all(&tool, answering(parked, answer)).await, [too_late()]);
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn with_wait_a_question_belongs_to_the_call_in_whose_stream_it_came() {
    let ours = Ours::start(Era::Old).await;
    let mcp = Mcp::start(waiting(&ours, LONG));
    let mut other = mcp.start_call("wait", json!({})).await;
    assert_eq!(other.next().await, Some(step(1)));
    held(&mcp.call("elicit", json!({})).await);
    drop(other);
    mcp.end().await;
    ours.end().await;
}

#[tokio::test]
async fn a_server_that_comes_later_or_again_is_connected() {
    for era in ERAS {
        let ours = Ours::start(era).await;
        let config = ours.config();
        let address = ours.end().await;
        let mcp = Mcp::start(config);
        // It is not there yet.
        let source = mcp.servers.get("s").unwrap();
        let asked = async move { source.tools("").await.map(|tools| tools.len()) };
        let tools = TaskTracker::new().spawn(asked);
        while mcp.servers.status()["s"] != McpStatus::Failed {
            tokio::task::yield_now().await;
        }
        let ours = Ours::at(address, era).await;
        assert_eq!(tools.await.unwrap(), Ok(8));
        let mut waits = mcp.start_call("wait", json!({})).await;
        assert_eq!(waits.next().await, Some(step(1)));
        // It goes away in the middle of a call.
        ours.end().await;
        let rest: Vec<ToolEvent> = waits.collect().await;
        let lost = error(
            "The tool `wait` failed: the connection to its server was lost. Whether it did its \
             work is not known.",
        );
        assert_eq!(rest, [step(2), step(3), lost], "{era:?}");
        let ours = Ours::at(address, era).await;
        assert_eq!(
            mcp.call("count", json!({})).await,
            [step(1), step(2), step(3), success(vec![text("counted")])],
            "{era:?}"
        );
        mcp.end().await;
        ours.end().await;
    }
}
