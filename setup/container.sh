#!/bin/sh
# What a container runs (see Dockerfile): JupyterLab, until it is told to stop.
[ -w notebooks ] || echo "d2lps: user $(id -u) may not write to the notebooks
folder, so that your changes cannot be saved. Build for its owner:
    READER_UID=\$(id -u) READER_GID=\$(id -g) docker compose up --build"

# 0 is 0.0.0.0, every address of the container, for Docker hands requests to
# one that it chooses. (Written out, JupyterLab would show an address with the
# container's name, too, which no browser finds.) Who can reach that is said
# where the port is published: compose.yaml lets this machine alone. A page
# from elsewhere that gives itself out for this machine is refused
# (allow_remote_access), and everybody is asked for the secret that JupyterLab
# makes anew at each start and shows.
exec jupyter lab notebooks --no-browser --ip=0 -y \
  --ServerApp.port_retries=0 --ServerApp.allow_remote_access=False \
  --ServerApp.custom_display_url="http://127.0.0.1:$JUPYTER_PORT"
