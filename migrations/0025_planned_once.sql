-- Functions that each turn calls. The database plans a function of SQL anew in each statement that calls it, and keeps the
-- plan of a function of PL/pgSQL. What they return is the same as before.
create or replace function inbox_words(owner text, content text) returns tsvector
language plpgsql immutable parallel safe as $$
begin
  return array_to_tsvector(array(
    select owner || ' ' || left(w.lexeme, 60) from unnest(to_tsvector('simple', translate(left(content, 2000), '@._-+/:', '       '))) w
  ));
end
$$;

create or replace function period_start_of(tenant text) returns timestamptz language plpgsql stable as $$
begin
  return (select period_start from period_of(tenant));
end
$$;
