//! The rules of the source tree that no compiler checks: which room may use which, how long a
//! file may be, and where tasks are spawned.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// What each room of `src` may use; rooms that are not named use none.
const MAY_USE: &[(&str, &[&str])] = &[
    ("config", &[]),
    ("telemetry", &[]),
    ("http_client", &["config"]),
    ("llm", &["config", "telemetry", "http_client"]),
    ("process", &[]),
    ("tools", &["config", "telemetry", "http_client", "process"]),
    ("agents", &["config", "telemetry", "http_client", "llm", "tools", "process"]),
    ("store", &[]),
    ("runs", &["config", "telemetry", "agents", "store"]),
    ("server", &["config", "telemetry", "agents", "store", "runs", "tools"]),
    ("cli", &["config", "telemetry", "agents", "store", "runs", "server"]),
    ("main", &["cli"]),
];

/// The longest a source file may be without its tests.
const MAX_LINES: usize = 500;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A source file with its tests and comments left out.
struct Source {
    path: PathBuf,
    /// Lines without tests, comments included.
    lines: usize,
    /// Text without tests and comments.
    code: String,
}

/// All source files below a folder that are not tests as a whole.
fn sources(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && !["tests", "benches", "target"].contains(&name) {
                folders.push(path);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                let text = fs::read_to_string(&path).unwrap();
                let tests = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
                let (text, _tests) = text.split_at(tests);
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let code = code.collect::<Vec<_>>().join("\n");
                let lines = text.lines().count();
                found.push(Source { path: path.strip_prefix(root()).unwrap().into(), lines, code });
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// The room of a file of `src`: its first folder, or the file's own name.
fn room(path: &Path) -> String {
    let first = path.strip_prefix("src").unwrap().components().next().unwrap();
    first.as_os_str().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// The rooms named behind `crate::`, groups in braces included.
fn used(code: &str) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let preceded = code.get(..at).and_then(|before| before.chars().next_back());
        if preceded.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = code.get(at + "crate::".len()..).unwrap();
        match rest.strip_prefix('{') {
            Some(group) => rooms.extend(group_heads(group)),
            None => rooms.extend(identifier(rest)),
        }
    }
    rooms
}

/// The first identifiers of a group's members: of `a::{b, c}, d}` those are a and d.
fn group_heads(group: &str) -> Vec<String> {
    let (mut depth, mut member, mut heads) = (0, String::new(), Vec::new());
    for c in group.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => {
                heads.extend(identifier(&member));
                member.clear();
            }
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth == 0 => member.push(c),
            _ => {}
        }
    }
    heads.extend(identifier(&member));
    heads
}

fn identifier(text: &str) -> Option<String> {
    let name: String =
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

#[test]
fn uses_are_read_out_of_every_form_of_path() {
    let code = "use crate::{\n    a::{b, c},\n    d,\n};\nuse crate::e::f;\nlet x = crate::g::h();\n\
                use agentscope_crate::no;\n$crate::i";
    let expected = ["a", "d", "e", "g", "i"].map(str::to_owned);
    assert_eq!(used(code), BTreeSet::from(expected));
}

#[test]
fn rooms_use_only_what_lies_below_them() {
    let mut faults = Vec::new();
    for source in sources("src") {
        let room = room(&source.path);
        if room == "lib" {
            continue;
        }
        let allowed = MAY_USE.iter().find(|(name, _)| *name == room).map(|(_, allowed)| *allowed);
        let Some(allowed) = allowed else {
            faults.push(format!("{}: the room {room} is not in the list", source.path.display()));
            continue;
        };
        // Names that are no rooms are macros and items of the crate's root.
        let rooms = used(&source.code)
            .into_iter()
            .filter(|name| MAY_USE.iter().any(|(room, _)| room == name) && *name != room);
        for used in rooms.filter(|name| !allowed.contains(&name.as_str())) {
            faults.push(format!("{}: {room} may not use {used}", source.path.display()));
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    let rooms = sources("src").into_iter().map(|source| room(&source.path));
    let rooms: BTreeSet<String> = rooms.filter(|room| room != "lib").collect();
    let listed = MAY_USE.iter().map(|(room, _)| (*room).to_owned()).collect();
    assert_eq!(rooms, listed);
}

#[test]
fn the_library_crates_do_no_io() {
    for (name, forbidden) in [
        ("agui-protocol", &["agui-adapter", "tokio", "axum", "hyper", "reqwest"][..]),
        ("agui-adapter", &["tokio", "axum", "hyper", "reqwest", "uuid"][..]),
    ] {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        let (_, dependencies) = manifest.split_once("[dependencies]\n").unwrap();
        let (dependencies, _) = dependencies.split_once("\n[").unwrap_or((dependencies, ""));
        let names = dependencies.lines().filter_map(|line| line.split([' ', '.', '=']).next());
        let found: Vec<&str> = names.filter(|name| forbidden.contains(name)).collect();
        assert_eq!(found, Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn no_source_file_is_longer_than_it_may_be() {
    let all = sources("src").into_iter().chain(sources("crates"));
    let long = all.filter(|source| source.lines > MAX_LINES);
    let long: Vec<_> = long.map(|source| (source.path, source.lines)).collect();
    assert_eq!(long, []);
}

#[test]
fn tasks_are_spawned_only_where_shutdown_knows_of_them() {
    let spawning = sources("src").into_iter().filter(|source| {
        // An agent's work beside its stream is spawned on the tracker of all runs.
        let code = &source
            .code
            .replace("request.background.spawn(", "")
            .replace("self.background.spawn_blocking(", "");
        let spawns = ["spawn(", "spawn_blocking(", "spawn_local("];
        spawns.iter().any(|spawn| code.contains(spawn))
    });
    // The body's reader waits for the one piece of work that it hands away; connections are
    // counted where they are accepted, and closed by the shutdown; a process is no task; a
    // calculation has a thread with a stack of its own, and ends in time or when nobody waits;
    // connections to MCP servers outlast runs, on the tracker of all runs and until they stop.
    let allowed = [
        "src/server/accept.rs",
        "src/server/body.rs",
        "src/process/program.rs",
        "src/tools/builtin/calculate.rs",
        "src/tools/mcp/server.rs",
    ];
    let elsewhere = spawning.map(|source| source.path).filter(|path| {
        !path.starts_with("src/runs") && !allowed.iter().any(|allowed| path == Path::new(allowed))
    });
    assert_eq!(elsewhere.collect::<Vec<_>>(), Vec::<PathBuf>::new());
}
