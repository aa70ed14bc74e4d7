//! Any run: its record is what a client makes of it, and whoever joins it has what the client has
//! that began it.

use agui_adapter::{
    connect::JOINED_RUN,
    options::{EnricherSpec, FrontendToolOutcome, SubagentEvents},
    outbound::RunFailure,
};
use agui_protocol::verify::Violation;
use proptest::{prelude::*, test_runner::RngSeed};

use super::{joined::Joining, *};
use crate::any_run::{
    self,
    generate::{self, End, Run},
};

fn shown(run: &Run) -> AdapterOptions {
    // What is recorded for the raw events is not the matter here.
    AdapterOptions { enrichers: Vec::<EnricherSpec>::new(), ..run.options.clone() }
}

fn playing(run: &Run) -> Playing {
    let input = RunAgentInput::from_value(any_run::input(run)).expect("input").input;
    let mut setup = RunSetup::new(Arc::new(input), run.peer);
    if run.denied {
        setup.answered.push(any_run::denied());
    }
    Playing::with(setup, shown(run), Extensions::default())
}

fn stream_end(end: End) -> StreamEnd {
    match end {
        End::Completed => StreamEnd::Completed,
        End::Failed => StreamEnd::Failed(RunFailure::new("TIMEOUT_ERROR", "Too slow.")),
        End::Cancelled => StreamEnd::Cancelled("cancelled"),
    }
}

/// As in `any_run`: what the checker cannot know of, and what options ask for.
fn is_fault(violation: &Violation, run: &Run) -> bool {
    let interrupting = run.options.frontend_tool_outcome == FrontendToolOutcome::Interrupt;
    match violation.rule {
        "TOOL-15" => !violation.message.contains("has no result"),
        "INT-24" | "LIFE-16" => !interrupting,
        "VER-13" => run.options.subagent_events != SubagentEvents::Attributed,
        // Late arguments open a call again.
        "TOOL-24" => false,
        _ => true,
    }
}

/// Clients of what a switch hides have the rest.
fn without_arguments(mut messages: Vec<Value>, run: &Run) -> Vec<Value> {
    if !run.options.emit_tool_call_args {
        let calls = messages.iter_mut().filter_map(|message| message.get_mut("toolCalls"));
        for call in calls.filter_map(Value::as_array_mut).flatten() {
            call["function"]["arguments"] = json!("");
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None,
        rng_seed: RngSeed::Fixed(3), max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn the_record_is_what_a_client_makes_of_any_run(mut run in generate::run()) {
        run.peer = Peer::Current;
        let mut playing = playing(&run);
        for event in &run.events {
            playing.feed(event);
        }
        playing.finish(stream_end(run.end));
        let client = playing.client();
        let record = without_arguments(messages_json(&playing.thread()), &run);
        prop_assert_eq!(record, without_arguments(client.messages, &run));
        if run.options.emit_state_events {
            prop_assert_eq!(&client.state, &**playing.adapter.state());
        }
    }

    #[test]
    fn who_joins_any_run_at_any_place_has_what_the_others_have(
        run in generate::run(), at in 0.0..1.0_f64, legacy in any::<bool>(),
    ) {
        let peer = if legacy { Peer::Legacy } else { Peer::Current };
        let mut playing = playing(&run);
        let mut own = playing.adapter.take_view();
        let place = (at * run.events.len() as f64) as usize;
        let (mut joining, mut shown_own) = (None, Vec::new());
        for (at, event) in run.events.iter().enumerate() {
            if at == place && playing.end.is_none() {
                joining = Some(Joining::of(&playing, peer, &shown(&run)));
            }
            let events = playing.feed(event).to_vec();
            joining.iter_mut().for_each(|joining| joining.show(&events));
            own.show(events, support::NOW, &mut shown_own);
        }
        let events = playing.finish(stream_end(run.end)).to_vec();
        joining.iter_mut().for_each(|joining| joining.show(&events));
        own.show(events, support::NOW, &mut shown_own);
        let Some(joining) = joining else { return Ok(()) };
        let client = joining.client();
        let began = playing.client();
        if !legacy {
            prop_assert_eq!(
                without_arguments(client.messages, &run),
                without_arguments(began.messages, &run)
            );
        }
        if playing.adapter.shown_state().is_some() {
            prop_assert_eq!(client.state, began.state);
        }
        let judged = Run { peer, ..run };
        let faults: Vec<_> =
            joining.findings(peer).into_iter().filter(|found| is_fault(found, &judged)).collect();
        prop_assert!(faults.is_empty(), "{:#?}\n{:#?}", faults, joining.events);
        // A view of its own shows the run's peer what it was shown before.
        let started = |event: &Event| json!(event)["metadata"][JOINED_RUN].is_null();
        prop_assert!(shown_own.iter().all(started));
    }
}
