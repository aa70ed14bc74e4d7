//! Names become what they name, and what an agent can do is declared.

use std::collections::BTreeMap;

use agui_adapter::options::AdapterOptions;
use agui_protocol::capabilities::SubagentInfo;

use super::*;
use crate::{
    agents::{
        react::{Model, ReactFactory, Supplies},
        registry::{AgentFactory, Built},
    },
    config::{
        AgentConfig, AgentKind, ReactConfig,
        react::{Builtin, ToolConfig},
    },
    http_client::{self, Redirects},
};

fn built(react: ReactConfig) -> Result<Built, Vec<String>> {
    let model = Model { model: Script::new([]), vision: true };
    let info = SubagentInfo { name: "Researcher".to_owned(), description: None };
    let factory = ReactFactory::new(Supplies {
        models: BTreeMap::from([("m".to_owned(), model)]),
        sources: BTreeMap::new(),
        agents: BTreeMap::from([("researcher".to_owned(), info)]),
        directory: Directory::default(),
        client: http_client::build(&[], Redirects::None).unwrap(),
    });
    let config = AgentConfig {
        name: String::new(),
        description: "Helps.".to_owned(),
        adapter: AdapterOptions::default(),
        run_timeout: None,
        accept_client_system_messages: false,
        history_limit: 200,
        kind: AgentKind::React(Box::new(react)),
    };
    let built = factory.build("a", &config);
    built.map_err(|faults| faults.iter().map(ToString::to_string).collect())
}

#[test]
fn names_that_name_nothing_are_faults_with_their_places() {
    let mcp =
        ToolConfig::Mcp { server: "files".to_owned(), include: Vec::new(), exclude: Vec::new() };
    let react = ReactConfig {
        sys_prompt: "{{who}}".to_owned(),
        model: "n".to_owned(),
        tools: vec![ToolConfig::Builtin(Builtin::AskUser), mcp],
        subagents: vec!["researcher".to_owned(), "nobody".to_owned()],
        ..ReactConfig::default()
    };
    assert_eq!(
        built(react).err().unwrap(),
        [
            "agentscope.agents.a.model: there is no model `n`; there are: m",
            "agentscope.agents.a.sys-prompt: there is no placeholder `who`; placeholders: \
             threadId, runId, context.<key>",
            "agentscope.agents.a.tools[1].mcp: there is no MCP server `files`; there are: none",
            "agentscope.agents.a.subagents[1]: there is no agent `nobody`; there are: researcher",
        ]
    );
}

#[test]
fn what_holds_is_declared() {
    let react = ReactConfig {
        model: "m".to_owned(),
        tools: vec![ToolConfig::External(external("print"))],
        subagents: vec!["researcher".to_owned()],
        ..ReactConfig::default()
    };
    let declared = serde_json::to_value(built(react).ok().unwrap().capabilities).unwrap();
    assert_eq!(
        declared,
        json!({
            "identity": {"name": "a", "type": "react", "description": "Helps."},
            "transport": {"streaming": true},
            "tools": {
                "supported": true,
                "items": [{
                    "name": "print", "description": "",
                    "parameters": {"type": "object", "properties": {}},
                }],
                "parallelCalls": true,
                "clientProvided": true,
            },
            "state": {"snapshots": false, "deltas": false},
            "multiAgent": {
                "supported": true, "delegation": true, "subagents": [{"name": "Researcher"}],
            },
            "reasoning": {"supported": false, "streaming": false},
            "multimodal": {"input": {"image": true}},
            "execution": {"maxIterations": 10},
            "humanInTheLoop": {
                "supported": true, "approvals": false, "interrupts": true,
                "approveWithEdits": false,
            },
        })
    );
}
