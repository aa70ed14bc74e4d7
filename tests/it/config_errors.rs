//! Broken configuration files and the errors that they give, to the letter.

use super::support::config::load;

/// The errors of a text.
fn errors(text: &str) -> String {
    load(text, &[]).expect_err("an invalid text")
}

/// The errors without the excerpts.
fn messages(text: &str) -> Vec<String> {
    let errors = errors(text);
    errors.lines().filter(|line| !line.starts_with("  ")).map(str::to_owned).collect()
}

#[test]
fn text_that_is_no_yaml() {
    assert_eq!(
        errors("server:\n  port: 1\n host: a: b\n"),
        "test.yaml:3:6: not valid YAML: while parsing a block mapping, did not find expected \
         key\n  3 |  host: a: b\n    |      ^"
    );
    assert_eq!(
        errors("server: [1\n"),
        "test.yaml:2:1: not valid YAML: while parsing a flow sequence, expected ',' or ']'"
    );
}

#[test]
fn sections_of_the_wrong_shape() {
    assert_eq!(
        messages("server: [1]\nagentscope:\n  agui: on\n  agents: {a: [x]}\n"),
        [
            "test.yaml:1:9: server: expected a map of keys, found a list",
            "test.yaml:3:9: agentscope.agui: expected a map of keys, found `on`",
            "test.yaml:4:15: agentscope.agents.a: expected a map of keys, found a list",
        ]
    );
    assert_eq!(
        messages("just text\n"),
        ["test.yaml:1:1: expected a map of keys, found `just text`"]
    );
}

#[test]
fn values_that_yaml_would_change_must_be_quoted() {
    assert_eq!(
        messages(
            "agentscope:\n  agents:\n    a:\n      type: scripted\n      name: 4.10\n      \
             description: 0123\n      turns: [{when: {text: true}, events: [1e3]}]\n"
        ),
        [
            "test.yaml:5:13: agentscope.agents.a.name: expected text, found the number 4.10: quote \
             this value",
            "test.yaml:6:20: agentscope.agents.a.description: expected text, found the number \
             0123: quote this value",
            "test.yaml:7:29: agentscope.agents.a.turns[0].when.text: expected text, found the \
             truth value true: quote this value",
            "test.yaml:7:45: agentscope.agents.a.turns[0].events[0]: expected text, found the \
             number 1e3: quote this value",
        ]
    );
}

#[test]
fn values_out_of_range() {
    assert_eq!(
        messages(
            "server:\n  request-body-limit: 0\n  max-concurrent-runs: 0\nagentscope:\n  agui:\n    \
             heartbeat-interval: -5s\n    cors-enabled: maybe\n    path-prefix: agui/\n    \
             agent-id-header: 'X Agent'\n    cors-allowed-origins: ['http://a.example/']\n"
        ),
        [
            "test.yaml:2:23: server.request-body-limit: expected a size such as `16MiB` or a \
             number of bytes, found `0`",
            "test.yaml:3:24: server.max-concurrent-runs: expected a whole number from 1 to \
             1000000000, found `0`",
            "test.yaml:6:25: agentscope.agui.heartbeat-interval: expected a duration such as \
             `10m`, `PT10M` or milliseconds, at most ten years, found `-5s`",
            "test.yaml:7:19: agentscope.agui.cors-enabled: expected true or false, found `maybe`",
            "test.yaml:8:18: agentscope.agui.path-prefix: a prefix begins with `/`, does not end \
             with it, and has only letters, digits, `-`, `_`, `.` and `~` between",
            "test.yaml:9:22: agentscope.agui.agent-id-header: this cannot be the name of a header",
            "test.yaml:10:28: agentscope.agui.cors-allowed-origins[0]: an origin is `*`, or \
             scheme, host and port in lower case as in `http://localhost:3000`, without a path",
        ]
    );
}

#[test]
fn the_servers_own_paths_are_no_prefix() {
    assert_eq!(
        messages("agentscope:\n  agui: {path-prefix: /healthz}\n"),
        ["test.yaml:2:23: agentscope.agui.path-prefix: /healthz and /readyz are the server's own \
          paths"]
    );
}

#[test]
fn what_is_missing_is_named_at_its_block() {
    assert_eq!(
        messages(
            "agentscope:\n  agui:\n    enrichers:\n      - {set: {a: 1}}\n      - {type: drop}\n    \
             converters: [{drop: true}, {custom: a}, {custom: a, rename: b, as: step}]\n    \
             runtime-context: {a: {}, b: {query: q, header: h}}\n  agents:\n    a:\n    b: \
             {script: x.jsonl}\n"
        ),
        [
            "test.yaml:4:9: agentscope.agui.enrichers[0]: `type` is missing",
            "test.yaml:5:9: agentscope.agui.enrichers[1]: `event` is missing",
            "test.yaml:6:18: agentscope.agui.converters[0]: `custom` is missing",
            "test.yaml:6:32: agentscope.agui.converters[1]: exactly one of `rename`, `drop: true` \
             and `as` is needed",
            "test.yaml:6:45: agentscope.agui.converters[2]: exactly one of `rename`, `drop: true` \
             and `as` is needed",
            "test.yaml:7:23: agentscope.agui.runtime-context.a: exactly one of `header`, `query`, \
             `principal` and `value` is needed",
            "test.yaml:7:30: agentscope.agui.runtime-context.b: exactly one of `header`, `query`, \
             `principal` and `value` is needed",
            "test.yaml:9:5: agentscope.agents.a: `type` is missing",
            "test.yaml:10:5: agentscope.agents.b: `type` is missing",
            "test.yaml:10:17: agentscope.agents.b.script: the file x.jsonl cannot be read: No such \
             file or directory (os error 2)",
        ]
    );
}

#[test]
fn turns_that_cannot_be_played() {
    let agents = |lines: &str| messages(&format!("agentscope:\n  agents:\n{lines}"));
    assert_eq!(
        agents("    a: {type: scripted}\n    b: {type: scripted, turns: []}\n"),
        [
            "test.yaml:3:5: agentscope.agents.a: exactly one of `turns` and `script` is needed",
            "test.yaml:4:5: agentscope.agents.b: exactly one of `turns` and `script` is needed",
        ]
    );
    assert_eq!(
        agents(
            "    a: {type: scripted, turns: [{when: {always: false}, events: ['{}']}, {when: \
             {resume: maybe}, events: ['{}']}, {when: {any: x}}]}\n"
        ),
        [
            "test.yaml:3:49: agentscope.agents.a.turns[0].when.always: only true means something \
             here",
            "test.yaml:3:90: agentscope.agents.a.turns[1].when.resume: expected one of approved, \
             denied, cancelled, answered, any, found `maybe`",
            "test.yaml:3:123: agentscope.agents.a.turns[2].when.any: unknown key; valid keys: \
             text, resume, tool-result, always",
        ]
    );
    assert_eq!(
        messages("agentscope:\n  agents: {}\n"),
        [
            "test.yaml:2:3: agentscope.agents: no agent is declared; without this key the demo agents are"
        ]
    );
}

#[test]
fn ids_that_no_path_can_hold() {
    let line = "{type: scripted, turns: [{events: ['{}']}]}";
    let long = "x".repeat(65);
    let text = format!(
        "agentscope:\n  agents:\n    threads: {line}\n    '..': {line}\n    'a b': {line}\n    \
         {long}: {line}\n    a.b: {line}\n"
    );
    let rule = "an agent id has 1 to 64 characters out of A-Z, a-z, 0-9, `.`, `_` and `-`";
    assert_eq!(
        messages(&text),
        [
            "test.yaml:3:5: agentscope.agents.threads: `threads` is kept for a route of the \
             server and cannot be an agent id"
                .to_owned(),
            "test.yaml:4:5: agentscope.agents.\"..\": `..` means a folder in a path and cannot be \
             an agent id"
                .to_owned(),
            format!("test.yaml:5:5: agentscope.agents.\"a b\": {rule}"),
            format!("test.yaml:6:5: agentscope.agents.{long}: {rule}"),
        ]
    );
}

#[test]
fn a_key_of_the_server_inside_an_agent() {
    let text = "agentscope:\n  agents:\n    a:\n      type: scripted\n      turns: [{events: \
                ['{}']}]\n      agui: {echo-input: true}\n";
    assert_eq!(
        messages(text),
        [
            "test.yaml:6:14: agentscope.agents.a.agui.echo-input: this key holds for the whole server \
          and stands only in agentscope.agui; valid keys here: run-timeout, \
          default-tool-merge-mode, frontend-tool-outcome, emit-state-events, emit-step-events, \
          emit-tool-call-args, emit-token-usage, enable-reasoning, emit-run-finished-after-error, \
          emit-subagent-events-as-native, subagent-events, accept-client-system-messages, \
          history-limit, enrichers, converters"
        ]
    );
}

#[test]
fn a_wrong_list_of_origins_gives_one_error() {
    let text = "agentscope:\n  agui:\n    cors-allow-credentials: true\n    \
                cors-allowed-origins: {a: b}\n";
    assert_eq!(
        messages(text),
        ["test.yaml:4:27: agentscope.agui.cors-allowed-origins: expected a list, found a map of \
          keys"]
    );
}

#[test]
fn native_goes_only_with_auto() {
    for other in ["attributed", "custom", "native"] {
        let text = format!(
            "agentscope:\n  agui:\n    emit-subagent-events-as-native: true\n    \
             subagent-events: {other}\n"
        );
        assert_eq!(
            messages(&text),
            [
                "test.yaml:3:37: agentscope.agui.emit-subagent-events-as-native: true goes only with \
              `subagent-events: auto`; remove one of the two"
            ]
        );
    }
}

#[test]
fn placeholders_that_cannot_be_filled() {
    assert_eq!(
        messages("server:\n  host: '${a b}'\nagentscope:\n  agui:\n    path-prefix: /${OPEN\n"),
        [
            "test.yaml:2:9: server.host: `${a b}` does not name an environment variable; write \
             `$${` for the characters themselves",
            "test.yaml:5:18: agentscope.agui.path-prefix: a placeholder `${` has no closing `}`; \
             write `$${` for the characters themselves",
        ]
    );
}

#[test]
fn secrets_are_masked() {
    assert_eq!(
        errors("server:\n  api-key: sk-live-1\n"),
        "test.yaml:2:3: server.api-key: unknown key; valid keys: host, port, request-body-limit, \
         max-concurrent-runs, shutdown-grace, auth\n  2 |   api-key: ***\n    |   ^"
    );
    let context = "agentscope:\n  agui:\n    runtime-context:\n      apiToken: {value: ";
    assert_eq!(
        errors(&format!("{context}'pa${{ss w0rd}}'}}\n")),
        "test.yaml:4:25: agentscope.agui.runtime-context.apiToken.value: a placeholder in this \
         value cannot be filled in; see `${VAR}` and `$${`\n  4 |       apiToken: ***\n    |                    ^"
    );
    assert_eq!(
        errors(&format!("{context}'${{API_TOKEN}}'}}\n")),
        "test.yaml:4:25: agentscope.agui.runtime-context.apiToken.value: the environment variable \
         API_TOKEN is not set; set it, or give a default: `${API_TOKEN:default}`\n  \
         4 |       apiToken: ***\n    |                    ^"
    );
    let typed = "agentscope:\n  agents:\n    api-key: {type: s3cret}\n";
    assert_eq!(
        errors(typed),
        "test.yaml:3:21: agentscope.agents.api-key.type: unknown type `***`; valid types: \
         scripted, command, react\n  3 |     api-key: ***\n    |                 ^"
    );
}

#[test]
fn a_long_wrong_value_is_cut_and_stays_on_its_line() {
    let text = format!("agentscope:\n  agents:\n    a: {{type: \"x\\ny{}\"}}\n", "z".repeat(60));
    let expected = format!(
        "test.yaml:3:15: agentscope.agents.a.type: unknown type `x y{}…`; valid types: scripted, \
         command, react",
        "z".repeat(37)
    );
    assert_eq!(messages(&text), [expected]);
}

#[test]
fn addresses_that_cannot_be_bound() {
    for host in ["''", "http://x", "localhost:80", "'[::1]'", "a b"] {
        assert_eq!(
            messages(&format!("server:\n  host: {host}\n")),
            ["test.yaml:2:9: server.host: expected an address or a name of this machine such as \
              `127.0.0.1`, `::` or `localhost`; the port stands in server.port"],
            "{host}"
        );
    }
}

#[test]
fn keys_in_the_wrong_place_are_sent_to_the_right_one() {
    assert_eq!(
        messages("path-prefix: /x\nagents: {}\nserver: {echoInput: true}\n"),
        [
            "test.yaml:1:1: path-prefix: this key belongs to agentscope.agui; valid keys here: \
             server, agentscope",
            "test.yaml:2:1: agents: this key belongs to agentscope; valid keys here: server, \
             agentscope",
            "test.yaml:3:10: server.echoInput: this key belongs to agentscope.agui; valid keys \
             here: host, port, request-body-limit, max-concurrent-runs, shutdown-grace, auth",
        ]
    );
    assert_eq!(
        messages("agentscope.agui.path-prefix: /x\n"),
        [
            "test.yaml:1:1: \"agentscope.agui.path-prefix\": unknown key; names with dots are written \
          as nested blocks: `agentscope:`, and the rest inside it"
        ]
    );
}

#[test]
fn a_prefix_with_folders_and_a_second_converter_for_a_name() {
    assert_eq!(
        messages(
            "agentscope:\n  agui:\n    path-prefix: /a/../b\n    converters: [{custom: a, drop: \
             true}, {custom: a, rename: b}]\n"
        ),
        [
            "test.yaml:3:18: agentscope.agui.path-prefix: `.` and `..` mean folders in a path, and \
             clients take them out",
            "test.yaml:4:52: agentscope.agui.converters[1].custom: an earlier converter of this \
             list is for the same name",
        ]
    );
}

#[test]
fn authentication_that_is_half_said() {
    let type_is_missing = "server.auth: `type` is missing";
    for text in ["server: {auth: }\n", "server: {auth: {}}\n", "server: {auth: {header: X}}\n"] {
        assert_eq!(messages(text), [format!("test.yaml:1:10: {type_is_missing}")], "{text}");
    }
    let of_variables = |variables: &[(&str, &str)]| load("", variables).unwrap_err();
    assert_eq!(
        of_variables(&[("SERVER_AUTH_HEADER", "X")]),
        format!("environment variable SERVER_AUTH_HEADER: {type_is_missing}")
    );
    assert_eq!(
        of_variables(&[("SERVER_AUTH_TYP", "trusted-header")]),
        "environment variable SERVER_AUTH_TYP: no configuration key has this name; did you mean \
         SERVER_AUTH_TYPE? Valid names: SERVER_AUTH_TYPE, SERVER_AUTH_HEADER"
    );
    // No key either, and as easily written.
    for name in ["SERVER_AUTH", "SERVER_AUTHTYPE"] {
        let told = of_variables(&[(name, "trusted-header")]);
        assert!(told.contains(&format!("{name}: no configuration key has this name")), "{told}");
    }
    assert_eq!(
        messages("server: {auth: {type: jwt}}\n"),
        ["test.yaml:1:23: server.auth.type: unknown type `jwt`; valid types: none, trusted-header"]
    );
    assert_eq!(
        messages("server: {auth: {type: none, header: X}}\n"),
        ["test.yaml:1:29: server.auth.header: unknown key; valid keys: type"]
    );
}
