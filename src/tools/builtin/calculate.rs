//! Arithmetic, with units.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fend_core::{Context, Interrupt, evaluate_with_interrupt};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use super::{result, spec};
use crate::{
    config::react::Builtin,
    tools::{Tool, ToolCall, ToolSpec, ToolStream},
};

/// The longest expression; also bounds how deep one can nest.
const MAX_EXPRESSION: usize = 500;
/// The longest result.
const MAX_RESULT: usize = 1000;
/// How much is told of what the library says is wrong.
const MAX_FAULT: usize = 200;
/// The stack of a calculation: expressions are worked off by recursion, and a debug build takes
/// up to 100 KiB for each level.
const STACK: usize = 64 * 1024 * 1024;
/// How many calculations run at once.
const AT_ONCE: usize = 4;
/// How long one may take.
const LIMIT: Duration = Duration::from_secs(2);
/// How long a calculation that should have ended is waited for.
const GRACE: Duration = Duration::from_secs(1);

/// What the model reads of one that did not end in time.
const TOO_LONG: &str = "The expression takes too long.";

/// Works out an expression, exactly where that is possible; what is rounded says `approx.`. It
/// knows no exchange rates, no dates and no chance.
pub(super) struct Calculate {
    spec: ToolSpec,
    turns: Arc<Semaphore>,
    limit: Duration,
}

impl Default for Calculate {
    fn default() -> Self {
        Self::within(LIMIT)
    }
}

impl Calculate {
    /// With a limit of time.
    pub(super) fn within(limit: Duration) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "description": "e.g. (3 + 4)^2 / 7, sqrt(2), 15% of 80, 10 km to miles, \
                                    1/3 to 5 dp, 20 °C to °F",
                },
            },
            "required": ["expression"],
        });
        let description = "Works out an arithmetic expression; knows functions, constants and \
                           units. A rounded result is marked with approx.";
        let spec = spec(Builtin::Calculate, description, parameters, true);
        Self { spec, turns: Arc::new(Semaphore::new(AT_ONCE)), limit }
    }
}

impl Tool for Calculate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, call: ToolCall) -> ToolStream {
        let expression = call.arguments.get("expression").and_then(Value::as_str);
        let expression = expression.unwrap_or_default().trim().to_owned();
        let (turns, limit) = (Arc::clone(&self.turns), self.limit);
        Box::pin(stream::once(async move {
            result(match checked(&expression) {
                Ok(()) => in_turn(turns, limit, move |stop| evaluate(&expression, stop)).await,
                Err(fault) => Err(fault),
            })
        }))
    }
}

/// What the library would not stop at in time, or not at all: functions of one's own can call
/// themselves for ever, assignments double texts, shifts, dice and dates count in one go.
fn checked(expression: &str) -> Result<(), String> {
    if expression.is_empty() {
        return Err("There is no expression.".to_owned());
    }
    if expression.chars().count() > MAX_EXPRESSION {
        return Err(format!("The expression is longer than {MAX_EXPRESSION} characters."));
    }
    let comparisons_out = expression.replace("==", "").replace("!=", "");
    let forbidden = ['\\', 'λ', ':', ';', '=', '<', '>', '"', '\'', '@', '#', '\n', '\r'];
    if let Some(sign) = comparisons_out.chars().find(|sign| forbidden.contains(sign)) {
        return Err(format!("`{}` is not supported: give one expression.", sign.escape_default()));
    }
    let word = |sign: char| sign.is_alphanumeric() || "_,.".contains(sign);
    if expression.split(|sign| !word(sign)).any(is_dice) {
        return Err("Dice are not supported.".to_owned());
    }
    Ok(())
}

/// Whether a word is one such as `2d6`.
fn is_dice(word: &str) -> bool {
    let counted =
        word.trim_start_matches(|sign: char| sign.is_ascii_digit() || "_,.".contains(sign));
    counted
        .strip_prefix('d')
        .is_some_and(|faces| faces.starts_with(|sign: char| sign.is_ascii_digit()))
}

/// Does something that takes long on a thread of its own, once it is its turn. Who stops waiting
/// stops the work, as soon as it looks up.
pub(super) async fn in_turn(
    turns: Arc<Semaphore>,
    limit: Duration,
    work: impl FnOnce(&Stop) -> Result<String, String> + Send + 'static,
) -> Result<String, String> {
    let failed = || "The expression could not be worked out.".to_owned();
    let turn = turns.acquire_owned().await.map_err(|_| failed())?;
    let left = Arc::new(AtomicBool::new(false));
    let (done, answer) = oneshot::channel();
    let stop = Stop { left: Arc::clone(&left), until: Instant::now() + limit };
    // Neither the stack nor the time of the runtime's threads is for this.
    thread::Builder::new()
        .name("calculate".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Who asked may have left.
            drop(done.send(work(&stop)));
            // The next one's turn is when this one has ended, not when nobody waits for it any
            // more: the library does not look up at every step.
            drop(turn);
        })
        .map_err(|_| failed())?;
    let _leave = Leave(left);
    match tokio::time::timeout(limit.saturating_add(GRACE), answer).await {
        Ok(answer) => answer.unwrap_or_else(|_| Err(failed())),
        Err(_) => Err(TOO_LONG.to_owned()),
    }
}

fn evaluate(expression: &str, stop: &Stop) -> Result<String, String> {
    match evaluate_with_interrupt(expression, &mut Context::new(), stop) {
        Err(_) if stop.should_interrupt() => Err(TOO_LONG.to_owned()),
        Err(fault) => {
            // Some repeat a number of any length.
            let fault: String = fault.to_string().chars().take(MAX_FAULT).collect();
            Err(format!("The expression cannot be worked out: {fault}"))
        }
        Ok(worked_out) => shown(worked_out.get_main_result().trim()),
    }
}

fn shown(text: &str) -> Result<String, String> {
    let length = text.chars().count();
    match length {
        0 => Err("The expression has no value.".to_owned()),
        1..=MAX_RESULT => Ok(text.to_owned()),
        _ => Err(format!(
            "The result has {length} characters, more than {MAX_RESULT}; round it, for example \
             with `to 10 sf`."
        )),
    }
}

/// Ends a calculation when its time is up or nobody waits for it.
pub(super) struct Stop {
    left: Arc<AtomicBool>,
    until: Instant,
}

impl Interrupt for Stop {
    fn should_interrupt(&self) -> bool {
        self.left.load(Ordering::Relaxed) || Instant::now() >= self.until
    }
}

/// Says on its end that nobody waits any more.
struct Leave(Arc<AtomicBool>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
