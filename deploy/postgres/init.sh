#!/bin/sh
# Run once by the PostgreSQL image, if its volume is empty: creates an ordinary role that owns its database, the role that
# tenants' statements run as, and the extension, which only a superuser may create.
set -eu
export SPOKE_DATABASE_PASSWORD_FILE="${SPOKE_DATABASE_PASSWORD_FILE:-/run/secrets/database_password}"
# Read by psql itself, so that it is not on a command line.
psql --no-psqlrc --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres <<'SQL'
\set password `cat "$SPOKE_DATABASE_PASSWORD_FILE"`
CREATE ROLE spoke LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'password';
CREATE ROLE spoke_tenant NOLOGIN;
GRANT spoke_tenant TO spoke;
CREATE DATABASE spoke OWNER spoke;
\connect spoke
CREATE EXTENSION IF NOT EXISTS vector;
SQL
