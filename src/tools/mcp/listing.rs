//! The list of an MCP server's tools.

use std::{collections::HashSet, sync::Arc};

use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        ClientRequest, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool,
        ToolAnnotations,
    },
};
use serde_json::{Value, json};

use crate::tools::ToolSpec;

/// Pages of a list at most: a server that always has one more must not keep a run waiting.
const MAX_PAGES: usize = 1_000;
/// Tools of a server at most.
const MAX_TOOLS: usize = 10_000;
/// Bytes of all of them at most, as JSON.
const MAX_BYTES: usize = 16 << 20;
/// Longest name of a tool, in bytes.
const MAX_NAME: usize = 256;
/// So many of the tools that are left out are named in the log.
const NAMED: usize = 20;

/// What a server has.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// In its order.
    pub(super) tools: Arc<[ToolSpec]>,
    /// Those that cannot be offered.
    pub(super) left_out: Vec<LeftOut>,
}

/// A tool that cannot be offered, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LeftOut {
    tool: String,
    fault: &'static str,
}

impl Listing {
    /// Logs what is left out.
    pub(super) fn log(&self, server: &str) {
        for LeftOut { tool, fault } in self.left_out.iter().take(NAMED) {
            let tool = tool.get(..tool.floor_char_boundary(MAX_NAME)).unwrap_or_default();
            tracing::warn!(mcp.server = server, tool, fault, "a tool is left out");
        }
        let more = self.left_out.len().saturating_sub(NAMED);
        if more > 0 {
            tracing::warn!(mcp.server = server, more, "tools are left out");
        }
    }
}

/// All tools of a server.
pub(super) async fn list(peer: &Peer<RoleClient>) -> Result<Listing, ServiceError> {
    if peer.peer_info().is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok(Listing::default());
    }
    let mut gathered = Gathered::default();
    let mut cursor = None;
    for _page in 0..MAX_PAGES {
        let (tools, next) = page(peer, cursor.clone()).await?;
        for tool in tools {
            if !gathered.add(tool) {
                return Ok(gathered.listing());
            }
        }
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    Ok(gathered.listing())
}

/// The tools so far.
#[derive(Default)]
struct Gathered {
    specs: Vec<ToolSpec>,
    names: HashSet<String>,
    left_out: Vec<LeftOut>,
    bytes: usize,
}

impl Gathered {
    /// `false` = it is one too many, and so is what follows.
    fn add(&mut self, tool: Value) -> bool {
        self.bytes = self.bytes.saturating_add(tool.to_string().len());
        let count = self.specs.len() + self.left_out.len();
        let fits = count < MAX_TOOLS && self.bytes <= MAX_BYTES;
        let (tool, fault) = match spec(tool) {
            Ok(spec) if !fits => (spec.name, "there are too many, and none behind it is read"),
            Ok(spec) if self.names.insert(spec.name.clone()) => {
                self.specs.push(spec);
                return true;
            }
            Ok(spec) => (spec.name, "it is listed twice"),
            Err(fault) => fault,
        };
        self.left_out.push(LeftOut { tool, fault });
        fits
    }

    fn listing(self) -> Listing {
        Listing { tools: self.specs.into(), left_out: self.left_out }
    }
}

/// Tools as they came. One that is wrong spoils the whole answer for `rmcp`, which then keeps it
/// as it is.
async fn page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
) -> Result<(Vec<Value>, Option<String>), ServiceError> {
    let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
    let request = ListToolsRequest { params, ..Default::default() };
    let answer = peer.send_request(ClientRequest::ListToolsRequest(request)).await?;
    match answer {
        ServerResult::ListToolsResult(result) => {
            let tools = result.tools.into_iter().map(|tool| json!(tool));
            Ok((tools.collect(), result.next_cursor))
        }
        ServerResult::CustomResult(result) => {
            raw_page(result.0).ok_or(ServiceError::UnexpectedResponse)
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

fn raw_page(mut result: Value) -> Option<(Vec<Value>, Option<String>)> {
    let tools = match result.get_mut("tools")?.take() {
        Value::Array(tools) => tools,
        _ => return None,
    };
    let next = result.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
    Some((tools, next))
}

/// A tool as agents see it, or its name and what is wrong with it.
fn spec(tool: Value) -> Result<ToolSpec, (String, &'static str)> {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() {
        return Err((name, "it has no name"));
    }
    if name.len() > MAX_NAME {
        return Err((name, "its name is too long"));
    }
    // People read it when they are asked for their consent.
    if name.chars().any(char::is_control) {
        return Err((name, "its name has control characters"));
    }
    if !tool.get("inputSchema").is_some_and(Value::is_object) {
        return Err((name, "its inputSchema is no object"));
    }
    let Ok(tool) = serde_json::from_value::<Tool>(tool) else {
        return Err((name, "it is not understood"));
    };
    let mut parameters = Arc::unwrap_or_clone(tool.input_schema);
    match parameters.get("type").map(|of| of == "object") {
        Some(true) => {}
        Some(false) => return Err((name, "its arguments are no object")),
        None => {
            parameters.insert("type".to_owned(), "object".into());
        }
    }
    let ToolAnnotations { read_only_hint, destructive_hint, .. } =
        tool.annotations.unwrap_or_default();
    let read_only = read_only_hint == Some(true);
    Ok(ToolSpec {
        name,
        description: tool.description.map(Into::into).or(tool.title).unwrap_or_default(),
        parameters: Arc::new(Value::Object(parameters)),
        read_only,
        // Of a tool that changes nothing the hint has no meaning.
        destructive: !read_only && destructive_hint == Some(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_taken_over_with_its_hints() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let declared = json!({
            "name": "drop", "title": "Drop", "description": "Drops a table", "inputSchema": schema,
            "annotations": {"destructiveHint": true},
        });
        let expected = ToolSpec {
            name: "drop".to_owned(),
            description: "Drops a table".to_owned(),
            parameters: Arc::new(schema),
            read_only: false,
            destructive: true,
        };
        assert_eq!(spec(declared), Ok(expected));
    }

    #[test]
    fn what_is_not_declared_is_neither_read_only_nor_destructive() {
        let hints = |annotations: Value| {
            let tool = json!({"name": "t", "inputSchema": {}, "annotations": annotations});
            let spec = spec(tool).unwrap();
            (spec.read_only, spec.destructive, spec.parameters)
        };
        let object = Arc::new(json!({"type": "object"}));
        assert_eq!(hints(json!({})), (false, false, object.clone()));
        let both = json!({"readOnlyHint": true, "destructiveHint": true});
        assert_eq!(hints(both), (true, false, object));
    }

    #[test]
    fn a_tool_that_cannot_be_offered_is_named() {
        let fault = |tool: Value| spec(tool).unwrap_err();
        let name = || "t".to_owned();
        assert_eq!(fault(json!({"inputSchema": {}})), (String::new(), "it has no name"));
        for (name, is_wrong) in [
            ("a\u{1b}[2J".to_owned(), "its name has control characters"),
            ("x".repeat(MAX_NAME + 1), "its name is too long"),
        ] {
            assert_eq!(fault(json!({"name": name, "inputSchema": {}})), (name, is_wrong));
        }
        assert_eq!(
            fault(json!({"name": "t", "inputSchema": "no"})),
            (name(), "its inputSchema is no object")
        );
        assert_eq!(
            fault(json!({"name": "t", "inputSchema": {"type": "array"}})),
            (name(), "its arguments are no object")
        );
        assert_eq!(
            fault(json!({"name": "t", "inputSchema": {}, "description": 1})),
            (name(), "it is not understood")
        );
    }
    #[test]
    fn a_list_has_an_end() {
        let tool = |name: String, description: String| json!({"name": name, "inputSchema": {}, "description": description});
        let too_many = "there are too many, and none behind it is read";
        let mut gathered = Gathered::default();
        let taken = (0..).take_while(|at| gathered.add(tool(format!("t{at}"), String::new())));
        assert_eq!(taken.count(), MAX_TOOLS);
        let last = LeftOut { tool: format!("t{MAX_TOOLS}"), fault: too_many };
        assert_eq!((gathered.specs.len(), gathered.left_out), (MAX_TOOLS, vec![last]));
        let mut gathered = Gathered::default();
        assert!(gathered.add(tool("small".to_owned(), String::new())));
        assert!(!gathered.add(tool("large".to_owned(), "x".repeat(MAX_BYTES))));
        let last = LeftOut { tool: "large".to_owned(), fault: too_many };
        assert_eq!((gathered.specs.len(), gathered.left_out), (1, vec![last]));
    }
}
