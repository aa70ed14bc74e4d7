//! The files that make the image are in step with the project; no engine is needed to see that.

use std::{fs, path::Path};

use yaml_rust2::{Yaml, YamlLoader};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The instructions of the Dockerfile, comments left out and continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let lines = read("Dockerfile");
    let lines: Vec<&str> =
        lines.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    joined
        .lines()
        .map(|line| words(line).split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap())
        .collect()
}

fn all(name: &str) -> Vec<String> {
    instructions().into_iter().filter(|(found, _)| found == name).map(|(_, rest)| rest).collect()
}

#[test]
fn the_image_is_built_with_the_toolchain_of_the_project() {
    let toolchain = read("rust-toolchain.toml");
    let version = toolchain.lines().find_map(|line| line.strip_prefix("channel = ")).unwrap();
    let version = version.trim_matches('"');
    let debian = "trixie";
    assert_eq!(
        all("FROM"),
        [format!("rust:{version}-slim-{debian} AS build"), format!("debian:{debian}-slim")]
    );
    assert!(all("ENV").contains(&format!("RUSTUP_TOOLCHAIN={version}")));
    let minor = version.rsplit_once('.').unwrap().0;
    assert!(read("Cargo.toml").contains(&format!("rust-version = \"{minor}\"")));
}

#[test]
fn what_the_image_copies_is_there_and_in_the_build_context() {
    let ignored = read(".dockerignore");
    let mut kept: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    kept.sort_unstable();
    assert_eq!(ignored.lines().next(), Some("*"));
    let mut copied: Vec<String> = Vec::new();
    for copy in all("COPY").iter().filter(|copy| !copy.starts_with("--from=")) {
        let (sources, _target) = copy.rsplit_once(' ').unwrap();
        copied.extend(sources.split(' ').map(str::to_owned));
    }
    copied.sort();
    assert_eq!(copied, kept);
    for path in copied {
        assert!(root().join(&path).exists(), "{path}");
    }
}

#[test]
fn the_image_starts_checks_and_stops_the_program() {
    let name = env!("CARGO_PKG_NAME");
    let exec = |words: &[&str]| serde_json::to_string(words).unwrap().replace(',', ", ");
    assert_eq!(all("ENTRYPOINT"), [exec(&[name])]);
    assert_eq!(all("CMD"), [exec(&["serve"])]);
    let health = all("HEALTHCHECK");
    assert_eq!(health.len(), 1);
    assert!(health[0].ends_with(&format!("CMD {}", exec(&[name, "health"]))));
    assert_eq!(all("STOPSIGNAL"), ["SIGTERM"]);
    assert_eq!(all("EXPOSE"), [agentscope_agui::config::ServerConfig::default().port.to_string()]);
    assert!(all("ENV").contains(&"SERVER_HOST=0.0.0.0".to_owned()));
    assert_eq!(all("USER"), ["10001:10001"]);
    let binary = format!("/usr/local/bin/{name}");
    assert!(all("COPY").contains(&format!("--from=build {binary} /usr/local/bin/")));
    // The base image has no certificate authorities, without which no model behind https is
    // reached.
    let authorities = "--from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/";
    assert!(all("COPY").contains(&authorities.to_owned()));
    assert!(all("RUN").iter().any(|run| run.contains(&format!("--bin {name} "))));
}

#[test]
fn the_composed_service_reads_a_file_that_the_program_looks_for() {
    let text = read("docker-compose.yml");
    let document = YamlLoader::load_from_str(&text).unwrap().remove(0);
    let service = &document["services"]["agentscope-agui"];
    let mount = &service["volumes"][0];
    assert_eq!(mount["source"].as_str(), Some("./agentscope.yaml"));
    assert_eq!(mount["target"].as_str(), Some("/etc/agentscope-agui/agentscope.yaml"));
    assert_eq!(mount["read_only"].as_bool(), Some(true));
    assert_eq!(mount["bind"]["create_host_path"].as_bool(), Some(false));
    assert_eq!(service["stop_grace_period"].as_str(), Some("30s"));
    assert_eq!(service["read_only"].as_bool(), Some(true));
    assert_eq!(service["build"].as_str(), Some("."));
    assert_eq!(service["ports"][0].as_str(), Some("127.0.0.1:8080:8080"));
    assert_eq!(service["security_opt"][0], Yaml::String("no-new-privileges:true".to_owned()));
}
