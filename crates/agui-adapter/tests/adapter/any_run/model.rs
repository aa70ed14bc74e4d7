//! What a run has to show of the pieces of text that were fed, worked out from the events alone.

use std::collections::{HashMap, HashSet};

use agui_adapter::{
    model::{AgentEvent, AgentEventKind as Kind, event::ResultState},
    options::{Peer, SubagentEvents},
};

use super::generate::Run;

/// Where a piece was said.
pub type Place = (Option<String>, String, String);

/// Pieces, and what may become of them.
#[derive(Default)]
pub struct Expected {
    /// Text, in order.
    pub texts: Vec<(String, Place)>,
    /// Thinking, in order; nothing when it is switched off.
    pub thinking: Vec<(String, Place)>,
    /// Argument text that must be there: piece, place of the call.
    pub args: Vec<(String, (Option<String>, String))>,
    /// Result text that must be there.
    pub results: Vec<String>,
    /// Argument text that must not be there.
    pub no_args: Vec<String>,
    /// Pieces that must not be anywhere.
    pub absent: Vec<String>,
    agents: HashMap<Option<String>, Agent>,
    contested: HashSet<String>,
}

/// One source. Once two invocations share it, nobody outside can tell whose an event is, and
/// nothing is expected of its calls any more.
#[derive(Default)]
struct Agent {
    present: bool,
    started: bool,
    shared: bool,
    calls: HashMap<String, Call>,
    known: HashSet<String>,
    results: HashMap<String, Vec<String>>,
}

#[derive(Default)]
struct Call {
    /// Waits for its result.
    waits: bool,
    /// Started again while it waited: perhaps another call.
    doubtful: bool,
    /// Perhaps a tool of the client, which nobody here answers.
    frontend: bool,
}

impl Expected {
    pub fn feed(&mut self, event: &AgentEvent, run: &Run) {
        let (options, denied) = (&run.options, run.denied);
        let source = event.source.as_deref().map(str::to_owned);
        self.contest(&event.kind, source.as_ref());
        let agent = self.agents.entry(source.clone()).or_default();
        match &event.kind {
            Kind::AgentStart { .. } if source.is_some() => agent.start(),
            Kind::AgentEnd { .. } if source.is_some() => {
                // One that waits goes on if more of it comes, another one begins anew.
                let (shared, known) = (agent.shared, std::mem::take(&mut agent.known));
                *agent = Agent { shared, known, ..Agent::default() };
                return;
            }
            _ => {}
        }
        agent.present = true;
        match &event.kind {
            Kind::TextBlockDelta { reply, block, delta } if !delta.is_empty() => {
                self.texts.push((delta.clone(), (source, reply.clone(), block.clone())));
            }
            Kind::ThinkingBlockDelta { reply, block, delta } if !delta.is_empty() => {
                if options.enable_reasoning {
                    self.thinking.push((delta.clone(), (source, reply.clone(), block.clone())));
                } else {
                    self.absent.push(delta.clone());
                }
            }
            Kind::HintBlock { label: None, text, .. } => self.absent.push(text.clone()),
            Kind::ToolCallStart { call, name, .. } => agent.call(call, name),
            Kind::ToolCallDelta { call, delta } if !delta.is_empty() => {
                let resumed = denied && call == "d1";
                let hidden = !options.emit_tool_call_args && !is_custom(event, run);
                if hidden {
                    self.no_args.push(delta.clone());
                } else if agent.calls.contains_key(call) && !agent.shared && !resumed {
                    self.args.push((delta.clone(), (source, call.clone())));
                } else if !agent.known.contains(call)
                    && !self.contested.contains(call)
                    && !agent.shared
                {
                    self.no_args.push(delta.clone());
                }
            }
            Kind::ToolResultTextDelta { call, delta } if !delta.is_empty() => {
                agent.results.entry(call.clone()).or_default().push(delta.clone());
            }
            Kind::ToolResultEnd { call, state, .. } => {
                let pieces = agent.results.remove(call).unwrap_or_default();
                agent.known.insert(call.clone());
                let contested = self.contested.contains(call) || agent.shared;
                let Some(known) = agent.calls.get_mut(call) else { return };
                if *state == ResultState::Running {
                    return;
                }
                if known.waits && !known.doubtful && !known.frontend && !contested {
                    self.results.extend(pieces);
                }
                known.waits = false;
            }
            _ => {}
        }
    }

    /// Answers from elsewhere: a later result for the same call is one too many.
    fn contest(&mut self, kind: &Kind, source: Option<&String>) {
        let ids: Vec<&String> = match kind {
            Kind::UserConfirmResult { results, .. } => results.iter().map(|r| &r.call.id).collect(),
            Kind::ExternalExecutionResult { results, .. } => {
                results.iter().map(|r| &r.call_id).collect()
            }
            Kind::RequireUserConfirm { calls, .. }
            | Kind::RequireExternalExecution { calls, .. } => {
                calls.iter().map(|call| &call.id).collect()
            }
            Kind::ToolResultEnd { call, .. } => {
                let own = self.agents.get(&source.cloned());
                let own = own.is_some_and(|agent| agent.calls.contains_key(call));
                if own && call != "d1" { Vec::new() } else { vec![call] }
            }
            _ => Vec::new(),
        };
        self.contested.extend(ids.into_iter().cloned());
    }
}

/// A child shown as CUSTOM events tells its arguments whatever the switch says.
fn is_custom(event: &AgentEvent, run: &Run) -> bool {
    let custom = match run.options.subagent_events {
        SubagentEvents::Custom => true,
        SubagentEvents::Auto => run.peer == Peer::Legacy,
        SubagentEvents::Attributed | SubagentEvents::Native => false,
    };
    event.source.is_some() && custom
}

impl Agent {
    fn start(&mut self) {
        self.shared |= self.present && self.started;
        self.started = true;
    }

    fn call(&mut self, id: &str, name: &str) {
        self.known.insert(id.to_owned());
        let call = self.calls.entry(id.to_owned()).or_default();
        call.doubtful = call.waits;
        call.waits = true;
        call.frontend |= name == "front";
    }
}
