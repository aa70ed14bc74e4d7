//! Any schedule of runs, answers, departures, failures and cancellations on a few threads gives
//! the replies of a simple model of the ledger; no approved call is executed twice, no interrupt
//! is lost, and no thread is stuck when everything is over.

mod agent;
mod model;
mod schedule;
mod world;

use std::collections::HashSet;

use agentscope_agui::runs::ledger::Deleted;
use proptest::{prelude::*, test_runner::RngSeed};

use self::{
    model::{Answer, Entry, Found, Model, Reply, Request, Told, ids},
    schedule::{AGENTS, Last, MOST_ASKS, Plan, Resume, Run, SLOTS, Schedule, Step, Verdict},
    world::{AtRest, World, arguments},
};
use crate::support::server::NOW_MS;

const FORTY_MINUTES_MS: i64 = 40 * 60 * 1000;

/// Takes all decisions and finishes.
const WHOLE: Plan = Plan { first: MOST_ASKS, waits: false, then: 0, last: Last::Finish };

/// The model and the real thing, side by side.
struct Both {
    model: Model,
    world: World,
    /// What the clients know.
    clients: Vec<Client>,
    messages: usize,
    calls: usize,
}

#[derive(Clone, Debug, Default)]
struct Client {
    last: Option<Request>,
    /// The entries of the last request that had any.
    answered: Vec<Entry>,
}

impl Both {
    async fn play(&mut self, step: &Step) {
        match step {
            Step::Run(run) => {
                let request = self.request(run);
                self.run(run.slot, request, run.plan).await;
            }
            Step::Leave(slot) => {
                self.model.leave(*slot);
                self.world.leave(*slot).await;
            }
            Step::Release(slot) => {
                let expected = self.model.release(*slot);
                let told = self.world.release(*slot).await;
                self.agree(expected, told);
            }
            Step::Cancel(slot) => {
                let expected = self.model.cancel(*slot);
                assert_eq!(self.world.cancel(*slot).await, expected);
                let expected = (expected == Found::Run).then_some(Told::Cancelled);
                let told = self.world.ended(*slot);
                self.agree(expected, told);
            }
            Step::Delete(slot) => {
                let expected = self.model.is_running(*slot).then_some(Told::Cancelled);
                let known = self.model.delete(*slot);
                let deleted = if known { Deleted::Gone } else { Deleted::Unknown };
                assert_eq!(self.world.delete(*slot).await, deleted);
                let told = self.world.ended(*slot);
                self.agree(expected, told);
            }
            Step::TimeOut => {
                self.world.time_out().await;
                for slot in 0..SLOTS {
                    let expected = self.model.time_out(slot);
                    let told = self.world.ended(slot);
                    self.agree(expected, told);
                }
            }
            Step::Later => {
                self.model.now_ms += FORTY_MINUTES_MS;
                self.world.pass(FORTY_MINUTES_MS);
            }
        }
        self.check().await;
    }

    /// Who is there to be told is told what the model says.
    fn agree(&self, expected: Option<Told>, told: Option<Told>) {
        if let Some(told) = told {
            assert_eq!(Some(told), expected);
        }
    }

    async fn run(&mut self, slot: usize, request: Request, plan: Plan) -> Reply {
        let asks = match plan.last {
            Last::Ask(count) | Last::AskLater(count) => count,
            _ => 0,
        };
        let calls: Vec<_> = (0..asks).map(|at| format!("c{}", self.calls + at)).collect();
        self.calls += asks;
        let expected = self.model.run(slot, &request, plan, &calls);
        let reply = self.world.run(slot, &request, plan, calls).await;
        assert_eq!(reply, expected);
        let client = &mut self.clients[slot];
        if !request.entries.is_empty() {
            client.answered.clone_from(&request.entries);
        }
        client.last = Some(request);
        reply
    }

    /// What is stored is what the model knows, and what was executed was approved, and once.
    async fn check(&self) {
        let executed = self.world.executed();
        let expected = self.model.executed.iter();
        let expected =
            expected.map(|(call, verdict)| (call.clone(), arguments(*verdict).to_owned()));
        assert_eq!(executed, expected.collect::<Vec<_>>());
        let calls: HashSet<_> = executed.iter().map(|(call, _)| call).collect();
        assert_eq!(calls.len(), executed.len(), "executed twice: {executed:?}");
        for (slot, thread) in self.model.threads.iter().enumerate() {
            let expected = AtRest {
                is_known: thread.is_known(),
                is_running: self.model.is_running(slot),
                open: ids(&thread.open),
                settled: ids(&thread.settled).into_iter().collect(),
                asker: thread.waits().then(|| world::agent(thread.asker)),
                unraised: thread.unraised,
            };
            assert_eq!(self.world.at_rest(slot).await, expected, "thread {slot}");
        }
    }

    /// Everybody does what is proper: every thread comes to an end and takes a new run of any
    /// agent.
    async fn come_to_rest(&mut self, slot: usize) {
        self.play(&Step::Release(slot)).await;
        if self.model.threads[slot].unraised {
            let reply = self.run(slot, self.proper(slot), WHOLE).await;
            assert_eq!(reply.told, Some(Told::Interrupt(ids(&self.model.threads[slot].open))));
        }
        if self.model.threads[slot].waits() {
            let reply = self.run(slot, self.proper(slot), WHOLE).await;
            assert_eq!(reply.told, Some(Told::Success));
        }
        for agent in 0..AGENTS {
            self.messages += 1;
            let message = Some(format!("m{}", self.messages));
            let request = Request { agent, entries: Vec::new(), message };
            let reply = self.run(slot, request, WHOLE).await;
            assert_eq!(reply, Reply { ignored: Vec::new(), told: Some(Told::Success) });
        }
        self.check().await;
    }

    /// The answers that the agent which asked waits for, if it does.
    fn proper(&self, slot: usize) -> Request {
        let thread = &self.model.threads[slot];
        let asks = thread.open.iter().filter(|_| !thread.unraised);
        let entries = asks.map(|ask| {
            let expired = self.model.has_expired(ask);
            let verdict = if expired { Verdict::Cancelled } else { Verdict::Yes };
            Entry { id: ask.id(), answer: Answer::Given(verdict) }
        });
        Request { agent: thread.asker, entries: entries.collect(), message: None }
    }

    /// What the client sends.
    fn request(&mut self, run: &Run) -> Request {
        let client = &self.clients[run.slot];
        if let (Resume::Again, Some(last)) = (run.resume, &client.last) {
            return last.clone();
        }
        let open = ids(&self.model.threads[run.slot].open);
        let entry = |id: &String, answer| Entry { id: id.clone(), answer };
        let all = |verdicts: [Verdict; MOST_ASKS]| -> Vec<Entry> {
            let answers = open.iter().zip(verdicts);
            answers.map(|(id, verdict)| entry(id, Answer::Given(verdict))).collect()
        };
        let entries = match run.resume {
            Resume::Nothing | Resume::Again => Vec::new(),
            Resume::Everything(verdicts) => all(verdicts),
            Resume::AllButOne(verdicts) => all(verdicts).split_off(open.len().min(1)),
            Resume::Doubled(verdicts) => {
                let mut entries = all(verdicts);
                entries.extend(entries.first().cloned());
                entries
            }
            Resume::Nonsense(verdicts) => {
                let mut entries = all(verdicts);
                entries.iter_mut().take(1).for_each(|first| first.answer = Answer::Nonsense);
                entries
            }
            Resume::AndMore(verdicts) => {
                let mut entries = client.answered.clone();
                entries.retain(|stale| !open.contains(&stale.id));
                entries.extend(all(verdicts));
                entries.push(entry(&"ghost".to_owned(), Answer::Given(Verdict::Yes)));
                entries
            }
            Resume::Stale => client.answered.clone(),
        };
        let message = run.news.then(|| {
            self.messages += 1;
            format!("m{}", self.messages)
        });
        Request { agent: run.agent, entries, message }
    }
}

async fn played(schedule: &Schedule) {
    let mut both = Both {
        model: Model::new(schedule.settings, SLOTS, NOW_MS),
        world: World::new(schedule.settings, SLOTS, NOW_MS),
        clients: vec![Client::default(); SLOTS],
        messages: 0,
        calls: 0,
    };
    for step in &schedule.steps {
        both.play(step).await;
    }
    for slot in 0..SLOTS {
        both.come_to_rest(slot).await;
    }
    both.world.stopped().await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, rng_seed: RngSeed::Fixed(3), max_shrink_iters: 20_000,
        ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_gives_the_replies_of_the_model_and_leaves_no_thread_stuck(
        schedule in schedule::schedule()
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(played(&schedule));
    }
}
