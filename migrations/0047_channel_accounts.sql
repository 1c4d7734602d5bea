-- What an account at a provider needs besides its access token, and what the provider told of it when it was activated.
alter table channels
  -- Sealed (capabilities/SecretBox): JSON from names to secrets. Null where the channel asks for none.
  add column secrets text,
  add column profile jsonb not null default '{}';
