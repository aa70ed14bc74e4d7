//! What is done to AG-UI events after their conversion, by the program or by the configuration.
//!
//! Two halves, told apart by what they can break. Enrichers that a program registers may change,
//! add and drop whatever they like; the gate stands behind them. The built-in ones only decorate
//! events or drop kinds that nothing else depends on, so they run behind the gate and also see
//! what it restored. Nothing may be added here that knows how an event was converted.

mod builtin;

pub(crate) use builtin::RESERVED_METADATA_KEY;

use std::{error::Error, fmt, sync::Arc};

use agui_protocol::{Event, RunId, ThreadId};

use crate::{model::AgentEvent, options::AdapterOptions, runtime_context::RuntimeContext};

use self::builtin::Builtin;

/// What an enricher may know of the run besides the events.
#[derive(Clone, Copy, Debug)]
pub struct EnrichContext<'a> {
    /// The input's thread.
    pub thread_id: &'a ThreadId,
    /// The input's run.
    pub run_id: &'a RunId,
    /// Now, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// The run's context values, e.g. `tenantId`.
    pub runtime_context: &'a RuntimeContext,
}

/// Why an enricher gave up. Its text is for the log; a client only learns that the run failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct EnrichError {
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl EnrichError {
    /// A failure in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), source: None }
    }

    /// A failure with its cause.
    pub fn caused_by(
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { message: message.into(), source: Some(source.into()) }
    }
}

/// Looks at every batch of AG-UI events before it leaves; may change, add and drop.
///
/// A batch holds what one agent event was converted to, boundary and closing events included.
/// It is empty when the conversion gave nothing. `source` is absent for what no agent event
/// caused: a timeout, a cancellation, the end of the stream.
///
/// A mistake cannot break the stream: events that do not fit are dropped, missing closers are
/// put back, and the run's first and last event cannot be removed nor turned into another kind.
/// `*_CHUNK` events are never sent; write a start, content and an end.
/// An error ends the run with `RUN_ERROR` `INTERNAL_ERROR`.
///
/// # Examples
///
/// Fills in the time where it is missing:
///
/// ```
/// use agui_adapter::{
///     enrich::{AguiEventEnricher, EnrichContext, EnrichError},
///     model::AgentEvent,
/// };
/// use agui_protocol::{Body, Event};
///
/// struct Timestamps;
///
/// impl AguiEventEnricher for Timestamps {
///     fn enrich(
///         &self,
///         _source: Option<&AgentEvent>,
///         mut events: Vec<Event>,
///         context: &EnrichContext<'_>,
///     ) -> Result<Vec<Event>, EnrichError> {
///         for event in &mut events {
///             event.timestamp.get_or_insert(context.now_ms);
///         }
///         Ok(events)
///     }
/// }
///
/// let context = EnrichContext {
///     thread_id: &"t1".into(),
///     run_id: &"r1".into(),
///     now_ms: 1_700_000_000_000,
///     runtime_context: &Default::default(),
/// };
/// let step = Body::StepStarted { step_name: "plan".into(), subagent_run_id: None };
/// let events = Timestamps.enrich(None, vec![step.clone().into()], &context)?;
/// assert_eq!(events, [Event::new(step).with_timestamp(1_700_000_000_000)]);
/// # Ok::<(), EnrichError>(())
/// ```
///
/// Tells the client after every tool result which tenant was charged. A closure will do:
///
/// ```
/// use std::sync::Arc;
///
/// use agui_adapter::{
///     enrich::{AguiEventEnricher, EnrichContext, EnrichError, Enrichers},
///     model::AgentEvent,
///     runtime_context::RuntimeContext,
/// };
/// use agui_protocol::{Body, Content, Event, EventType};
///
/// let audit = |_source: Option<&AgentEvent>,
///              events: Vec<Event>,
///              context: &EnrichContext<'_>|
///  -> Result<Vec<Event>, EnrichError> {
///     let Some(tenant) = context.runtime_context.get("tenantId") else { return Ok(events) };
///     let mut enriched = Vec::with_capacity(events.len());
///     for event in events {
///         let charged = event.event_type() == EventType::ToolCallResult;
///         enriched.push(event);
///         if charged {
///             let custom = Body::Custom {
///                 name: "com.example.charged".into(),
///                 value: tenant.clone().into_owned(),
///                 subagent_run_id: None,
///             };
///             enriched.push(custom.into());
///         }
///     }
///     Ok(enriched)
/// };
///
/// let values = serde_json::Map::from_iter([("tenantId".to_owned(), "acme".into())]);
/// let runtime_context = RuntimeContext::from(values);
/// let context = EnrichContext {
///     thread_id: &"t1".into(),
///     run_id: &"r1".into(),
///     now_ms: 0,
///     runtime_context: &runtime_context,
/// };
/// let result = Body::ToolCallResult {
///     message_id: "m1".into(),
///     tool_call_id: "c1".into(),
///     content: Content::Text("42".into()),
///     role: None,
///     subagent_run_id: None,
/// };
/// let events = audit.enrich(None, vec![result.clone().into()], &context)?;
/// let charged = Body::Custom {
///     name: "com.example.charged".into(),
///     value: "acme".into(),
///     subagent_run_id: None,
/// };
/// assert_eq!(events, [Event::new(result), Event::new(charged)]);
///
/// // Registered like any other; lower orders run first.
/// let mut enrichers = Enrichers::default();
/// enrichers.register(10, Arc::new(audit));
/// # Ok::<(), EnrichError>(())
/// ```
pub trait AguiEventEnricher: Send + Sync {
    /// Takes a batch and gives what is to be sent instead.
    ///
    /// # Errors
    ///
    /// Whatever makes it impossible to go on with the run.
    fn enrich(
        &self,
        source: Option<&AgentEvent>,
        events: Vec<Event>,
        context: &EnrichContext<'_>,
    ) -> Result<Vec<Event>, EnrichError>;
}

impl<F> AguiEventEnricher for F
where
    F: Fn(Option<&AgentEvent>, Vec<Event>, &EnrichContext<'_>) -> Result<Vec<Event>, EnrichError>
        + Send
        + Sync,
{
    fn enrich(
        &self,
        source: Option<&AgentEvent>,
        events: Vec<Event>,
        context: &EnrichContext<'_>,
    ) -> Result<Vec<Event>, EnrichError> {
        self(source, events, context)
    }
}

/// The enrichers that a program registered, in the order in which they run.
#[derive(Clone, Default)]
pub struct Enrichers {
    sorted: Vec<(i32, Arc<dyn AguiEventEnricher>)>,
}

impl Enrichers {
    /// Adds one. Lower orders run first, equal ones in the order of registration.
    pub fn register(&mut self, order: i32, enricher: Arc<dyn AguiEventEnricher>) {
        let position = self.sorted.partition_point(|(other, _)| *other <= order);
        self.sorted.insert(position, (order, enricher));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl fmt::Debug for Enrichers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sorted.iter().map(|(order, _)| order)).finish()
    }
}

/// All enrichers of an agent: the program's and those of the configuration.
#[derive(Clone, Debug)]
pub struct EnricherChain {
    user: Enrichers,
    builtin: Vec<Builtin>,
}

impl EnricherChain {
    /// The chain that the options and the program ask for.
    pub fn new(options: &AdapterOptions, user: Enrichers) -> Self {
        Self { user, builtin: builtin::from_options(options) }
    }

    /// Whether nothing is done to any event.
    pub fn is_empty(&self) -> bool {
        self.user.is_empty() && self.builtin.is_empty()
    }

    /// Whether the order of events can change, so that the gate is needed behind the program's
    /// enrichers. The built-in ones leave every start with its end.
    pub fn structural(&self) -> bool {
        !self.user.is_empty()
    }

    /// Runs the program's enrichers.
    ///
    /// # Errors
    ///
    /// The first error of an enricher; the batch is lost.
    pub fn enrich(
        &self,
        source: Option<&AgentEvent>,
        mut events: Vec<Event>,
        context: &EnrichContext<'_>,
    ) -> Result<Vec<Event>, EnrichError> {
        for (_, enricher) in &self.user.sorted {
            events = enricher.enrich(source, events, context)?;
        }
        Ok(events)
    }

    /// Runs the built-in enrichers on the spot; costs nothing when there are none.
    pub fn decorate(
        &self,
        source: Option<&AgentEvent>,
        events: &mut Vec<Event>,
        context: &EnrichContext<'_>,
    ) {
        for builtin in &self.builtin {
            builtin.apply(source, events, context);
        }
    }
}

#[cfg(test)]
mod tests;
