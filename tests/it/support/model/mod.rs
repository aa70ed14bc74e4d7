//! An HTTP endpoint that the test plays, with every byte of its answers in the test's hand: a
//! model, whose wires stand in `openai`, `anthropic` and `gemini`, or a tool over HTTP.

mod answer;
pub(crate) mod anthropic;
mod connection;
pub(crate) mod dialect;
pub(crate) mod gemini;
pub(crate) mod openai;
mod tests;

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::JoinSet,
};

pub(crate) use answer::{Answer, Frame, Framing, Gate};

/// A running endpoint; it ends, and its connections with it, when it is dropped.
pub(crate) struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// What all connections share.
struct Shared {
    respond: Respond,
    requests: watch::Sender<Vec<Arc<Request>>>,
    /// Connections that are open.
    open: watch::Sender<usize>,
}

enum Respond {
    Queue(Mutex<VecDeque<Answer>>),
    Function(Box<dyn Fn(&Request) -> Answer + Send + Sync>),
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body as it came.
    pub(crate) text: String,
    /// The same as JSON; null if it is none.
    pub(crate) body: Value,
    fate: watch::Receiver<Fate>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The answer is not complete.
    Answering,
    /// It was written to its end, or to where it was to be cut.
    Answered,
    /// The client closed the connection before.
    Left,
}

impl Endpoint {
    /// Gives these answers, in the order in which requests come, and then 418.
    pub(crate) async fn answers(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::start(Respond::Queue(Mutex::new(answers.into_iter().collect()))).await
    }

    /// Answers what `respond` makes of each request.
    pub(crate) async fn with(respond: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::start(Respond::Function(Box::new(respond))).await
    }

    async fn start(respond: Respond) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (requests, open) = (watch::Sender::default(), watch::Sender::default());
        let shared = Arc::new(Shared { respond, requests, open });
        let mut tasks = JoinSet::new();
        tasks.spawn(connection::accept(listener, Arc::clone(&shared)));
        Self { address, shared, _tasks: tasks }
    }

    /// Where a path begins, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.requests.borrow().clone()
    }

    /// The bodies of the requests so far.
    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.shared.requests.borrow().iter().map(|request| request.body.clone()).collect()
    }

    /// The request of this number, counted from 0, as soon as it is there.
    pub(crate) async fn request(&self, number: usize) -> Arc<Request> {
        let mut requests = self.shared.requests.subscribe();
        let came = requests.wait_for(|requests| requests.len() > number).await.unwrap();
        Arc::clone(&came[number])
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        *self.shared.open.borrow()
    }

    /// Resolves when so many connections are open.
    pub(crate) async fn connections(&self, count: usize) {
        self.shared.open.subscribe().wait_for(|open| *open == count).await.unwrap();
    }
}

impl Request {
    /// The first header of this name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut of_name = self.headers.iter().filter(|(found, _)| found == name);
        of_name.next().map(|(_, value)| value.as_str())
    }

    /// Resolves when the answer is over; how it ended.
    pub(crate) async fn fate(&self) -> Fate {
        let mut fate = self.fate.clone();
        *fate.wait_for(|fate| *fate != Fate::Answering).await.unwrap()
    }
}

impl Shared {
    fn answer(&self, request: &Request) -> Answer {
        match &self.respond {
            Respond::Queue(queue) => {
                let none = || Answer::text(418, "no answer is left");
                queue.lock().unwrap().pop_front().unwrap_or_else(none)
            }
            Respond::Function(respond) => respond(request),
        }
    }
}

/// A port that refuses every connection: it is taken, and nobody listens.
pub(crate) struct Refusing(TcpSocket);

impl Refusing {
    pub(crate) fn new() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        Self(socket)
    }

    /// Where a path would begin, without a slash at its end.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }
}
