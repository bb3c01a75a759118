# The programs of the stack, each an image of its own: --target server, worker or scripted-model.
# The same Debian builds them and runs them, so both have the same C library.

FROM rust:1.95-trixie AS build
WORKDIR /source
COPY . .
# The caches live in the engine, not in a layer: what is wanted leaves them by the copy at the end.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    --mount=type=cache,target=/source/target,sharing=locked \
    cargo build --locked --release --package server --package worker --package scripted-model \
    && mkdir /programs \
    && cp target/release/server target/release/worker target/release/scripted-model /programs/

FROM debian:trixie-slim AS runtime
# The roots that the worker trusts, for a model on the internet.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/*
# Nobody's: the programs own nothing and write nothing.
USER 10001:10001
WORKDIR /

FROM runtime AS scripted-model
COPY --from=build /programs/scripted-model /usr/local/bin/
CMD ["scripted-model"]

FROM runtime AS worker
COPY --from=build /programs/worker /usr/local/bin/
CMD ["worker"]

FROM runtime AS server
COPY --from=build /programs/server /usr/local/bin/
CMD ["server", "serve"]
