# JupyterLab with the notebooks, on x86-64 and ARM; compose.yaml starts it.
#
# Debian 12, not python:3.11-slim: it has Python 3.11 itself, so what docs/install.md
# says of Debian 12 is what happens here, and what was tried there holds here.
FROM debian:12-slim AS system
# Whose files the notebooks folder holds, as `id -u` and `id -g` tell them.
ARG READER_UID=1000
ARG READER_GID=1000
# More of Debian's packages; .devcontainer wants git.
ARG MORE=
RUN case "$(dpkg --print-architecture)" in \
      arm64) MORE="$MORE libopenblas0-openmp liblapacke" ;; \
      *) MORE="$MORE libquadmath0" ;; \
    esac && \
    apt-get update && \
    apt-get install -y --no-install-recommends make python3-venv libgomp1 \
      $MORE && \
    rm -rf /var/lib/apt/lists/* /var/cache/apt /var/log/apt /var/log/dpkg.log
# A Mac's group is one of Debian's own, too. A reader who is root is refused.
RUN groupadd --non-unique --gid "$READER_GID" reader && \
    useradd --uid "$READER_UID" --gid reader --create-home \
      --shell /bin/bash reader && \
    install -d -o reader -g reader /home/reader/d2lps
USER reader
WORKDIR /home/reader/d2lps

FROM system AS lab
# What takes long comes first: only another lock downloads anything again.
ENV PIP_NO_CACHE_DIR=1 UV_NO_CACHE=1 UV_COMPILE_BYTECODE=1
COPY --chown=reader:reader requirements.lock requirements-dev.lock ./
COPY --chown=reader:reader setup/install.py setup/
RUN python3 setup/install.py packages
COPY --chown=reader:reader . .
RUN make .venv/installed

# As `make lab` has it: no news, no questions.
ENV PATH=/home/reader/d2lps/.venv/bin:$PATH \
    JUPYTER_CONFIG_PATH=/home/reader/d2lps/setup/jupyter \
    JUPYTER_PORT=8888
EXPOSE 8888
# The one address that JupyterLab answers without its secret.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD \
    ["python", "-c", "import os, urllib.request as web; web.urlopen(f\"http://127.0.0.1:{os.environ['JUPYTER_PORT']}/api\", timeout=9)"]
CMD ["sh", "setup/container.sh"]
