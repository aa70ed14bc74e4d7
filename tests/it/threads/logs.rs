//! The log at its usual level: a line per run, and nothing of what people and agents say.

use futures_util::stream;
use serde_json::json;
use tracing::Level;

use super::{approve, calls, gives, remembering, server, user, with};
use crate::support::{
    agents::{agent, asks_for, delta, end, start},
    input,
    log::Captured,
    resume,
};

const SECRET: &str = "PRIVATE-TEXT";

#[tokio::test]
async fn a_run_is_one_line_and_no_word_of_it() {
    let log = Captured::at(Level::INFO);
    let talking = agent("a", |request| {
        let mut events = vec![start()];
        let arguments = format!(r#"{{"secret":"{SECRET}"}}"#);
        if request.run_id.as_str() == "r1" {
            events.extend(asks_for("c1"));
        } else {
            events.extend(calls("c2", "look", &arguments));
            events.extend(gives("c2", "look", SECRET));
            events.extend([delta(SECRET), end()]);
        }
        stream::iter(events.into_iter().map(Ok))
    });
    let server = server(remembering(), vec![talking]).await;
    let send = async |run: &str, mut body: serde_json::Value, path: &str| {
        body["state"] = json!({"secret": SECRET});
        body["forwardedProps"] = json!({"secret": SECRET});
        let request = server.post(path).header("Authorization", format!("Bearer {SECRET}"));
        let request = request.header("X-Request-Id", run).json(&body);
        request.send().await.unwrap().text().await.unwrap();
    };
    send("r1", with("t", "r1", &[user("u1", SECRET)]), "/agui/a").await;
    // Refused, with something typed into a field that takes none of it.
    let bad = json!([{
        "interruptId": "reply:c1", "status": "resolved",
        "payload": {"approved": true, "editedArgs": SECRET},
    }]);
    send("r2", resume("t", "r2", &bad), "/agui/a").await;
    // Messages that are repaired or left out are logged too.
    let mut answer = resume("t", "r3", &json!([approve("reply:c1"), approve(SECRET)]));
    answer["messages"] = json!([
        {"id": "s1", "role": "system", "content": SECRET},
        {"id": "t1", "role": "tool", "toolCallId": "nobody-called", "content": SECRET},
        user("u2", SECRET),
    ]);
    send("r3", answer, "/agui/a").await;
    send("r4", input("t", "r4"), "/agui/a/connect").await;
    let text = log.text();
    assert!(!text.contains(SECRET), "{text}");
    let lines = |what: &str| {
        let lines = text.lines().filter(|line| line.contains(what));
        lines.map(|line| line.split_once(what).unwrap().1.to_owned()).collect::<Vec<_>>()
    };
    let ended = lines("run ended");
    let of = |run: &str| {
        let line = ended.iter().filter(|line| line.contains(&format!("run.id=\"{run}\"")));
        line.cloned().collect::<Vec<_>>()
    };
    for (run, outcome, events) in [("r1", "interrupt", 5), ("r2", "error", 2), ("r3", "success", 0)]
    {
        let [line] = &of(run)[..] else { panic!("{text}") };
        assert!(line.contains(&format!(" request.id={run} thread.id=\"t\" run.id=\"{run}\" agent.id=a outcome=\"{outcome}\"")), "{line}");
        assert!(events == 0 || line.ends_with(&format!(" events={events}")), "{line}");
    }
    assert_eq!(ended.len(), 3);
    assert_eq!(lines("connect ended").len(), 1);
}
