-- Moves of tenants between installations (docs/design/placement.md). A tenant without a row is served here and nowhere
-- else. These tables hold no tenant's data for longer than a move, so no archive has them.

create table tenant_moves (
  -- No reference: at the destination the tenant arrives after this row.
  tenant text primary key,
  -- The same at both installations.
  move text not null,
  role text not null check (role in ('origin', 'destination')),
  -- 'serving': requests and jobs as always, changes are noted. 'draining': no job begins. 'pausing': requests wait too.
  -- 'fenced': nothing of the tenant can be written. 'away': the same, and requests are told where the tenant is.
  state text not null check (state in ('serving', 'draining', 'pausing', 'fenced', 'away')),
  -- How often the tenant has changed sides: of two sides that are away, the one with fewer is to serve.
  handovers int not null default 0,
  -- A draining, pausing or fenced side serves again after this moment, unless it has handed over.
  held_until timestamptz,
  -- Where callers find the tenant while it is away; null where it arrives from an archive.
  served_at text,
  -- Accounts of channels as 'channel:external id': what arrives for them is the tenant's.
  accounts text[] not null default '{}',
  -- Random; of the command that drives the move. Writes of an earlier one are refused.
  driver text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);

-- Keys of rows that have changed since they were last copied. A row is added for every change, so that one that is
-- written while another is copied is never taken for it.
create table tenant_moves_changes (
  seq bigint primary key generated always as identity,
  tenant text not null,
  name text not null,
  key text[] not null
);
create index tenant_moves_changes_tenant on tenant_moves_changes (tenant, seq);

-- Ranges of rows that have arrived.
create table tenant_moves_parts (
  tenant text not null,
  name text not null,
  -- JSON of the key that it begins behind, and of its last key; null at the end of the table.
  after text not null,
  up_to text,
  primary key (tenant, name, after)
);

-- Jobs that wait while the tenant is not served, and those that have arrived: one that arrives again is known.
create table tenant_moves_jobs (
  tenant text not null,
  id text not null,
  -- The row of queue_jobs, and that of channel_inbox which it is about.
  job jsonb not null,
  event jsonb,
  -- It was put into the queue here.
  queued boolean not null default false,
  primary key (tenant, id)
);

-- What every process of the installation does for all tenants leaves out those that are not served.
create function tenant_is_swept(id text) returns boolean language sql stable as $$
  select not exists (select from tenant_moves m where m.tenant = id and m.state <> 'serving')
$$;

-- Before each change of a row of a tenant that moves. Its arguments: the tenant, the table, the columns of the key. The
-- lock is shared by writers; the move takes it alone to fence the tenant, so that no change is under way then.
create function tenant_moves_guard() returns trigger language plpgsql as $$
declare
  moved text := tg_argv[0];
  now_state text;
  was text[];
  becomes text[];
  document jsonb;
begin
  if current_setting('spoke.applying', true) = moved then
    if tg_op = 'DELETE' then return old; end if;
    return new;
  end if;
  -- A vector in another form (encoding 1 or 2) is the same one.
  if tg_op = 'UPDATE' and tg_argv[1] = 'chunk_embeddings' then
    if stored_vector(old) = stored_vector(new) and least(old.encoding, 1) = least(new.encoding, 1)
      and to_jsonb(old) - array['encoding', 'embedding', 'vector', 'source_id']
        = to_jsonb(new) - array['encoding', 'embedding', 'vector', 'source_id'] then return new; end if;
  end if;
  perform pg_advisory_xact_lock_shared(hashtextextended('tenant move ' || moved, 0));
  select m.state into now_state from tenant_moves m where m.tenant = moved;
  if now_state in ('fenced', 'away') then
    -- A statement about several tenants leaves the row as it is.
    if now_state = 'away' and tg_op <> 'INSERT' and current_query() like '/* every tenant: %' then return null; end if;
    raise exception 'the tenant is being moved' using errcode = 'SM001';
  end if;
  if now_state is not null then
    if tg_op <> 'INSERT' then
      document := to_jsonb(old);
      was := array(select document ->> part from unnest(tg_argv[2:]) with ordinality as k (part, place) order by place);
      insert into tenant_moves_changes (tenant, name, key) values (moved, tg_argv[1], was);
    end if;
    if tg_op <> 'DELETE' then
      document := to_jsonb(new);
      becomes := array(select document ->> part from unnest(tg_argv[2:]) with ordinality as k (part, place) order by place);
      if becomes is distinct from was then
        insert into tenant_moves_changes (tenant, name, key) values (moved, tg_argv[1], becomes);
      end if;
    end if;
  end if;
  if tg_op = 'DELETE' then return old; end if;
  return new;
end $$;

-- After a job of a tenant that moves begins to wait: it leaves the queue while the tenant is not served here. Its
-- argument is the tenant.
create function tenant_moves_hold() returns trigger language plpgsql as $$
declare
  moved text := tg_argv[0];
begin
  -- As writers of rows do, so that no job is queued behind the fence.
  perform pg_advisory_xact_lock_shared(hashtextextended('tenant move ' || moved, 0));
  if not exists (
    select from tenant_moves m where m.tenant = moved and m.state <> 'serving'
      and (new.payload ->> 'tenantId' = moved or split_part(new.owner, '/', 1) = moved or new.owner = any(m.accounts))
  ) then return null; end if;
  insert into tenant_moves_jobs (tenant, id, job, event)
  select moved, new.id, to_jsonb(new), (select to_jsonb(i) from channel_inbox i where i.id = new.payload ->> 'inboxId')
  on conflict (tenant, id) do update set job = excluded.job, event = excluded.event, queued = false;
  delete from queue_jobs where id = new.id;
  return null;
end $$;

-- Rows that are copied come with what these triggers made of them at their origin.
create or replace function tell_state() returns trigger language plpgsql as $$
begin
  if current_setting('spoke.applying', true) = new.tenant_id then return null; end if;
  insert into conversation_entries (tenant_id, id, conversation_id, position, kind, user_id, content)
  values (new.tenant_id, 'ent_' || replace(gen_random_uuid()::text, '-', ''), new.id, new.message_count,
    case new.state when 'HUMAN_REQUESTED' then 'requested' when 'HUMAN_ACTIVE' then 'taken'
      when 'CLOSED' then 'closed' else 'released' end,
    case new.state when 'HUMAN_REQUESTED' then null else new.state_by end,
    case new.state when 'HUMAN_REQUESTED' then new.handoff_reason end);
  return null;
end $$;

create or replace function free_passages() returns trigger language plpgsql as $$
begin
  if coalesce(current_setting('spoke.applying', true), '') <> '' then return null; end if;
  perform from passages p where (p.tenant_id, p.hash) in (select tenant_id, hash from removed)
    order by p.tenant_id, p.hash for update;
  delete from passages p
  where (p.tenant_id, p.hash) in (select tenant_id, hash from removed)
    and not exists (select from run_passages r where r.tenant_id = p.tenant_id and r.hash = p.hash);
  return null;
end $$;

-- Columns whose values are sealed with the installation's master secret, and for what: they are sealed anew where they
-- arrive.
comment on column sso_connections.client_secret is 'sealed: sso-secret';
comment on column tools.secret is 'sealed: tool-secret';
comment on column channels.access_token is 'sealed: channel-token';
comment on column channels.secrets is 'sealed: channel-secrets';
comment on column source_secrets.sealed is 'sealed: source-secret';
comment on column webhook_endpoints.secret is 'sealed: webhook-secret';
comment on column webhook_endpoints.previous_secret is 'sealed: webhook-secret';
comment on column manage_answers.answer is 'sealed: stored-answer';
comment on column tool_connections.tokens is 'sealed: tool-tokens';
comment on column tool_sign_ins.flow is 'sealed: tool-sign-in';
