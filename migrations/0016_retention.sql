-- Days since the last message of a conversation with a person who has no id of the tenant's and no alias.
alter table tenant_retention add column anonymous_people int check (anonymous_people > 0);
