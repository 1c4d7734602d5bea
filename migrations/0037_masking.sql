-- What of personal data is kept from the model of an agent, its tools and its traces; null for nothing.
alter table agents add column masking jsonb;

update agent_versions set settings = settings || '{"masking": null}';
