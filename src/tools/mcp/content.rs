//! What a tool gave back, in AgentScope's blocks.

use agui_adapter::model::{
    event::ResultState,
    msg::{Block, MediaKind, MediaSource},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};

use crate::tools::ToolEnd;

/// How much text of a result is taken, in bytes; more is no use to a model.
const MAX_TEXT: usize = 1 << 20;

/// The end of a call that has a result.
pub(super) fn end(result: CallToolResult) -> ToolEnd {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let mut output: Vec<Block> = content.into_iter().filter_map(block).collect();
    // With content beside it, the content says the same.
    if output.is_empty()
        && let Some(value) = structured_content
    {
        output.push(Block::Text { text: value.to_string() });
    }
    let output = bounded(output);
    let state = if is_error == Some(true) { ResultState::Error } else { ResultState::Success };
    ToolEnd::Result { output, state }
}

/// With no more text than a result may have.
fn bounded(output: Vec<Block>) -> Vec<Block> {
    let mut room = MAX_TEXT;
    let mut bounded = Vec::with_capacity(output.len());
    for block in output {
        let Block::Text { text } = block else {
            bounded.push(block);
            continue;
        };
        let length = text.len();
        if length <= room {
            room -= length;
            bounded.push(Block::Text { text });
            continue;
        }
        let mut text = cut(text, room);
        text.push_str(&format!("\n[cut: the result is longer than {MAX_TEXT} bytes]"));
        bounded.push(Block::Text { text });
        break;
    }
    bounded
}

/// The beginning of a text that is too long.
pub(super) fn cut(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}

fn block(content: ContentBlock) -> Option<Block> {
    Some(match content {
        ContentBlock::Text(text) => Block::Text { text: text.text },
        ContentBlock::Image(image) => media(MediaKind::Image, image.mime_type, image.data, None),
        ContentBlock::Audio(audio) => media(MediaKind::Audio, audio.mime_type, audio.data, None),
        ContentBlock::Resource(embedded) => resource(embedded.resource)?,
        ContentBlock::ResourceLink(link) => Block::Text { text: describe(&link) },
        // A kind of a later protocol.
        _ => return None,
    })
}

fn resource(resource: ResourceContents) -> Option<Block> {
    Some(match resource {
        ResourceContents::TextResourceContents { text, .. } => Block::Text { text },
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let media_type = mime_type.unwrap_or_default();
            media(MediaKind::of(&media_type), media_type, blob, file_name(&uri))
        }
        _ => return None,
    })
}

/// What is no base64 is told, not passed on: no provider takes it, so every later call of the
/// model would fail.
fn media(kind: MediaKind, media_type: String, data: String, name: Option<String>) -> Block {
    if data.is_empty() || STANDARD.decode(&data).is_err() {
        let text = "[a medium that cannot be read: its data is no base64]".to_owned();
        return Block::Text { text };
    }
    let source = MediaSource::Base64 { media_type, data };
    Block::Media { kind, source, name, metadata: None }
}

/// The last part of a path.
fn file_name(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next()?;
    path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

/// A link in words that a model can use.
fn describe(link: &Resource) -> String {
    let mut text = format!("Resource {}: {}", link.name, link.uri);
    if let Some(media_type) = &link.mime_type {
        text.push_str(&format!(" ({media_type})"));
    }
    if let Some(description) = &link.description {
        text.push_str(&format!(" - {description}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn end_of(result: Value) -> ToolEnd {
        end(serde_json::from_value(result).unwrap())
    }

    fn base64(media_type: &str, data: &str) -> MediaSource {
        MediaSource::Base64 { media_type: media_type.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn every_kind_of_content_becomes_a_block_and_media_stay_media() {
        let result = json!({"content": [
            {"type": "text", "text": "hello"},
            {"type": "image", "mimeType": "image/png", "data": "aW1n"},
            {"type": "audio", "mimeType": "audio/wav", "data": "c25k"},
            {"type": "resource", "resource": {"uri": "a://b/c.txt", "text": "inside"}},
            {"type": "resource", "resource": {
                "uri": "a://b/c.pdf?x=1", "mimeType": "application/pdf", "blob": "cGRm",
            }},
            {"type": "resource_link", "uri": "a://b/d", "name": "d", "mimeType": "text/plain",
             "description": "The letter d"},
        ]});
        let media = |kind, source, name: Option<&str>| Block::Media {
            kind,
            source,
            name: name.map(str::to_owned),
            metadata: None,
        };
        let text = |text: &str| Block::Text { text: text.to_owned() };
        let output = vec![
            text("hello"),
            media(MediaKind::Image, base64("image/png", "aW1n"), None),
            media(MediaKind::Audio, base64("audio/wav", "c25k"), None),
            text("inside"),
            media(MediaKind::Document, base64("application/pdf", "cGRm"), Some("c.pdf")),
            text("Resource d: a://b/d (text/plain) - The letter d"),
        ];
        assert_eq!(end_of(result), ToolEnd::Result { output, state: ResultState::Success });
    }

    #[test]
    fn structured_content_counts_where_there_is_no_other() {
        let both =
            json!({"content": [{"type": "text", "text": "4"}], "structuredContent": {"n": 4}});
        assert_eq!(end_of(both), ToolEnd::text("4", ResultState::Success));
        let alone = json!({"content": [], "structuredContent": {"n": 4}});
        assert_eq!(end_of(alone), ToolEnd::text(r#"{"n":4}"#, ResultState::Success));
    }

    #[test]
    fn text_beyond_the_limit_is_cut_and_a_medium_that_is_none_is_told() {
        let text = |text: String| json!({"type": "text", "text": text});
        let result = json!({"content": [
            text("a".to_owned()),
            text("ä".repeat(MAX_TEXT / 2)),
            text("never read".to_owned()),
        ]});
        let cut = format!(
            "{}…\n[cut: the result is longer than {MAX_TEXT} bytes]",
            "ä".repeat(MAX_TEXT / 2 - 1)
        );
        let output = ["a".to_owned(), cut].map(|text| Block::Text { text }).to_vec();
        assert_eq!(end_of(result), ToolEnd::Result { output, state: ResultState::Success });
        let whole = json!({"content": [text("x".repeat(MAX_TEXT))]});
        assert_eq!(end_of(whole), ToolEnd::text("x".repeat(MAX_TEXT), ResultState::Success));
        for data in ["", "not base64!", "AA="] {
            let image = json!({"type": "image", "mimeType": "image/png", "data": data});
            assert_eq!(
                end_of(json!({"content": [image]})),
                ToolEnd::text(
                    "[a medium that cannot be read: its data is no base64]",
                    ResultState::Success
                )
            );
        }
    }

    #[test]
    fn an_error_is_a_result_in_that_state() {
        let result = json!({"content": [{"type": "text", "text": "no"}], "isError": true});
        assert_eq!(end_of(result), ToolEnd::text("no", ResultState::Error));
    }
}
