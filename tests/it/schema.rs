//! The JSON Schema of the configuration against the loader: both refuse the same broken files and
//! take the same odd ones.

use std::{
    io::Write,
    process::{Command, Stdio},
    sync::LazyLock,
};

use agentscope_agui::config;
use jsonschema::Validator;
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

use super::support::config::load;

static SCHEMA: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(&config::json_schema()).unwrap());

/// What the schema finds wrong with a YAML text.
pub(crate) fn schema_faults(text: &str) -> Vec<String> {
    let documents = YamlLoader::load_from_str(text).unwrap();
    let document = documents.first().map_or(Value::Null, json);
    let document = if document.is_null() { Value::Object(Default::default()) } else { document };
    SCHEMA
        .iter_errors(&document)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn json(yaml: &Yaml) -> Value {
    match yaml {
        Yaml::Real(number) => number.parse::<f64>().unwrap().into(),
        Yaml::Integer(number) => (*number).into(),
        Yaml::String(text) => text.as_str().into(),
        Yaml::Boolean(value) => (*value).into(),
        Yaml::Array(items) => items.iter().map(json).collect(),
        Yaml::Hash(entries) => entries
            .iter()
            .map(|(key, value)| (key.as_str().unwrap_or_default().to_owned(), json(value)))
            .collect(),
        Yaml::Null => Value::Null,
        Yaml::Alias(_) | Yaml::BadValue => panic!("no value"),
    }
}

/// Inside `agentscope.agui`.
fn agui(line: &str) -> String {
    format!("agentscope: {{agui: {{{line}}}}}\n")
}

/// One agent of this block.
fn agent(block: &str) -> String {
    format!("agentscope: {{agents: {{a: {block}}}}}\n")
}

/// One turn of this block.
fn turn(block: &str) -> String {
    agent(&format!("{{type: scripted, turns: [{block}]}}"))
}

/// Models and MCP servers beside an agent that uses neither.
fn beside(line: &str) -> String {
    format!(
        "agentscope: {{{line}, agents: {{a: {{type: scripted, turns: [{{events: ['{{}}']}}]}}}}}}\n"
    )
}

/// A react agent with a model, and these keys.
fn react(keys: &str) -> String {
    format!(
        "agentscope: {{models: {{q: {{model: m}}}}, mcp-servers: {{s: {{command: x}}}}, agents: {{a: \
         {{type: react, model: q, {keys}}}, b: {{type: react, model: q}}}}}}\n"
    )
}

#[test]
fn what_the_loader_refuses_the_schema_refuses() {
    let mut broken: Vec<String> = [
        "just text",
        "server: [1]",
        "servre: {}",
        "server: {prot: 1}",
        "server: {port: 99999}",
        "server: {port: -1}",
        "server: {port: '-1'}",
        "server: {port: many}",
        "server: {request-body-limit: 0}",
        "server: {request-body-limit: 16M}",
        "server: {max-concurrent-runs: 0}",
        "server: {host: 1}",
        "server: {host: ''}",
        "server: {host: 'http://x'}",
        "server: {host: 'a b'}",
        "server: {host: 'a^b'}",
        "server: {host: 'a,b'}",
        "server: {host: 'localhost:80'}",
        "server: {host: '[::1]'}",
        "server: {auth: none}",
        "server: {auth: }",
        "server: {auth: {}}",
        "server: {auth: {header: X-User-Id}}",
        "server: {auth: {type: basic}}",
        "server: {auth: {type: none, header: X-User-Id}}",
        "server: {auth: {type: trusted-header, header: 'X User'}}",
        "server: {auth: {type: trusted-header, trusted-header: {header: X-User-Id}}}",
        "agentscope: {agents: {}}",
        "agentscope: {agents: {a: }}",
        "agentscope: {agents: {run: {type: scripted, turns: [{events: ['{}']}]}}}",
        "agentscope: {agents: {'..': {type: scripted, turns: [{events: ['{}']}]}}}",
        "agentscope: {agents: {'a b': {type: scripted, turns: [{events: ['{}']}]}}}",
        "agentscope: {agui: {runtime-context: {sessionId: {value: 1}}}}",
        "agentscope: {agui: {runtime-context: {agui.state: {value: 1}}}}",
    ]
    .map(str::to_owned)
    .to_vec();
    broken.extend(
        [
            "pathPrefix: /x",
            "path-prefix: agui/",
            "path-prefix: /healthz",
            "path-prefix: /a/../b",
            "agent-id-header: 'X Agent'",
            "cors-enabled: maybe",
            "cors-allowed-origins: ['http://a.example/']",
            "cors-allowed-origins: ['http://A.example']",
            "cors-allowed-origins: [a.example]",
            "cors-allowed-origins: {a: b}",
            "cors-allow-credentials: true",
            "cors-allow-credentials: 1",
            "cors-allowed-origins: 'http://a.example, b.example'",
            "cors-allow-credentials: true, cors-allowed-origins: ['http://a.example', '*']",
            "run-timeout: soon",
            "run-timeout: -5s",
            "run-timeout: PT",
            "run-timeout: 1M2",
            "run-timeout: 315360000001",
            "run-timeout: '9999999999999'",
            "interrupt-ttl: 100000d",
            "heartbeat-interval: PT100000H",
            "write-timeout: 10000000m",
            "coalesce-window: 9999999999s",
            "coalesce-window: 9999999999999ms",
            "heartbeat-interval: 1.5",
            "subagent-events: attribted",
            "emit-subagent-events-as-native: true, subagent-events: custom",
            "server-side-memory: sometimes",
            "assume-peer: newest",
            "enrichers: {type: timestamp}",
            "enrichers: [timestamp]",
            "enrichers: [~]",
            "enrichers: [{type: nothing}]",
            "enrichers: [{set: {a: 1}}]",
            "enrichers: [{type: metadata}]",
            "enrichers: [{type: metadata, set: {ag-ui: 1}}]",
            "enrichers: [{type: timestamp, set: {a: 1}}]",
            "enrichers: [{type: drop}]",
            "enrichers: [{type: drop, event: RUN_FINISHED}]",
            "enrichers: [{type: drop, event: RAW, name: a}]",
            "converters: [{drop: true}]",
            "converters: [{custom: a}]",
            "converters: [{custom: a, drop: false}]",
            "converters: [{custom: a, rename: b, as: step}]",
            "converters: [{custom: a, as: text}]",
            "runtime-context: {a: {}}",
            "runtime-context: {a: }",
            "runtime-context: {a: {query: q, header: h}}",
            "runtime-context: {a: {principal: false}}",
            "runtime-context: {a: {header: 'X Y'}}",
        ]
        .map(agui),
    );
    broken.extend(
        [
            "[x]",
            "{}",
            "{type: reactt}",
            "{script: x.jsonl}",
            "{type: scripted}",
            "{type: scripted, script: ~}",
            "{type: scripted, turns: []}",
            "{type: scripted, turns: [{events: ['{}']}], script: x.jsonl}",
            "{type: command}",
            "{type: command, command: ~}",
            "{type: command, command: ''}",
            "{type: scripted, turns: [{events: ['{}']}], name: 4.10}",
            "{type: scripted, turns: [{events: ['{}']}], modle: x}",
            "{type: scripted, turns: [{events: ['{}']}], agui: {echo-input: true}}",
            "{type: scripted, turns: [{events: ['{}']}], agui: {run-timeout: soon}}",
        ]
        .map(agent),
    );
    broken.extend(
        [
            "{}",
            "{script: x.jsonl, events: ['{}']}",
            "{events: [1e3]}",
            "{events: '{}'}",
            "{when: {always: false}, events: ['{}']}",
            "{when: {resume: maybe}, events: ['{}']}",
            "{when: {text: true}, events: ['{}']}",
            "{when: {any: x}, events: ['{}']}",
        ]
        .map(turn),
    );
    broken.extend(
        [
            "models: {q: }",
            "models: {q: {}}",
            "models: {q: {model: ''}}",
            "models: {q: {model: 4.1}}",
            "models: {q: {model: m, provider: opnai}}",
            "models: {q: {model: m, base-url: example.com}}",
            "models: {q: {model: m, base-url: 'ftp://x/v1'}}",
            "models: {q: {model: m, base-url: 'https://x/v1?key=a'}}",
            "models: {q: {model: m, base-url: 'https://me:pw@x/v1'}}",
            "models: {q: {model: m, api-key: \"k\\n\"}}",
            "models: {q: {model: m, headers: {'X Y': a}}}",
            "models: {q: {model: m, headers: {X: \"a\\r\"}}}",
            "models: {q: {model: m, parameters: {stream: false}}}",
            "models: {q: {model: m, parameters: [a]}}",
            "models: {q: {model: m, max-retries: -1}}",
            "mcp-servers: {s: }",
            "mcp-servers: {s: {args: [a]}}",
            "mcp-servers: {s: {command: ''}}",
            "mcp-servers: {s: {command: x, url: 'http://x'}}",
            "mcp-servers: {s: {command: x, headers: {A: b}}}",
            "mcp-servers: {s: {url: 'http://x', env: {A: b}}}",
            "mcp-servers: {s: {url: x}}",
            "mcp-servers: {s: {command: x, timeout: 0}}",
            "mcp-servers: {s: {command: x, timeout: 0s}}",
            "mcp-servers: {s: {command: x, scope: run}}",
            "mcp-servers: {s: {command: x, elicitation: ask}}",
            "mcp-servers: {builtin: {command: x}}",
            "mcp-servers: {'a:b': {command: x}}",
            "ca-files: {a: b}",
        ]
        .map(beside),
    );
    broken.push("agentscope: {agents: {a: {type: react}}}".to_owned());
    broken.extend(
        [
            "max-iters: 0",
            "max-subagent-depth: 0",
            "tools: [{}]",
            "tools: [{mcp: s, builtin: calculate}]",
            "tools: [{include: [x]}]",
            "tools: [{mcp: s, include: [x], exclude: [y]}]",
            "tools: [{builtin: calculate, include: [x]}]",
            "tools: [{builtin: calculator}]",
            "tools: [{external: {}}]",
            "tools: [{external: {name: a b}}]",
            "tools: [{external: {name: a, parameters: {type: string}}}]",
            "tools: [{external: {name: a, parameters: {}}}]",
            "tools: [{http: {name: a}}]",
            "tools: [{http: {url: 'http://x'}}]",
            "tools: [{http: {name: a, url: 'http://{host}/'}}]",
            "tools: [{http: {name: a, url: 'http://x/{'}}]",
            "tools: [{http: {name: a, url: 'http://x/', method: HEAD}}]",
            "permission: {mode: never}",
            "permission: {allow: ['']}",
            "permission: {ask: ['s:']}",
            "permission: {deny: [':x']}",
            "agui: {history-limit: -1}",
        ]
        .map(react),
    );
    for text in broken {
        assert!(load(&text, &[]).is_err(), "the loader takes {text}");
        assert!(!schema_faults(&text).is_empty(), "the schema takes {text}");
    }
}

#[test]
fn what_the_loader_takes_the_schema_takes() {
    let mut odd: Vec<String> = [
        "",
        "server:\nagentscope:\n",
        "server: {port: '80', host: ~}",
        "server: {port: '${PORT:80}', request-body-limit: '${LIMIT:1MiB}'}",
        "server: {request-body-limit: 16 mb}",
        "server: {host: '::'}",
        "server: {host: agui.internal}",
        "server: {host: my_host-2}",
        "server: {host: bücher.example}",
        "server: {host: 例え.テスト}",
        "server: {auth: {type: Trusted_Header}}",
        "server: {auth: {type: none}}",
        "agentscope: {agui: , agents: }",
    ]
    .map(str::to_owned)
    .to_vec();
    odd.extend(
        [
            "cors-enabled: 1, echo-input: 'Yes', emit-step-events: off",
            "cors-enabled: '${CORS:true}'",
            "cors-allowed-origins: 'http://a.example, http://b.example:81'",
            "cors-allowed-origins: ''",
            "cors-allowed-origins: ['https://[::1]:3000', 'capacitor://localhost']",
            "cors-allow-credentials: true, cors-allowed-origins: ['http://a.example']",
            "run-timeout: 1h30m, heartbeat-interval: pt0.25s",
            "run-timeout: 0",
            "run-timeout: P1DT1S",
            "run-timeout: 315360000000",
            "run-timeout: 3650d",
            "run-timeout: 1000000000ms",
            "run-timeout: 0000010000m",
            "run-timeout: '${LIMIT:10m}'",
            "subagent-events: NATIVE, default-tool-merge-mode: frontendOnly",
            "subagent-events: auto, emit-subagent-events-as-native: true",
            "path-prefix: '${PREFIX:/x}'",
            "path-prefix: /a/.b/..c/d.",
            "server-side-memory: false",
            "server-side-memory: true",
            "enrichers: [{type: RAW_EVENT}, {type: drop, event: custom, name: a}]",
            "enrichers: [{type: metadata, set: {a: {b: [1, ~]}}}]",
            "converters: [{custom: a, rename: b, drop: false}, {custom: b, drop: true}]",
            "runtime-context: {a: {principal: true}, b: {value: ~}, c: {value: {x: 1}}}",
        ]
        .map(agui),
    );
    odd.extend(["{when: , events: []}", "{events: ['{}']}"].map(turn));
    odd.extend(
        [
            "models: {q: {model: '${MODEL:m}', base-url: '${URL:http://[::1]:1/v1}', api-key: ~}}",
            "models: {q: {model: m, provider: OpenAI, parameters: {a: ~, b: {c: [1, 0.5]}}, timeout: 0}}",
            "models: , mcp-servers: , ca-files: ",
            "models: {q: {model: m, headers: {X-A: ''}}}",
            "mcp-servers: {s: {url: 'https://x?a=b', headers: }, t: {command: x, headers: ~, env: {A: ''}}}",
            "mcp-servers: {s: {command: x, timeout: 0.5s, scope: Thread, elicitation: WAIT}}",
        ]
        .map(beside),
    );
    odd.extend(
        [
            "tools: , permission: , subagents: b",
            "tools: [{mcp: s, include: [], exclude: [y]}, {builtin: Get-Current-Time}]",
            "tools: [{external: {name: a, parameters: }}, {http: {name: b, url: 'http://x', method: get}}]",
            "tools: [{http: {name: b, url: 'http://x/{c}?d={c}', parameters: {type: object, \
             properties: {c: {}}}}}]",
            "permission: {mode: acceptEdits, allow: 'b, c', ask: ['d'], deny: []}",
            "agui: {history-limit: 0}",
        ]
        .map(react),
    );
    for text in odd {
        let loaded = load(&text, &[]);
        assert!(loaded.is_ok(), "the loader refuses {text}: {}", loaded.unwrap_err());
        assert_eq!(schema_faults(&text), Vec::<String>::new(), "{text}");
    }
}

/// All patterns of a schema.
fn patterns(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            found.extend(members.get("pattern").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|member| patterns(member, found));
        }
        Value::Array(items) => items.iter().for_each(|item| patterns(item, found)),
        _ => {}
    }
}

/// Validators written in Python use its own regular expressions and refuse a schema as a whole for
/// one that they do not know.
#[test]
fn python_knows_every_pattern_too() {
    let mut found = Vec::new();
    patterns(&config::json_schema(), &mut found);
    let program = "import json, re, sys\nfor p in json.load(sys.stdin): re.compile(p)";
    let mut python = Command::new("python3")
        .args(["-W", "error", "-c", program])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let text = serde_json::to_vec(&found).unwrap();
    python.stdin.take().unwrap().write_all(&text).unwrap();
    let output = python.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success() && found.len() > 10, "{found:?}");
}
