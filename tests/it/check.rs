//! The commands around a configuration: `check` judges it, `init` begins one, `health` asks the
//! server that serves it.

use std::{fs, net::TcpListener, process::Output};

use agentscope_agui::config;
use serde_json::json;

use super::{
    commands::{program, run},
    frontends::server::Server,
    support::{input, saying, server::checked},
};

/// Exit code, standard output and standard error.
fn told(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const ONE: &str =
    "agentscope: {agents: {a: {type: scripted, turns: [{events: ['{\"@\":\"end\"}']}]}}}\n";

#[test]
fn check_says_in_one_line_what_would_be_served() {
    let text = format!("server: {{port: 0}}\n{ONE}");
    let ok = "standard input is valid: 1 agent (a) at http://127.0.0.1:<a free port>/agui, default \
              a, auth none\n";
    let check = ["check", "--config", "-"];
    assert_eq!(told(run(&check, &text)), (0, ok.to_owned(), String::new()));

    let text = "server: {host: '::', auth: {type: trusted_header}}\nagentscope: {agui: {path-prefix: \
                /x}, agents: {a: {type: scripted, turns: [{events: []}]}, b: {type: scripted, turns: \
                [{events: []}]}}}\n";
    let ok = "standard input is valid: 2 agents (a, b) at http://[::]:8080/x, default none, auth \
              trusted-header x-user-id\n";
    assert_eq!(told(run(&check, text)), (0, ok.to_owned(), String::new()));

    let open = format!("server: {{host: 0.0.0.0}}\n{ONE}");
    let (code, _, warned) = told(run(&check, &open));
    assert_eq!(
        (code, warned.as_str()),
        (
            0,
            "warning: server.auth is none and the server listens on 0.0.0.0: whoever reaches it \
             can use every agent, and all callers share their threads\n"
        )
    );
}

#[test]
fn check_binds_no_port() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!("server: {{port: {}}}\n{ONE}", taken.local_addr().unwrap().port());
    assert_eq!(told(run(&["check", "--config", "-"], &text)).0, 0);
}

#[test]
fn check_and_serve_tell_the_same_faults_in_one_pass() {
    let text = "server: {prot: 1}\nagentscope: {agents: {a: {type: scripted, turns: [{events: \
                ['no']}]}}}\n";
    let faults = "error: the configuration is not valid\n\
                  standard input:1:10: server.prot: unknown key; did you mean `port`? Valid keys: \
                  host, port, request-body-limit, max-concurrent-runs, shutdown-grace, auth\n  1 | server: {prot: \
                  1}\n    |          ^\n\
                  standard input:2:61: agentscope.agents.a.turns[0].events[0]: not JSON, column 2: \
                  expected ident\n  2 | agentscope: {agents: {a: {type: scripted, turns: [{events: \
                  ['no']}]}}}\n    |                                                             ^\n";
    for command in ["check", "serve"] {
        let told = told(run(&[command, "--config", "-"], text));
        assert_eq!(told, (78, String::new(), faults.to_owned()), "{command}");
    }
}

#[tokio::test]
async fn init_writes_a_file_that_is_valid_and_served_without_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |arguments: &[&str]| told(program(arguments).current_dir(folder.path()).output().unwrap());
    let wrote = "wrote agentscope.yaml; next: agentscope-agui serve --config agentscope.yaml\n";
    assert_eq!(run(&["init"]), (0, wrote.to_owned(), String::new()));
    let valid = "./agentscope.yaml is valid: 1 agent (assistant) at http://127.0.0.1:8080/agui, \
                 default assistant, auth none\n";
    assert_eq!(run(&["check"]), (0, valid.to_owned(), String::new()));

    let file = folder.path().join("agentscope.yaml");
    let server = Server::start(&file);
    let url = format!("http://{}/agui", server.address());
    let post = |input| crate::support::client().post(&url).json(&input).send();
    let echo = input("t1", "r1");
    let events = checked(post(echo.clone()).await.unwrap(), &echo).await;
    let said: Vec<&str> = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(said, ["You said: hello"]);
    let ask = saying("t2", "r1", "please send it");
    let events = checked(post(ask.clone()).await.unwrap(), &ask).await;
    assert_eq!(events.last().unwrap()["outcome"]["type"], "interrupt");
    // The words that led to the question are still the last ones when it is answered.
    let mut answer = saying("t2", "r2", "please send it");
    answer["resume"] = json!([
        {"interruptId": "r1:c1", "status": "resolved", "payload": {"approved": true}},
    ]);
    let events = checked(post(answer.clone()).await.unwrap(), &answer).await;
    let said: Vec<&str> = events.iter().filter_map(|event| event["delta"].as_str()).collect();
    assert_eq!(said, ["It is sent."]);
    assert_eq!(events.last().unwrap()["outcome"]["type"], "success");
}

#[test]
fn init_never_overwrites() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    fs::write(&file, "mine").unwrap();
    let name = file.to_str().unwrap();
    let left = format!("error: {name} exists already and was left as it is\n");
    assert_eq!(told(run(&["init", name], "")), (69, String::new(), left));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    let nowhere = folder.path().join("no/such.yaml");
    let (code, out, error) = told(run(&["init", nowhere.to_str().unwrap()], ""));
    assert_eq!((code, out.as_str()), (69, ""));
    let message = "cannot be written: No such file or directory (os error 2)";
    assert_eq!(error, format!("error: {} {message}\n", nowhere.display()));
    assert_eq!(told(run(&["init", "-"], "")), (0, config::STARTER.to_owned(), String::new()));
}

/// What `health` says of a server that should be at this port of every address.
fn health(port: u16) -> (i32, String, String) {
    told(run(&["health", "--config", "-"], &format!("server: {{host: 0.0.0.0, port: {port}}}\n")))
}

#[test]
fn health_asks_where_the_configuration_says_that_the_server_listens() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agentscope.yaml");
    fs::write(&file, ONE).unwrap();
    let server = Server::start(&file);
    let address = server.address();
    assert_eq!(health(address.port()), (0, format!("{address} is ready\n"), String::new()));
    // The environment wins, as it does for the server.
    let mut by_environment = program(&["health", "--config", file.to_str().unwrap()]);
    by_environment.env("SERVER_PORT", address.port().to_string());
    let told = told(by_environment.output().unwrap());
    assert_eq!(told, (0, format!("{address} is ready\n"), String::new()));
}

/// A server where nobody listens: tests bind other addresses of this machine.
const NOBODY: &str = "server: {host: 127.0.77.1, port: 9}\n";

#[test]
fn health_fails_when_nobody_answers() {
    let told = told(run(&["health", "--config", "-"], NOBODY));
    let gone = "error: 127.0.77.1:9 cannot be reached: Connection refused (os error 111)\n";
    assert_eq!(told, (69, String::new(), gone.to_owned()));
}

#[test]
fn health_cannot_know_a_port_that_the_system_picks() {
    let message = "error: server.port is 0: only the server knows which port it has; its log line \
                   \"listening\" names it\n";
    assert_eq!(health(0), (69, String::new(), message.to_owned()));
}

#[test]
fn health_minds_only_the_faults_that_concern_it() {
    let config = ["health", "--config", "-"];
    let elsewhere = format!("{NOBODY}agentscope: {{nonsense: 1}}\n");
    assert_eq!(told(run(&config, &elsewhere)).0, 69);
    let (code, out, error) = told(run(&config, "server: {port: x}\n"));
    assert_eq!((code, out.as_str()), (78, ""));
    assert_eq!(
        error,
        "error: the configuration is not valid\nstandard input:1:16: server.port: expected a whole \
         number from 0 to 65535, found `x`\n  1 | server: {port: x}\n    |                ^\n"
    );
}
