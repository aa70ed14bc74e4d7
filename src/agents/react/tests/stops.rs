//! A run that is told to stop, or left, or cannot begin.

use std::pin::Pin;

use super::*;
use crate::tools::{SourceError, ToolSource};

#[tokio::test]
async fn a_run_that_is_told_to_stop_ends_in_order() {
    let model = Script::new([vec![text("Hel")]]);
    let request = request();
    let cancel = request.cancel.clone();
    let mut events = ReactAgent(Arc::new(parts(&model, Vec::new()))).run(request);
    let mut names = Names::default();
    let mut lines = Vec::new();
    while let Some(event) = events.next().await {
        let line = names.line(&event);
        if line.starts_with("TEXT_BLOCK_DELTA") {
            cancel.cancel();
        }
        lines.push(line);
    }
    assert_eq!(lines[3..], ["TEXT_BLOCK_DELTA r1-1 Hel", "AGENT_END r0 Interrupted"]);
}

#[tokio::test]
async fn a_round_that_is_told_to_stop_ends_in_order() {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let hangs = tool("hangs", move |call| {
        let held = Arc::clone(&held);
        Box::pin(stream::once(async move {
            let _held = (held, call);
            std::future::pending().await
        }))
    });
    let model = Script::new([calls(&[("c1", "hangs", "{}")])]);
    let request = request();
    let cancel = request.cancel.clone();
    let mut events = ReactAgent(Arc::new(parts(&model, vec![hangs]))).run(request);
    let mut names = Names::default();
    let mut lines = Vec::new();
    while let Some(event) = events.next().await {
        if event.as_ref().unwrap().event_type().as_str() == "TOOL_RESULT_START" {
            cancel.cancel();
        }
        lines.push(names.line(&event));
    }
    drop(events);
    let last = lines.iter().skip_while(|line| !line.starts_with("TOOL_RESULT_START"));
    let last: Vec<&str> = last.map(String::as_str).collect();
    assert_eq!(
        last,
        [
            "TOOL_RESULT_START r2 c1 hangs",
            "TOOL_RESULT_TEXT_DELTA c1 The call was interrupted before it gave a result.",
            "TOOL_RESULT_END r2 c1 interrupted",
            "AGENT_END r0 Interrupted",
        ]
    );
    // Only the tool itself holds it.
    assert_eq!(Arc::strong_count(&alive), 1);
}

#[tokio::test]
async fn a_run_that_is_left_leaves_its_model_and_its_tools() {
    let model = Script::new([vec![text("Hel")]]);
    let mut events = ReactAgent(Arc::new(parts(&model, Vec::new()))).run(request());
    for _ in 0..4 {
        events.next().await.unwrap().unwrap();
    }
    assert_eq!(Arc::strong_count(&model.open), 2);
    drop(events);
    assert_eq!(Arc::strong_count(&model.open), 1);
}

struct Server {
    optional: bool,
    tools: Option<Vec<Arc<dyn Tool>>>,
}

impl ToolSource for Server {
    fn name(&self) -> &str {
        "server"
    }

    fn is_optional(&self) -> bool {
        self.optional
    }

    fn tools<'a>(
        &'a self,
        session: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<Arc<dyn Tool>>, SourceError>> + Send + 'a>> {
        assert_eq!(session, "session");
        let (source_name, cause) = ("server".to_owned(), "secret".to_owned());
        let tools = self.tools.clone().ok_or(SourceError { source_name, cause });
        Box::pin(async move { tools })
    }
}

fn source(
    optional: bool,
    tools: Option<Vec<Arc<dyn Tool>>>,
    include: &[&str],
    exclude: &[&str],
) -> Source {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let source = Arc::new(Server { optional, tools });
    Source { source, include: owned(include), exclude: owned(exclude) }
}

fn offered(model: &Script) -> Vec<String> {
    model.requests()[0].tools.iter().map(|spec| spec.name.clone()).collect()
}

#[tokio::test]
async fn the_tools_of_a_source_are_those_that_the_agent_uses_of_it() {
    let all = || Some(vec![echo("a"), echo("b"), echo("c")]);
    for (include, exclude, expected) in [
        (&[][..], &[][..], &["own", "a", "b", "c"][..]),
        (&["a", "c"], &[], &["own", "a", "c"]),
        (&[], &["b"], &["own", "a", "c"]),
        (&["a", "c"], &["c"], &["own", "a"]),
    ] {
        let model = Script::new([says("Ok")]);
        let mut parts = parts(&model, vec![echo("own")]);
        parts.sources = vec![source(false, all(), include, exclude)];
        lines(parts, request()).await;
        assert_eq!(offered(&model), expected);
    }
}

#[tokio::test]
async fn a_source_that_is_not_there_fails_the_run_unless_it_is_optional() {
    let model = Script::new([]);
    let mut needy = parts(&model, Vec::new());
    needy.sources = vec![source(false, None, &[], &[])];
    assert_eq!(
        lines(needy, request()).await[1..],
        ["error TOOLS_UNAVAILABLE: Tools that the agent needs are not available."]
    );
    let model = Script::new([says("Ok")]);
    let mut easy = parts(&model, vec![echo("own")]);
    easy.sources = vec![source(true, None, &[], &[])];
    lines(easy, request()).await;
    assert_eq!(offered(&model), ["own"]);
}

#[tokio::test]
async fn what_is_ready_comes_without_a_pause() {
    let deltas = (0..100).map(|n| text(&n.to_string()));
    let model = Script::new([deltas.chain([finish(FinishReason::Stop)]).collect::<Said>()]);
    let mut events = ReactAgent(Arc::new(parts(&model, Vec::new()))).run(request());
    let mut count = 0;
    while let Some(event) = futures_util::FutureExt::now_or_never(events.next()).unwrap() {
        event.unwrap();
        count += 1;
    }
    assert_eq!(count, 106);
}

#[tokio::test]
async fn names_that_no_tool_has_are_told_once_all_tools_are_known() {
    let model = Script::new([]);
    let mut parts = parts(&model, Vec::new());
    parts.sources = vec![source(false, Some(vec![echo("a"), echo("b")]), &["a", "x"], &["y"])];
    parts.permission.deny = vec!["server:aa".to_owned(), "a".to_owned()];
    parts.permission.ask = vec!["b".to_owned()];
    let found = parts.sources[0].tools("session").await.unwrap().unwrap();
    assert_eq!(
        found.missing,
        ["`x` under include is no tool of server", "`y` under exclude is no tool of server"]
    );
    let own = parts.put_together(found.tools, true);
    // What is not included is not there.
    let unknown = [
        "`b` under permission.ask names no tool",
        "`server:aa` under permission.deny names no tool",
    ];
    assert_eq!(parts.names_of_nothing(&own), unknown);
    // A denial may be meant for sub-agents.
    parts.subagents = vec!["child".to_owned()];
    assert_eq!(parts.names_of_nothing(&own), &unknown[..1]);
}

#[tokio::test]
async fn tools_that_share_a_name_are_told_apart() {
    let model = Script::new([says("Ok")]);
    let mut parts = parts(&model, vec![echo("own")]);
    parts.sources = vec![source(false, Some(vec![echo("own")]), &[], &[])];
    let agent = ReactAgent(Arc::new(parts));
    run_agent(&agent, request()).await;
    assert_eq!(offered(&model), ["builtin_own", "server_own"]);
}
