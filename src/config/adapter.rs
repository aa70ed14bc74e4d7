//! The adapter switches of `agentscope.agui` and of an agent's `agui:` block, read with the same
//! code: the agent's lie over the server's.

use std::sync::Arc;

use agui_adapter::options::{
    AdapterOptions, AssumePeer, ConverterAction, ConverterSpec, Droppable, EnricherSpec,
    FrontendToolOutcome, SubagentEvents, ToolMergeMode,
};
use serde_json::Value;

use super::{
    check::shown,
    schema::canonical,
    tree::{Block, Faults},
};

/// Reads the switches of one block over those it starts from.
pub(super) fn read(
    block: &Block<'_>,
    base: &AdapterOptions,
    faults: &mut Faults<'_>,
) -> AdapterOptions {
    let mut options = base.clone();
    let flags: [(&str, &mut bool); 8] = [
        ("echo-input", &mut options.echo_input),
        ("emit-state-events", &mut options.emit_state_events),
        ("emit-step-events", &mut options.emit_step_events),
        ("emit-tool-call-args", &mut options.emit_tool_call_args),
        ("emit-token-usage", &mut options.emit_token_usage),
        ("enable-reasoning", &mut options.enable_reasoning),
        ("emit-run-finished-after-error", &mut options.emit_run_finished_after_error),
        ("base-event-properties-enricher-enabled", &mut options.timestamps),
    ];
    for (key, flag) in flags {
        *flag = block.boolean(key).unwrap_or(*flag);
    }
    if let Some(name) = block.text("default-tool-merge-mode") {
        options.tool_merge_mode = merge_mode(name);
    }
    if let Some(name) = block.text("frontend-tool-outcome") {
        options.frontend_tool_outcome = match name {
            "interrupt" => FrontendToolOutcome::Interrupt,
            _ => FrontendToolOutcome::Pending,
        };
    }
    if let Some(name) = block.text("assume-peer") {
        options.assume_peer = match name {
            "current" => AssumePeer::Current,
            "legacy" => AssumePeer::Legacy,
            _ => AssumePeer::Auto,
        };
    }
    options.subagent_events = subagent_events(block, options.subagent_events, faults);
    if let Some(entries) = block.blocks("enrichers") {
        options.enrichers = entries.iter().filter_map(|entry| enricher(entry, faults)).collect();
    }
    if let Some(entries) = block.blocks("converters") {
        options.converters = converters(&entries, faults);
    }
    options
}

fn merge_mode(name: &str) -> ToolMergeMode {
    match name {
        "FRONTEND_ONLY" => ToolMergeMode::FrontendOnly,
        "AGENT_ONLY" => ToolMergeMode::AgentOnly,
        _ => ToolMergeMode::MergeFrontendPriority,
    }
}

/// `emit-subagent-events-as-native: true` means native while `subagent-events` of the same block
/// is auto, and contradicts any other value there; false in an agent's block ends what the server
/// says.
fn subagent_events(
    block: &Block<'_>,
    base: SubagentEvents,
    faults: &mut Faults<'_>,
) -> SubagentEvents {
    let named = block.text("subagent-events").map(|name| match name {
        "attributed" => SubagentEvents::Attributed,
        "custom" => SubagentEvents::Custom,
        "native" => SubagentEvents::Native,
        _ => SubagentEvents::Auto,
    });
    match (block.boolean("emit-subagent-events-as-native"), named) {
        (Some(true), None | Some(SubagentEvents::Auto)) => SubagentEvents::Native,
        (Some(true), Some(_)) => {
            faults.value(
                &block.at("emit-subagent-events-as-native"),
                "true goes only with `subagent-events: auto`; remove one of the two",
            );
            base
        }
        (Some(false), None) if base == SubagentEvents::Native => SubagentEvents::Auto,
        (_, named) => named.unwrap_or(base),
    }
}

fn enricher(entry: &Block<'_>, faults: &mut Faults<'_>) -> Option<EnricherSpec> {
    let Some(kind) = entry.text("type") else {
        missing(entry, "type", faults);
        return None;
    };
    match kind {
        "raw-event" => Some(EnricherSpec::RawEvent),
        "timestamp" => Some(EnricherSpec::Timestamp),
        "metadata" => {
            let Some(Value::Object(set)) = entry.json("set") else {
                missing(entry, "set", faults);
                return None;
            };
            if set.contains_key("ag-ui") {
                faults.value(&entry.at("set"), "the key `ag-ui` is reserved by the protocol");
                return None;
            }
            Some(EnricherSpec::Metadata(Arc::new(set)))
        }
        "drop" => drop_enricher(entry, faults),
        _ => None,
    }
}

fn drop_enricher(entry: &Block<'_>, faults: &mut Faults<'_>) -> Option<EnricherSpec> {
    let Some(name) = entry.text("event") else {
        missing(entry, "event", faults);
        return None;
    };
    let event = match canonical(name).as_str() {
        "custom" => Droppable::Custom,
        "raw" => Droppable::Raw,
        "reasoning" => Droppable::Reasoning,
        "step" => Droppable::Step,
        "state" => Droppable::State,
        "activity" => Droppable::Activity,
        _ => {
            let name = shown(name, &entry.at("event"));
            let message = format!(
                "`{name}` cannot be dropped: only CUSTOM, RAW and the whole families REASONING, \
                 STEP, STATE, ACTIVITY can, since a stream without single boundary events is \
                 refused by clients"
            );
            faults.value(&entry.at("event"), message);
            return None;
        }
    };
    let name = entry.text("name").map(str::to_owned);
    if name.is_some() && event != Droppable::Custom {
        faults.value(&entry.at("name"), "only CUSTOM events have a name");
        return None;
    }
    Some(EnricherSpec::Drop { event, name })
}

/// One for each name: a second one would never be asked.
fn converters(entries: &[Block<'_>], faults: &mut Faults<'_>) -> Vec<ConverterSpec> {
    let mut specs: Vec<ConverterSpec> = Vec::new();
    for entry in entries {
        let Some(spec) = converter(entry, faults) else { continue };
        if specs.iter().any(|other| other.custom == spec.custom) {
            let message = "an earlier converter of this list is for the same name";
            faults.value(&entry.at("custom"), message);
        }
        specs.push(spec);
    }
    specs
}

fn converter(entry: &Block<'_>, faults: &mut Faults<'_>) -> Option<ConverterSpec> {
    let Some(custom) = entry.text("custom") else {
        missing(entry, "custom", faults);
        return None;
    };
    let actions = [
        entry.text("rename").map(|name| ConverterAction::Rename(name.to_owned())),
        entry.boolean("drop").filter(|drop| *drop).map(|_| ConverterAction::Drop),
        entry.text("as").map(|meaning| match meaning {
            "activity" => ConverterAction::AsActivity,
            "step" => ConverterAction::AsStep,
            _ => ConverterAction::AsState,
        }),
    ];
    let mut actions = actions.into_iter().flatten();
    match (actions.next(), actions.next()) {
        (Some(action), None) => Some(ConverterSpec { custom: custom.to_owned(), action }),
        _ => {
            if !faults.within(entry.path()) {
                faults
                    .key(entry.path(), "exactly one of `rename`, `drop: true` and `as` is needed");
            }
            None
        }
    }
}

/// Says that a key is missing, unless the block is known to be wrong already.
pub(super) fn missing(entry: &Block<'_>, key: &str, faults: &mut Faults<'_>) {
    if !faults.within(entry.path()) {
        faults.key(entry.path(), format!("`{key}` is missing"));
    }
}
