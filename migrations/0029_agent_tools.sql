-- Tools of the process that an agent may call, by their names; those that are set up with an address stand in `tools`.
alter table agents add column tools text[] not null default '{}';
