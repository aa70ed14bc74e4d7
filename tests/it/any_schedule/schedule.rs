//! Random schedules: what the clients of a few threads ask for, and what the agents do about it.

use proptest::{collection::vec, prelude::*, sample::select};

/// Threads, each of one of two principals; those of different principals have the same names.
pub(super) const SLOTS: usize = 4;
/// Agents.
pub(super) const AGENTS: usize = 2;
/// Most calls that an agent asks for at once.
pub(super) const MOST_ASKS: usize = 3;

#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) settings: Settings,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// `server-side-memory`.
    pub(super) memory: bool,
    /// `on-unanswered-interrupts: cancel`.
    pub(super) cancels_unanswered: bool,
    /// `interrupt-on-disconnect`.
    pub(super) stops_without_client: bool,
    /// `interrupt-ttl`: an hour.
    pub(super) expires: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Run(Run),
    /// The client of the thread's run leaves.
    Leave(usize),
    /// The thread's run waits no longer.
    Release(usize),
    Cancel(usize),
    Delete(usize),
    /// Every run under way takes too long.
    TimeOut,
    /// Forty minutes pass on the clock.
    Later,
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) slot: usize,
    pub(super) agent: usize,
    pub(super) resume: Resume,
    /// Whether the person says something new.
    pub(super) news: bool,
    pub(super) plan: Plan,
}

/// Which entries a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resume {
    Nothing,
    /// One for each interrupt that the client knows to be open.
    Everything([Verdict; MOST_ASKS]),
    /// The same but for the first.
    AllButOne([Verdict; MOST_ASKS]),
    /// The same, the first twice.
    Doubled([Verdict; MOST_ASKS]),
    /// The same, with `editedArgs` that are no object.
    Nonsense([Verdict; MOST_ASKS]),
    /// The same, those answered last, and one that nobody asked for.
    AndMore([Verdict; MOST_ASKS]),
    /// What was answered last.
    Stale,
    /// The thread's last request once more, its messages included.
    Again,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Yes,
    Edited,
    No,
    Cancelled,
}

/// What the agent does: it takes the decisions in their order, executes what was approved and
/// gives results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// So many at once.
    pub(super) first: usize,
    /// Then it waits to be released or told to stop.
    pub(super) waits: bool,
    /// So many more.
    pub(super) then: usize,
    pub(super) last: Last,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Finish,
    /// It asks for so many calls.
    Ask(usize),
    /// The same behind a call of the client's own tool: they are raised by the next run.
    AskLater(usize),
    Stop,
    Fail,
    Panic,
    BreakOff,
}

pub(super) fn schedule() -> impl Strategy<Value = Schedule> {
    let settings = any::<[bool; 4]>().prop_map(|flags| {
        let [memory, cancels_unanswered, stops_without_client, expires] = flags;
        Settings { memory, cancels_unanswered, stops_without_client, expires }
    });
    (settings, vec(step(), 1..40)).prop_map(|(settings, steps)| Schedule { settings, steps })
}

fn slot() -> impl Strategy<Value = usize> {
    // One thread sees most of it, so that things meet.
    prop_oneof![3 => Just(0), 2 => 1..SLOTS]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => run().prop_map(Step::Run),
        2 => slot().prop_map(Step::Leave),
        3 => slot().prop_map(Step::Release),
        1 => slot().prop_map(Step::Cancel),
        1 => slot().prop_map(Step::Delete),
        1 => Just(Step::TimeOut),
        1 => Just(Step::Later),
    ]
}

fn run() -> impl Strategy<Value = Run> {
    let agent = prop_oneof![6 => Just(0), 1 => 1..AGENTS];
    (slot(), agent, resume(), any::<bool>(), plan())
        .prop_map(|(slot, agent, resume, news, plan)| Run { slot, agent, resume, news, plan })
}

fn resume() -> impl Strategy<Value = Resume> {
    let verdict = || {
        prop_oneof![
            4 => Just(Verdict::Yes),
            1 => select(vec![Verdict::Edited, Verdict::No, Verdict::Cancelled]),
        ]
    };
    let verdicts = move || proptest::array::uniform3(verdict());
    prop_oneof![
        4 => Just(Resume::Nothing),
        8 => verdicts().prop_map(Resume::Everything),
        1 => verdicts().prop_map(Resume::AllButOne),
        1 => verdicts().prop_map(Resume::Doubled),
        1 => verdicts().prop_map(Resume::Nonsense),
        1 => verdicts().prop_map(Resume::AndMore),
        2 => Just(Resume::Stale),
        3 => Just(Resume::Again),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    let last = prop_oneof![
        2 => Just(Last::Finish),
        4 => (1..=MOST_ASKS).prop_map(Last::Ask),
        1 => (1..=MOST_ASKS).prop_map(Last::AskLater),
        3 => select(vec![Last::Stop, Last::Fail, Last::Panic, Last::BreakOff]),
    ];
    (0..=MOST_ASKS, any::<bool>(), 0..=MOST_ASKS, last)
        .prop_map(|(first, waits, then, last)| Plan { first, waits, then, last })
}
