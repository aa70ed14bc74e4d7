//! The record of a run, rule by rule.

use agui_adapter::transcript::MAX_RECORDED;

use super::*;

fn start() -> String {
    r#"{"type":"AGENT_START","reply_id":"R1","name":"main"}"#.to_owned()
}
