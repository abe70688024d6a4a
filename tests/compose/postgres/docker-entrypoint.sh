#!/bin/bash
# The first start of a database, by the contract of the official image; written from its documentation.
set -euo pipefail

from_file() { # VARIABLE: its value, or the content of the file that VARIABLE_FILE names
  local file="${1}_FILE"
  if [ -n "${!file:-}" ]; then cat "${!file}"; else printf '%s' "${!1:-}"; fi
}

if [ "${1:-}" = postgres ] && [ "$(id -u)" = 0 ]; then
  install -d -o postgres -g postgres -m 700 "$PGDATA"
  chown -R postgres:postgres "$PGDATA"
  # The secret may be for root's eyes only.
  POSTGRES_PASSWORD=$(from_file POSTGRES_PASSWORD)
  export POSTGRES_PASSWORD
  unset POSTGRES_PASSWORD_FILE
  exec gosu postgres "$0" "$@"
fi

if [ "${1:-}" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
  user=$(from_file POSTGRES_USER)
  user=${user:-postgres}
  database=$(from_file POSTGRES_DB)
  database=${database:-$user}
  password=$(from_file POSTGRES_PASSWORD)
  method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
  if [ -z "$password" ] && [ "$method" != trust ]; then
    echo "POSTGRES_PASSWORD is empty" >&2
    exit 1
  fi
  initdb --username="$user" --pwfile=<(printf '%s\n' "$password") ${POSTGRES_INITDB_ARGS:-}
  printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  [ "$database" = postgres ] || psql -v ON_ERROR_STOP=1 -U "$user" -d postgres -c "create database \"$database\""
  for file in /docker-entrypoint-initdb.d/*; do
    case $file in
      *.sh) . "$file" ;;
      *.sql) psql -v ON_ERROR_STOP=1 -U "$user" -d "$database" -f "$file" ;;
      *.sql.gz) gunzip -c "$file" | psql -v ON_ERROR_STOP=1 -U "$user" -d "$database" ;;
    esac
  done
  pg_ctl -D "$PGDATA" -m fast -w stop
fi
unset PGPASSWORD POSTGRES_PASSWORD
exec "$@"
