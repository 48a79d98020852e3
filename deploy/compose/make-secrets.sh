#!/bin/sh
# Creates the secrets of docker-compose.yml. Existing files are not changed. Needs only a shell.
set -eu

# Compose mounts these files for users with other ids than yours. Therefore the files are readable by all, but only you can
# enter the folder.
folder=$(dirname "$0")/secrets
umask 022
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"

random() { # bytes, as hex
  od -An -v -tx1 -N "$1" /dev/urandom | tr -d ' \n'
}

keep() { # name text
  [ -s "$1" ] && return
  printf '%s\n' "$2" >"$1"
}

keep api_secret "$(random 32)"
keep realtime_hmac_secret "$(random 32)"
keep realtime_api_key "$(random 32)"
keep realtime_signing_secret "$(random 32)"
keep relay_admin_password "$(random 16)"
keep demo_password "$(random 8)"
keep grafana_password "$(random 16)"
keep postgres_password "$(random 24)"
keep redis_password "$(random 24)"

# Connection URLs, which contain the passwords.
keep database_url "postgres://gatehouse:$(cat postgres_password)@postgres:5432/gatehouse"
keep redis_url "redis://:$(cat redis_password)@redis:6379"
keep redis_conf "requirepass $(cat redis_password)"

echo "Secrets are in $(pwd)."
echo "The demo's accounts (admin@example.com, operator@example.com, viewer@example.com) have the password $(cat demo_password)"
