-- What grows with the product is said once, by the schemas of `src/domain`: their types are what the stores take.
alter table sources drop constraint sources_type_check;
alter table conversations drop constraint conversations_channel_check;
alter table channels drop constraint channels_channel_check;
alter table channel_inbox drop constraint channel_inbox_channel_check;
alter table end_user_aliases drop constraint end_user_aliases_channel_check;
alter table end_user_aliases drop constraint end_user_aliases_kind_check;
alter table users drop constraint users_role_check;
alter table user_invitations drop constraint user_invitations_role_check;
