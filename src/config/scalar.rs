//! One piece of text to one typed value. Says what a text means, never where it stood.

use config::ValueKind;

use super::schema::{Kind, canonical};

/// Longest duration: ten years. Times beyond what clocks and dates can hold are slips.
pub const LONGEST_MS: i64 = 10 * 365 * 86_400_000;

/// The value of a text, or `None` when the text is not of this kind. Durations become
/// milliseconds, sizes bytes, choices the listed name.
pub fn parse(kind: &Kind, text: &str) -> Option<ValueKind> {
    match kind {
        Kind::Bool => boolean(text).map(ValueKind::Boolean),
        Kind::Int { min, max } => {
            let number: i64 = text.trim().parse().ok()?;
            (*min..=*max).contains(&number).then_some(ValueKind::I64(number))
        }
        Kind::Duration => duration_ms(text).filter(|ms| *ms <= LONGEST_MS).map(ValueKind::I64),
        Kind::Size => size_bytes(text).map(ValueKind::I64),
        Kind::Text | Kind::Verbatim | Kind::Any => Some(ValueKind::String(text.to_owned())),
        Kind::Choice(names) => names
            .iter()
            .find(|name| canonical(name) == canonical(text.trim()))
            .map(|name| ValueKind::String((*name).to_owned())),
        Kind::List(_) | Kind::Map(_) | Kind::Struct(_) | Kind::Variants(_) => None,
    }
}

/// The words that Spring takes for a boolean.
fn boolean(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Milliseconds of `10m`, `1h30m`, `PT10M` or a plain number of milliseconds.
fn duration_ms(text: &str) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    if let Ok(ms) = text.parse::<i64>() {
        return (ms >= 0).then_some(ms);
    }
    match text.strip_prefix('p') {
        Some(iso) => iso_duration_ms(iso),
        None => sum_of_parts(&text, |unit| match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" => Some(60_000),
            "h" => Some(3_600_000),
            "d" => Some(86_400_000),
            _ => None,
        }),
    }
}

/// The part of an ISO 8601 duration behind its `P`; days and smaller, as in Java.
fn iso_duration_ms(iso: &str) -> Option<i64> {
    let (date, time) = match iso.split_once('t') {
        Some((_, "")) => return None,
        Some((date, time)) => (date, time),
        None if iso.is_empty() => return None,
        None => (iso, ""),
    };
    let days = sum_of_parts_or_zero(date, |unit| (unit == "d").then_some(86_400_000))?;
    let rest = sum_of_parts_or_zero(time, |unit| match unit {
        "h" => Some(3_600_000),
        "m" => Some(60_000),
        "s" => Some(1_000),
        _ => None,
    })?;
    days.checked_add(rest)
}

fn sum_of_parts_or_zero(text: &str, unit_ms: impl Fn(&str) -> Option<i64>) -> Option<i64> {
    if text.is_empty() { Some(0) } else { sum_of_parts(text, unit_ms) }
}

/// The sum of `<number><unit>` parts; a number may have a fraction of up to three digits.
fn sum_of_parts(text: &str, unit_ms: impl Fn(&str) -> Option<i64>) -> Option<i64> {
    let mut rest = text;
    let mut sum: i64 = 0;
    loop {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(unit_end)?;
        sum = sum.checked_add(scaled(number, unit_ms(unit)?)?)?;
        if tail.is_empty() {
            return Some(sum);
        }
        rest = tail;
    }
}

fn scaled(number: &str, unit_ms: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.is_empty() || fraction.len() > 3 {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let thousandths: i64 = format!("{fraction:0<3}").parse().ok()?;
    whole.checked_mul(unit_ms)?.checked_add(thousandths.checked_mul(unit_ms)? / 1_000)
}

/// Bytes of `16MiB`, `16MB` (the same, as in Spring) or a plain number.
fn size_bytes(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(digits)?;
    let factor: i64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" | "kb" => 1 << 10,
        "mib" | "mb" => 1 << 20,
        "gib" | "gb" => 1 << 30,
        _ => return None,
    };
    let bytes = number.parse::<i64>().ok()?.checked_mul(factor)?;
    (bytes > 0).then_some(bytes)
}

/// What YAML takes an unquoted scalar for.
#[derive(Debug, PartialEq)]
pub enum Looks {
    /// Nothing.
    Null,
    /// true or false.
    Bool(bool),
    /// A number that can be held exactly.
    Number(serde_json::Number),
    /// A number that cannot be held exactly, or one in another base.
    OddNumber,
    /// Text.
    Text,
}

/// What YAML takes an unquoted scalar for.
pub fn looks(text: &str) -> Looks {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Looks::Null,
        "true" | "True" | "TRUE" => return Looks::Bool(true),
        "false" | "False" | "FALSE" => return Looks::Bool(false),
        ".inf" | ".Inf" | ".INF" | "-.inf" | "-.Inf" | "-.INF" | "+.inf" | ".nan" | ".NaN"
        | ".NAN" => return Looks::OddNumber,
        _ => {}
    }
    let body = text.trim_start_matches(['-', '+']);
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Looks::Text;
    }
    let based = |prefix: &str, radix: u32| {
        body.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    if based("0x", 16) || based("0o", 8) {
        return Looks::OddNumber;
    }
    if text.parse::<f64>().is_err() {
        return Looks::Text;
    }
    match text.parse::<serde_json::Number>() {
        Ok(number) if number.is_f64() && body.chars().all(|c| c.is_ascii_digit()) => {
            Looks::OddNumber
        }
        Ok(number) => Looks::Number(number),
        Err(_) => Looks::OddNumber,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let good = [
            ("10m", 600_000),
            ("PT10M", 600_000),
            ("pt1h30m", 5_400_000),
            ("P1DT1S", 86_401_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1_500),
            ("PT0.25S", 250),
            ("250ms", 250),
            ("600000", 600_000),
            ("0", 0),
            ("0s", 0),
        ];
        for (text, ms) in good {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "-1", "m", "10 minutes", "10x", "P", "PT", "PT10", "1M2", "P1M", "1.s"] {
            assert_eq!(duration_ms(text), None, "{text}");
        }
        assert_eq!(duration_ms("9223372036854775807d"), None);
    }

    #[test]
    fn a_duration_has_at_most_ten_years() {
        assert_eq!(parse(&Kind::Duration, "3650d"), Some(ValueKind::I64(LONGEST_MS)));
        assert_eq!(parse(&Kind::Duration, "315360000001"), None);
    }

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("16MiB"), Some(16 << 20));
        assert_eq!(size_bytes("16 mb"), Some(16 << 20));
        assert_eq!(size_bytes("512"), Some(512));
        for text in ["", "0", "-1", "16M", "1.5MiB", "MiB", "9223372036854775807GiB"] {
            assert_eq!(size_bytes(text), None, "{text}");
        }
    }

    #[test]
    fn booleans_and_choices() {
        assert_eq!(boolean("TRUE"), Some(true));
        assert_eq!(boolean("off"), Some(false));
        assert_eq!(boolean("maybe"), None);
        let kind = Kind::Choice(&["MERGE_FRONTEND_PRIORITY", "AGENT_ONLY"]);
        let merge = Some(ValueKind::String("MERGE_FRONTEND_PRIORITY".into()));
        assert_eq!(parse(&kind, "merge-frontend-priority"), merge);
        assert_eq!(parse(&kind, "mergeFrontendPriority"), merge);
        assert_eq!(parse(&kind, "both"), None);
    }

    #[test]
    fn what_yaml_takes_for_a_number() {
        for text in ["4.10", "1e3", "12", "-3", ".5"] {
            assert!(!matches!(looks(text), Looks::Text | Looks::Null), "{text}");
        }
        for text in ["0123", "0x1F", "12345678901234567890123", ".nan"] {
            assert_eq!(looks(text), Looks::OddNumber, "{text}");
        }
        for text in ["1.2.3", "10m", "127.0.0.1", "yes", "a", "-", "."] {
            assert_eq!(looks(text), Looks::Text, "{text}");
        }
    }
}
