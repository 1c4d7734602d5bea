-- Tenant first: every row that belongs to a tenant names it, in its key, in its references and in the indexes that serve a caller
-- (docs/design/tenancy.md). Tables are rewritten under their locks and older processes cannot go on: before the first release
-- nobody is asked to serve requests meanwhile.

-- Copies of vectors have not changed.
alter table chunk_embeddings disable trigger user;

alter table user_sessions add column tenant_id text;
update user_sessions t set tenant_id = p.tenant_id from users p where p.id = t.user_id;
alter table user_sessions alter column tenant_id set not null;

alter table user_invitations add column tenant_id text;
update user_invitations t set tenant_id = p.tenant_id from users p where p.id = t.user_id;
alter table user_invitations alter column tenant_id set not null;

alter table ingestion_jobs add column tenant_id text;
update ingestion_jobs t set tenant_id = p.tenant_id from sources p where p.id = t.source_id;
alter table ingestion_jobs alter column tenant_id set not null;

alter table documents add column tenant_id text;
update documents t set tenant_id = p.tenant_id from sources p where p.id = t.source_id;
alter table documents alter column tenant_id set not null;

alter table chunks add column tenant_id text;
update chunks t set tenant_id = p.tenant_id from sources p where p.id = t.source_id;
alter table chunks alter column tenant_id set not null;

alter table chunk_embeddings add column tenant_id text;
update chunk_embeddings t set tenant_id = p.tenant_id from agents p where p.id = t.agent_id;
alter table chunk_embeddings alter column tenant_id set not null;

alter table agent_stats add column tenant_id text;
update agent_stats t set tenant_id = p.tenant_id from agents p where p.id = t.agent_id;
alter table agent_stats alter column tenant_id set not null;

alter table agent_usage add column tenant_id text;
update agent_usage t set tenant_id = p.tenant_id from agents p where p.id = t.agent_id;
alter table agent_usage alter column tenant_id set not null;

alter table crawl_entries add column tenant_id text;
update crawl_entries t set tenant_id = p.tenant_id from sources p where p.id = t.source_id;
alter table crawl_entries alter column tenant_id set not null;

alter table embedding_failures add column tenant_id text;
update embedding_failures t set tenant_id = p.tenant_id from sources p where p.id = t.source_id;
alter table embedding_failures alter column tenant_id set not null;

alter table idempotency_keys add column tenant_id text;
update idempotency_keys t set tenant_id = p.tenant_id from agents p where p.id = t.agent_id;
alter table idempotency_keys alter column tenant_id set not null;

alter table turn_claims add column tenant_id text;
update turn_claims t set tenant_id = p.tenant_id from agents p where p.id = t.agent_id;
alter table turn_claims alter column tenant_id set not null;

alter table messages add column tenant_id text;
update messages t set tenant_id = p.tenant_id from conversations p where p.id = t.conversation_id;
alter table messages alter column tenant_id set not null;

alter table message_feedback add column tenant_id text;
update message_feedback t set tenant_id = p.tenant_id from conversations p where p.id = t.conversation_id;
alter table message_feedback alter column tenant_id set not null;

alter table conversation_artifacts add column tenant_id text;
update conversation_artifacts t set tenant_id = p.tenant_id from conversations p where p.id = t.conversation_id;
alter table conversation_artifacts alter column tenant_id set not null;

alter table agent_run_events add column tenant_id text;
update agent_run_events t set tenant_id = p.tenant_id from agent_runs p where p.id = t.run_id;
alter table agent_run_events alter column tenant_id set not null;

alter table question_vectors add column tenant_id text;
update question_vectors t set tenant_id = p.tenant_id from agent_runs p where p.id = t.run_id;
alter table question_vectors alter column tenant_id set not null;

alter table webhook_deliveries add column tenant_id text;
update webhook_deliveries t set tenant_id = p.tenant_id from webhook_endpoints p where p.id = t.endpoint_id;
alter table webhook_deliveries alter column tenant_id set not null;

alter table chunk_embeddings enable trigger user;

-- Of a member who is in another tenant nothing can come.
delete from user_invitations i using users by where by.id = i.invited_by and by.tenant_id <> i.tenant_id;

-- References to keys that change.
alter table agent_run_events drop constraint agent_run_events_run_id_fkey;
alter table agent_stats drop constraint agent_stats_agent_id_fkey;
alter table agent_usage drop constraint agent_usage_agent_id_fkey;
alter table chunk_embeddings drop constraint chunk_embeddings_chunk_id_fkey;
alter table chunks drop constraint chunks_document_id_fkey;
alter table conversation_artifacts drop constraint conversation_artifacts_conversation_id_fkey;
alter table crawl_entries drop constraint crawl_entries_source_id_fkey;
alter table documents drop constraint documents_source_id_fkey;
alter table embedding_failures drop constraint embedding_failures_source_id_fkey;
alter table idempotency_keys drop constraint idempotency_keys_agent_id_fkey;
alter table ingestion_jobs drop constraint ingestion_jobs_source_id_fkey;
alter table message_feedback drop constraint message_feedback_conversation_id_fkey;
alter table message_feedback drop constraint message_feedback_message_id_fkey;
alter table messages drop constraint messages_conversation_id_fkey;
alter table question_vectors drop constraint question_vectors_run_id_fkey;
alter table turn_claims drop constraint turn_claims_agent_id_fkey;
alter table user_invitations drop constraint user_invitations_invited_by_fkey;
alter table user_invitations drop constraint user_invitations_user_id_fkey;
alter table user_sessions drop constraint user_sessions_user_id_fkey;
alter table webhook_deliveries drop constraint webhook_deliveries_endpoint_id_fkey;
alter table access_tokens drop constraint access_tokens_user_id_fkey;
alter table agent_runs drop constraint agent_runs_conversation_id_fkey;
alter table agent_widgets drop constraint agent_widgets_key_id_fkey;
alter table channel_outbox drop constraint channel_outbox_channel_id_fkey;
alter table channel_outbox drop constraint channel_outbox_conversation_id_fkey;
alter table conversations drop constraint conversations_channel_id_fkey;
alter table conversations drop constraint conversations_end_user_id_fkey;
alter table end_user_aliases drop constraint end_user_aliases_end_user_id_fkey;
alter table run_passages drop constraint run_passages_tenant_id_run_id_fkey;
alter table test_cases drop constraint test_cases_tenant_id_run_id_fkey;
alter table widget_sessions drop constraint widget_sessions_conversation_id_fkey;
alter table widget_sessions drop constraint widget_sessions_end_user_id_fkey;

-- Keys.
alter table agent_runs drop constraint agent_runs_of_tenant;
alter table users drop constraint users_pkey, add primary key (tenant_id, id);
alter table user_sessions drop constraint user_sessions_pkey, add primary key (tenant_id, token_hash);
alter table user_invitations drop constraint user_invitations_pkey, add primary key (tenant_id, user_id);
alter table api_keys drop constraint api_keys_pkey, add primary key (tenant_id, id);
alter table access_tokens drop constraint access_tokens_pkey, add primary key (tenant_id, id);
alter table audit_entries drop constraint audit_entries_pkey, add primary key (tenant_id, id);
alter table tools drop constraint tools_pkey, add primary key (tenant_id, id);
alter table test_cases drop constraint test_cases_pkey, add primary key (tenant_id, id);
alter table agent_versions drop constraint agent_versions_pkey, add primary key (tenant_id, agent_id, version);
alter table agent_widgets drop constraint agent_widgets_pkey, add primary key (tenant_id, agent_id);
alter table channels drop constraint channels_pkey, add primary key (tenant_id, id);
alter table webhook_endpoints drop constraint webhook_endpoints_pkey, add primary key (tenant_id, id);
alter table webhook_deliveries drop constraint webhook_deliveries_pkey, add primary key (tenant_id, event_id, endpoint_id);
alter table end_users drop constraint end_users_pkey, add primary key (tenant_id, id);
alter table conversations drop constraint conversations_pkey, add primary key (tenant_id, id);
alter table messages drop constraint messages_pkey, add primary key (tenant_id, id);
alter table message_feedback drop constraint message_feedback_pkey, add primary key (tenant_id, message_id);
alter table conversation_artifacts drop constraint conversation_artifacts_pkey, add primary key (tenant_id, conversation_id, ref);
alter table channel_outbox drop constraint channel_outbox_pkey, add primary key (tenant_id, id);
alter table widget_sessions drop constraint widget_sessions_pkey, add primary key (tenant_id, id_hash);
alter table agent_runs drop constraint agent_runs_pkey, add primary key (tenant_id, id);
alter table agent_run_events drop constraint agent_run_events_pkey, add primary key (tenant_id, run_id, sequence);
alter table question_vectors drop constraint question_vectors_pkey, add primary key (tenant_id, run_id);
alter table agent_usage drop constraint agent_usage_pkey, add primary key (tenant_id, agent_id, period_start);
alter table turn_claims drop constraint turn_claims_pkey, add primary key (tenant_id, agent_id, key_id, idempotency_key);
alter table idempotency_keys drop constraint idempotency_keys_pkey, add primary key (tenant_id, agent_id, key_id, idempotency_key);
alter table sources drop constraint sources_pkey, add primary key (tenant_id, id);
alter table ingestion_jobs drop constraint ingestion_jobs_pkey, add primary key (tenant_id, id);
alter table documents drop constraint documents_pkey, add primary key (tenant_id, id);
alter table chunks drop constraint chunks_pkey, add primary key (tenant_id, id);
alter table chunk_embeddings drop constraint chunk_embeddings_pkey, add primary key (tenant_id, chunk_id, profile);
alter table agent_stats drop constraint agent_stats_pkey, add primary key (tenant_id, agent_id);
alter table crawl_entries drop constraint crawl_entries_pkey, add primary key (tenant_id, source_id, generation, place);
alter table embedding_failures drop constraint embedding_failures_pkey, add primary key (tenant_id, source_id);
alter table user_invitations drop constraint user_invitations_user_id_key;
alter table tools drop constraint tools_agent_id_name_key, add unique (tenant_id, agent_id, name);
alter table channel_outbox drop constraint channel_outbox_message_id_part_key, add unique (tenant_id, message_id, part);
alter table messages drop constraint messages_conversation_id_position_key, add unique (tenant_id, conversation_id, position);
alter table documents drop constraint documents_source_id_generation_uri_key, add unique (tenant_id, source_id, generation, uri);
alter table chunks drop constraint chunks_document_id_ordinal_key, add unique (tenant_id, document_id, ordinal);
-- A cookie and an invitation find their tenant by these.
alter table user_sessions add unique (token_hash);
alter table user_invitations add unique (token_hash);

-- References.
alter table user_sessions add foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade;
alter table user_invitations add foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade;
alter table user_invitations add foreign key (tenant_id, invited_by) references users (tenant_id, id) on delete cascade;
alter table access_tokens add foreign key (tenant_id, user_id) references users (tenant_id, id) on delete cascade;
alter table agent_widgets add foreign key (tenant_id, key_id) references api_keys (tenant_id, id) on delete cascade;
alter table agent_stats add foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade;
alter table agent_usage add foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade;
alter table idempotency_keys add foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade;
alter table turn_claims add foreign key (tenant_id, agent_id) references agents (tenant_id, id) on delete cascade;
alter table ingestion_jobs add foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade;
alter table documents add foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade;
alter table crawl_entries add foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade;
alter table embedding_failures add foreign key (tenant_id, source_id) references sources (tenant_id, id) on delete cascade;
alter table chunks add foreign key (tenant_id, document_id) references documents (tenant_id, id) on delete cascade;
alter table chunk_embeddings add foreign key (tenant_id, chunk_id) references chunks (tenant_id, id) on delete cascade;
alter table conversations add foreign key (tenant_id, end_user_id) references end_users (tenant_id, id) on delete cascade;
alter table conversations add foreign key (tenant_id, channel_id) references channels (tenant_id, id) on delete set null (channel_id);
alter table messages add foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade;
alter table message_feedback add foreign key (tenant_id, message_id) references messages (tenant_id, id) on delete cascade;
alter table message_feedback add foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade;
alter table conversation_artifacts add foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade;
alter table agent_runs add foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade;
alter table agent_run_events add foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade;
alter table question_vectors add foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade;
alter table run_passages add foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade;
alter table test_cases add foreign key (tenant_id, run_id) references agent_runs (tenant_id, id) on delete cascade;
alter table end_user_aliases add foreign key (tenant_id, end_user_id) references end_users (tenant_id, id) on delete cascade;
alter table widget_sessions add foreign key (tenant_id, end_user_id) references end_users (tenant_id, id) on delete cascade;
alter table widget_sessions add foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete set null (conversation_id);
alter table channel_outbox add foreign key (tenant_id, conversation_id) references conversations (tenant_id, id) on delete cascade;
alter table channel_outbox add foreign key (tenant_id, channel_id) references channels (tenant_id, id) on delete cascade;
alter table webhook_deliveries add foreign key (tenant_id, endpoint_id) references webhook_endpoints (tenant_id, id) on delete cascade;

-- Indexes. What sweeps look for in all tenants keeps its own.
drop index users_tenant;
drop index api_keys_tenant;
drop index access_tokens_tenant;
drop index audit_entries_tenant;
drop index tools_tenant;
drop index sources_tenant;
drop index conversations_tenant;
drop index webhook_endpoints_tenant;
drop index user_sessions_user;
create index user_sessions_user on user_sessions (tenant_id, user_id);
drop index user_invitations_by;
create index user_invitations_by on user_invitations (tenant_id, invited_by);
drop index users_password_by;
create index users_password_by on users (tenant_id, password_by)
  where password_by is not null;
drop index api_keys_agent;
create index api_keys_agent on api_keys (tenant_id, agent_id, id);
drop index access_tokens_user;
create index access_tokens_user on access_tokens (tenant_id, user_id);
drop index agent_widgets_key;
create index agent_widgets_key on agent_widgets (tenant_id, key_id);
drop index test_cases_agent;
create index test_cases_agent on test_cases (tenant_id, agent_id, id);
drop index channels_agent;
create index channels_agent on channels (tenant_id, agent_id, id);
drop index webhook_deliveries_log;
create index webhook_deliveries_log on webhook_deliveries (tenant_id, endpoint_id, seq);
drop index sources_agent;
create index sources_agent on sources (tenant_id, agent_id, id);
drop index sources_curated;
create index sources_curated on sources (tenant_id, agent_id)
  where type = 'QA';
drop index ingestion_jobs_source;
create index ingestion_jobs_source on ingestion_jobs (tenant_id, source_id, generation desc);
drop index ingestion_jobs_one_queued;
create unique index ingestion_jobs_one_queued on ingestion_jobs (tenant_id, source_id)
  where status = 'QUEUED';
drop index ingestion_jobs_one_running;
create unique index ingestion_jobs_one_running on ingestion_jobs (tenant_id, source_id)
  where status = 'RUNNING';
drop index chunks_agent_version;
create index chunks_agent_version on chunks (tenant_id, agent_id, version);
drop index chunks_source;
create index chunks_source on chunks (tenant_id, source_id, generation);
drop index chunks_not_english;
create index chunks_not_english on chunks (tenant_id, agent_id)
  where not english;
drop index chunk_embeddings_agent;
create index chunk_embeddings_agent on chunk_embeddings (tenant_id, agent_id, profile, version);
drop index end_user_aliases_user;
create index end_user_aliases_user on end_user_aliases (tenant_id, end_user_id);
drop index conversations_agent;
create index conversations_agent on conversations (tenant_id, agent_id, channel, id desc);
drop index conversations_agent_all;
create index conversations_agent_all on conversations (tenant_id, agent_id, id desc);
drop index conversations_end_user;
create index conversations_end_user on conversations (tenant_id, end_user_id, id desc);
drop index conversations_open_on_channel;
create unique index conversations_open_on_channel on conversations (tenant_id, channel_id, end_user_id)
  where channel_id is not null and state <> 'CLOSED';
drop index conversations_import_key;
create unique index conversations_import_key on conversations (tenant_id, agent_id, import_key)
  where import_key is not null;
drop index conversations_chat;
create unique index conversations_chat on conversations (tenant_id, agent_id, chat_id, md5(coalesce(source_scope::text, '')))
  where chat_id is not null;
drop index messages_channel_message;
create unique index messages_channel_message on messages (tenant_id, conversation_id, channel_message_id)
  where channel_message_id is not null;
drop index messages_unanswered;
create index messages_unanswered on messages (tenant_id, conversation_id)
  where role = 'user' and channel_message_id is not null and answered_by is null;
drop index message_feedback_conversation;
create index message_feedback_conversation on message_feedback (tenant_id, conversation_id);
drop index channel_outbox_conversation;
create index channel_outbox_conversation on channel_outbox (tenant_id, conversation_id, id);
drop index channel_outbox_provider;
create index channel_outbox_provider on channel_outbox (tenant_id, channel_id, provider_message_id)
  where provider_message_id is not null;
drop index channel_outbox_waiting;
create index channel_outbox_waiting on channel_outbox (tenant_id, conversation_id)
  where state in ('pending', 'sending');
drop index agent_runs_agent;
create index agent_runs_agent on agent_runs (tenant_id, agent_id, id);
drop index agent_runs_conversation;
create index agent_runs_conversation on agent_runs (tenant_id, conversation_id, ticket);
drop index widget_sessions_agent;
create index widget_sessions_agent on widget_sessions (tenant_id, agent_id);
drop index widget_sessions_end_user;
create index widget_sessions_end_user on widget_sessions (tenant_id, end_user_id);
drop index widget_sessions_conversation;
create index widget_sessions_conversation on widget_sessions (tenant_id, conversation_id)
  where conversation_id is not null;

-- An agent, a source and a conversation decide their tenant: the planner is told, or takes few rows for far fewer.
create statistics sources_of_tenant (dependencies) on tenant_id, agent_id from sources;
create statistics documents_of_tenant (dependencies) on tenant_id, agent_id, source_id from documents;
create statistics chunks_of_tenant (dependencies) on tenant_id, agent_id, source_id, document_id from chunks;
create statistics chunk_embeddings_of_tenant (dependencies) on tenant_id, agent_id from chunk_embeddings;
create statistics conversations_of_tenant (dependencies) on tenant_id, agent_id, end_user_id from conversations;
create statistics messages_of_tenant (dependencies) on tenant_id, conversation_id from messages;
create statistics agent_runs_of_tenant (dependencies) on tenant_id, agent_id, conversation_id from agent_runs;

-- Jobs that wait name the tenant of what they are about.
update queue_jobs q set payload = q.payload || jsonb_build_object('tenantId', p.tenant_id) from ingestion_jobs p
  where q.queue = 'ingestion' and p.id = q.payload ->> 'jobId';
update queue_jobs q set payload = q.payload || jsonb_build_object('tenantId', p.tenant_id) from sources p
  where q.queue = 'embedding' and p.id = q.payload ->> 'sourceId';
update queue_jobs q set payload = q.payload || jsonb_build_object('tenantId', p.tenant_id) from channel_outbox p
  where q.queue = 'channel-outbound' and p.message_id = q.payload ->> 'messageId';
update queue_jobs q set payload = q.payload || jsonb_build_object('tenantId', p.tenant_id) from webhook_endpoints p
  where q.queue = 'webhook-outbound' and p.id = q.payload ->> 'endpointId';
-- What is left is about something that is gone: it finds nothing to do.
update queue_jobs set payload = payload || '{"tenantId": "gone"}'
  where queue in ('ingestion', 'embedding', 'channel-outbound', 'webhook-outbound') and payload -> 'tenantId' is null;
