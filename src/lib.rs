//! `agentscope-agui`: serves AgentScope-style agents to any AG-UI front end.
//!
//! The rooms, in the order in which a request passes them: [`server`] (HTTP), [`runs`] (the
//! pipeline and the ledger), [`store`] (what outlives a run), [`agents`] (what is served), [`llm`] and [`tools`] (what the agent loop works with), [`process`] (programs that are started),
//! `agui_adapter` (agent events to AG-UI events). [`config`] and [`telemetry`] may be used by all of them; a lower room never imports
//! an upper one. See `ARCHITECTURE.md`.

pub mod agents;
pub mod cli;
pub mod config;
pub mod http_client;
pub mod llm;
pub mod process;
pub mod runs;
pub mod server;
pub mod store;
pub mod telemetry;
pub mod tools;
