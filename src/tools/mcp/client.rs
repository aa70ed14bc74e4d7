//! This server as MCP servers see it.

use std::{sync::Arc, time::Duration};

use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
        FormElicitationCapability, Implementation,
    },
    service::{InboundStreamOrigin, RequestContext},
};
use tokio::{sync::oneshot, time::sleep};
use uuid::Uuid;

use super::{
    questions::{self, Question},
    tap::{Signal, Tap},
};
use crate::config::mcp_servers::Elicitation;

/// One connection's client.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) tap: Arc<Tap>,
    pub(super) elicitation: Elicitation,
    /// How long a question in the middle of a call may wait for its answer.
    pub(super) patience: Duration,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        // Declared in any case: without it no server of the new protocol asks.
        let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(forms);
        let name = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = questions::answer(None);
        if self.elicitation == Elicitation::Decline {
            return Ok(declined);
        }
        let Some((message, schema)) = questions::question(request) else { return Ok(declined) };
        let Some(call) = self.tap.asking(context.extensions.get::<InboundStreamOrigin>()) else {
            return Ok(declined);
        };
        let (answer, answered) = oneshot::channel();
        let id = Uuid::new_v4().simple().to_string();
        let question = Question { id: id.clone(), message, schema, answer };
        if !call.send(Signal::Asks(question)) {
            return Ok(declined);
        }
        let answer = tokio::select! {
            answer = answered => answer.unwrap_or(declined),
            () = sleep(self.patience) => declined,
            () = self.tap.gone.cancelled() => declined,
            () = context.ct.cancelled() => declined,
        };
        // Not answered: nobody can answer it any more, and the call is given up.
        drop(self.tap.take(&id));
        Ok(answer)
    }
}
