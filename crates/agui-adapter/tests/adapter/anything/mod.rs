//! Whatever an agent sends, the client gets a stream that keeps the protocol's rules, and nothing
//! that was said before the end is lost.

mod conservation;
mod ops;
mod runs;

use agui_protocol::verify::{VerifyInput, Violation, check_events};
use proptest::prelude::*;

use self::runs::{Run, run};

/// A violation that the stream's options, or the agent itself, force.
fn is_forced(run: &Run, violation: &Violation) -> bool {
    let options = &run.options;
    match violation.rule {
        // The agent leaves a call unanswered.
        "TOOL-15" => violation.message.ends_with("has no result"),
        // An agent that needs permission for it asks about the client's tool, or the option wants
        // interrupts for such tools.
        "INT-24" => true,
        // Asked for by `emit-run-finished-after-error`.
        "LIFE-3" => options.emit_run_finished_after_error,
        // Asked for by `subagent-events: attributed`, whatever the peer.
        "VER-13" => runs::attributes_for_legacy(run),
        _ => false,
    }
}

proptest! {
    #![proptest_config(crate::support::repeatable(1500))]

    #[test]
    fn any_sequence_of_agent_events_gives_a_stream_that_keeps_the_rules_and_loses_nothing(
        run in run(),
    ) {
        let converted = runs::convert(&run);
        let values = converted.values();
        // Arguments that come after a call's end open the call again (as the protocol allows).
        let context = VerifyInput::from(run.input_json.clone()).lenient();
        let violations: Vec<_> = check_events(&values, &context)
            .into_iter()
            .filter(|violation| !is_forced(&run, violation))
            .map(|violation| violation.to_string())
            .collect();
        prop_assert!(violations.is_empty(), "{violations:#?}\n{}", converted.to_lines());
        let lost = conservation::check(&run, &values);
        prop_assert!(lost.is_empty(), "{lost:#?}\n{}", converted.to_lines());
    }
}
