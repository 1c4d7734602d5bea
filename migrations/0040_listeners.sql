-- Developers listen to events from where nothing can be sent to: what waits for such an endpoint is fetched.
alter table webhook_endpoints
  -- Until when it listens, unless it fetches again; null for an endpoint with an address.
  add column listening_until timestamptz;
create index webhook_endpoints_listening on webhook_endpoints (listening_until) where listening_until is not null;
