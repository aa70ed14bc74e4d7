//! What one reply knows: the agent's parts, the run, its tools, and the conversation so far.

use std::{collections::HashSet, sync::Arc};

use agui_adapter::model::{AgentEvent, AgentEventKind, Block, Msg, Role, event::Object};
use agui_protocol::{Message, RunAgentInput};
use futures_util::{StreamExt, future::join_all, stream};
use serde_json::Value;

use super::{
    Parts, Source,
    call::{Outcome, Step, Steps, child_step, steps},
    history,
    keep::Kept,
    park::Parked,
    permission::{Permissions, unknown_rules},
    prompt::with_state,
    resume::{Answers, accepted_rules, slots, with_arguments},
    round::{Round, Start},
    subagent::{self, SubagentCall},
    toolkit::{Entry, EntryKind, OwnTools, Toolkit, ToolkitParts},
    turn::{Made, message, say},
};
use crate::{
    agents::{AgentError, AgentRequest},
    llm::{ModelRequest, ToolChoice},
    tools::{Tool, ToolCall, ToolContext, ToolSource},
};

/// A reply under way.
pub(super) struct Reply {
    parts: Arc<Parts>,
    pub(super) request: AgentRequest,
    pub(super) toolkit: Toolkit,
    pub(super) permissions: Permissions,
    kept: Kept,
    system: String,
    context: Arc<ToolContext>,
    /// The thread's state as it is now.
    pub(super) state: Arc<Value>,
    /// What was said before the reply.
    history: Vec<Arc<Msg>>,
    /// The last message of it, trimmed or not.
    anchor: Option<String>,
    /// What the reply has added, and what the person said meanwhile.
    own: Vec<Arc<Msg>>,
    /// What the person said while the reply waited.
    meanwhile: Vec<Msg>,
    iterations: u32,
    /// Ids that stand for calls.
    pub(super) used: HashSet<String>,
}

impl Reply {
    /// Begins a reply, or goes on with one that waited: then there is a round to go on with.
    ///
    /// # Errors
    ///
    /// When tools that it needs are not there, or an answer cannot be taken.
    pub(super) async fn open(
        parts: Arc<Parts>,
        mut request: AgentRequest,
        out: &mut Vec<AgentEvent>,
    ) -> Result<(Self, Option<Round>), AgentError> {
        let own = parts.own_tools(&request).await?;
        let frontend = &request.input.tools;
        let toolkit = Toolkit::build(ToolkitParts { own: &own, frontend, mode: parts.mode });
        let kept = Kept::read(request.kept.as_deref());
        let above = request.delegation.as_ref().map(|delegation| delegation.denied.as_slice());
        let permissions =
            Permissions::new(&parts.permission, above.unwrap_or_default(), Some(&kept.permissions));
        let messages = std::mem::take(&mut request.messages);
        let context = ToolContext {
            thread_id: request.thread_id.clone(),
            run_id: request.run_id.clone(),
            request_id: Arc::clone(&request.request_id),
            runtime: Arc::clone(&request.context),
        };
        let reply = Self {
            system: parts.prompt.fill(&request),
            context: Arc::new(context),
            state: Arc::clone(&request.state),
            used: used_ids(&request.input, &messages),
            history: Vec::new(),
            anchor: None,
            own: Vec::new(),
            meanwhile: Vec::new(),
            iterations: 0,
            toolkit,
            permissions,
            kept,
            parts,
            request,
        };
        reply.with_messages(messages, out)
    }

    fn with_messages(
        mut self,
        messages: Vec<Msg>,
        out: &mut Vec<AgentEvent>,
    ) -> Result<(Self, Option<Round>), AgentError> {
        let pending = self.take_pending(&messages, out);
        let Some(value) = self.request.parked.clone() else {
            if let Some(pending) = pending {
                let round = self.go_on(pending, messages, out)?;
                return Ok((self, Some(round)));
            }
            self.anchor = messages.last().map(|last| last.id.clone());
            self.set_history(messages);
            return Ok((self, None));
        };
        let Some(parked) = Parked::read(&value) else {
            return Err(AgentError {
                code: "INTERNAL_ERROR",
                message: "The agent cannot go on with what it had parked.".to_owned(),
                cause: Some("the parked state has another form".to_owned()),
            });
        };
        let round = self.go_on(parked, messages, out)?;
        Ok((self, Some(round)))
    }

    /// A reply that waited for the client's tools, if these messages answer it. It is kept for one
    /// run only.
    fn take_pending(&mut self, messages: &[Msg], out: &mut Vec<AgentEvent>) -> Option<Parked> {
        let pending = self.kept.pending.take()?;
        say(out, self.kept.event());
        let mut pending = Parked::read(&pending)?;
        pending.iterations = 0;
        pending.is_answered_by(messages).then_some(pending)
    }

    /// Goes on with a reply that waited.
    fn go_on(
        &mut self,
        mut parked: Parked,
        mut messages: Vec<Msg>,
        out: &mut Vec<AgentEvent>,
    ) -> Result<Round, AgentError> {
        let mut own = parked.take_messages();
        self.used.extend(call_ids(&own));
        let decisions = std::mem::take(&mut self.request.decisions);
        let answers = Answers::new(&decisions, &messages);
        let slots = slots(parked.calls, &answers, self)?;
        self.accept(&answers, out);
        if let Some(last) = own.iter_mut().rfind(|message| message.role == Role::Assistant) {
            with_arguments(last, &slots);
        }
        let end = history_end(&messages, parked.anchor.as_deref(), &own);
        let later = messages.split_off(end);
        let known = |msg: &Msg| own.iter().any(|own| own.id == msg.id);
        self.meanwhile =
            later.into_iter().filter(|msg| msg.role == Role::User && !known(msg)).collect();
        self.set_history(messages);
        self.anchor = parked.anchor;
        self.iterations = parked.iterations;
        self.own = own.into_iter().map(Arc::new).collect();
        Ok(Round::new(slots))
    }

    /// Takes the permission rules that came along with consents.
    fn accept(&mut self, answers: &Answers<'_>, out: &mut Vec<AgentEvent>) {
        let mut is_news = false;
        for (tool, rules) in accepted_rules(answers) {
            if let Some(entry) = self.toolkit.get(tool) {
                is_news |= self.permissions.accept(entry, rules);
            }
        }
        if is_news {
            self.kept.permissions = self.permissions.kept();
            say(out, self.kept.event());
        }
    }

    /// A sub-agent wants to know something in later runs.
    pub(super) fn child_keeps(&mut self, id: &str, state: Arc<Value>) -> AgentEventKind {
        self.kept.children.insert(id.to_owned(), state);
        self.kept.event()
    }

    fn set_history(&mut self, messages: Vec<Msg>) {
        let recent = history::recent(messages, self.parts.history_limit);
        self.history = recent.into_iter().map(Arc::new).collect();
    }

    /// Whether the model was called as often as it may be.
    pub(super) fn is_at_limit(&self) -> bool {
        self.iterations >= self.parts.max_iters
    }

    /// The next call of the model; in the last one, which sums up, it may call no tools.
    pub(super) fn model_request(&mut self) -> ModelRequest {
        let sums_up = self.is_at_limit();
        self.iterations = self.iterations.saturating_add(1);
        let mut messages = Vec::with_capacity(self.history.len() + self.own.len() + 1);
        messages.extend(self.history.iter().chain(&self.own).cloned());
        if sums_up {
            let hint = Block::Hint { text: SUM_UP.to_owned() };
            messages.push(Arc::new(message(String::new(), Role::User, vec![hint])));
        }
        ModelRequest {
            system: if self.parts.tells_state {
                with_state(&self.system, &self.state)
            } else {
                self.system.clone()
            },
            messages,
            tools: self.toolkit.specs(),
            tool_choice: if sums_up { ToolChoice::None } else { ToolChoice::Auto },
            request_id: Arc::clone(&self.request.request_id),
        }
    }

    /// The model said this.
    pub(super) fn add(&mut self, said: Msg) {
        if !said.content.is_empty() {
            self.own.push(Arc::new(said));
        }
    }

    /// The round is over; the person's words of the meantime follow its results.
    pub(super) fn add_results(&mut self, round: Round) {
        self.own.extend(round.results().map(Arc::new));
        self.own.extend(self.meanwhile.drain(..).map(Arc::new));
    }

    /// Parks the reply with the round that stopped. Calls of the client's tools park no thread:
    /// what the model must be told again and the client is not sure to send back is kept.
    pub(super) fn park(&mut self, round: &Round, out: &mut Vec<AgentEvent>) {
        let anchor = self.anchor.clone();
        let slots = round.slots();
        let parked = Parked::new(anchor, self.iterations, &self.own, slots, &self.toolkit);
        let state = parked.write();
        if parked.waits_for_client_only() && self.own.iter().any(|msg| has_artefact(msg)) {
            self.kept.pending = Some(state.clone());
            say(out, self.kept.event());
        }
        say(out, AgentEventKind::Park { state: Arc::new(state) });
    }

    /// Whether a call of this tool waits for those before it: what changes the state must know what
    /// they made of it.
    pub(super) fn runs_in_turn(&self, tool: &str) -> bool {
        !self.parts.parallel_tool_calls || self.toolkit.get(tool).is_some_and(Entry::changes_state)
    }

    /// What the model reads of a call of a tool that is none.
    pub(super) fn no_such_tool(&self, name: &str) -> String {
        let specs = self.toolkit.specs();
        let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!("There is no tool `{name}`. Tools: {known}")
    }

    /// Starts a call.
    pub(super) fn start(&self, call: &Made, input: &Object, start: Start) -> Steps {
        let kind = self.toolkit.get(&call.name).map(|entry| entry.kind.clone());
        match kind {
            Some(EntryKind::Server(tool)) => {
                let call = ToolCall {
                    id: call.id.clone(),
                    arguments: input.clone(),
                    state: Arc::clone(&self.state),
                    context: Arc::clone(&self.context),
                    answer: start.answer,
                };
                steps(tool, call, self.parts.tool_timeout)
            }
            Some(EntryKind::Subagent(id)) => self.start_child(&id, call, input, start),
            _ => done(Outcome::error(self.no_such_tool(&call.name))),
        }
    }

    fn start_child(&self, id: &str, call: &Made, input: &Object, start: Start) -> Steps {
        let Some(child) = self.parts.directory.get(id) else {
            return done(Outcome::error("The sub-agent is not available."));
        };
        let depth_left = subagent::depth_left(&self.request, self.parts.max_subagent_depth);
        let call = SubagentCall {
            id: call.id.clone(),
            arguments: input.clone(),
            state: Arc::clone(&self.state),
            depth_left,
            denied: self.permissions.denied_below(),
            kept: self.kept.children.get(id).cloned(),
        };
        let items = subagent::invoke(&self.request, &child.into(), &call, start.resumed);
        Box::pin(items.map(child_step))
    }
}

/// What the model is told when it may call no more tools.
const SUM_UP: &str = "You have reached the limit of iterations for this reply. Call no more tools: \
                      answer now, and say what you found and what is still open.";

fn done(outcome: Outcome) -> Steps {
    Box::pin(stream::iter([Step::Done(outcome)]))
}

/// The ids that stand for calls when a reply begins. The client may know some of sub-agents, of
/// whose calls the history says nothing.
fn used_ids(input: &RunAgentInput, messages: &[Msg]) -> HashSet<String> {
    let mut used = call_ids(messages);
    for message in &input.messages {
        if let Message::Assistant { tool_calls, .. } = message {
            used.extend(tool_calls.iter().map(|call| call.id.as_str().to_owned()));
        }
    }
    used
}

/// The ids of all calls.
fn call_ids(messages: &[Msg]) -> HashSet<String> {
    let blocks = messages.iter().flat_map(|message| &message.content);
    let ids = blocks.filter_map(|block| match block {
        Block::ToolUse { call, .. } => Some(call.id.clone()),
        _ => None,
    });
    ids.collect()
}

/// Whether a provider wants something of it back unmodified.
fn has_artefact(message: &Msg) -> bool {
    message.content.iter().any(|block| {
        matches!(
            block,
            Block::Thinking { encrypted: Some(_), .. } | Block::ToolUse { encrypted: Some(_), .. }
        )
    })
}

/// Where the history before the reply ends: behind its anchor. If that is gone, before the first
/// message that makes a call of the reply.
fn history_end(messages: &[Msg], anchor: Option<&str>, own: &[Msg]) -> usize {
    let Some(anchor) = anchor else { return 0 };
    if let Some(at) = messages.iter().rposition(|message| message.id == anchor) {
        return at + 1;
    }
    let calls = call_ids(own);
    let makes = |message: &Msg| {
        message
            .content
            .iter()
            .any(|block| matches!(block, Block::ToolUse { call, .. } if calls.contains(&call.id)))
    };
    messages.iter().position(makes).unwrap_or(messages.len())
}

impl Parts {
    /// The agent's tools in a run.
    async fn own_tools(&self, request: &AgentRequest) -> Result<Arc<OwnTools>, AgentError> {
        let delegates = subagent::depth_left(request, self.max_subagent_depth) > 0;
        if self.sources.is_empty() {
            let cached = if delegates { &self.whole } else { &self.leaf };
            return Ok(Arc::clone(cached.get_or_init(|| {
                let own = self.put_together(Vec::new(), delegates);
                self.notices.tell(&self.name, delegates, own.notices());
                Arc::new(own)
            })));
        }
        let session = &*request.session;
        let found = join_all(self.sources.iter().map(|source| source.tools(session))).await;
        let mut tools = Vec::new();
        let (mut all, mut missing) = (true, Vec::new());
        for found in found {
            match found? {
                Some(found) => {
                    tools.extend(found.tools);
                    missing.extend(found.missing);
                }
                None => all = false,
            }
        }
        let own = self.put_together(tools, delegates);
        let mut notices = own.notices().to_vec();
        notices.extend(missing);
        if all {
            notices.extend(self.names_of_nothing(&own));
        }
        self.notices.tell(&self.name, delegates, &notices);
        Ok(Arc::new(own))
    }

    /// In the order of the configuration: a source's tools stand where it is listed.
    pub(super) fn put_together(
        &self,
        from_sources: Vec<(Arc<str>, Arc<dyn Tool>)>,
        delegates: bool,
    ) -> OwnTools {
        let mut tools = self.tools.clone();
        tools.extend(from_sources);
        let subagents = if delegates { self.subagent_tools() } else { Vec::new() };
        OwnTools::new(&tools, &self.external, &subagents)
    }

    /// What the configuration names and no tool is called, now that all tools are known. A rule
    /// that denies may be meant for those below.
    pub(super) fn names_of_nothing(&self, own: &OwnTools) -> Vec<String> {
        let entries: Vec<&Entry> = own.entries().collect();
        let rules = unknown_rules(&self.permission, &entries).into_iter().filter(|(list, rule)| {
            let is_subagent =
                self.subagents.iter().any(|id| id == rule.trim_start_matches("subagent:"));
            !is_subagent && (*list != "deny" || self.subagents.is_empty())
        });
        rules
            .map(|(list, rule)| format!("`{rule}` under permission.{list} names no tool"))
            .collect()
    }
}

/// What a source gives to a run.
pub(super) struct Found {
    pub(super) tools: Vec<(Arc<str>, Arc<dyn Tool>)>,
    /// What the log should say of names that it does not have.
    pub(super) missing: Vec<String>,
}

impl Source {
    /// The tools that the agent uses of it; `None` = an optional one that is not there.
    pub(super) async fn tools(&self, session: &str) -> Result<Option<Found>, AgentError> {
        let source: &dyn ToolSource = &*self.source;
        let name: Arc<str> = source.name().into();
        match source.tools(session).await {
            Ok(tools) => {
                let missing = self.missing(&tools);
                let wanted = tools.into_iter().filter(|tool| self.wants(&tool.spec().name));
                let tools = wanted.map(|tool| (Arc::clone(&name), tool)).collect();
                Ok(Some(Found { tools, missing }))
            }
            Err(error) if source.is_optional() => {
                tracing::warn!(source = &*name, cause = error.cause, "a run goes on without tools");
                Ok(None)
            }
            Err(error) => Err(AgentError {
                code: "TOOLS_UNAVAILABLE",
                message: "Tools that the agent needs are not available.".to_owned(),
                cause: Some(error.to_string()),
            }),
        }
    }

    fn missing(&self, tools: &[Arc<dyn Tool>]) -> Vec<String> {
        let name = self.source.name();
        let lists = [("include", &self.include), ("exclude", &self.exclude)];
        let named =
            lists.into_iter().flat_map(|(list, names)| names.iter().map(move |n| (list, n)));
        named
            .filter(|(_, wanted)| tools.iter().all(|tool| tool.spec().name != **wanted))
            .map(|(list, wanted)| format!("`{wanted}` under {list} is no tool of {name}"))
            .collect()
    }

    fn wants(&self, tool: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == tool);
        (self.include.is_empty() || named(&self.include)) && !named(&self.exclude)
    }
}
