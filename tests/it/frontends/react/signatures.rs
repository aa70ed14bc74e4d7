//! What providers sign: it goes through the clients, or past them, and comes back as it was.

use serde_json::{Value, json};

use super::{FORGETFUL, REMEMBERING, Said, Talk, forgetting, judge, results, resume, user};
use crate::support::model::{Frame, anthropic, gemini};

const SIGNATURE: &str = "EqQBCgIYAhIM/+sig==";

/// Signed thinking and what follows it.
fn thinks(more: Vec<Frame>, reason: &str) -> Said {
    let mut frames = vec![anthropic::start(&Value::Null)];
    frames.extend(anthropic::thinking(0, &["h", "m"], SIGNATURE));
    frames.extend(more);
    frames.extend(anthropic::end(reason, &Value::Null));
    Said::Frames(frames)
}

fn says(words: &str) -> Said {
    thinks(anthropic::text(1, &[words]), "end_turn")
}

fn calls(id: &str, name: &str, arguments: &str) -> Said {
    thinks(anthropic::call(1, id, name, &[arguments]), "tool_use")
}

/// A call that is signed itself; the wire has no ids.
fn seals(name: &str, arguments: &Value) -> Said {
    let call = gemini::call(name, arguments, Some(SIGNATURE));
    Said::Frames([call, gemini::finish("STOP", None)].map(Frame::from).into())
}

fn tells(words: &str) -> Said {
    Said::Frames([gemini::text(words), gemini::finish("STOP", None)].map(Frame::from).into())
}

const HELLO: &str = r#"{"role":"user","content":[{"type":"text","text":"Hello"}]}"#;
const WIPE: &str = r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIM/+sig=="},{"type":"tool_use","id":"k1","name":"wipe","input":{"disk":"a"}}]}"#;
const WIPED: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"k1","content":[{"type":"text","text":"wipe is done"}]}]}"#;

#[tokio::test(flavor = "multi_thread")]
async fn signed_thinking_comes_back_as_it_was() {
    let wipe = || calls("k1", "wipe", r#"{"disk":"a"}"#);
    let asked = |name, agent| {
        Talk::new(name, agent)
            .steps([user("Hello")])
            .says([wipe(), says("Done.")])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([HELLO, WIPE, WIPED])
    };
    let painted = |name, agent| {
        Talk::new(name, agent)
            .offers("paint")
            .steps([user("Hello"), results(json!({"paint": "painted"}))])
            .says([calls("k1", "paint", r#"{"colour":"blue"}"#), says("Done.")])
            .hears([
                HELLO,
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIM/+sig=="},{"type":"tool_use","id":"k1","name":"paint","input":{"colour":"blue"}}]}"#,
                r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"k1","content":[{"type":"text","text":"painted"}]}]}"#,
            ])
    };
    let talks = [
        Talk::new("words", "signer")
            .steps([user("Hello"), user("Hello")])
            .says([says("Yes."), says("Yes again.")])
            .hears([
                HELLO,
                r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIM/+sig=="},{"type":"text","text":"Yes."}]}"#,
                HELLO,
            ]),
        asked("approval", "signer").steps([resume("approve")]),
        asked("approval-without-messages", "signer").steps([forgetting(resume("approve"))]),
        asked("approval-of-hidden-thinking", "secretive").steps([resume("approve")]),
        painted("frontend-tool", "signer"),
        painted("frontend-tool-behind-hidden-thinking", "secretive"),
    ];
    judge("signatures", &talks, &[FORGETFUL, REMEMBERING]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_calls_come_back_as_they_were() {
    let talks = [
        Talk::new("sealed-approval", "sealer")
            .steps([user("Hello"), resume("approve"), user("Hello")])
            .says([seals("wipe", &json!({"disk": "a"})), tells("Done."), tells("Yes.")])
            .executes([r#"/wipe {"disk":"a"}"#])
            .hears([
                r#"{"role":"user","parts":[{"text":"Hello"}]}"#,
                r#"{"role":"model","parts":[{"functionCall":{"name":"wipe","args":{"disk":"a"}},"thoughtSignature":"EqQBCgIYAhIM/+sig=="}]}"#,
                r#"{"role":"user","parts":[{"functionResponse":{"name":"wipe","response":{"result":"wipe is done"}}}]}"#,
                r#"{"role":"model","parts":[{"text":"Done."}]}"#,
                r#"{"role":"user","parts":[{"text":"Hello"}]}"#,
            ]),
        Talk::new("sealed-frontend-tool", "sealer")
            .offers("paint")
            .steps([user("Hello"), results(json!({"paint": "painted"}))])
            .says([seals("paint", &json!({"colour": "blue"})), tells("Done.")])
            .hears([
                r#"{"role":"user","parts":[{"text":"Hello"}]}"#,
                r#"{"role":"model","parts":[{"functionCall":{"name":"paint","args":{"colour":"blue"}},"thoughtSignature":"EqQBCgIYAhIM/+sig=="}]}"#,
                r#"{"role":"user","parts":[{"functionResponse":{"name":"paint","response":{"result":"painted"}}}]}"#,
            ]),
    ];
    judge("sealed", &talks, &[FORGETFUL, REMEMBERING]).await;
}
