# docker build -t pgvet . && docker run --rm -v "$PWD:/work" pgvet check
FROM rust:1-bookworm AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends libclang-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN cargo build --release --locked --package pgvet

FROM debian:bookworm-slim
# git finds what has changed.
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends git && rm -rf /var/lib/apt/lists/* \
    && git config --system --add safe.directory /work
COPY --from=build /source/target/release/pgvet /usr/local/bin/pgvet
COPY LICENSE-MIT LICENSE-APACHE THIRD-PARTY.txt /usr/share/doc/pgvet/
WORKDIR /work
USER 1000
ENTRYPOINT ["pgvet"]
CMD ["check"]
