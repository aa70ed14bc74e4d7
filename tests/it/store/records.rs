//! Records of threads for the tests of stores.

use std::sync::Arc;

use agentscope_agui::store::{
    ActiveRun, AgentId, Claim, LastAnswer, Next, Parked, Principal, RunOwner, Store, Thread,
    ThreadKey,
};
use agui_adapter::{
    history::Stored,
    resume::{Decision, InterruptKind, OpenInterrupt, decide},
};
use agui_protocol::{Message, ResumeEntry, RunOutcome, ToolCallId};
use serde_json::{Value, json};

pub(super) fn key(thread: &str) -> ThreadKey {
    key_of(&Principal::anonymous(), thread)
}

pub(super) fn key_of(principal: &Principal, thread: &str) -> ThreadKey {
    ThreadKey { principal: principal.clone(), thread: thread.into() }
}

/// A thread of agent `a` on which nothing happens, updated at this time.
pub(super) fn idle(updated_ms: i64) -> Thread {
    Thread {
        agent: Some(AgentId::new("a")),
        answered: ["i0".into()].into(),
        updated_ms,
        ..Thread::default()
    }
}

/// The same with a run.
pub(super) fn active(updated_ms: i64, owner: RunOwner) -> Thread {
    let run = ActiveRun {
        owner,
        run_id: "r1".into(),
        agent: AgentId::new("a"),
        claim: None,
        cancel: false,
        lease_ends_ms: None,
    };
    Thread { active: Some(run), ..idle(updated_ms) }
}

/// The same with a run that was told to stop.
pub(super) fn stopping(updated_ms: i64, owner: RunOwner) -> Thread {
    let mut thread = active(updated_ms, owner);
    thread.active.as_mut().unwrap().cancel = true;
    thread
}

/// The same with an open interrupt and a message of so many bytes.
pub(super) fn parked(updated_ms: i64, bytes: usize) -> Thread {
    Thread { parked: Some(asked()), ..saying(updated_ms, bytes) }
}

/// A thread with a message of so many bytes.
pub(super) fn saying(updated_ms: i64, bytes: usize) -> Thread {
    let text = "x".repeat(bytes);
    let message = message(json!({"id": "u1", "role": "user", "content": text}));
    Thread { messages: Arc::new(vec![Stored::seen(message)]), ..idle(updated_ms) }
}

/// A record of which every member has a value.
pub(super) fn whole() -> Thread {
    let entry: ResumeEntry = serde_json::from_value(json!({
        "interruptId": "i1", "status": "resolved",
        "payload": {"approved": true, "editedArgs": {"disk": "ü", "n": 1.5}},
    }))
    .unwrap();
    let decided = decide(&[entry], &[ask()]).unwrap();
    let settled = decided.into_iter().map(|one| Decision { settled: true, ..one }).collect();
    let claimed = Parked {
        settled,
        state: Some(Arc::new(json!({"step": [1, null, "\u{1f600}"]}))),
        ..asked()
    };
    let run = ActiveRun {
        owner: RunOwner::fresh(),
        run_id: "run \"1\"\n".into(),
        agent: AgentId::new("b"),
        claim: Some(Claim { parked: claimed, known: Arc::new(["u1".into(), "".into()].into()) }),
        cancel: true,
        lease_ends_ms: Some(1_700_000_000_001),
    };
    let seen = Stored::seen(message(json!({
        "id": "m1", "role": "assistant", "content": "\u{0}é",
        "toolCalls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}],
    })));
    let unseen = Stored::unseen(message(json!({
        "id": "t1", "role": "tool", "toolCallId": "c1",
        "content": [{"type": "text", "text": "done"}],
    })));
    Thread {
        agent: Some(AgentId::new("a")),
        active: Some(run),
        parked: Some(Parked { raised: false, ..asked() }),
        answered: ["i7".into(), "i8".into(), "i7".into()].into(),
        last_answer: Some(LastAnswer {
            known: Arc::new(["u1".into()].into()),
            calls: [ToolCallId::from("c1"), ToolCallId::from("c2")].into(),
            messages: Arc::new(vec![seen.clone()]),
        }),
        outcome: Some(RunOutcome::Interrupt { interrupts: vec![ask().interrupt] }),
        failure: Some("MODEL_ERROR".to_owned()),
        messages: Arc::new(vec![seen, unseen]),
        state: Some(Arc::new(json!({"z": 1, "a": {"deep": [true]}}))),
        kept: [
            (AgentId::new("a"), Arc::new(json!({"rules": ["x:y", null]}))),
            (AgentId::new("b.c"), Arc::new(json!("ü"))),
        ]
        .into(),
        name: "Zwei Wörter".to_owned(),
        created_ms: 1,
        updated_ms: 1_700_000_000_000,
    }
}

fn asked() -> Parked {
    Parked {
        agent: AgentId::new("a"),
        open: vec![ask()],
        settled: Vec::new(),
        raised: true,
        state: None,
    }
}

fn ask() -> OpenInterrupt {
    serde_json::from_value(json!({
        "interrupt": {
            "id": "i1", "reason": "tool_call", "message": "May I?", "toolCallId": "c1",
            "responseSchema": {"type": "object"}, "expiresAt": "2030-01-01T00:00:00.000Z",
            "metadata": {"toolName": "wipe"},
        },
        "kind": InterruptKind::PermissionConfirm,
        "reply": "reply",
        "source": "main/child",
        "call": {
            "id": "", "wireId": "c1", "name": "wipe", "arguments": "{\"disk\":\"a\"}",
            "input": {"disk": "a"},
        },
        "expiresMs": 1_893_456_000_000_i64,
    }))
    .unwrap()
}

fn message(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

/// Puts a record, whatever was there.
pub(super) async fn put(store: &impl Store, key: &ThreadKey, thread: Thread) {
    let mut change = |_: Option<&Thread>, _| Next::Put(Box::new(thread.clone()));
    store.update(key, &mut change).await.unwrap();
}

pub(super) async fn remove(store: &impl Store, key: &ThreadKey) {
    store.update(key, &mut |_, _| Next::Remove).await.unwrap();
}

pub(super) async fn load(store: &impl Store, key: &ThreadKey) -> Option<Thread> {
    store.load(key).await.unwrap().map(|thread| Thread::clone(&thread))
}
