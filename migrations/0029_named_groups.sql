-- Calls of a model that name groups of questions. The table has a row for an agent, a kind and a day: it is small.
alter table other_model_usage
  drop constraint other_model_usage_kind_check,
  add constraint other_model_usage_kind_check check (kind in ('draft', 'experiment', 'image', 'judge', 'name', 'replay'));
