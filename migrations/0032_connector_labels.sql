-- Labels of a connector source that wait for the next sync: more people may read the source with them than the documents
-- that are live were chosen for. Null: `labels` are the newest.
alter table sources add column next_labels jsonb;

-- True when documents that were chosen for readers with the labels `chosen` may be read with the labels `now`.
create function labels_are_within(now jsonb, chosen jsonb) returns boolean language sql immutable as $$
  select now = chosen or (now <> '[]' and (chosen = '[]' or chosen @> now))
$$;
