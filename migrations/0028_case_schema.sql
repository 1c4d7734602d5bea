-- The JSON Schema that the reply must fit, as JSON text: jsonb would change the order of its members, which is the order in
-- which a model writes them. Null: the reply is text.
alter table test_cases add column response_schema text;
