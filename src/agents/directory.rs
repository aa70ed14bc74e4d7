//! Which agents an agent may hand a task to. Agents are built one after the other, so each is
//! given the directory first and looks others up when it needs them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock, Weak},
};

use super::registry::Registered;

/// The agents by id.
pub(super) type Agents = BTreeMap<String, Registered>;

/// The agents of a registry, for those that are in it. Holds none of them: it is empty before the
/// registry is built and after it is gone.
#[derive(Clone, Debug, Default)]
pub struct Directory(Arc<OnceLock<Weak<Agents>>>);

impl Directory {
    /// The agent of this id.
    pub fn get(&self, id: &str) -> Option<Registered> {
        self.0.get()?.upgrade()?.get(id).cloned()
    }

    /// Names the agents, once.
    pub(super) fn fill(&self, agents: &Arc<Agents>) {
        self.0.get_or_init(|| Arc::downgrade(agents));
    }
}
