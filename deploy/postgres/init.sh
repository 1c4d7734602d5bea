#!/bin/sh
# Run once, by the image of PostgreSQL, when its volume is empty: an ordinary role that owns its database, and the role that
# tenants' statements run as. The extension is made here because only a superuser may.
set -eu
export SPOKE_DATABASE_PASSWORD_FILE="${SPOKE_DATABASE_PASSWORD_FILE:-/run/secrets/database_password}"
# Read by psql itself, so that it stands on no command line.
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set password `cat "$SPOKE_DATABASE_PASSWORD_FILE"`
CREATE ROLE spoke LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE ROLE spoke_tenant NOLOGIN;
GRANT spoke_tenant TO spoke;
CREATE DATABASE spoke OWNER spoke;
\connect spoke
CREATE EXTENSION IF NOT EXISTS vector;
SQL
