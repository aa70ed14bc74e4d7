//! Puts a run's messages onto the thread's, as a client does that has both.

use std::collections::HashMap;

use agui_protocol::{Content, Message, MessageId, ToolCallId};

use super::{Transcript, items::Entry};

impl Transcript {
    /// The thread's messages after the run: `history` with the run's messages behind it. Answers
    /// to calls of earlier runs go behind these, and a message that goes on under an id of the
    /// history goes on there. Takes time linear in both.
    pub fn onto(self, history: Vec<Message>) -> Vec<Message> {
        let mut thread = Thread::new(history);
        for Entry { message, answers, .. } in self.entries {
            thread.add(message, answers);
        }
        thread.into_messages()
    }
}

struct Thread {
    messages: Vec<Message>,
    by_id: HashMap<MessageId, usize>,
    calls: HashMap<ToolCallId, usize>,
    /// Answers that go behind the message at this index.
    behind: HashMap<usize, Vec<Message>>,
    /// For a message that makes calls, the index of the last of the answers behind it.
    ends: HashMap<usize, usize>,
}

impl Thread {
    fn new(messages: Vec<Message>) -> Self {
        let mut thread = Self {
            messages,
            by_id: HashMap::new(),
            calls: HashMap::new(),
            behind: HashMap::new(),
            ends: HashMap::new(),
        };
        for (at, message) in thread.messages.iter().enumerate() {
            thread.by_id.entry(message.id().clone()).or_insert(at);
            if let Message::Assistant { tool_calls, .. } = message {
                for call in tool_calls {
                    thread.calls.entry(call.id.clone()).or_insert(at);
                }
            }
        }
        thread
    }

    fn add(&mut self, message: Message, answers: Vec<Message>) {
        if let Message::Tool { tool_call_id, .. } = &message
            && let Some(at) = self.calls.get(tool_call_id).copied()
        {
            return self.answer(at, message);
        }
        let known = self.by_id.get(message.id()).copied();
        match known.and_then(|at| Some((at, self.messages.get_mut(at)?))) {
            Some((at, earlier)) => {
                go_on(earlier, message);
                for answer in answers {
                    self.answer(at, answer);
                }
            }
            None => {
                self.messages.push(message);
                self.messages.extend(answers);
            }
        }
    }

    /// Behind the message at `owner` and the answers that are there.
    fn answer(&mut self, owner: usize, answer: Message) {
        let others = self.messages.iter().skip(owner + 1);
        let is_answer = |message: &&Message| matches!(message, Message::Tool { .. });
        let end = || owner + others.take_while(is_answer).count();
        let end = *self.ends.entry(owner).or_insert_with(end);
        self.behind.entry(end).or_default().push(answer);
    }

    fn into_messages(mut self) -> Vec<Message> {
        let behind = &mut self.behind;
        let messages = self.messages.into_iter().enumerate();
        let placed = messages.flat_map(|(at, message)| {
            std::iter::once(message).chain(behind.remove(&at).unwrap_or_default())
        });
        placed.collect()
    }
}

/// The same message with more of it. One of another role keeps what it has.
fn go_on(earlier: &mut Message, more: Message) {
    match (earlier, more) {
        (
            Message::Assistant { content, tool_calls, .. },
            Message::Assistant { content: more, tool_calls: calls, .. },
        ) => {
            if let Some(more) = more {
                content.get_or_insert_default().push_str(&more);
            }
            let known: Vec<_> = tool_calls.iter().map(|call| call.id.clone()).collect();
            tool_calls.extend(calls.into_iter().filter(|call| !known.contains(&call.id)));
        }
        (Message::User { content: Content::Text(text), .. }, Message::User { content, .. }) => {
            text.push_str(&content.text_content());
        }
        (Message::System { content: text, .. }, Message::System { content, .. })
        | (Message::Developer { content: text, .. }, Message::Developer { content, .. })
        | (Message::Reasoning { content: text, .. }, Message::Reasoning { content, .. }) => {
            text.push_str(&content);
        }
        (earlier @ Message::Activity { .. }, more @ Message::Activity { .. }) => *earlier = more,
        _ => {}
    }
}
