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

/// All tools of a server, in its order. A tool that cannot be offered is left out and logged.
pub(super) async fn list(
    server: &str,
    peer: &Peer<RoleClient>,
) -> Result<Arc<[ToolSpec]>, ServiceError> {
    if peer.peer_info().is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok(Arc::default());
    }
    let mut specs = Vec::new();
    let mut names = HashSet::new();
    let mut cursor = None;
    for _page in 0..MAX_PAGES {
        let (tools, next) = page(peer, cursor.clone()).await?;
        for tool in tools {
            match spec(tool) {
                Ok(spec) if names.insert(spec.name.clone()) => specs.push(spec),
                Ok(spec) => {
                    tracing::warn!(mcp.server = server, tool = spec.name, "a tool is listed twice");
                }
                Err((tool, fault)) => {
                    tracing::warn!(mcp.server = server, tool, fault, "a tool is left out");
                }
            }
        }
        if next.is_none() || next == cursor {
            break;
        }
        cursor = next;
    }
    Ok(specs.into())
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
}
