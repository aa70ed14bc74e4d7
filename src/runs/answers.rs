//! Resume entries -> decisions, and what people typed held against what was asked.

use agui_adapter::resume::{AnswerError, Decision, OpenInterrupt, Verdict, decide};
use jsonschema::PatternOptions;
use serde_json::Value;

use super::ledger::Begun;

/// What the answers mean; those that an earlier run settled come first.
///
/// The payload of a question is held against its `responseSchema`. That of an approval is not:
/// whatever is not the boolean `true` is a denial.
///
/// # Errors
///
/// When an answer cannot be taken; then nothing may run, and the interrupts stay open, so that
/// the person who typed it can type it again.
pub(super) fn decisions(begun: &Begun) -> Result<Vec<Decision>, AnswerError> {
    let Some(parked) = begun.parked.as_ref().filter(|parked| parked.raised) else {
        return Ok(Vec::new());
    };
    let decided = decide(&begun.entries, &parked.open)?;
    for decision in &decided {
        if let Verdict::Answer { payload: Some(payload) } = &decision.verdict {
            check(&decision.open, payload)?;
        }
    }
    let mut decisions = parked.settled.clone();
    decisions.extend(decided);
    Ok(decisions)
}

/// How often a pattern that looks around may try again: an answer must not hold up others.
const MAX_BACKTRACKS: usize = 100_000;

fn check(open: &OpenInterrupt, payload: &Value) -> Result<(), AnswerError> {
    let Some(schema) = open.interrupt.response_schema.as_ref() else { return Ok(()) };
    let schema = Value::Object(schema.clone());
    let options = jsonschema::options()
        .should_validate_formats(true)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS));
    let validator = match options.build(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            // The agent's mistake, not the person's.
            tracing::warn!(
                error = %error.masked(),
                "a question's responseSchema cannot be used; its answer is not checked"
            );
            return Ok(());
        }
    };
    let Some(fault) = validator.iter_errors(payload).next() else { return Ok(()) };
    // Masked: what was typed belongs neither into errors nor into logs.
    let (place, fault) = (fault.instance_path(), fault.masked());
    let message = match place.as_str() {
        "" => format!("the payload does not fit its responseSchema: {fault}"),
        place => format!("the payload does not fit its responseSchema at {place}: {fault}"),
    };
    Err(AnswerError { interrupt_id: open.interrupt.id.clone(), message })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(schema: Value) -> OpenInterrupt {
        let interrupt = json!({"id": "q", "reason": "input_required", "responseSchema": schema});
        let open = json!({"interrupt": interrupt, "kind": "input_required", "reply": ""});
        serde_json::from_value(open).unwrap()
    }

    fn fault(schema: Value, payload: Value) -> Option<String> {
        check(&question(schema), &payload).err().map(|error| error.message)
    }

    #[test]
    fn an_answer_fits_its_question_or_says_where_it_does_not() {
        let schema = json!({
            "type": "object", "required": ["city"],
            "properties": {"city": {"type": "string"}, "people": {"type": "integer", "minimum": 1}},
        });
        assert_eq!(fault(schema.clone(), json!({"city": "Oslo", "people": 2})), None);
        let begins = "the payload does not fit its responseSchema";
        assert_eq!(
            fault(schema.clone(), json!({"city": ["secret"]})),
            Some(format!("{begins} at /city: value is not of type \"string\""))
        );
        assert_eq!(
            fault(schema.clone(), json!({"city": "", "people": 0})),
            Some(format!("{begins} at /people: value is less than the minimum of 1"))
        );
        assert_eq!(
            fault(schema.clone(), json!({"people": 1})),
            Some(format!("{begins}: \"city\" is a required property"))
        );
        let date = json!({"type": "string", "format": "date"});
        assert_eq!(fault(date.clone(), json!("2026-12-24")), None);
        assert_eq!(fault(date, json!("soon")), Some(format!("{begins}: value is not a \"date\"")));
        assert_eq!(
            fault(schema, Value::Null),
            Some(format!("{begins}: value is not of type \"object\""))
        );
    }

    #[test]
    fn a_schema_that_cannot_be_used_checks_nothing() {
        assert_eq!(fault(json!({"type": "nonsense"}), json!(1)), None);
        assert_eq!(fault(json!({"$ref": "http://127.0.0.1:9/schema.json"}), json!(1)), None);
    }
}
