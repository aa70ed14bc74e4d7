//! Sub-agents: which invocation a child event belongs to, and how it is shown. The only place
//! that decides between attributed, custom and native.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use agui_protocol::SubagentRunId;

use super::context::StreamContext;
pub(super) use super::subagent_custom::convert_child_custom;
use crate::{
    model::{
        AgentEvent, AgentEventKind,
        event::{EndReason, Failure, Origin},
        wire::parse_object,
    },
    names::CANCELLED,
    options::SubagentEvents,
    sequencer::{Announcement, CallIndex, OwnerEnd, OwnerId, RunFailure},
};

/// One invocation of a sub-agent.
pub(super) struct Invocation {
    pub(super) owner: OwnerId,
    /// Who delegated to it.
    pub(super) parent: OwnerId,
    pub(super) id: SubagentRunId,
    pub(super) key: String,
    pub(super) source: Arc<str>,
    /// The `taskId` of its events.
    pub(super) task: Option<String>,
    pub(super) name: String,
    /// It was delegated to inside this server.
    pub(super) local: bool,
    /// AGENT_START was seen, so AGENT_END is to come.
    pub(super) started: bool,
    pub(super) ended: bool,
    /// It ended with something asked. How it ended is told at the run's end, when it is known
    /// whether the question stands (SUB-13).
    pub(super) waiting: bool,
    in_model_call: bool,
    pub(super) delegated_by: Option<CallIndex>,
    replies: HashSet<String>,
    /// Calls of a child shown as CUSTOM events: name and arguments so far.
    pub(super) calls: Vec<CustomCall>,
}

impl Invocation {
    /// The `source` path.
    pub(super) fn source_text(&self) -> &str {
        &self.source
    }
}

/// A call of a child that is shown as CUSTOM events.
pub(super) struct CustomCall {
    pub(super) id: String,
    pub(super) name: String,
    /// Kept behind the answer too: an end that is sent again says all of them.
    pub(super) arguments: String,
    pub(super) end_held: bool,
    /// TOOL_CALL_END was sent with all arguments.
    pub(super) ended: bool,
    pub(super) answered: bool,
}

impl StreamContext {
    /// The owner of a child's event; a child that is not there is announced.
    pub(super) fn child_owner(&mut self, event: &AgentEvent, source: &Arc<str>) -> OwnerId {
        let at = self.find_child(event, source).or_else(|| self.wake_child(event, source));
        let at = at.unwrap_or_else(|| self.start_child(event, source, last_segment(source), false));
        self.remember_reply(at, event);
        self.children.list[at].owner
    }

    /// The owner of a child's event, if the child is there.
    pub(super) fn known_child(&mut self, event: &AgentEvent, source: &Arc<str>) -> Option<OwnerId> {
        let at = self.find_child(event, source)?;
        self.remember_reply(at, event);
        match event.kind {
            AgentEventKind::ModelCallStart { .. } => self.children.list[at].in_model_call = true,
            AgentEventKind::ModelCallEnd { .. } => self.children.list[at].in_model_call = false,
            _ => {}
        }
        Some(self.children.list[at].owner)
    }

    /// The active invocation that an event of this source belongs to. Several share a source
    /// when one agent was delegated to twice: then the reply or the call tells them apart, and a
    /// new reply goes to the one that is between model calls.
    pub(super) fn find_child(&self, event: &AgentEvent, source: &Arc<str>) -> Option<usize> {
        match self.children.active(&key_of(event, source)) {
            [] => None,
            [only] => Some(*only),
            several => Some(self.tell_apart(several, event)),
        }
    }

    fn tell_apart(&self, several: &[usize], event: &AgentEvent) -> usize {
        let child = |at: usize| &self.children.list[at];
        let reply = reply_of(&event.kind);
        let by_reply =
            reply.and_then(|reply| several.iter().find(|&&at| child(at).replies.contains(reply)));
        let call = call_of(&event.kind);
        // Only one of them made this call.
        let by_sole_call = || {
            let mut knowing = several.iter().filter(|&&at| call.is_some_and(|c| self.made(at, c)));
            let first = knowing.next();
            first.filter(|_| knowing.next().is_none())
        };
        // Several use the same call id: the one that is being answered, else the latest.
        let by_call = || {
            let call = call?;
            let answering = several.iter().find(|&&at| self.results.is_open(child(at).owner, call));
            answering.or_else(|| several.iter().rev().find(|&&at| self.made(at, call)))
        };
        let idle = || several.iter().find(|&&at| self.is_idle(at));
        let found = by_sole_call().or(by_reply).or_else(by_call).or_else(idle);
        *found.unwrap_or(&several[several.len() - 1])
    }

    /// Whether an invocation made a call under this id.
    fn made(&self, at: usize, call: &str) -> bool {
        let child = &self.children.list[at];
        self.sequencer.owns_call(child.owner, call) || child.calls.iter().any(|c| c.id == call)
    }

    /// Whether an invocation is between model calls and waits for no tool.
    fn is_idle(&self, at: usize) -> bool {
        let child = &self.children.list[at];
        !child.in_model_call && !self.sequencer.is_waiting(child.owner)
    }

    fn remember_reply(&mut self, at: usize, event: &AgentEvent) {
        let Some(reply) = reply_of(&event.kind) else { return };
        let replies = &mut self.children.list[at].replies;
        if !replies.contains(reply) {
            replies.insert(reply.to_owned());
        }
    }

    /// Begins an invocation; `started` = by AGENT_START, else by an event that came without one.
    pub(super) fn start_child(
        &mut self,
        event: &AgentEvent,
        source: &Arc<str>,
        name: &str,
        started: bool,
    ) -> usize {
        let key = key_of(event, source).into_owned();
        let task = task_of(event);
        let resumed = self.children.resumed_id(source, task);
        let tie = self.tie(source, task);
        let parent = tie.map_or_else(|| self.parent_of(source), |(parent, _)| parent);
        let call = match tie {
            Some((_, Some(call))) => Some(call),
            // It goes on: the call is an earlier run's.
            _ if resumed.is_some() && task.is_some() => None,
            _ => self.delegating_call(parent, last_segment(source), name),
        };
        let id = match resumed {
            Some(id) => id,
            None => SubagentRunId::from(self.sequencer.next_message_id().as_str()),
        };
        let announce = (self.subagents == SubagentEvents::Attributed).then(|| Announcement {
            name: name.to_owned(),
            parent,
            call,
        });
        let tag = (self.subagents != SubagentEvents::Custom).then(|| id.clone());
        let owner = self.sequencer.add_owner(tag, announce);
        let at = self.children.add(Invocation {
            owner,
            parent,
            id,
            key,
            source: Arc::clone(source),
            task: task.map(str::to_owned),
            name: name.to_owned(),
            local: started && event.origin == Origin::Local,
            started,
            ended: false,
            waiting: false,
            in_model_call: false,
            delegated_by: call,
            replies: HashSet::new(),
            calls: Vec::new(),
        });
        self.remember_reply(at, event);
        at
    }

    /// The parent that a child's `taskId` names, and the parent's call: the `taskId` is the call's
    /// id, behind the parent's own `taskId` where that is a child too.
    fn tie(&self, source: &str, task: Option<&str>) -> Option<(OwnerId, Option<CallIndex>)> {
        let (task, (path, _)) = (task?, source.rsplit_once('/')?);
        if !path.contains('/') {
            let call = self.call_named(OwnerId::ROOT, task)?;
            return Some((OwnerId::ROOT, Some(call)));
        }
        let mut parents = self.children.of_path(path);
        parents.find_map(|parent| {
            let behind = parent.task.as_deref().and_then(|of| task.strip_prefix(of));
            let call = behind.and_then(|call| call.strip_prefix('/'))?;
            Some((parent.owner, self.call_named(parent.owner, call)))
        })
    }

    /// The call under an agent's own id that has no answer and belongs to no child yet.
    fn call_named(&self, owner: OwnerId, id: &str) -> Option<CallIndex> {
        if self.is_custom_child(owner) {
            return None;
        }
        let mut calls = self.sequencer.unanswered_of(owner).into_iter();
        calls.find(|call| self.sequencer.call_id(*call) == id && !self.children.is_taken(*call))
    }

    /// The active invocation whose path is the longest beginning of this one.
    fn parent_of(&self, source: &str) -> OwnerId {
        let mut path = source;
        while let Some((parent, _)) = path.rsplit_once('/') {
            if let Some(child) = self.children.latest(parent) {
                return child.owner;
            }
            path = parent;
        }
        OwnerId::ROOT
    }

    /// The parent's call that spawned a child: one that is being answered before one that only
    /// waits; one that names the agent before one that does not; never one that another child
    /// already belongs to (SUB-10).
    fn delegating_call(&self, parent: OwnerId, agent: &str, name: &str) -> Option<CallIndex> {
        if self.is_custom_child(parent) {
            return None;
        }
        let mut free = self.sequencer.unanswered_of(parent);
        free.retain(|call| !self.children.is_taken(*call));
        let answering: Vec<_> = free
            .iter()
            .copied()
            .filter(|call| self.results.is_open(parent, self.sequencer.call_id(*call)))
            .collect();
        // Children of one batch begin in call order; without a result under way the latest call is
        // the likeliest.
        let likely = answering.first().or(free.last()).copied();
        let candidates = if answering.is_empty() { free } else { answering };
        let names = |call: &&CallIndex| {
            let tool = self.sequencer.call_name(**call);
            tool == agent || tool == name || mentions(self.sequencer.arguments(**call), agent, name)
        };
        candidates.iter().find(names).copied().or(likely)
    }

    /// A child's AGENT_START: a new invocation, unless its events came first.
    pub(super) fn begin_child(
        &mut self,
        event: &AgentEvent,
        source: &Arc<str>,
        name: &str,
    ) -> usize {
        let implicit = self
            .find_child(event, source)
            .filter(|&at| !self.children.list[at].started && !self.children.list[at].ended);
        match implicit {
            Some(at) => {
                self.children.list[at].started = true;
                at
            }
            None => {
                let name = if name.is_empty() { last_segment(source) } else { name };
                self.start_child(event, source, name, true)
            }
        }
    }

    /// A child's AGENT_END. `None` = it was not there.
    pub(super) fn end_child(
        &mut self,
        event: &AgentEvent,
        source: &Arc<str>,
        reason: &EndReason,
    ) -> Option<usize> {
        let at = self.find_child(event, source)?;
        let owner = self.children.list[at].owner;
        match reason {
            EndReason::Failed(failure) => {
                let RunFailure { message, code, .. } = child_failure(event.origin, failure);
                self.close_child(at, OwnerEnd::Failed { message, code });
            }
            _ if self.waits_within(owner) => self.park_child(at),
            _ => self.close_child(at, OwnerEnd::Finished),
        }
        Some(at)
    }

    fn park_child(&mut self, at: usize) {
        let owner = self.leave_child(at, true);
        self.sequencer.close_items(owner);
    }

    /// A parked invocation that goes on within the run: it was answered meanwhile.
    fn wake_child(&mut self, event: &AgentEvent, source: &str) -> Option<usize> {
        self.children.wake(&key_of(event, source))
    }

    fn close_child(&mut self, at: usize, end: OwnerEnd) {
        let owner = self.leave_child(at, false);
        self.sequencer.end_owner(owner, end);
    }

    /// No further event is the invocation's.
    fn leave_child(&mut self, at: usize, waits: bool) -> OwnerId {
        let owner = self.children.leave(at, waits);
        self.flush_media(Some(owner));
        owner
    }

    /// Ends the invocations that are still open when the run ends, the innermost first.
    pub(super) fn close_children(&mut self, how: RunClose<'_>) {
        let mut raised = self.interrupt_ids_by_owner();
        let waiting_for: HashSet<OwnerId> = self.asking().collect();
        let above_asked: HashSet<OwnerId> =
            raised.keys().flat_map(|asker| self.above(*asker)).map(|child| child.owner).collect();
        for at in (0..self.children.list.len()).rev() {
            let child = &self.children.list[at];
            if child.ended && !child.waiting {
                continue;
            }
            let (owner, waiting) = (child.owner, child.waiting);
            let asked = raised.remove(&owner).unwrap_or_default();
            let end = match how {
                RunClose::Failed(code) => OwnerEnd::Failed {
                    message: "The run failed.".to_owned(),
                    code: code.to_owned(),
                },
                RunClose::Cancelled => OwnerEnd::Failed {
                    message: "The run was stopped.".to_owned(),
                    code: CANCELLED.to_owned(),
                },
                RunClose::Interrupted if !asked.is_empty() || above_asked.contains(&owner) => {
                    OwnerEnd::Suspended(asked)
                }
                RunClose::Interrupted if child.started && !waiting => OwnerEnd::Suspended(asked),
                RunClose::Success if child.started && !waiting_for.contains(&owner) && !waiting => {
                    OwnerEnd::Failed {
                        message: "The sub-agent did not finish.".to_owned(),
                        code: "AGENT_ENDED_EARLY".to_owned(),
                    }
                }
                RunClose::Interrupted | RunClose::Success => OwnerEnd::Finished,
            };
            if !waiting {
                self.end_child_shown_as_custom(at, &end);
            }
            self.close_child(at, end);
        }
    }

    /// The id of an owner that is a child.
    pub(super) fn child_id(&self, owner: OwnerId) -> Option<&SubagentRunId> {
        self.child(owner).map(|child| &child.id)
    }

    /// The `source` path of an owner that is a child.
    pub(super) fn source_of(&self, owner: OwnerId) -> Option<&str> {
        self.child(owner).map(Invocation::source_text)
    }

    /// The `taskId` of an owner that is a child.
    pub(super) fn task_of(&self, owner: OwnerId) -> Option<&str> {
        self.child(owner)?.task.as_deref()
    }

    /// The invocations above an owner, the innermost first.
    pub(super) fn above(&self, owner: OwnerId) -> impl Iterator<Item = &Invocation> {
        let above = |child: &&Invocation| self.child(child.parent);
        std::iter::successors(self.child(owner), above).skip(1)
    }

    /// Whether an owner or anybody below it has asked something that is open.
    fn waits_within(&self, owner: OwnerId) -> bool {
        self.asking()
            .any(|asker| asker == owner || self.above(asker).any(|child| child.owner == owner))
    }

    fn child(&self, owner: OwnerId) -> Option<&Invocation> {
        self.children.place(owner).map(|at| &self.children.list[at])
    }

    /// The latest call under this id of a child shown as CUSTOM events.
    pub(super) fn custom_call(&self, owner: OwnerId, id: &str) -> Option<&CustomCall> {
        self.child(owner)?.calls.iter().rev().find(|call| call.id == id)
    }

    /// Whether the owner is a child that was delegated to inside this server.
    pub(super) fn is_local_child(&self, owner: OwnerId) -> bool {
        self.child(owner).is_some_and(|child| child.local)
    }

    /// Whether the owner is a child that is shown as CUSTOM events and has no items.
    pub(super) fn is_custom_child(&self, owner: OwnerId) -> bool {
        owner != OwnerId::ROOT && self.subagents == SubagentEvents::Custom
    }
}

/// How the run ends around its open children.
#[derive(Clone, Copy)]
pub(super) enum RunClose<'a> {
    Success,
    Interrupted,
    Cancelled,
    Failed(&'a str),
}

/// A child's failure as the client sees it. One of this server names its code itself.
pub(super) fn child_failure(origin: Origin, failure: &Failure) -> RunFailure {
    let Failure { class, message } = failure;
    let is_code = class.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if origin == Origin::Local && is_code && !class.is_empty() {
        RunFailure::new(class, message)
    } else {
        super::lifecycle::run_failure(failure)
    }
}

/// What tells invocations apart as far as the wire does; made for every event of a child.
fn key_of<'a>(event: &AgentEvent, source: &'a str) -> Cow<'a, str> {
    match task_of(event) {
        Some(task) => Cow::Owned(format!("{source}\u{0}{task}")),
        None => Cow::Borrowed(source),
    }
}

fn task_of(event: &AgentEvent) -> Option<&str> {
    event.metadata.get("taskId").and_then(serde_json::Value::as_str)
}

fn last_segment(source: &str) -> &str {
    source.rsplit('/').next().unwrap_or(source)
}

/// Whether one of the arguments is the agent's id or name.
fn mentions(arguments: &str, agent: &str, name: &str) -> bool {
    let arguments = parse_object(arguments).unwrap_or_default();
    arguments.values().any(|value| value.as_str().is_some_and(|text| text == agent || text == name))
}

fn reply_of(kind: &AgentEventKind) -> Option<&str> {
    match kind {
        AgentEventKind::AgentStart { reply, .. } | AgentEventKind::AgentEnd { reply, .. } => {
            reply.as_deref()
        }
        AgentEventKind::ModelCallStart { reply, .. }
        | AgentEventKind::ModelCallEnd { reply, .. }
        | AgentEventKind::TextBlockStart { reply, .. }
        | AgentEventKind::TextBlockDelta { reply, .. }
        | AgentEventKind::TextBlockEnd { reply, .. }
        | AgentEventKind::ThinkingBlockStart { reply, .. }
        | AgentEventKind::ThinkingBlockDelta { reply, .. }
        | AgentEventKind::ThinkingBlockEnd { reply, .. }
        | AgentEventKind::ToolCallStart { reply, .. }
        | AgentEventKind::ToolResultStart { reply, .. }
        | AgentEventKind::ToolResultEnd { reply, .. }
        | AgentEventKind::RequireUserConfirm { reply, .. }
        | AgentEventKind::RequireExternalExecution { reply, .. } => Some(reply.as_str()),
        _ => None,
    }
    .filter(|reply| !reply.is_empty())
}

fn call_of(kind: &AgentEventKind) -> Option<&str> {
    match kind {
        AgentEventKind::ToolCallDelta { call, .. }
        | AgentEventKind::ToolCallEnd { call, .. }
        | AgentEventKind::ToolResultStart { call, .. }
        | AgentEventKind::ToolResultTextDelta { call, .. }
        | AgentEventKind::ToolResultDataDelta { call, .. }
        | AgentEventKind::ToolResultEnd { call, .. } => Some(call.as_str()),
        _ => None,
    }
}
