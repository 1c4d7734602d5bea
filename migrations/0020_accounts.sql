-- A password is null until its user has one. password_by names the member who chose it for the user; null: the user did,
-- or the operator. It is no reference: a table of archives must not refer to itself.
alter table users alter column password_hash drop not null;
alter table users add column password_by text;
create index users_password_by on users (password_by) where password_by is not null;
update users u set password_hash = null
where exists (select from user_invitations i where i.user_id = u.id and i.first);

-- An invitation is as good as the member who made it, for the role that the invited person had then. Of those that are
-- open nobody knows who made them.
delete from user_invitations;
alter table user_invitations drop column first;
alter table user_invitations add column invited_by text not null references users on delete cascade;
alter table user_invitations add column role text not null check (role in ('owner', 'admin', 'agent', 'viewer'));
create index user_invitations_by on user_invitations (invited_by);
