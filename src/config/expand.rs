//! Placeholders: `${VAR}`, `${VAR:default}`, and `$${` for a literal `${`.

use super::load::Environment;

/// Replaces the placeholders of a text. The error names what is missing or malformed, never a
/// value.
pub fn expand(text: &str, env: &Environment) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        if let Some(literal) = before.strip_suffix('$') {
            out.push_str(literal);
            out.push_str("${");
            rest = from.strip_prefix("${").unwrap_or_default();
            continue;
        }
        out.push_str(before);
        let body = from.strip_prefix("${").unwrap_or_default();
        let Some(end) = closing_brace(body) else {
            return Err("a placeholder `${` has no closing `}`; write `$${` for the characters \
                        themselves"
                .to_owned());
        };
        let (inner, tail) = body.split_at_checked(end).unwrap_or((body, ""));
        out.push_str(&resolve(inner, env)?);
        rest = tail.strip_prefix('}').unwrap_or_default();
    }
    out.push_str(rest);
    Ok(out)
}

/// The offset of the brace that closes a placeholder; defaults may hold placeholders.
fn closing_brace(body: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn resolve(inner: &str, env: &Environment) -> Result<String, String> {
    let (name, default) = match inner.split_once(':') {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    let valid = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !valid {
        return Err(format!(
            "`${{{name}}}` does not name an environment variable; write `$${{` for the characters \
             themselves"
        ));
    }
    match (env.get(name), default) {
        (Some(value), _) => Ok(value.to_owned()),
        (None, Some(default)) => expand(default, env),
        (None, None) => Err(format!(
            "the environment variable {name} is not set; set it, or give a default: \
             `${{{name}:default}}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<String, String> {
        expand(text, &[("A", "1"), ("EMPTY", "")].into_iter().collect())
    }

    #[test]
    fn placeholders_are_replaced() {
        assert_eq!(run("x${A}y${A}").unwrap(), "x1y1");
        assert_eq!(run("${B:two}").unwrap(), "two");
        assert_eq!(run("${B:}").unwrap(), "");
        assert_eq!(run("${B:http://${A}:${C:80}/}").unwrap(), "http://1:80/");
        assert_eq!(run("${EMPTY:x}").unwrap(), "");
        assert_eq!(run("$${A} and ${A}").unwrap(), "${A} and 1");
        assert_eq!(run("costs $5 {x}").unwrap(), "costs $5 {x}");
    }

    #[test]
    fn a_missing_variable_is_named() {
        assert_eq!(
            run("${NOPE}").unwrap_err(),
            "the environment variable NOPE is not set; set it, or give a default: `${NOPE:default}`"
        );
        assert!(run("${A").is_err());
        assert!(run("${a b}").is_err());
        assert!(run("${}").is_err());
    }
}
