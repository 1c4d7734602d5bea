-- spoke: own transaction
-- What lists of experiments sum up, so that they read no result. The table is rewritten, without the locks of other files.
alter table experiment_results
  add column passed boolean generated always as (result -> 'passed' = 'true') stored,
  add column input_tokens numeric generated always as (
    coalesce((result ->> 'inputTokens')::numeric, 0) + coalesce((result -> 'verdict' ->> 'inputTokens')::numeric, 0)
  ) stored,
  add column output_tokens numeric generated always as (
    coalesce((result ->> 'outputTokens')::numeric, 0) + coalesce((result -> 'verdict' ->> 'outputTokens')::numeric, 0)
  ) stored;
