//! The HTTP client of everything that the server asks of others: models, MCP servers, HTTP tools.
//!
//! It trusts the system's CAs and the configured ones, and takes the proxy that the environment
//! names, but never for what runs on the same machine. It has no limit on how long an answer
//! may take: answers are streams. Who calls knows how long silence may last.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use reqwest::{NoProxy, Proxy, redirect};
use rustls::{
    RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, pem, pem::PemObject as _},
};

mod roots;

use roots::SystemRoots;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// What is on the same machine, as a list of hosts without a proxy.
const LOOPBACK: &str = "localhost,localhost.,127.0.0.0/8,::1,::ffff:127.0.0.0/104";

/// Which redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Redirects {
    /// None: the redirect is the answer.
    None,
    /// Those that stay on scheme, host and port; others are the answer.
    SameHost,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// A CA file that cannot be read.
    #[error("the CA file {} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A CA file that holds something else.
    #[error("the CA file {} {reason}", path.display())]
    NoCertificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// TLS or the client cannot be set up.
    #[error("the HTTP client cannot be set up")]
    SetUp(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Makes the client. `ca_files` are PEM files of CAs that are trusted beside the system's.
pub fn build(ca_files: &[PathBuf], redirects: Redirects) -> Result<reqwest::Client, ClientError> {
    build_in(ca_files, redirects, |name| std::env::var(name).ok())
}

/// [`build`] in a given environment.
fn build_in(
    ca_files: &[PathBuf],
    redirects: Redirects,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<reqwest::Client, ClientError> {
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls(ca_files)?)
        .user_agent(concat!("agentscope-agui/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .redirect(policy(redirects))
        // The library's own look at the environment knows no exception for loopback.
        .no_proxy();
    for proxy in proxies(variable) {
        builder = builder.proxy(proxy);
    }
    builder.build().map_err(|error| ClientError::SetUp(error.into()))
}

/// TLS on ring. HTTP/1.1 only: over HTTP/2 all streams of a provider share one connection, so
/// that one loss ends all of them, and one too many waits without a word.
fn tls(ca_files: &[PathBuf]) -> Result<rustls::ClientConfig, ClientError> {
    let provider = Arc::new(ring::default_provider());
    // Others in this process (the MCP client) build clients of their own; the first one stays.
    drop(CryptoProvider::install_default(ring::default_provider()));
    let mut extra = Vec::new();
    for path in ca_files {
        extra.extend(certificates(path)?);
    }
    let roots = SystemRoots::new(Arc::clone(&provider), extra);
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| ClientError::SetUp(error.into()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(roots))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// The certificates of a CA file, each of which can be trusted.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ClientError> {
    let bad = |reason| ClientError::NoCertificates { path: path.to_owned(), reason };
    let file = std::fs::File::open(path)
        .map_err(|source| ClientError::Unreadable { path: path.to_owned(), source })?;
    let mut certificates = Vec::new();
    for certificate in CertificateDer::pem_reader_iter(file) {
        let certificate = certificate.map_err(|error| match error {
            pem::Error::Io(source) => ClientError::Unreadable { path: path.to_owned(), source },
            _ => bad("is no valid PEM file"),
        })?;
        RootCertStore::empty()
            .add(certificate.clone())
            .map_err(|_| bad("holds a certificate that is none"))?;
        certificates.push(certificate);
    }
    if certificates.is_empty() {
        return Err(bad("holds no certificate"));
    }
    Ok(certificates)
}

fn policy(redirects: Redirects) -> redirect::Policy {
    match redirects {
        Redirects::None => redirect::Policy::none(),
        Redirects::SameHost => redirect::Policy::custom(|attempt| {
            let from = attempt.previous().first().map(reqwest::Url::origin);
            let stays = from.is_some_and(|from| from == attempt.url().origin());
            if stays && attempt.previous().len() <= MAX_REDIRECTS {
                attempt.follow()
            } else {
                attempt.stop()
            }
        }),
    }
}

/// The proxies that the environment names, most special first.
fn proxies(variable: impl Fn(&str) -> Option<String>) -> Vec<Proxy> {
    let set = |name: &str| {
        let lower = name.to_ascii_lowercase();
        [name, &lower].into_iter().find_map(|name| variable(name).filter(|value| !value.is_empty()))
    };
    let except = match set("NO_PROXY") {
        Some(hosts) => format!("{hosts},{LOOPBACK}"),
        None => LOOPBACK.to_owned(),
    };
    let made = [
        ("HTTPS_PROXY", set("HTTPS_PROXY").map(Proxy::https)),
        ("HTTP_PROXY", set("HTTP_PROXY").map(Proxy::http)),
        ("ALL_PROXY", set("ALL_PROXY").map(Proxy::all)),
    ];
    let named = made.into_iter().filter_map(|(name, proxy)| {
        let proxy = proxy?;
        if proxy.is_err() {
            // The value may hold a password.
            tracing::warn!(variable = name, "the variable is no URL of a proxy and is ignored");
        }
        proxy.ok()
    });
    named.map(|proxy| proxy.no_proxy(NoProxy::from_string(&except))).collect()
}

#[cfg(test)]
mod tests;
