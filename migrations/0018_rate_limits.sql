-- How often a key may be used: both or neither, and neither leaves it to the server's default.
alter table api_keys
  add column rate_requests int check (rate_requests > 0),
  add column rate_window int check (rate_window > 0),
  add constraint api_keys_rate check ((rate_requests is null) = (rate_window is null));

-- What limited keys have used, by part of the window, the last of them the part of number `part`. Losing it in a crash
-- only gives some requests back. A row is written with every request, so there is room for its next version beside it and
-- no index on what changes.
create unlogged table rate_counters (
  name text primary key,
  part bigint not null,
  counts int[] not null,
  granted boolean not null,
  expires_at timestamptz not null
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
