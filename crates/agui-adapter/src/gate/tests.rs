use agui_protocol::{Event, RunId, ThreadId};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

mod checker;

/// Events in short hand: a code, ids, then `@owner` (or `<parent` for an announcement).
fn event(short: &str) -> Event {
    let mut words = short.split(' ');
    let code = words.next().unwrap();
    let (mut ids, mut extra) = (Vec::new(), Map::new());
    for word in words {
        match word.split_at(1) {
            ("@", owner) => drop(extra.insert("subagentRunId".into(), owner.into())),
            ("<", parent) => drop(extra.insert("parentSubagentRunId".into(), parent.into())),
            ("^", message) => drop(extra.insert("parentMessageId".into(), message.into())),
            _ => ids.push(word),
        }
    }
    let id = ids.first().copied().unwrap_or_default();
    let mut value = match code {
        "RS" => {
            json!({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"})
        }
        "RF" => json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}),
        "RFc" => {
            json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": {"type": "cancelled"}})
        }
        "RFp" => {
            json!({"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": {"type": "success", "pendingToolCallIds": ids}})
        }
        "RE" => json!({"type": "RUN_ERROR", "message": "m", "code": "C"}),
        "TS" => json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"}),
        "TC" => json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": "x"}),
        "TE" => json!({"type": "TEXT_MESSAGE_END", "messageId": id}),
        "TK" => json!({"type": "TEXT_MESSAGE_CHUNK", "messageId": id, "delta": "x"}),
        "XS" => json!({"type": "REASONING_START", "messageId": id}),
        "XE" => json!({"type": "REASONING_END", "messageId": id}),
        "MS" => json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"}),
        "MC" => json!({"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": "x"}),
        "ME" => json!({"type": "REASONING_MESSAGE_END", "messageId": id}),
        "MV" => {
            json!({"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": id, "encryptedValue": "e"})
        }
        "CS" => json!({"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f"}),
        "CA" => json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": "x"}),
        "CE" => json!({"type": "TOOL_CALL_END", "toolCallId": id}),
        "CR" => {
            json!({"type": "TOOL_CALL_RESULT", "messageId": "res", "toolCallId": id, "content": "x"})
        }
        "PS" => json!({"type": "STEP_STARTED", "stepName": id}),
        "PF" => json!({"type": "STEP_FINISHED", "stepName": id}),
        "AS" => {
            json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "P", "content": {}})
        }
        "AK" => {
            json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": "P", "content": {}, "replace": false})
        }
        "AD" => {
            json!({"type": "ACTIVITY_DELTA", "messageId": id, "activityType": "P", "patch": []})
        }
        "SS" => json!({"type": "SUBAGENT_STARTED", "subagentRunId": id, "name": "n"}),
        "SF" => json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id}),
        "SU" => {
            json!({"type": "SUBAGENT_FINISHED", "subagentRunId": id, "outcome": {"type": "suspended"}})
        }
        "SE" => json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "m"}),
        "SX" => {
            json!({"type": "SUBAGENT_ERROR", "subagentRunId": id, "message": "The run was cancelled.", "code": "CANCELLED"})
        }
        "CU" => json!({"type": "CUSTOM", "name": "n", "value": null}),
        "MM" => {
            json!({"type": "MESSAGES_SNAPSHOT", "messages": [{"role": "activity", "id": "a9", "activityType": "P", "content": {}}]})
        }
        other => panic!("unknown short hand: {other}"),
    };
    value.as_object_mut().unwrap().append(&mut extra);
    serde_json::from_value(value).unwrap()
}

/// `TS m1, TE m1` -> events.
fn events(short: &str) -> Vec<Event> {
    short.split(", ").filter(|one| !one.is_empty()).map(event).collect()
}

fn new_gate(finish_after_error: bool) -> Gate {
    Gate::new(ThreadId::from("t1"), RunId::from("r1"), finish_after_error)
}

/// One batch: what the sequencer gave, what the enrichers made of it, what leaves.
fn one(original: &str, enriched: Vec<Event>, finish_after_error: bool) -> (Vec<Event>, u32) {
    let mut gate = new_gate(finish_after_error);
    let mut out = Vec::new();
    gate.expect(&events(original));
    gate.pass(enriched, &mut out);
    (out, gate.repairs())
}

/// (what it shows, what the enrichers gave, what leaves, repairs); the sequencer gave RS and RF.
type Case = (&'static str, &'static str, &'static str, u32);

#[test]
fn what_fits_passes_unchanged_and_what_does_not_is_repaired() {
    let cases: &[Case] = &[
        (
            "nothing to repair",
            "RS, PS p, TS m1, TC m1, TE m1, XS x, MS y, MC y, ME y, MV y, XE x, CS c ^m1, CA c, \
             CE c, CR c, AS a, AD a, CU, PF p, SS s, TS m2 @s, TE m2 @s, SF s, RF",
            "RS, PS p, TS m1, TC m1, TE m1, XS x, MS y, MC y, ME y, MV y, XE x, CS c ^m1, CA c, \
             CE c, CR c, AS a, AD a, CU, PF p, SS s, TS m2 @s, TE m2 @s, SF s, RF",
            0,
        ),
        ("orphans", "RS, TC m, TE m, MC m, ME m, XE m, CA c, CE c, PF p, AD a, RF", "RS, RF", 9),
        ("ends of invocations never announced", "RS, SF s, SE s, RF", "RS, RF", 2),
        (
            "opened twice",
            "RS, TS m, TS m, TE m, CS c, CS c, CE c, PS p, PS p, PF p, RF",
            "RS, TS m, TE m, CS c, CE c, PS p, PF p, RF",
            3,
        ),
        (
            "a text may be opened again",
            "RS, TS m, TE m, TS m, TE m, RF",
            "RS, TS m, TE m, TS m, TE m, RF",
            0,
        ),
        ("results may come twice and late", "RS, CR old, CR old, RF", "RS, CR old, CR old, RF", 0),
        ("outside of the run", "CU, RS, RF, CU", "RS, RF", 2),
        ("second start", "RS, RS, RF", "RS, RF", 1),
        ("start swallowed", "CU, RF", "RS, CU, RF", 1),
        ("end swallowed", "RS, TS m", "RS, TS m, TE m, RF", 2),
        ("everything swallowed", "", "RS, RF", 2),
        ("end of another kind", "RS, RE", "RS, RF", 2),
        ("two ends", "RS, RF, RF, RE", "RS, RF", 2),
        ("outcome of an enricher", "RS, RFc", "RS, RF", 1),
        (
            "missing ends before the end of the run, message before span, child before parent",
            "RS, PS p, CS c, SS s, SS t <s, XS x, MS y, TS m, RF",
            "RS, PS p, CS c, SS s, SS t <s, XS x, MS y, TS m, TE m, ME y, XE x, CE c, PF p, SF t, \
             SF s, RF",
            7,
        ),
        (
            "missing ends before the end of an invocation",
            "RS, SS s, TS m @s, PS p @s, TS r, SF s, TE r, RF",
            "RS, SS s, TS m @s, PS p @s, TS r, TE m @s, PF p @s, SF s, TE r, RF",
            2,
        ),
        (
            "missing ends before the failure of an invocation",
            "RS, SS s, CS c @s, SE s, RF",
            "RS, SS s, CS c @s, CE c @s, SE s, RF",
            1,
        ),
        (
            "an invocation announced twice",
            "RS, SS s, SS s, SF s, SS s, RF",
            "RS, SS s, SF s, RF",
            2,
        ),
        ("parent never announced", "RS, SS s <zz, SF s, RF", "RS, SS s, SF s, RF", 1),
        (
            "parent already over",
            "RS, SS s, SF s, SS t <s, SF t, RF",
            "RS, SS s, SF s, SS t <s, SF t, RF",
            0,
        ),
        (
            "owners of what is open",
            "RS, SS s, TS m @s, TC m, TC m @t, TE m, CS c, CA c @s, CE c @s, CR c @s, XS x @s, \
             XE x, SF s, RF",
            "RS, SS s, TS m @s, TC m @s, TC m @s, TE m @s, CS c, CA c, CE c, CR c, XS x @s, \
             XE x @s, SF s, RF",
            7,
        ),
        (
            "a text opened again belongs to its first owner",
            "RS, TS m @s, TE m @s, TS m, TE m, RF",
            "RS, TS m @s, TE m @s, TS m @s, TE m @s, RF",
            2,
        ),
        (
            "owners of encrypted values",
            "RS, MS y @s, ME y @s, MV y, MV other, RF",
            "RS, MS y @s, ME y @s, MV y @s, MV other, RF",
            1,
        ),
        (
            "owners of steps: one name, two owners",
            "RS, PS p, PS p @s, PF p @s, PF p, PS q @s, PF q, RF",
            "RS, PS p, PS p @s, PF p @s, PF p, PS q @s, PF q @s, RF",
            1,
        ),
        (
            "a step end that fits several open steps and belongs to none",
            "RS, PS p @a, PS p @b, PF p, PF p @b, PF p @a, RF",
            "RS, PS p @a, PS p @b, PF p @b, PF p @a, RF",
            1,
        ),
        (
            "owners of activities",
            "RS, AS a @s, AD a, AK a, AS a, AD a @s, RF",
            "RS, AS a @s, AD a @s, AK a @s, AS a, AD a, RF",
            3,
        ),
        ("activities restated by a snapshot", "RS, MM, AD a9, RF", "RS, MM, AD a9, RF", 0),
        (
            "a call on a message of another owner",
            "RS, TS m, TE m, CS c ^m @s, CE c @s, CS d ^n @s, CE d @s, CS e ^n, CE e, RF",
            "RS, TS m, TE m, CS c @s, CE c @s, CS d ^n @s, CE d @s, CS e, CE e, RF",
            2,
        ),
        ("chunks", "RS, TK m, RF", "RS, RF", 1),
        ("end before the start", "RF, RS, CU", "RS, CU, RF", 2),
    ];
    for (shows, enriched, leaves, repairs) in cases {
        let got = one("RS, RF", events(enriched), false);
        assert_eq!(got, (events(leaves), *repairs), "{shows}");
    }
}

#[test]
fn ends_of_invocations_are_put_back_as_the_sequencer_meant_them() {
    let (out, _) = one("RS, SS s, SU s, SS t, SE t, RF", events("RS, SS s, SS t, RF"), false);
    assert_eq!(out, events("RS, SS s, SS t, SE t, SU s, RF"));
}

#[test]
fn an_unknown_end_of_an_invocation_is_no_success_in_a_cancelled_run() {
    let (out, _) = one("RS, RFc", events("RS, SS s, RFc"), false);
    assert_eq!(out, events("RS, SS s, SX s, RFc"));
}

#[test]
fn a_failure_needs_no_closers_and_nothing_follows_it() {
    let (out, repairs) = one("RS, RE", events("RS, TS m, RE, TE m, RF"), false);
    assert_eq!((out, repairs), (events("RS, TS m, RE"), 2));
}

#[test]
fn old_clients_may_be_sent_a_finish_after_an_error() {
    assert_eq!(one("RS, RE, RF", events("RS, RE, RF"), true), (events("RS, RE, RF"), 0));
    assert_eq!(one("RS, RE, RF", events("RS"), true), (events("RS, RE, RF"), 2));
    let (out, _) = one("RS, RE, RF", events("RS, RE, RF"), false);
    assert_eq!(out, events("RS, RE"));
}

#[test]
fn a_late_error_may_follow_a_finish() {
    let mut gate = new_gate(false);
    let mut out = Vec::new();
    for batch in ["RS", "RF", "RE", "RE"] {
        gate.expect(&events(batch));
        gate.pass(events(batch), &mut out);
    }
    assert_eq!(out, events("RS, RF, RE"));
}

#[test]
fn a_start_with_other_ids_gets_the_runs_own() {
    let body = Body::RunStarted {
        thread_id: "other".into(),
        run_id: "r1".into(),
        protocol_version: Some("1.0".into()),
        parent_run_id: None,
        input: None,
    };
    let (out, repairs) = one("RS, RF", vec![body.into(), event("RF")], false);
    assert_eq!((out, repairs), (events("RS, RF"), 1));
}

#[test]
fn changes_to_a_boundary_that_break_nothing_stay() {
    let started = event("RS").with_metadata("k", 1);
    let finished = event("RF").with_timestamp(5);
    let given = vec![started, finished];
    assert_eq!(one("RS, RF", given.clone(), false), (given, 0));
}

#[test]
fn pending_calls_that_the_client_never_saw_are_not_listed() {
    let (out, repairs) = one("RS, RFp c d", events("RS, CS d, CE d, RFp c d"), false);
    assert_eq!((out, repairs), (events("RS, CS d, CE d, RFp d"), 1));
}

#[test]
fn base_members_that_no_event_may_have_are_removed() {
    let bad = event("CU").with_metadata("ag-ui", 1).with_metadata("own", 2);
    let bad = Event { raw_event: Some(Value::Null), ..bad };
    let good = event("CU").with_metadata("own", 2);
    let (out, repairs) = one("RS, RF", vec![event("RS"), bad, event("RF")], false);
    assert_eq!((out, repairs), (vec![event("RS"), good, event("RF")], 2));
}

#[test]
fn an_end_that_was_forgotten_is_not_put_back() {
    let mut gate = new_gate(false);
    let mut out = Vec::new();
    gate.expect(&events("RS, RF"));
    gate.forget_ends();
    gate.expect(&events("RE"));
    gate.pass(events("RE"), &mut out);
    assert_eq!(out, events("RS, RE"));
}

/// Any event, from few ids, so that they meet.
fn any_event() -> impl Strategy<Value = String> {
    let code = prop::sample::select(vec![
        "TS", "TC", "TE", "XS", "XE", "MS", "MC", "ME", "MV", "CS", "CA", "CE", "CR", "PS", "PF",
        "AS", "AK", "AD", "SS", "SF", "SE", "CU", "RS", "RF", "RE", "TK",
    ]);
    let id = prop::sample::select(vec!["a", "b"]);
    let owner = prop::sample::select(vec!["", " @a", " @b"]);
    let parent = prop::sample::select(vec!["", "a", "b"]);
    (code, id, owner, parent).prop_map(|(code, id, owner, parent)| match (code, parent) {
        ("SS", "") | ("SF" | "SE", _) => format!("{code} {id}"),
        ("SS", parent) => format!("{code} {id} <{parent}"),
        ("RS" | "RF" | "RE", _) => code.to_owned(),
        ("CU", _) => format!("CU{owner}"),
        ("CS", parent) if !parent.is_empty() => format!("CS {id} ^{parent}{owner}"),
        _ => format!("{code} {id}{owner}"),
    })
}

/// Sends batches through a gate whose sequencer gave RS first and `end` last.
fn through(batches: &[Vec<Event>], end: &Event) -> (Vec<Event>, u32) {
    let mut gate = new_gate(false);
    let mut out = Vec::new();
    gate.expect(&events("RS"));
    for (index, batch) in batches.iter().enumerate() {
        if index + 1 == batches.len() {
            gate.expect(std::slice::from_ref(end));
        }
        gate.pass(batch.clone(), &mut out);
    }
    (out, gate.repairs())
}

fn any_batches() -> impl Strategy<Value = Vec<Vec<Event>>> {
    let batch = prop::collection::vec(any_event().prop_map(|short| event(&short)), 0..12);
    prop::collection::vec(batch, 1..6)
}

proptest! {
    #[test]
    fn whatever_enrichers_return_the_stream_keeps_its_order(
        batches in any_batches(),
        end in prop::sample::select(vec!["RF", "RFc", "RE"]),
    ) {
        let (out, _) = through(&batches, &event(end));
        prop_assert_eq!(checker::check(&out), Ok(()));
    }

    #[test]
    fn a_stream_in_order_passes_unchanged(batches in any_batches()) {
        let end = event("RF");
        let (once, _) = through(&batches, &end);
        prop_assert_eq!(through(std::slice::from_ref(&once), &end), (once, 0));
    }

    #[test]
    fn drops_and_duplicates_in_a_good_stream_are_repaired(
        batches in any_batches(),
        copies in prop::collection::vec(0_usize..3, 128),
    ) {
        let end = event("RF");
        let (good, _) = through(&batches, &end);
        let broken: Vec<Event> = good
            .iter()
            .zip(copies.iter().cycle())
            .flat_map(|(event, copies)| std::iter::repeat_n(event.clone(), *copies))
            .collect();
        let (out, _) = through(&[broken], &end);
        prop_assert_eq!(checker::check(&out), Ok(()));
    }
}
