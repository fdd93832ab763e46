# BAT OS in a container: its wheel in an environment of its own, run by a user who owns nothing but the home.
# `docker compose up` builds and runs it; docs/compose.md says how it is used.

FROM python:3.11.15-slim-bookworm AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
COPY constraints.txt ./
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
COPY docs ./docs
RUN python -m venv /opt/batos \
    && /opt/batos/bin/pip wheel --no-deps --wheel-dir dist . \
    && /opt/batos/bin/pip install --constraint constraints.txt dist/*.whl \
    && /opt/batos/bin/batos --version

FROM python:3.11.15-slim-bookworm
LABEL org.opencontainers.image.title="BAT OS" \
      org.opencontainers.image.description="A local-first mind that lives in a database and thinks through Ollama" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
# The id is fixed, because files on the volume belong to it.
RUN groupadd --gid 10001 batos \
    && useradd --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin batos \
    && install --directory --owner=batos --group=batos --mode=0700 /data
COPY --from=build /opt/batos /opt/batos
COPY --chmod=0755 scripts/container.sh /usr/local/bin/batos-container
ENV PATH=/opt/batos/bin:$PATH \
    BATOS_HOME=/data \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /data
USER 10001:10001
# Requests and events: beyond loopback both are open to holders of a key alone.
EXPOSE 7717 7718 7719
STOPSIGNAL SIGTERM
ENTRYPOINT ["batos-container"]
CMD ["serve"]
