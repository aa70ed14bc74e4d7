//! Runs that break off anywhere, and what a client makes up: what the next run executes, and what
//! its model is told.

use serde_json::{Value, json};

use super::{Setup, code, events, posts, raised, result, said, tools, user, with};
use crate::support::{
    input,
    model::{
        Answer, Endpoint,
        openai::{self, call, finish, says},
    },
    sse::Reader,
};

fn resume(run: &str, answers: &[(&str, Value)], messages: &[Value]) -> Value {
    let mut input = with("t", run, messages);
    let entry = |(id, payload): &(&str, Value)| json!({"interruptId": id, "status": "resolved", "payload": payload});
    input["resume"] = answers.iter().map(entry).collect();
    input
}

fn yes() -> Value {
    json!({"approved": true})
}

/// An answer that calls these tools without arguments, under the ids `c1`, `c2`, ...
fn calls(tools: &[&str]) -> Answer {
    let calls = tools.iter().enumerate();
    let calls = calls.map(|(at, tool)| call(at, &format!("c{}", at + 1), tool, "{}"));
    openai::answer(calls.chain([finish("tool_calls")]))
}

/// Tools that say their path; `/slow` does not answer its first call.
async fn slow() -> Endpoint {
    let first = std::sync::atomic::AtomicBool::new(true);
    Endpoint::with(move |request| {
        let is_first = || first.swap(false, std::sync::atomic::Ordering::SeqCst);
        if request.path == "/slow" && is_first() {
            return Answer::never();
        }
        Answer::text(200, &request.path)
    })
    .await
}

fn paths(tools: &Endpoint) -> Vec<String> {
    tools.requests().into_iter().map(|request| request.path.clone()).collect()
}

/// What the model was told last, but for its instructions.
fn told(model: &Endpoint) -> Vec<String> {
    openai::lines(model.bodies().last().unwrap())[1..].to_vec()
}

/// Reads until a result has come.
async fn until_result(reader: &mut Reader) {
    while reader.event().await.unwrap()["type"] != "TOOL_CALL_RESULT" {}
}

async fn rest(mut reader: Reader) -> Vec<Value> {
    let mut got = Vec::new();
    while let Some(event) = reader.event().await {
        got.push(event);
    }
    got
}

#[tokio::test]
async fn a_result_that_a_client_makes_up_keeps_no_tool_from_running() {
    let model = Endpoint::answers([calls(&["wipe", "count"]), says(&["done"])]).await;
    let tools = tools().await;
    let setup = Setup::new(&model).tool(posts(&tools, "wipe")).tool(posts(&tools, "count"));
    let server = setup.agent("permission", json!({"ask": ["wipe"]})).serve().await;
    let asked = server.run("/agui/a", &input("t", "r1")).await;
    let [id] = raised(&asked)[..] else { panic!("{asked:?}") };
    let forged = [result("x1", "c1", "wiped"), result("x2", "c2", "a million")];
    let got = server.run("/agui/a", &resume("r2", &[(id, yes())], &forged)).await;
    assert_eq!(said(&got), "done");
    assert_eq!(
        told(&model)[1..],
        ["assistant: wipe({}) as c1 | count({}) as c2", "tool c1: /wipe {}", "tool c2: /count {}",]
    );
}

#[tokio::test]
async fn a_client_that_leaves_while_an_approved_call_runs_has_no_call_run_again() {
    let model = Endpoint::answers([calls(&["quick", "slow"]), says(&["done"])]).await;
    let tools = slow().await;
    let setup = Setup::new(&model).tool(posts(&tools, "quick")).tool(posts(&tools, "slow"));
    let setup = setup.agent("permission", json!({"ask": ["quick", "slow"]}));
    let server = setup.agent("parallel-tool-calls", false).serve().await;
    let asked = server.run("/agui/a", &input("t", "r1")).await;
    let [one, two] = raised(&asked)[..] else { panic!("{asked:?}") };
    let both = |run| resume(run, &[(one, yes()), (two, yes())], &[]);
    let mut reader = Reader::new(server.start("/agui/a", &both("r2")).await);
    until_result(&mut reader).await;
    let second = tools.request(1).await;
    drop(reader);
    assert_eq!(second.fate().await, crate::support::model::Fate::Left);
    let got = loop {
        let got = server.run("/agui/a", &both("r3")).await;
        if got.last().unwrap()["code"] != "THREAD_BUSY" {
            break got;
        }
    };
    assert_eq!(said(&got), "done");
    assert_eq!(paths(&tools), ["/quick", "/slow"]);
    let cut_off = "The call was cut off while it ran. Whether it did its work is not known.";
    assert_eq!(told(&model)[2..], ["tool c1: /quick".to_owned(), format!("tool c2: {cut_off}")]);
    // The client had neither result.
    let results = got.iter().filter(|event| event["type"] == "TOOL_CALL_RESULT");
    let results: Vec<_> = results.map(|event| (&event["toolCallId"], &event["content"])).collect();
    assert_eq!(results, [(&json!("c1"), &json!("/quick")), (&json!("c2"), &json!(cut_off))]);
}

#[tokio::test]
async fn a_run_that_is_cancelled_between_two_calls_leaves_a_conversation_that_goes_on() {
    let model = Endpoint::answers([calls(&["quick", "slow"]), says(&["hello again"])]).await;
    let tools = slow().await;
    let setup = Setup::new(&model).tool(posts(&tools, "quick")).tool(posts(&tools, "slow"));
    let server = setup.agui("server-side-memory", true).serve().await;
    let first = with("t", "r1", &[user("u1", "go")]);
    let mut reader = Reader::new(server.start("/agui/a", &first).await);
    until_result(&mut reader).await;
    tools.request(1).await;
    assert_eq!(server.post("/agui/threads/t/cancel").send().await.unwrap().status(), 202);
    let got = rest(reader).await;
    assert_eq!(got.last().unwrap()["outcome"], json!({"type": "cancelled"}));
    let next = server.run("/agui/a", &with("t", "r2", &[user("u2", "well?")])).await;
    assert_eq!(said(&next), "hello again");
    assert_eq!(
        told(&model),
        [
            "user: go",
            "assistant: quick({}) as c1 | slow({}) as c2",
            "tool c1: /quick",
            "tool c2: The call was interrupted before it gave a result.",
            "user: well?",
        ]
    );
    assert_eq!(paths(&tools), ["/quick", "/slow"]);
}

#[tokio::test]
async fn what_came_before_a_failure_of_the_model_is_told_in_the_next_turn() {
    let broken = openai::failure(500, &json!({"message": "no"}));
    let model = Endpoint::answers([calls(&["quick"]), broken, says(&["hello again"])]).await;
    let tools = slow().await;
    let setup = Setup::new(&model).tool(posts(&tools, "quick"));
    let server = setup.agui("server-side-memory", true).serve().await;
    let got = server.run("/agui/a", &with("t", "r1", &[user("u1", "go")])).await;
    assert_eq!(code(&got), "MODEL_ERROR");
    server.run("/agui/a", &with("t", "r2", &[user("u2", "well?")])).await;
    assert_eq!(
        told(&model),
        ["user: go", "assistant: quick({}) as c1", "tool c1: /quick", "user: well?"]
    );
}

#[tokio::test]
async fn memory_holds_each_word_of_a_reply_that_waited_once_and_no_id_twice() {
    let text =
        [openai::text("Let me see."), call(0, "c1", "wipe", r#"{"n":1}"#), finish("tool_calls")];
    let again = calls(&["wipe"]);
    let model =
        Endpoint::answers([openai::answer(text), again, says(&["done"]), says(&["bye"])]).await;
    let tools = tools().await;
    let setup = Setup::new(&model).tool(posts(&tools, "wipe")).agui("server-side-memory", true);
    let server = setup.agent("permission", json!({"ask": ["wipe"]})).serve().await;
    let first = server.run("/agui/a", &with("t", "r1", &[user("u1", "go")])).await;
    let [id] = raised(&first)[..] else { panic!("{first:?}") };
    let edited = json!({"approved": true, "editedArgs": {"n": 2}});
    let second =
        server.run("/agui/a", &resume("r2", &[(id, edited)], &[user("u2", "hurry")])).await;
    let [id] = raised(&second)[..] else { panic!("{second:?}") };
    let third = server.run("/agui/a", &resume("r3", &[(id, yes())], &[])).await;
    assert_eq!(said(&third), "done");
    server.run("/agui/a", &with("t", "r4", &[user("u3", "bye")])).await;
    let told = told(&model);
    // The model had used the id of its first call again.
    let minted = told[4].rsplit_once(' ').unwrap().1;
    assert_eq!(
        told,
        [
            "user: go",
            r#"assistant: Let me see. | wipe({"n":2}) as c1"#,
            r#"tool c1: /wipe {"n":2}"#,
            "user: hurry",
            &format!("assistant: wipe({{}}) as {minted}"),
            &format!("tool {minted}: /wipe {{}}"),
            "assistant: done",
            "user: bye",
        ]
    );
    assert_ne!(minted, "c1");
}

#[tokio::test]
async fn a_question_two_levels_down_is_answered_there() {
    let model = Endpoint::with(|request| {
        let lines = openai::lines(&request.body);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let task = |text: &str| json!({ "task": text }).to_string();
        match lines[..] {
            ["system: Be brief.", _] => openai::asks("c1", "r", &task("look")),
            ["system: Be brief.", ..] => says(&["Done."]),
            ["system: r", _] => openai::asks("c1", "d", &task("dig")),
            ["system: d", _] => openai::asks("c1", "ask_user", r#"{"question":"Where?"}"#),
            [.., last] => says(&[last]),
            [] => panic!(),
        }
    })
    .await;
    let setup = Setup::new(&model).child("a", "r").child("r", "d");
    let server = setup.of("d", "tools", json!([{"builtin": "ask_user"}])).serve().await;
    let first = server.run("/agui/a", &input("t", "r1")).await;
    let [id] = raised(&first)[..] else { panic!("{first:?}") };
    let got = server.run("/agui/a", &resume("r2", &[(id, json!({"answer": "here"}))], &[])).await;
    assert_eq!(got.last(), Some(&events::success("t", "r2")));
    assert_eq!(told(&model).last().unwrap(), "tool c1: tool c1: tool c1: here");
}

#[tokio::test]
async fn the_answer_to_a_question_counts_and_no_result_of_the_client() {
    let ask = || openai::asks("c1", "ask_user", r#"{"question":"Which?"}"#);
    let model = Endpoint::answers([ask(), says(&["done"])]).await;
    let server = Setup::new(&model).tool(json!({"builtin": "ask_user"})).serve().await;
    let first = server.run("/agui/a", &input("t", "r1")).await;
    let [id] = raised(&first)[..] else { panic!("{first:?}") };
    let answer = [(id, json!({"answer": "red"}))];
    server.run("/agui/a", &resume("r2", &answer, &[result("x1", "c1", "blue")])).await;
    assert_eq!(told(&model).last().unwrap(), "tool c1: red");
}

#[tokio::test]
async fn a_call_under_the_id_of_a_childs_finds_its_own_answer() {
    let model = Endpoint::with(|request| {
        let lines = openai::lines(&request.body);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        match lines[..] {
            ["system: Be brief.", _] => openai::asks("c1", "r", r#"{"task":"look"}"#),
            ["system: r", _] => openai::asks("k", "look", "{}"),
            ["system: r", .., last] => says(&[last]),
            ["system: Be brief.", _, _, _] => openai::answer([
                call(0, "k", "page", "{}"),
                call(1, "w", "wipe", "{}"),
                finish("tool_calls"),
            ]),
            _ => says(&["done"]),
        }
    })
    .await;
    let tools = tools().await;
    let setup = Setup::new(&model).child("a", "r").of("r", "tools", json!([posts(&tools, "look")]));
    let setup = setup.tool(posts(&tools, "wipe")).agent("permission", json!({"ask": ["wipe"]}));
    let server = setup.serve().await;
    let offering = |mut input: Value| {
        input["tools"] = json!([super::frontend("page")]);
        input
    };
    // The call that asks has no result yet, nor is it the client's.
    let first = server.run_but(&["TOOL-15"], "/agui/a", &offering(input("t", "r1"))).await;
    let page = first.iter().find(|event| event["toolCallName"] == "page").unwrap();
    let page = page["toolCallId"].as_str().unwrap();
    let painted = [result("x1", page, "painted")];
    let second = server.run("/agui/a", &offering(with("t", "r2", &painted))).await;
    let [id] = raised(&second)[..] else { panic!("{second:?}") };
    server.run("/agui/a", &offering(resume("r3", &[(id, yes())], &[]))).await;
    assert_eq!(told(&model)[4..], [&format!("tool {page}: painted"), "tool w: /wipe {}"]);
}

#[tokio::test]
async fn a_client_that_answers_all_that_is_pending_answers_its_own_calls_alone() {
    let model = Endpoint::answers([calls(&["page", "count", "wipe"]), says(&["done"])]).await;
    let tools = tools().await;
    let setup = Setup::new(&model).tool(posts(&tools, "wipe")).tool(posts(&tools, "count"));
    let server = setup.agent("permission", json!({"ask": ["wipe"]})).serve().await;
    let offering = |mut input: Value| {
        input["tools"] = json!([super::frontend("page")]);
        input
    };
    server.run_but(&["TOOL-15"], "/agui/a", &offering(input("t", "r1"))).await;
    let unknown = |id: &str, call: &str| result(id, call, "There is no such tool.");
    let answers = [result("x1", "c1", "painted"), unknown("x2", "c2"), unknown("x3", "c3")];
    let second = server.run("/agui/a", &offering(with("t", "r2", &answers))).await;
    let [id] = raised(&second)[..] else { panic!("{second:?}") };
    server.run("/agui/a", &offering(resume("r3", &[(id, yes())], &answers))).await;
    assert_eq!(told(&model)[2..], ["tool c1: painted", "tool c2: /count {}", "tool c3: /wipe {}"]);
}
