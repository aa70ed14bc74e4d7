use std::fs;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::*;

/// A server that answers one request after the other, each with the next answer, and gives the
/// lines of the requests.
async fn serve(answers: Vec<String>) -> (String, impl Future<Output = Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let served = async move {
        let mut lines = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut read = Vec::new();
            while !read.ends_with(b"\r\n\r\n") {
                read.push(stream.read_u8().await.unwrap());
            }
            let head = String::from_utf8(read).unwrap();
            lines.push(head.lines().next().unwrap().to_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        lines
    };
    (address, served)
}

fn answer(status: u16, headers: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n{headers}\r\n")
}

/// A client in an environment that names proxies.
fn client(variables: &[(&str, &str)], redirects: Redirects) -> reqwest::Client {
    let find = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    build_in(&[], redirects, find).unwrap()
}

#[tokio::test]
async fn what_is_on_the_same_machine_is_never_asked_through_a_proxy() {
    let proxy = "http://192.0.2.1:9";
    let variables = [
        ("HTTP_PROXY", proxy),
        ("http_proxy", proxy),
        ("ALL_PROXY", proxy),
        ("NO_PROXY", "a.test"),
    ];
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "127.1"] {
        let (address, served) = serve(vec![answer(200, "")]).await;
        let (_, port) = address.split_once(':').unwrap();
        let url = format!("http://{host}:{port}/x");
        let sent = client(&variables, Redirects::None).get(&url).send();
        let (sent, lines) = tokio::join!(sent, served);
        assert_eq!(sent.unwrap().status(), 200, "{host}");
        assert_eq!(lines, ["GET /x HTTP/1.1"]);
    }
}

#[tokio::test]
async fn the_rest_is_asked_through_the_proxy_that_the_environment_names() {
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        let (address, served) = serve(vec![answer(200, "")]).await;
        let proxy = format!("http://{address}");
        let sent =
            client(&[(name, &proxy)], Redirects::None).get("http://example.invalid/x").send();
        let (sent, lines) = tokio::join!(sent, served);
        assert_eq!(sent.unwrap().status(), 200, "{name}");
        assert_eq!(lines, ["GET http://example.invalid/x HTTP/1.1"]);
    }
    let (address, served) = serve(vec![answer(403, "")]).await;
    let proxy = format!("http://{address}");
    let sent =
        client(&[("HTTPS_PROXY", &proxy)], Redirects::None).get("https://example.invalid/").send();
    let (sent, lines) = tokio::join!(sent, served);
    assert!(sent.is_err());
    assert_eq!(lines, ["CONNECT example.invalid:443 HTTP/1.1"]);
}

#[test]
fn a_proxy_that_is_none_is_ignored() {
    let named = |value: &'static str| {
        proxies(move |name| (name == "HTTP_PROXY").then(|| value.to_owned())).len()
    };
    assert_eq!(named("http://proxy.test:3128"), 1);
    assert_eq!(named("proxy.test:3128"), 1);
    assert_eq!(named("socks5h://proxy.test"), 1);
    assert_eq!(named(""), 0);
    assert_eq!(named("http://"), 0);
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_they_may() {
    let (address, served) = serve(vec![answer(307, "Location: /b\r\n"), answer(200, "")]).await;
    let client_ = client(&[], Redirects::SameHost);
    let (sent, lines) = tokio::join!(client_.get(format!("http://{address}/a")).send(), served);
    assert_eq!(sent.unwrap().status(), 200);
    assert_eq!(lines, ["GET /a HTTP/1.1", "GET /b HTTP/1.1"]);
    for (redirects, location) in [
        (Redirects::SameHost, "http://192.0.2.1:9/"),
        (Redirects::SameHost, "https://127.0.0.1:1/"),
        (Redirects::None, "/b"),
    ] {
        let (address, served) =
            serve(vec![answer(302, &format!("Location: {location}\r\n"))]).await;
        let url = format!("http://{address}/a");
        let client = client(&[], redirects);
        let (sent, _) = tokio::join!(client.get(url).send(), served);
        assert_eq!(sent.unwrap().status(), 302, "{location}");
    }
    let (address, served) = serve(vec![answer(307, "Location: /a\r\n"); MAX_REDIRECTS + 1]).await;
    let (sent, lines) = tokio::join!(client_.get(format!("http://{address}/a")).send(), served);
    assert_eq!(sent.unwrap().status(), 307);
    assert_eq!(lines.len(), MAX_REDIRECTS + 1);
}

#[test]
fn a_bad_ca_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let failure = |text: &str| {
        fs::write(&path, text).unwrap();
        build(std::slice::from_ref(&path), Redirects::None).unwrap_err().to_string()
    };
    let name = path.display();
    assert_eq!(failure("hello"), format!("the CA file {name} holds no certificate"));
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    assert_eq!(failure(cut), format!("the CA file {name} is no valid PEM file"));
    let none = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert_eq!(failure(none), format!("the CA file {name} holds a certificate that is none"));
    let missing = folder.path().join("missing.pem");
    let error = build(std::slice::from_ref(&missing), Redirects::None).unwrap_err();
    assert_eq!(error.to_string(), format!("the CA file {} cannot be read", missing.display()));
}
