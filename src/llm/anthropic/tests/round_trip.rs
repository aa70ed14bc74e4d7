use std::sync::Arc;

use agui_adapter::model::event::ResultState;

use super::*;

#[test]
fn an_answer_goes_back_as_it_came() {
    let stream = r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"I must","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" look."}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sig:/+=="}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Data:=="}}

data: {"type":"content_block_stop","index":1}

data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":"I look."}}

data: {"type":"content_block_stop","index":2}

data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"g_h_daf359c8","input":{}}}

data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"z\":1,\"a\":[null]}"}}

data: {"type":"content_block_stop","index":3}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}

data: {"type":"message_stop"}

"#;
    let wire = wire(json!({"thinking": {"type": "enabled", "budget_tokens": 1024}}));
    let tools = Arc::from([function("g.h", "", json!({"type": "object"}))]);
    let request = ModelRequest { tools, ..ModelRequest::default() };
    let (events, end) = read(wire.decoder(&request), stream);
    assert_eq!(end, Ok(()));
    let messages =
        vec![user("Go"), assistant(kept(&events)), tool("toolu_1", "x", ResultState::Success)];
    let body = wire.body(&ModelRequest { messages, ..request });
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "thinking", "thinking": "I must look.", "signature": "Sig:/+=="},
            {"type": "redacted_thinking", "data": "Data:=="},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "g_h_daf359c8",
             "input": {"z": 1, "a": [null]}},
        ])
    );
    assert!(body.contains_key("thinking"));
}
