//! What the ledger has to do, written down once more and as simply as possible: no store, no
//! claims, no owners, one thing after the other.

use std::collections::HashSet;

use super::schedule::{Last, Plan, Settings, Verdict};

/// For how long an interrupt can be resolved, where that ends.
pub(super) const TTL_MS: i64 = 60 * 60 * 1000;

/// An entry of a resume.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) answer: Answer,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    Given(Verdict),
    /// Edited arguments that are no object.
    Nonsense,
}

/// A request to run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Request {
    pub(super) agent: usize,
    pub(super) entries: Vec<Entry>,
    pub(super) message: Option<String>,
}

/// What a client is told at the end.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    Success,
    Interrupt(Vec<String>),
    Cancelled,
    /// RUN_ERROR with this code and these open interrupts.
    Error(String, Vec<String>),
}

/// What becomes of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    /// `agentscope.ignoredResume`.
    pub(super) ignored: Vec<String>,
    /// The end; `None` = the run goes on.
    pub(super) told: Option<Told>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ask {
    pub(super) call: String,
    expires_ms: Option<i64>,
}

impl Ask {
    pub(super) fn id(&self) -> String {
        id_of(&self.call)
    }
}

/// Whether a request to cancel or delete found anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Run,
    Interrupts,
    Nothing,
    Unknown,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    run: Option<Running>,
    pub(super) open: Vec<Ask>,
    /// Answered, with a result, and nobody was told yet how it went on.
    pub(super) settled: Vec<Ask>,
    /// Whose the open ones are.
    pub(super) asker: usize,
    /// They have to be raised by the next run.
    pub(super) unraised: bool,
    answered: HashSet<String>,
    /// The messages of the run that answered last; `None` = none did.
    answered_with: Option<HashSet<String>>,
    end: Option<Told>,
    /// What people said, as far as it is remembered.
    said: HashSet<String>,
    /// Whether any message is remembered.
    has_messages: bool,
}

#[derive(Clone, Debug)]
struct Running {
    request: Request,
    plan: Plan,
    calls: Vec<String>,
    /// The calls to decide on, with the answers.
    claimed: Vec<(Ask, Verdict)>,
    settled: Vec<Ask>,
    /// How many of the claimed have their results.
    done: usize,
}

pub(super) struct Model {
    settings: Settings,
    pub(super) now_ms: i64,
    pub(super) threads: Vec<Thread>,
    /// Calls executed, and the answer that they were executed with.
    pub(super) executed: Vec<(String, Verdict)>,
}

impl Model {
    pub(super) fn new(settings: Settings, threads: usize, now_ms: i64) -> Self {
        let threads = vec![Thread::default(); threads];
        Self { settings, now_ms, threads, executed: Vec::new() }
    }

    /// What becomes of a request to run. `calls` are those that the agent asks for, if it does.
    pub(super) fn run(
        &mut self,
        slot: usize,
        request: &Request,
        plan: Plan,
        calls: &[String],
    ) -> Reply {
        let thread = &self.threads[slot];
        if thread.run.is_some() {
            return refused("THREAD_BUSY", Vec::new());
        }
        if let Some(repeated) = thread.repeated(request) {
            return repeated;
        }
        let ignored = thread.ignored(request);
        if thread.unraised {
            return Reply { ignored, told: Some(self.raise(slot, request)) };
        }
        let claimed = match self.claimed(slot, request) {
            Ok(claimed) => claimed,
            Err(CONTRACT) => return refused(CONTRACT, ids(&self.threads[slot].open)),
            Err(code) => {
                return Reply { ignored, told: Some(Told::Error(code.to_owned(), Vec::new())) };
            }
        };
        let thread = &mut self.threads[slot];
        let others = thread.asker != request.agent;
        if others && thread.waits() {
            // Nobody else can go on with it: it is over.
            let over = thread.open.iter().chain(&thread.settled).map(Ask::id);
            thread.answered.extend(over.collect::<Vec<_>>());
            thread.answered_with = Some(thread.said.clone());
        }
        thread.open.clear();
        let settled = std::mem::take(&mut thread.settled);
        thread.run = Some(Running {
            request: request.clone(),
            plan,
            calls: calls.to_vec(),
            claimed,
            settled: if others { Vec::new() } else { settled },
            done: 0,
        });
        self.take(slot, plan.first);
        let told = if plan.waits { None } else { Some(self.go_on(slot)) };
        Reply { ignored, told }
    }

    /// The answers to everything that is open, those that time or policy give included.
    fn claimed(&self, slot: usize, request: &Request) -> Result<Vec<(Ask, Verdict)>, &'static str> {
        let thread = &self.threads[slot];
        let entries = &request.entries;
        let gives_up = entries.is_empty() && self.settings.cancels_unanswered;
        let expired = |ask: &Ask| self.has_expired(ask);
        let waits = !thread.open.is_empty() || !thread.settled.is_empty();
        if waits && thread.asker != request.agent {
            let over = entries.is_empty() && thread.open.iter().all(expired);
            return if gives_up || over { Ok(Vec::new()) } else { Err(CONTRACT) };
        }
        let mut claimed = Vec::new();
        let mut nonsense = false;
        for ask in &thread.open {
            let own: Vec<&Entry> = entries.iter().filter(|entry| entry.id == ask.id()).collect();
            let verdict = match own[..] {
                [] if gives_up || expired(ask) => Verdict::Cancelled,
                [Entry { answer: Answer::Given(verdict), .. }]
                    if !expired(ask) || *verdict == Verdict::Cancelled =>
                {
                    *verdict
                }
                [Entry { answer: Answer::Nonsense, .. }] if !expired(ask) => {
                    nonsense = true;
                    Verdict::No
                }
                _ => return Err(CONTRACT),
            };
            claimed.push((ask.clone(), verdict));
        }
        if nonsense { Err("INVALID_INPUT_ERROR") } else { Ok(claimed) }
    }

    /// A run that only tells what the last one could not.
    fn raise(&mut self, slot: usize, request: &Request) -> Told {
        let expires_ms = self.expiry();
        let thread = &mut self.threads[slot];
        thread.unraised = false;
        thread.open.iter_mut().for_each(|ask| ask.expires_ms = expires_ms);
        thread.said.extend(request.message.clone());
        let told = Told::Interrupt(ids(&thread.open));
        thread.end = Some(told.clone());
        told
    }

    fn expiry(&self) -> Option<i64> {
        self.settings.expires.then_some(self.now_ms + TTL_MS)
    }

    /// The agent takes so many decisions.
    fn take(&mut self, slot: usize, count: usize) {
        let run = self.threads[slot].run.as_mut().unwrap();
        for (ask, verdict) in run.claimed.iter().skip(run.done).take(count) {
            if matches!(verdict, Verdict::Yes | Verdict::Edited) {
                self.executed.push((ask.call.clone(), *verdict));
            }
        }
        run.done = run.claimed.len().min(run.done + count);
    }

    /// The rest of a plan.
    fn go_on(&mut self, slot: usize) -> Told {
        let Plan { then, last, .. } = self.threads[slot].run.as_ref().unwrap().plan;
        self.take(slot, then);
        match last {
            Last::Finish => self.finish(slot, Told::Success, false),
            Last::Stop => self.finish(slot, Told::Cancelled, false),
            Last::Ask(_) => {
                let calls = &self.threads[slot].run.as_ref().unwrap().calls;
                let asked = calls.iter().map(|call| id_of(call)).collect();
                self.finish(slot, Told::Interrupt(asked), true)
            }
            Last::AskLater(_) => {
                let told = self.finish(slot, Told::Success, true);
                self.threads[slot].unraised = true;
                self.threads[slot].open.iter_mut().for_each(|ask| ask.expires_ms = None);
                told
            }
            Last::Fail => self.fail(slot, "MODEL_UNAVAILABLE"),
            Last::Panic => self.fail(slot, "INTERNAL_ERROR"),
            Last::BreakOff => self.fail(slot, "AGENT_ENDED_EARLY"),
        }
    }

    /// RUN_FINISHED: what was claimed is answered.
    fn finish(&mut self, slot: usize, told: Told, asks: bool) -> Told {
        let expires_ms = self.expiry();
        let memory = self.settings.memory;
        let thread = &mut self.threads[slot];
        let run = thread.run.take().unwrap();
        let claimed = run.claimed.iter().map(|(ask, _)| ask).chain(&run.settled);
        let claimed: Vec<String> = claimed.map(Ask::id).collect();
        if !claimed.is_empty() {
            thread.answered.extend(claimed);
            thread.answered_with = Some(run.request.message.iter().cloned().collect());
        }
        thread.end = Some(told.clone());
        let asked = run.calls.iter().filter(|_| asks);
        thread.open = asked.map(|call| Ask { call: call.clone(), expires_ms }).collect();
        thread.asker = run.request.agent;
        thread.remember(&run, memory, asks || run.done > 0);
        told
    }

    /// Any other end: open again, but for what has its result.
    fn fail(&mut self, slot: usize, code: &'static str) -> Told {
        let memory = self.settings.memory;
        let thread = &mut self.threads[slot];
        let run = thread.run.take().unwrap();
        let (done, undone) = run.claimed.split_at(run.done);
        let asks = |claimed: &[(Ask, Verdict)]| -> Vec<Ask> {
            claimed.iter().map(|(ask, _)| ask.clone()).collect()
        };
        thread.open = asks(undone);
        thread.settled = run.settled.iter().cloned().chain(asks(done)).collect();
        thread.asker = run.request.agent;
        thread.remember(&run, memory, run.done > 0);
        Told::Error(code.to_owned(), Vec::new())
    }

    /// The run's client leaves.
    pub(super) fn leave(&mut self, slot: usize) {
        if self.is_running(slot) && self.settings.stops_without_client {
            self.fail(slot, "INTERRUPTED_ERROR");
        }
    }

    pub(super) fn release(&mut self, slot: usize) -> Option<Told> {
        self.is_running(slot).then(|| self.go_on(slot))
    }

    pub(super) fn time_out(&mut self, slot: usize) -> Option<Told> {
        self.is_running(slot).then(|| self.fail(slot, "TIMEOUT_ERROR"))
    }

    pub(super) fn cancel(&mut self, slot: usize) -> Found {
        if self.is_running(slot) {
            self.finish(slot, Told::Cancelled, false);
            return Found::Run;
        }
        let memory = self.settings.memory;
        let thread = &mut self.threads[slot];
        if !thread.waits() {
            return if thread.is_known() { Found::Nothing } else { Found::Unknown };
        }
        let given_up = thread.open.drain(..).chain(thread.settled.drain(..));
        thread.answered.extend(given_up.map(|ask| ask.id()));
        thread.unraised = false;
        thread.answered_with = Some(thread.said.clone());
        thread.end = Some(Told::Cancelled);
        if !memory {
            thread.said.clear();
            thread.has_messages = false;
        }
        Found::Interrupts
    }

    /// Whether there was anything to delete.
    pub(super) fn delete(&mut self, slot: usize) -> bool {
        let known = self.threads[slot].is_known();
        self.threads[slot] = Thread::default();
        known
    }

    /// Whether an interrupt can be resolved no more.
    pub(super) fn has_expired(&self, ask: &Ask) -> bool {
        ask.expires_ms.is_some_and(|at| at <= self.now_ms)
    }

    pub(super) fn is_running(&self, slot: usize) -> bool {
        self.threads[slot].run.is_some()
    }
}

const CONTRACT: &str = "AGUI_INTERRUPT_CONTRACT_ERROR";

impl Thread {
    /// Whether the server knows the thread.
    pub(super) fn is_known(&self) -> bool {
        self.run.is_some() || self.waits() || !self.answered.is_empty() || self.has_messages
    }

    /// Whether anything waits for an answer, or for being told.
    pub(super) fn waits(&self) -> bool {
        !self.open.is_empty() || !self.settled.is_empty()
    }

    /// Whether an interrupt waits, or waits for its run to be told.
    fn has(&self, id: &str) -> bool {
        self.open.iter().chain(&self.settled).any(|ask| ask.id() == id)
    }

    /// Those answered before, then those that nobody asked for; each once.
    fn ignored(&self, request: &Request) -> Vec<String> {
        let mut ignored: Vec<String> = Vec::new();
        for answered in [true, false] {
            for Entry { id, .. } in &request.entries {
                let of_kind = self.answered.contains(id) == answered;
                if of_kind && !self.has(id) && !ignored.contains(id) {
                    ignored.push(id.clone());
                }
            }
        }
        ignored
    }

    /// The reply to a request that has nothing but answers which were taken.
    fn repeated(&self, request: &Request) -> Option<Reply> {
        let known = self.answered_with.as_ref()?;
        let taken = |id: &String| self.answered.contains(id) && !self.has(id);
        if request.entries.is_empty() || !request.entries.iter().all(|entry| taken(&entry.id)) {
            return None;
        }
        if request.message.as_ref().is_some_and(|message| !known.contains(message)) {
            return None;
        }
        let told = match &self.end {
            _ if !self.open.is_empty() && !self.unraised => Told::Interrupt(ids(&self.open)),
            Some(Told::Cancelled) => Told::Cancelled,
            _ => Told::Success,
        };
        Some(Reply { ignored: self.ignored(request), told: Some(told) })
    }

    fn remember(&mut self, run: &Running, memory: bool, spoke: bool) {
        if memory || self.waits() {
            self.said.extend(run.request.message.clone());
            self.has_messages |= spoke || run.request.message.is_some();
        } else {
            self.said.clear();
            self.has_messages = false;
        }
    }
}

fn refused(code: &'static str, open: Vec<String>) -> Reply {
    Reply { ignored: Vec::new(), told: Some(Told::Error(code.to_owned(), open)) }
}

fn id_of(call: &str) -> String {
    format!("reply:{call}")
}

pub(super) fn ids(asks: &[Ask]) -> Vec<String> {
    asks.iter().map(Ask::id).collect()
}
