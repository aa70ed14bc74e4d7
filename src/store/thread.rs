//! The record of a thread.

use std::{
    collections::{BTreeMap, HashSet, VecDeque},
    sync::Arc,
};

use agui_adapter::{
    history::Stored,
    resume::{Decision, OpenInterrupt},
};
use agui_protocol::{InterruptId, MessageId, RunId, RunOutcome, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AgentId, Millis, RunOwner};

/// Everything that is remembered of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Thread {
    /// The agent of the last run that began.
    pub agent: Option<AgentId>,
    /// The run that is under way.
    pub active: Option<ActiveRun>,
    /// What waits for an answer.
    pub parked: Option<Parked>,
    /// The last interrupts that were answered, the oldest first.
    pub answered: VecDeque<InterruptId>,
    /// How they were answered last.
    pub last_answer: Option<LastAnswer>,
    /// How the last run that ended with RUN_FINISHED ended.
    pub outcome: Option<RunOutcome>,
    /// The code of the error with which the last run ended; `None` = it ended well.
    pub failure: Option<String>,
    /// The history: all of it with memory on the server, else while something is parked.
    pub messages: Arc<Vec<Stored>>,
    /// The state at the end of the last run; kept like the history.
    pub state: Option<Arc<Value>>,
    /// What agents keep on the thread, whatever becomes of its history.
    pub kept: BTreeMap<AgentId, Arc<Value>>,
    /// The first words that a person said, cut to 80 characters.
    pub name: String,
    /// When the record was made.
    pub created_ms: Millis,
    /// When the last run began or ended.
    pub updated_ms: Millis,
}

/// A run under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ActiveRun {
    /// The execution.
    pub owner: RunOwner,
    /// The run, as the client named it.
    pub run_id: RunId,
    /// Its agent.
    pub agent: AgentId,
    /// What it answers.
    pub claim: Option<Claim>,
    /// Somebody asked it to stop.
    pub cancel: bool,
    /// When the run counts as lost; `None` = never.
    pub lease_ends_ms: Option<Millis>,
}

/// Interrupts that a run answers: not open while it lasts, forgotten when it ends with
/// RUN_FINISHED, open again when it does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// What was parked before.
    pub parked: Parked,
    /// The messages of the thread and of the input that answers.
    pub known: Arc<HashSet<MessageId>>,
}

/// Interrupts that wait for answers, and whose they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Parked {
    /// The agent that asked; only it can go on.
    pub agent: AgentId,
    /// What it asked and nobody answered.
    pub open: Vec<OpenInterrupt>,
    /// Answered calls that got their result in a run which did not end well. The results stand
    /// in the history; the calls are never executed again.
    pub settled: Vec<Decision>,
    /// False: the client does not know these interrupts yet, the next run has to raise them.
    pub raised: bool,
    /// What the agent handed over to get back when it goes on.
    pub state: Option<Arc<Value>>,
}

/// How interrupts were answered or given up last: a later answer that brings nothing newer is a
/// repeated one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastAnswer {
    /// The messages of the thread and of the answering input.
    pub known: Arc<HashSet<MessageId>>,
    /// The calls that were answered.
    pub calls: HashSet<ToolCallId>,
    /// The messages after the answering run, for a client that missed it, where the thread keeps
    /// no history of its own and they are short.
    #[serde(default)]
    pub messages: Arc<Vec<Stored>>,
}

impl LastAnswer {
    /// About how many bytes of messages are kept for a client that missed the end of a run.
    pub const MAX_MESSAGES: usize = 256 << 10;
}

impl Thread {
    /// Whether a run is under way whose lease has not run out.
    pub fn is_active(&self, now: Millis) -> bool {
        self.active.as_ref().is_some_and(|run| run.holds(now))
    }

    /// The ids of its messages.
    pub fn message_ids(&self) -> impl Iterator<Item = &MessageId> {
        self.messages.iter().map(|stored| stored.message.id())
    }

    /// Whether the record must be kept although nobody used it for long.
    pub fn is_parked(&self) -> bool {
        self.parked.is_some()
    }
}

impl ActiveRun {
    /// Whether the run still has its thread.
    pub fn holds(&self, now: Millis) -> bool {
        self.lease_ends_ms.is_none_or(|ends| now < ends)
    }
}
