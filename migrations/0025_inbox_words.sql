-- The words of a text for search are the same as before. Each turn indexes two texts, and the database plans a function of
-- SQL anew in each statement that calls it; it keeps the plan of a function of PL/pgSQL.
create or replace function inbox_words(owner text, content text) returns tsvector
language plpgsql immutable parallel safe as $$
begin
  return array_to_tsvector(array(
    select owner || ' ' || left(w.lexeme, 60) from unnest(to_tsvector('simple', translate(left(content, 2000), '@._-+/:', '       '))) w
  ));
end
$$;
