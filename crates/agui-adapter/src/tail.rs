//! Everything behind the sequencer, in its order: what the switches hide, the program's enrichers,
//! the gate, the built-in enrichers, the length of frames, the peer's view. No stage of its own.

use std::sync::Arc;

use agui_protocol::{Body, Event, RunId, ThreadId};

use crate::{
    enrich::{EnrichContext, EnrichError, EnricherChain, Enrichers},
    gate::Gate,
    model::AgentEvent,
    options::{AdapterOptions, Peer},
    runtime_context::RuntimeContext,
    transcript::OpenItems,
    truncate::Truncate,
    view::View,
};

/// What the stages have to know of a run.
#[derive(Clone, Debug)]
pub struct TailSetup {
    /// The input's thread.
    pub thread_id: ThreadId,
    /// The input's run.
    pub run_id: RunId,
    /// What the peer understands.
    pub peer: Peer,
    /// The run's context values, for enrichers.
    pub runtime_context: Arc<RuntimeContext>,
    /// A converter of the program may emit anything, so the gate is needed without enrichers too.
    pub guarded: bool,
}

/// The stages behind the sequencer, for one run.
#[derive(Debug)]
pub struct Tail {
    setup: TailSetup,
    chain: EnricherChain,
    /// Only behind enrichers that can break something.
    gate: Option<Gate>,
    truncate: Truncate,
    /// Argument text does not leave.
    hides_args: bool,
    open: OpenItems,
    view: View,
    /// An enricher failed or panicked; none of the program's is asked again.
    failed: bool,
}

impl Tail {
    /// The stages that the options, the peer and the program's enrichers ask for.
    pub fn new(options: &AdapterOptions, user: Enrichers, setup: TailSetup) -> Self {
        let chain = EnricherChain::new(options, user);
        let ids = || (setup.thread_id.clone(), setup.run_id.clone());
        let gate = (chain.structural() || setup.guarded).then(|| {
            let (thread_id, run_id) = ids();
            Gate::new(thread_id, run_id, options.emit_run_finished_after_error)
        });
        let (thread_id, run_id) = ids();
        let view = View::new(setup.peer, options, thread_id, run_id);
        let (thread_id, run_id) = ids();
        let truncate = Truncate::new(thread_id, run_id);
        let hides_args = !options.emit_tool_call_args;
        let open = OpenItems::default();
        Self { setup, chain, gate, truncate, hides_args, open, view, failed: false }
    }

    /// Sends a batch through every stage and appends what is left to `out`; `batch` is empty
    /// afterwards. Without enrichers, for a current peer, the events are only moved.
    ///
    /// # Errors
    ///
    /// An enricher failed. The batch is lost. The caller ends the run by pushing a RUN_ERROR,
    /// also when the batch ended the run already; the failed enrichers do not see it, and the
    /// gate puts a RUN_STARTED that was lost with the batch before it.
    pub fn push(
        &mut self,
        source: Option<&AgentEvent>,
        batch: &mut Vec<Event>,
        now_ms: i64,
        out: &mut Vec<Event>,
    ) -> Result<(), EnrichError> {
        if self.hides_args {
            batch.retain(|event| !matches!(event.body, Body::ToolCallArgs { .. }));
        }
        if self.gate.is_some() {
            *batch = self.enrich(source, std::mem::take(batch), now_ms)?;
        }
        if !self.chain.is_empty() {
            let TailSetup { thread_id, run_id, runtime_context, .. } = &self.setup;
            let context = EnrichContext { thread_id, run_id, now_ms, runtime_context };
            self.chain.decorate(source, batch, &context);
        }
        if !batch.iter().all(Truncate::fits) {
            let mut fitting = Vec::with_capacity(batch.len());
            batch.drain(..).for_each(|event| self.truncate.apply(event, &mut fitting));
            *batch = fitting;
        }
        batch.iter().for_each(|event| self.open.apply(event));
        self.view.show(batch.drain(..), now_ms, out);
        Ok(())
    }

    /// What is open in the stream as it leaves.
    pub fn open_items(&self) -> &OpenItems {
        &self.open
    }

    /// Takes the peer's view out: what leaves from now on is what every viewer may take.
    pub fn take_view(&mut self) -> View {
        std::mem::take(&mut self.view)
    }

    /// How often the gate had to repair what enrichers did.
    pub fn repairs(&self) -> u32 {
        self.gate.as_ref().map_or(0, Gate::repairs)
    }

    /// The program's enrichers and the gate behind them.
    fn enrich(
        &mut self,
        source: Option<&AgentEvent>,
        mut batch: Vec<Event>,
        now_ms: i64,
    ) -> Result<Vec<Event>, EnrichError> {
        let Some(gate) = &mut self.gate else { return Ok(batch) };
        if batch.is_empty() && source.is_none() {
            return Ok(batch);
        }
        if self.failed {
            // The ends that the enrichers failed on: the run now ends in another way.
            gate.forget_ends();
        }
        gate.expect(&batch);
        if !self.failed {
            // Beforehand, for an enricher that panics does not come back to here.
            self.failed = true;
            let TailSetup { thread_id, run_id, runtime_context, .. } = &self.setup;
            let context = EnrichContext { thread_id, run_id, now_ms, runtime_context };
            batch = self.chain.enrich(source, batch, &context)?;
            self.failed = false;
        }
        let mut passed = Vec::with_capacity(batch.len());
        gate.pass(batch, &mut passed);
        Ok(passed)
    }
}

#[cfg(test)]
mod tests;
