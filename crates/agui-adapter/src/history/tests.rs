use super::*;
use agui_protocol::message::{FunctionCall, MessageBase, ToolCallKind};
use agui_protocol::{ContentPart, ToolCall};

/// `<id> <text>`; the id's first letter tells the role (user, assistant, tool, system, developer,
/// reasoning, x = activity). An id is followed by the calls made, `a1(c1,c2)`, or by the call
/// answered, `t1>c1`; a `*` at the front marks what nobody saw.
fn message(line: &str) -> Stored {
    let (unseen, line) = (line.starts_with('*'), line.trim_start_matches('*'));
    let (head, text) = line.split_once(' ').unwrap_or((line, ""));
    let (id, calls) = head.trim_end_matches(')').split_once('(').unwrap_or((head, ""));
    let (id, answers) = id.split_once('>').unwrap_or((id, ""));
    let (text, base, name) = (text.to_owned(), MessageBase::default(), None);
    let role = id.chars().next();
    let id = MessageId::from(id);
    let content = Content::Text(text.clone());
    let message = match role {
        Some('u') => Message::User { id, name, content, base },
        Some('a') => {
            let calls = calls.split(',').filter(|call| !call.is_empty()).map(call).collect();
            let content = (!text.is_empty()).then_some(text);
            Message::Assistant { id, name, content, tool_calls: calls, base }
        }
        Some('t') => Message::Tool { id, tool_call_id: answers.into(), content, error: None, base },
        Some('s') => Message::System { id, name, content: text, base },
        Some('d') => Message::Developer { id, name, content: text, base },
        Some('r') => Message::Reasoning { id, content: text, base },
        _ => Message::Activity { id, activity_type: "P".into(), content: Default::default(), base },
    };
    Stored { message, unseen }
}

fn call(id: &str) -> ToolCall {
    ToolCall {
        id: id.into(),
        kind: ToolCallKind::Function,
        function: FunctionCall { name: "f".into(), arguments: "{}".into() },
        encrypted_value: None,
        metadata: None,
    }
}

fn line(stored: &Stored) -> String {
    let message = &stored.message;
    let calls: Vec<_> = calls(message).map(ToolCallId::as_str).collect();
    let made = if calls.is_empty() { String::new() } else { format!("({})", calls.join(",")) };
    let answers = message.answered_call().map_or(String::new(), |call| format!(">{call}"));
    let (mark, text) = (if stored.unseen { "*" } else { "" }, message.text_content());
    format!("{mark}{}{answers}{made} {text}", message.id()).trim_end().to_owned()
}

struct Case<'a> {
    stored: &'a [&'a str],
    keep: Keep,
    input: &'a [&'a str],
    resumed: &'a [&'a str],
}

impl<'a> Case<'a> {
    fn new(stored: &'a [&'a str], input: &'a [&'a str]) -> Self {
        Self { stored, keep: Keep::UpToInput, input, resumed: &[] }
    }

    fn run(&self) -> Reconciled {
        let input: Vec<_> = self.input.iter().map(|line| message(line).message).collect();
        self.run_with(&input)
    }

    fn run_with(&self, input: &[Message]) -> Reconciled {
        let stored = self.stored.iter().map(|line| message(line)).collect();
        let resumed = self.resumed.iter().map(|call| ToolCallId::from(*call)).collect();
        let mut minted = 0;
        let mut mint = || {
            minted += 1;
            MessageId::from(format!("u-new{minted}"))
        };
        let input = Incoming { messages: input, answered_calls: &resumed };
        reconcile(stored, self.keep, &input, &mut mint)
    }

    #[track_caller]
    fn gives(&self, history: &[&str], new: &[&str], notes: &[HistoryNote]) {
        let got = self.run();
        let lines: Vec<_> = got.history.iter().map(line).collect();
        let ids: Vec<_> = got.new.iter().map(MessageId::as_str).collect();
        assert_eq!((lines, ids, got.notes), (own(history), new.to_vec(), notes.to_vec()));
    }
}

fn own(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}

fn cut(count: usize) -> HistoryNote {
    HistoryNote::Cut { count }
}

const TURN: &[&str] = &["u1 hi", "a1 hello"];

#[test]
fn the_first_input_is_stored_whole() {
    Case::new(&[], &["s1 be nice", "u1 hi"]).gives(&["s1 be nice", "u1 hi"], &["s1", "u1"], &[]);
    Case::new(&[], &[]).gives(&[], &[], &[]);
}

#[test]
fn a_whole_conversation_and_a_new_message_alone_add_the_same() {
    let after = ["u1 hi", "a1 hello", "u2 bye"];
    Case::new(TURN, &after).gives(&after, &["u2"], &[]);
    Case::new(TURN, &["u2 bye"]).gives(&after, &["u2"], &[]);
    Case::new(TURN, &["a1 hello", "u2 bye"]).gives(&after, &["u2"], &[]);
    Case::new(TURN, &[]).gives(TURN, &[], &[]);
}

#[test]
fn a_client_that_goes_back_takes_the_end_away() {
    let stored = ["u1 hi", "a1 hello", "u2 bye", "a2 see you"];
    // Regenerate.
    Case::new(&stored, &["u1 hi", "a1 hello", "u2 bye"]).gives(&stored[..3], &[], &[cut(1)]);
    // Edit, under a new id and under the old one.
    Case::new(&stored, &["u1 hi", "a1 hello", "u3 wait"]).gives(
        &["u1 hi", "a1 hello", "u3 wait"],
        &["u3"],
        &[cut(2)],
    );
    Case::new(&stored, &["u1 hi", "a1 hello", "u2 wait"]).gives(
        &["u1 hi", "a1 hello", "u2 wait"],
        &["u2"],
        &[cut(2)],
    );
}

#[test]
fn a_trailing_user_message_under_a_used_id_is_news() {
    let minted = |given: &str| HistoryNote::NewId { given: given.into(), minted: "u-new1".into() };
    // An incremental client with one id for everything.
    Case::new(TURN, &["u1 and now"]).gives(
        &["u1 hi", "a1 hello", "u-new1 and now"],
        &["u-new1"],
        &[minted("u1")],
    );
    // The same with the whole conversation.
    Case::new(TURN, &["u1 hi", "a1 hello", "u1 and now"]).gives(
        &["u1 hi", "a1 hello", "u-new1 and now"],
        &["u-new1"],
        &[minted("u1")],
    );
    // And before anything was stored.
    Case::new(&[], &["u1 hi", "a1 hello", "u1 and now"]).gives(
        &["u1 hi", "a1 hello", "u-new1 and now"],
        &["u1", "a1", "u-new1"],
        &[minted("u1")],
    );
    // Word for word it is the message that is there: the client went back to it.
    Case::new(TURN, &["u1 hi"]).gives(&["u1 hi"], &[], &[cut(1)]);
}

#[test]
fn parts_that_say_what_a_text_says_are_no_news() {
    let parts = Content::Parts(vec![ContentPart::plain("h"), ContentPart::plain("i")]);
    let base = MessageBase::default();
    let input = Message::User { id: "u1".into(), name: None, content: parts, base };
    let got = Case::new(&["u1 hi"], &[]).run_with(&[input]);
    assert_eq!((got.history, got.new), (vec![message("u1 hi")], vec![]));
}

#[test]
fn what_is_stored_wins_over_what_was_rewritten() {
    Case::new(TURN, &["u1 HI", "a1 HELLO", "u2 bye"]).gives(
        &["u1 hi", "a1 hello", "u2 bye"],
        &["u2"],
        &[HistoryNote::Rewritten { count: 2 }],
    );
}

#[test]
fn what_nobody_saw_is_never_cut_until_an_input_names_it() {
    let stored = ["u1 hi", "a1 hello", "u2 bye", "*a2 see you"];
    Case::new(&stored, &["u1 hi", "a1 hello", "u2 bye", "u3 well"]).gives(
        &["u1 hi", "a1 hello", "u2 bye", "*a2 see you", "u3 well"],
        &["u3"],
        &[],
    );
    Case::new(&stored, &["u1 hi", "u3 well"]).gives(
        &["u1 hi", "*a2 see you", "u3 well"],
        &["u3"],
        &[cut(2)],
    );
    Case::new(&stored, &["u1 hi", "a1 hello", "u2 bye", "a2 see you", "u3 well"]).gives(
        &["u1 hi", "a1 hello", "u2 bye", "a2 see you", "u3 well"],
        &["u3"],
        &[],
    );
    // An unseen answer keeps the call that the client did see.
    Case::new(&["u1 hi", "a1(c1)", "*t1>c1 blue", "*a2 it is blue"], &["u1 hi"]).gives(
        &["u1 hi", "a1(c1)", "*t1>c1 blue", "*a2 it is blue"],
        &[],
        &[],
    );
}

#[test]
fn an_answer_of_the_client_is_never_lost() {
    let stored = ["u1 paint", "a1(c1)"];
    let after = ["u1 paint", "a1(c1)", "t1>c1 done"];
    Case::new(&stored, &after).gives(&after, &["t1"], &[]);
    Case::new(&stored, &["t1>c1 done"]).gives(&after, &["t1"], &[]);
    Case::new(&stored, &["u1 paint", "a1(c1)", "t1>c1 done", "u2 thanks"]).gives(
        &["u1 paint", "a1(c1)", "t1>c1 done", "u2 thanks"],
        &["t1", "u2"],
        &[],
    );
    // It stands before the last message that is known.
    let stored = ["u1 paint", "a1(c1,c2)", "t2>c2 two", "a2 well"];
    Case::new(&stored, &["u1 paint", "a1(c1,c2)", "t1>c1 one", "t2>c2 two", "a2 well"]).gives(
        &["u1 paint", "a1(c1,c2)", "t2>c2 two", "t1>c1 one", "a2 well"],
        &["t1"],
        &[],
    );
    // Nobody knows its call: the model will not see it, but it is kept.
    Case::new(TURN, &["t9>c9 lost", "a1 hello", "u2 bye"]).gives(
        &["u1 hi", "a1 hello", "t9>c9 lost", "u2 bye"],
        &["t9", "u2"],
        &[],
    );
}

#[test]
fn a_second_answer_loses_against_the_stored_one() {
    let duplicate =
        |message: &str| HistoryNote::DuplicateResult { message: message.into(), call: "c1".into() };
    let stored = ["u1 sum", "a1(c1)", "t1>c1 3", "a2 three"];
    Case::new(&stored, &["u1 sum", "a1(c1)", "t9>c1 4", "a2 three", "u2 ok"]).gives(
        &["u1 sum", "a1(c1)", "t1>c1 3", "a2 three", "u2 ok"],
        &["u2"],
        &[duplicate("t9")],
    );
    // Also where the client went back to the call: the server's answer stays with it.
    Case::new(&stored, &["u1 sum", "a1(c1)", "t9>c1 4"]).gives(
        &["u1 sum", "a1(c1)", "t1>c1 3"],
        &[],
        &[cut(1), duplicate("t9")],
    );
    Case::new(&["u1 sum", "a1(c1)"], &["t1>c1 3", "t2>c1 4"]).gives(
        &["u1 sum", "a1(c1)", "t1>c1 3"],
        &["t1"],
        &[duplicate("t2")],
    );
}

#[test]
fn a_parked_thread_keeps_everything_and_what_is_unknown_follows() {
    let stored = ["u1 rm", "a1(c1,c2)", "t2>c2 two"];
    let case = Case {
        keep: Keep::Everything,
        resumed: &["c1"],
        ..Case::new(&stored, &["s1 be nice", "u1 RM", "t9>c1 yes", "u2 and hurry"])
    };
    case.gives(
        &["u1 rm", "a1(c1,c2)", "t2>c2 two", "s1 be nice", "u2 and hurry"],
        &["s1", "u2"],
        &[
            HistoryNote::Rewritten { count: 1 },
            HistoryNote::AnsweredByResume { message: "t9".into(), call: "c1".into() },
        ],
    );
    let back = Case { keep: Keep::Everything, ..Case::new(&stored, &["u1 rm"]) };
    back.gives(&stored, &[], &[]);
    Case { keep: Keep::Everything, ..Case::new(&stored, &[]) }.gives(&stored, &[], &[]);
}

#[test]
fn instructions_are_not_stored_twice() {
    let stored = ["s1 be nice", "u1 hi", "a1 hello"];
    // The same ones under another id, with the conversation and without.
    for input in [
        &["s2 be nice", "u1 hi", "a1 hello", "u2 bye"][..],
        &["s2 be nice", "u2 bye"],
        &["s1 be nice", "u2 bye"],
        &["u2 bye"],
    ] {
        let case = Case { keep: Keep::Everything, ..Case::new(&stored, input) };
        case.gives(&["s1 be nice", "u1 hi", "a1 hello", "u2 bye"], &["u2"], &[]);
    }
    Case::new(&stored, &["s2 be nice", "u1 hi", "a1 hello", "u2 bye"]).gives(
        &["s1 be nice", "u1 hi", "a1 hello", "u2 bye"],
        &["u2"],
        &[],
    );
    Case::new(&[], &["s1 be nice", "s2 be nice", "d1 be nice", "u1 hi"]).gives(
        &["s1 be nice", "d1 be nice", "u1 hi"],
        &["s1", "d1", "u1"],
        &[],
    );
}

#[test]
fn the_instructions_of_a_whole_conversation_replace_the_stored_ones() {
    let stored = ["s1 it is 9:00", "d1 short", "u1 hi", "a1 hello"];
    // Under the same id, under another one, and none any more of the developer's.
    Case::new(&stored, &["s1 it is 9:05", "u1 hi", "a1 hello", "u2 bye"]).gives(
        &["s1 it is 9:05", "u1 hi", "a1 hello", "u2 bye"],
        &["u2"],
        &[cut(1), HistoryNote::Rewritten { count: 1 }],
    );
    Case::new(&stored, &["s2 it is 9:05", "d1 short", "u1 hi", "a1 hello", "u2 bye"]).gives(
        &["d1 short", "s2 it is 9:05", "u1 hi", "a1 hello", "u2 bye"],
        &["s2", "u2"],
        &[cut(1)],
    );
    // A client that sends none says nothing of them.
    Case::new(&stored, &["u1 hi", "a1 hello", "u2 bye"]).gives(
        &["s1 it is 9:00", "d1 short", "u1 hi", "a1 hello", "u2 bye"],
        &["u2"],
        &[],
    );
}

#[test]
fn activities_and_reasoning_follow_the_rules_of_all_messages() {
    Case::new(TURN, &["u1 hi", "x9", "r9 hm", "a1 hello", "x2", "r2 so", "u2 bye"]).gives(
        &["u1 hi", "a1 hello", "x2", "r2 so", "u2 bye"],
        &["x2", "r2", "u2"],
        &[
            HistoryNote::Unknown { message: "x9".into() },
            HistoryNote::Unknown { message: "r9".into() },
        ],
    );
}

#[test]
fn only_what_a_person_adds_is_new() {
    let known = HashSet::from(["u1".into(), "t1".into()]);
    let answered = HashSet::from(["c1".into()]);
    let news = |line: &str| is_new(&message(line).message, &known, &answered);
    let lines = ["u1 hi", "u2 hi", "t1>c9 x", "t2>c1 x", "t2>c2 x", "a9 x", "s9 x", "d9 x", "x9"];
    assert_eq!(lines.map(news), [false, true, false, false, true, false, false, false, false]);
}

proptest::proptest! {
    /// An input that repeats the history and adds one message gives history and message; doing it
    /// again changes nothing.
    #[test]
    fn a_repeated_conversation_is_not_doubled(roles in "[uatr]{0,12}") {
        let lines: Vec<String> = roles
            .chars()
            .enumerate()
            .map(|(at, role)| match role {
                't' => format!("t{at}>c{at} x"),
                role => format!("{role}{at} x"),
            })
            .chain(["u99 new".to_owned()])
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let (last, before) = lines.split_last().expect("one");
        for input in [&lines[..], std::slice::from_ref(last)] {
            Case::new(before, input).gives(&lines, &["u99"], &[]);
            Case::new(&lines, &lines).gives(&lines, &[], &[]);
        }
    }
}
