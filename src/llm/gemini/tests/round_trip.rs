use std::sync::Arc;

use agui_adapter::model::event::ResultState;

use super::*;

#[test]
fn an_answer_goes_back_as_it_came() {
    let parts = json!([
        {"text": "", "thought": true, "thoughtSignature": "T=="},
        {"text": "I look.", "thoughtSignature": "P:=="},
        {"functionCall": {"id": "1", "name": "f", "args": {"z": 1, "a": [null]}},
         "thoughtSignature": "C/+=="},
        {"functionCall": {"id": "2", "name": "g_h_daf359c8", "args": {}}},
    ]);
    let chunk = json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
    let wire = wire("gemini-3-pro-preview", Value::Null);
    let tools = Arc::from([function("g.h", "", json!({"type": "object"}))]);
    let request = ModelRequest { tools, ..ModelRequest::default() };
    let (events, end) = read(wire.decoder(&request), &format!("data: {chunk}"));
    assert_eq!(end, Ok(()));
    let messages = vec![
        user("Go"),
        assistant(kept(&events)),
        tool("1", "x", ResultState::Success),
        tool("2", "x", ResultState::Success),
    ];
    let body = wire.body(&ModelRequest { messages, ..request });
    assert_eq!(body["contents"][1]["parts"], parts);
}
