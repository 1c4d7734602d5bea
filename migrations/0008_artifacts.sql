-- Originals in the artifact store. They are shared by content, so removing one and storing the same bytes again for
-- another source must not meet: both lock its row here. What has a row and no source is removed by a sweep.
create table artifacts (
  ref text primary key,
  -- Somebody is removing the bytes, and has until then.
  removing_until timestamptz
);

-- Somebody is storing the bytes for a source that is not there yet, and has until then.
create table artifact_claims (
  id text primary key,
  ref text not null references artifacts on delete cascade,
  expires_at timestamptz not null
);
create index artifact_claims_ref on artifact_claims (ref);

create index sources_artifact on sources ((config ->> 'artifact')) where config ->> 'artifact' is not null;

insert into artifacts (ref)
select distinct config ->> 'artifact' from sources where config ->> 'artifact' is not null;
