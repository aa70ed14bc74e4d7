//! What a program writes on stderr, in this server's log: line by line, cut, harmless, and not
//! more than a log can bear.

use std::{fmt::Write as _, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::Instant,
};

/// Longest part of a line that is logged, in bytes.
const MAX_LINE: usize = 2_000;
/// Lines that a program may log at once; a traceback fits.
const BURST: u32 = 200;
/// After so long, one more line may be logged.
const REFILL: Duration = Duration::from_millis(100);

/// Whose words they are; writes them into the log.
pub trait Speaker {
    /// It said this.
    fn says(&self, line: &str);

    /// It said so many lines more, which were not logged.
    fn was_cut(&self, lines: u64);
}

/// Logs a program's stderr.
#[derive(Debug)]
pub struct Log<R, S> {
    source: R,
    speaker: S,
    line: Cutter,
    allowance: Allowance,
    left_out: u64,
    last: Option<String>,
}

impl<R: AsyncRead + Unpin, S: Speaker> Log<R, S> {
    /// Logs what comes out of `source`, once it is [followed](Self::follow).
    pub fn new(source: R, speaker: S) -> Self {
        let allowance = Allowance { left: BURST, since: Instant::now() };
        let line = Cutter::default();
        Self { source, speaker, line, allowance, left_out: 0, last: None }
    }

    /// Reads to the end. May be dropped at any time.
    pub async fn follow(&mut self) {
        let mut chunk = [0; 4096];
        loop {
            // An error is an end as well: there is nothing more to be read.
            let count = self.source.read(&mut chunk).await.unwrap_or_default();
            for byte in chunk.iter().take(count) {
                if let Some(line) = self.line.push(*byte) {
                    self.say(line);
                }
            }
            if count == 0 {
                break;
            }
        }
        if let Some(line) = self.line.finish() {
            self.say(line);
        }
        self.tell_left_out();
    }

    /// The last line that was not blank.
    pub fn last(&mut self) -> Option<String> {
        self.last.take()
    }

    fn say(&mut self, line: String) {
        if line.trim().is_empty() {
            return;
        }
        if self.allowance.take(Instant::now()) {
            self.tell_left_out();
            self.speaker.says(&line);
        } else {
            self.left_out += 1;
        }
        self.last = Some(line);
    }

    fn tell_left_out(&mut self) {
        let lines = std::mem::take(&mut self.left_out);
        if lines > 0 {
            self.speaker.was_cut(lines);
        }
    }
}

/// Puts a line together and keeps its beginning only.
#[derive(Debug, Default)]
struct Cutter {
    kept: Vec<u8>,
    cut: bool,
}

impl Cutter {
    fn push(&mut self, byte: u8) -> Option<String> {
        match byte {
            b'\n' => return Some(self.take()),
            _ if self.kept.len() < MAX_LINE => self.kept.push(byte),
            _ => self.cut = true,
        }
        None
    }

    fn finish(&mut self) -> Option<String> {
        (!self.kept.is_empty()).then(|| self.take())
    }

    fn take(&mut self) -> String {
        let kept = std::mem::take(&mut self.kept);
        let mut line = harmless(String::from_utf8_lossy(&kept).trim_end());
        if std::mem::take(&mut self.cut) {
            line.push('…');
        }
        line
    }
}

/// Control characters could forge lines of the log or drive a terminal.
fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push(' '),
            _ if c.is_control() || is_bidi(c) => {
                // Writing to a String cannot fail.
                write!(out, "{}", c.escape_unicode()).ok();
            }
            _ => out.push(c),
        }
    }
    out
}

/// Characters that change the order in which others are shown.
fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A bucket of lines that fills again over time.
#[derive(Debug)]
struct Allowance {
    left: u32,
    since: Instant,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.since).as_millis() / REFILL.as_millis();
        let fresh = u32::try_from(passed).unwrap_or(BURST);
        if fresh > 0 {
            self.left = self.left.saturating_add(fresh).min(BURST);
            self.since = now;
        }
        let allowed = self.left > 0;
        self.left = self.left.saturating_sub(1);
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<String> {
        let mut cutter = Cutter::default();
        let mut lines: Vec<String> = text.iter().filter_map(|byte| cutter.push(*byte)).collect();
        lines.extend(cutter.finish());
        lines
    }

    #[test]
    fn lines_are_cut_and_made_harmless() {
        assert_eq!(
            lines(b"a\tb\r\n\x1b[31mred\x07\n\n\xffend"),
            ["a b", "\\u{1b}[31mred\\u{7}", "", "\u{fffd}end"]
        );
        assert_eq!(lines("a\u{202e}b\n".as_bytes()), ["a\\u{202e}b"]);
        let long = [vec![b'x'; MAX_LINE + 1], b"\nshort".to_vec()].concat();
        assert_eq!(lines(&long), [format!("{}…", "x".repeat(MAX_LINE)), "short".to_owned()]);
    }

    #[test]
    fn the_allowance_is_a_burst_that_fills_again() {
        let start = Instant::now();
        let mut allowance = Allowance { left: BURST, since: start };
        let taken = (0..BURST + 50).filter(|_| allowance.take(start)).count();
        assert_eq!(taken, BURST as usize);
        let later = start + REFILL * 3;
        assert_eq!((0..10).filter(|_| allowance.take(later)).count(), 3);
        let much_later = start + Duration::from_secs(86_400 * 365);
        let taken = (0..BURST + 50).filter(|_| allowance.take(much_later)).count();
        assert_eq!(taken, BURST as usize);
    }
}
