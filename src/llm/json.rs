//! JSON as models write it.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

/// Reads JSON in which halves of a UTF-16 pair may stand alone, as models that are cut in the
/// middle of a character write them; each becomes U+FFFD.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mend_surrogates(text) {
        Cow::Borrowed(_) => Err(error),
        Cow::Owned(mended) => serde_json::from_str(&mended),
    })
}

/// The text with every escape of half a pair replaced; borrowed if there is none.
fn mend_surrogates(text: &str) -> Cow<'_, str> {
    let mut mended = String::new();
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\\') {
        mended.push_str(before);
        let unit = unit(escape);
        let paired = unit.is_some_and(is_high)
            && escape
                .get(5..)
                .and_then(|behind| behind.strip_prefix('\\'))
                .and_then(self::unit)
                .is_some_and(is_low);
        let length = match unit {
            Some(_) if paired => 11,
            Some(_) => 5,
            // Also of `\\`, whose second half begins no escape.
            None => escape.chars().next().map_or(0, char::len_utf8),
        };
        let (escape, behind) = escape.split_at_checked(length).unwrap_or((escape, ""));
        if unit.is_some_and(|unit| is_high(unit) || is_low(unit)) && !paired {
            mended.push_str("\\ufffd");
        } else {
            mended.push('\\');
            mended.push_str(escape);
        }
        rest = behind;
    }
    mended.push_str(rest);
    if mended == text { Cow::Borrowed(text) } else { Cow::Owned(mended) }
}

/// The unit of an escape, which begins behind its backslash.
fn unit(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

fn is_high(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

fn is_low(unit: u16) -> bool {
    (0xdc00..0xe000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        parse(text).unwrap()
    }

    #[test]
    fn half_a_pair_becomes_a_replacement() {
        assert_eq!(read(r#""a\ud83cb""#), "a\u{fffd}b");
        assert_eq!(read(r#""\ude00""#), "\u{fffd}");
        assert_eq!(read(r#""\uD83D""#), "\u{fffd}");
        assert_eq!(read(r#""\ude00\ud83d""#), "\u{fffd}\u{fffd}");
        assert_eq!(read(r#""\ud83d\ud83d\ude00""#), "\u{fffd}😀");
        assert_eq!(read(r#""\ud83d\n""#), "\u{fffd}\n");
        assert_eq!(read(r#""\ud83d\\ude00""#), "\u{fffd}\\ude00");
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        assert_eq!(read(r#""\ud83d\ude00 \\ud83c \u0000 é""#), "😀 \\ud83c \0 é");
        assert_eq!(read(r#""\\\ud83c""#), "\\\u{fffd}");
    }

    #[test]
    fn other_faults_are_faults() {
        for text in [r#""\ud83"#, r#""\ud83x""#, r#""\"#, "", "{", r#""\é""#] {
            assert!(parse::<String>(text).is_err(), "{text}");
        }
    }
}
