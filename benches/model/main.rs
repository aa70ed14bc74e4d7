//! What a run behind a model costs beside the least that could be done: `cargo bench --bench model`.
//!
//! The program itself and a bare proxy, a process each, read the same model over HTTP, by turns.
//! Figures are ratios; absolute ones would be those of a machine.

mod bare;
mod client;
mod mock;
mod process;

use std::{
    error::Error,
    io::{Write, stdout},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::runtime::Runtime;

use self::{client::Run, mock::Way, process::Server};

type Done<T> = Result<T, Box<dyn Error>>;

/// Times that each server is measured; the medians count.
const ROUNDS: usize = 7;

/// Streams that are held open.
const HELD: usize = 2_000;

fn main() -> Done<()> {
    // `cargo bench` has words of its own.
    if let [word, model] = std::env::args().skip(1).collect::<Vec<_>>().as_slice()
        && word == bare::WORD
    {
        return bare::serve(model);
    }
    let model = mock::start()?;
    let (ours, bare) = (Server::ours(&model)?, Server::bare(&model)?);
    let runtime = Runtime::new()?;
    let mut table = Table::new();
    let started = ours.started;
    runtime.block_on(async {
        client::run(ours.address, "burst", 0).await?;
        table.limit("resident after the first run", mib(ours.resident()?), "10 MiB");
        for way in Way::ALL {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            for round in 0..ROUNDS {
                first.push(measured(&ours, way, round).await?);
                second.push(measured(&bare, way, round).await?);
            }
            table.way(way, &first, &second);
        }
        let (held, least) = (held(&ours).await?, held(&bare).await?);
        table.row("held stream behind a silent model", kib(held), kib(least), ratio(held, least));
        Done::Ok(())
    })?;
    table.limit("start to listening", millis(started), "100 ms");
    table.limit("the program", mib(process::program_size()?), "");
    stdout().write_all(table.0.as_bytes())?;
    runtime.shutdown_background();
    Ok(())
}

/// What one server needs for many runs.
struct Measured {
    cpu: Duration,
    chunks: f64,
    first: Duration,
    delay: Duration,
}

async fn measured(server: &Server, way: Way, round: usize) -> Done<Measured> {
    let threads = (0..way.runs()).map(|run| round * way.runs() + run);
    let before = server.cpu()?;
    let runs: Vec<Run> = stream::iter(threads)
        .map(|thread| client::run(server.address, way.path(), thread))
        .buffer_unordered(way.at_once())
        .collect::<Vec<_>>()
        .await
        .into_iter()
        .collect::<Done<_>>()?;
    let cpu = server.cpu()?.saturating_sub(before) / u32::try_from(runs.len())?;
    let chunks = runs.iter().map(|run| run.chunks).sum::<usize>() as f64 / runs.len() as f64;
    let first = median(runs.iter().map(|run| run.first));
    let delay = median(runs.iter().flat_map(|run| run.delays.iter().copied()));
    Ok(Measured { cpu, chunks, first, delay })
}

/// Resident bytes for every held stream.
async fn held(server: &Server) -> Done<usize> {
    let hold = |thread| client::hold(server.address, "stalled", thread);
    let mut streams = Vec::new();
    for thread in 0..100 {
        streams.push(hold(thread).await?);
    }
    let before = server.resident()?;
    for thread in 100..100 + HELD {
        streams.push(hold(thread).await?);
    }
    Ok(server.resident()?.saturating_sub(before) / HELD)
}

fn median<T: Ord + Copy + Default>(all: impl IntoIterator<Item = T>) -> T {
    let mut all: Vec<T> = all.into_iter().collect();
    all.sort();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

/// The lines that are printed.
struct Table(String);

impl Table {
    fn new() -> Self {
        let mut table = Self(String::new());
        table.row("", "this".to_owned(), "bare".to_owned(), "ratio".to_owned());
        table
    }

    fn row(&mut self, what: &str, ours: String, least: String, ratio: String) {
        self.0.push_str(&format!("{what:<52} {ours:>10} {least:>10} {ratio:>6}\n"));
    }

    fn limit(&mut self, what: &str, ours: String, limit: &str) {
        self.row(what, ours, String::new(), String::new());
        if !limit.is_empty() {
            self.0.insert_str(self.0.len() - 1, &format!(" of {limit}"));
        }
    }

    fn way(&mut self, way: Way, ours: &[Measured], bare: &[Measured]) {
        let name = way.path();
        let mut times = |what, of: fn(&Measured) -> Duration| {
            let [ours, bare] = [ours, bare].map(|all| median(all.iter().map(of)));
            let both = format!("{:.2}", ours.as_secs_f64() / bare.as_secs_f64());
            self.row(&format!("{name}: {what}"), micros(ours), micros(bare), both);
        };
        times("processor time of a run", |one| one.cpu);
        times("first delta, from the request on", |one| one.first);
        times("a delta, from the model to the client", |one| one.delay);
        let mean = |all: &[Measured]| {
            all.iter().map(|one| one.chunks).sum::<f64>() / all.len().max(1) as f64
        };
        let (ours, bare) = (mean(ours), mean(bare));
        let both = format!("{:.2}", ours / bare);
        self.row(&format!("{name}: writes of a run"), number(ours), number(bare), both);
    }
}

fn ratio(ours: usize, least: usize) -> String {
    format!("{:.2}", ours as f64 / least as f64)
}

fn number(number: f64) -> String {
    format!("{number:.1}")
}

fn micros(time: Duration) -> String {
    format!("{:.0} us", time.as_secs_f64() * 1e6)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn kib(bytes: usize) -> String {
    format!("{:.1} KiB", bytes as f64 / 1024.0)
}

fn mib(bytes: usize) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
