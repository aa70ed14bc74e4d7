//! The log of a test, as text.

use std::{
    io,
    sync::{Arc, Mutex, OnceLock},
};

use tracing::{Dispatch, subscriber::DefaultGuard};

/// As long as there is one subscriber only, `tracing` takes the first thread that comes to a line
/// of the log for all of them, and a line that another test came to is never logged again.
static ANOTHER: OnceLock<Dispatch> = OnceLock::new();

/// What this thread logs from here on. Only for tests whose runtime
/// has one thread.
pub(crate) struct Captured {
    text: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

impl Captured {
    pub(crate) fn start() -> Self {
        Self::at(tracing::Level::TRACE)
    }

    /// Only what is logged at this level or a graver one.
    pub(crate) fn at(level: tracing::Level) -> Self {
        ANOTHER.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
        let text = Arc::new(Mutex::new(Vec::new()));
        let sink = Sink(Arc::clone(&text));
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_ansi(false)
            .with_writer(move || sink.clone())
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap()
    }
}

#[derive(Clone)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
