# syntax=docker/dockerfile:1

# The toolchain of rust-toolchain.toml.
FROM rust:1.95.0-slim-trixie AS build
# Keeps rustup from fetching the components that only the checks need.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY Cargo.toml Cargo.lock ./
COPY crates crates
COPY benches benches
COPY config config
COPY src src
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked --bin agentscope-agui \
    && cp target/release/agentscope-agui /usr/local/bin/

FROM debian:trixie-slim
LABEL org.opencontainers.image.title="agentscope-agui" \
      org.opencontainers.image.description="Serves AgentScope-style agents to any AG-UI front end over HTTP and SSE" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin agentscope
COPY LICENSE /usr/share/doc/agentscope-agui/LICENSE
# Whom models and tools behind https are trusted by.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /usr/local/bin/agentscope-agui /usr/local/bin/
# A container is reached from outside of it, whatever the mounted file leaves out.
ENV SERVER_HOST=0.0.0.0
EXPOSE 8080
USER 10001:10001
WORKDIR /home/agentscope
# The binary finds its libraries in this image.
RUN ["agentscope-agui", "check"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=5s --retries=3 \
    CMD ["agentscope-agui", "health"]
ENTRYPOINT ["agentscope-agui"]
CMD ["serve"]
