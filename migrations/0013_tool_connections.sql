-- Access of tools to MCP servers by OAuth.
create table tool_connections (
  tenant_id text not null,
  tool_id text not null,
  -- What of the tool's definition the tokens were requested for. With another one they are not used.
  basis text not null,
  -- 'none' until the first token.
  state text not null default 'none' check (state in ('none', 'connected', 'refused')),
  -- The authorization server's issuer and endpoints.
  server jsonb,
  -- The MCP server, as the tokens name it.
  resource text,
  client_id text,
  -- Sealed: the access token, the refresh token, the secret of a client that registered itself.
  tokens text,
  -- Null when the authorization server did not say.
  expires_at timestamptz,
  -- Increases with every new token.
  version int not null default 0,
  -- One process at a time requests a new token, because a refresh token may be used once.
  lease_token text,
  lease_until timestamptz,
  connected_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_id, tool_id),
  foreign key (tenant_id, tool_id) references tools (tenant_id, id) on delete cascade
);

-- Sign-ins at an authorization server that have begun. Each is deleted when the browser returns.
create table tool_sign_ins (
  tenant_id text not null,
  tool_id text not null,
  -- SHA-256 of the session that began it. No other session can end it.
  session_hash bytea not null,
  -- SHA-256 of the state.
  state_hash bytea not null,
  -- Sealed.
  flow text not null,
  expires_at timestamptz not null,
  primary key (tenant_id, tool_id, session_hash),
  foreign key (tenant_id, tool_id) references tools (tenant_id, id) on delete cascade,
  foreign key (tenant_id, session_hash) references user_sessions (tenant_id, token_hash) on delete cascade
);
create index tool_sign_ins_session on tool_sign_ins (tenant_id, session_hash);
