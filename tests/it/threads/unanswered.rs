//! A run that comes without an answer to a thread that waits for one.

use agentscope_agui::config::{Config, OnUnanswered};
use serde_json::json;

use super::{
    Given, approve, asking, contract, counting, ignoring, raised, remembering, said, server, user,
    with,
};
use crate::support::{expected, input, resume};

fn cancelling(mut config: Config) -> Config {
    config.agui.threads.on_unanswered_interrupts = OnUnanswered::Cancel;
    config
}

#[tokio::test]
async fn it_is_refused_with_what_is_open_so_that_a_client_that_lost_it_can_answer() {
    let given = Given::default();
    let server = server(remembering(), vec![asking(&given, &["c1"])]).await;
    let asked = server.run("/agui/asking", &input("t", "r1")).await;
    let open = &asked.last().unwrap()["outcome"]["interrupts"];
    let refused = server.run("/agui/asking", &with("t", "r2", &[user("u2", "well?")])).await;
    let message = "Resume must answer every open interrupt exactly once: no entry for reply:c1.";
    assert_eq!(refused, [expected::started("t", "r2"), contract(message, open)]);
    let open = &refused[1]["metadata"]["agentscope.openInterrupts"];
    let id = open[0]["id"].as_str().unwrap();
    let answered = server.run("/agui/asking", &resume("t", "r3", &json!([approve(id)]))).await;
    assert_eq!(said(&answered), r#"run c1 {"disk":"a"}"#);
}

#[tokio::test]
async fn where_the_configuration_says_so_it_gives_up_what_is_open() {
    for config in [remembering(), Config::default()] {
        let given = Given::default();
        let server = server(cancelling(config), vec![asking(&given, &["c1", "c2"])]).await;
        server.run("/agui/asking", &input("t", "r1")).await;
        let turn = [user("u1", "hello"), user("u2", "forget it")];
        let turn = with("t", "r2", &turn);
        // The calls are in the history that the server keeps.
        let events = server.run_but(&["TOOL-14"], "/agui/asking", &turn).await;
        assert_eq!(said(&events), "do not run c1; do not run c2");
        assert_eq!(events.last(), Some(&expected::success("t", "r2")));
        assert_eq!(given.last().last().unwrap(), "user: forget it");
    }
}

#[tokio::test]
async fn a_resume_that_leaves_something_out_is_refused_all_the_same() {
    let server =
        server(cancelling(remembering()), vec![asking(&Given::default(), &["c1", "c2"])]).await;
    let asked = server.run("/agui/asking", &input("t", "r1")).await;
    let open = &asked.last().unwrap()["outcome"]["interrupts"];
    let part = resume("t", "r2", &json!([approve("reply:c1")]));
    let message = "Resume must answer every open interrupt exactly once: no entry for reply:c2.";
    let expected = [expected::started("t", "r2"), contract(message, open)];
    assert_eq!(server.run("/agui/asking", &part).await, expected);
    let all = resume("t", "r3", &json!([approve("reply:c1"), approve("reply:c2")]));
    let answered = server.run("/agui/asking", &all).await;
    assert_eq!(said(&answered), r#"run c1 {"disk":"a"}; run c2 {"disk":"a"}"#);
}

#[tokio::test]
async fn another_agent_may_have_the_thread_where_what_is_open_is_given_up() {
    let given = Given::default();
    let agents = vec![asking(&Given::default(), &["c1"]), counting(&given)];
    let server = server(cancelling(remembering()), agents).await;
    let asked = server.run("/agui/asking", &input("t", "r1")).await;
    assert_eq!(raised(&asked), ["reply:c1"]);
    let events = server.run("/agui/a", &with("t", "r2", &[user("u2", "you then")])).await;
    assert_eq!(events.last(), Some(&expected::success("t", "r2")));
    let repaired = [
        "user: hello",
        r#"assistant: wipe({"disk":"a"}) as c1"#,
        "tool: c1 interrupted: The call was interrupted before it gave a result.",
        "user: you then",
    ];
    assert_eq!(given.last(), repaired);
    // The first agent does not run it any more either.
    let mut late = resume("t", "r3", &json!([approve("reply:c1")]));
    late["messages"] = json!([user("u3", "do it")]);
    let events = server.run("/agui/asking", &late).await;
    assert_eq!(events[0], ignoring("t", "r3", &["reply:c1"]));
    // The id of its call was used before on this thread.
    assert_eq!(raised(&events), ["reply:id-3"]);
}
