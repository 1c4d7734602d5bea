/**
 * Rows for the tables that the requests of `makeWorld` leave empty. Their values change unless they are copied as the
 * database's own text.
 */
export const awkwardRows = `
  insert into dedupe_keys (key, expires_at) values (E'quote " back \\\\ line \\n tab \\t \\u2028 é 漢 😀', '2199-01-01 00:00:00.123456+00');
  insert into provider_pauses (provider, until) values ('p', 'infinity');
  insert into billing_events (id, object_id, created, rank, fact, received_at)
    values ('evt_1', 'sub_1', 9007199254740993, 1, '{"n": 12345678901234567890.10, "t": "\\u2028"}', '2026-01-02 03:04:05.678901+00');
  insert into tenant_retention (tenant_id, conversations, due_at) select id, 30, 'infinity' from tenants limit 1
    on conflict (tenant_id) do update set conversations = excluded.conversations, due_at = excluded.due_at;
  insert into tenant_storage (tenant_id, bytes, counted_at, due_at)
    select id, '{"messages": 9007199254740993}', '2026-01-02 03:04:05.678901+00', 'infinity' from tenants
    on conflict (tenant_id) do update set bytes = excluded.bytes, counted_at = excluded.counted_at, due_at = excluded.due_at;
  insert into tenant_credits (tenant_id, granted, used) select id, 9007199254740993, 7 from tenants;
  insert into channel_inbox (id, channel, account_id, message_id, event, raw, state, outcome, received_at, processed_at)
    select 'inb_1', channel, external_id, 'wamid.1', '{"text": "\\u2028 é 漢 😀"}', '{"entry": [1.10, 1e400]}', 'processed', 'answered',
      '2026-01-02 03:04:05.678901+00', 'infinity' from channels limit 1;
  insert into agent_widgets (agent_id, tenant_id, public_id, key_id, look)
    select k.agent_id, k.tenant_id, 'wgt_1', k.id, '{"position": "left", "avatar": "\u2028 é 漢 😀"}' from api_keys k where k.agent_id is not null limit 1;
  insert into channel_outbox (id, tenant_id, conversation_id, channel_id, message_id, part, author, epoch, body, media, state,
      attempts, resent, provider_message_id, delivery, last_error, sent_at)
    select 'out_1', c.tenant_id, c.id, h.id, m.id, 2, 'agent', 9007199254740993, E'two\\nlines \\\\ é 漢 😀', '{"type": "image"}', 'sent',
      2, true, 'wamid.2', 'read', E'\\t', '2026-01-02 03:04:05.678901+00'
    from conversations c join channels h using (agent_id) join messages m on m.conversation_id = c.id limit 1;
  insert into end_user_aliases (tenant_id, channel, kind, value, end_user_id)
    select tenant_id, 'whatsapp', 'phone', '491700000001', id from end_users limit 1;
  insert into artifact_claims (id, ref, expires_at) select 'acl_1', ref, 'infinity' from artifacts limit 1;
  insert into email_logs (id, recipient, kind, status) values ('eml_1', 'ops@example.com', 'job_failed', 'sent');
  insert into source_secrets (tenant_id, source_id, sealed) select tenant_id, id, 'v1.é' from sources limit 1;
  insert into source_readings (tenant_id, source_id, cursor, digest, generation, pass_digest, position, steps, lines)
    select tenant_id, id, '{"at": 1.10}', E'\\t', 9007199254740993, 'é', '{"more": null}', 2, 3 from sources limit 1;
  insert into embedding_failures (tenant_id, source_id, profile, message) select tenant_id, id, 'p', E'\\u0001' from sources limit 1;
  insert into idempotency_keys (tenant_id, agent_id, key_id, idempotency_key, response)
    select tenant_id, agent_id, id, 'é', '{"n": 1.10}' from api_keys where agent_id is not null limit 1;
  insert into manage_answers (tenant_id, token_id, idempotency_key, request_hash, answer)
    select tenant_id, id, 'é', '\\x00ff5c6e', 'v1.1.sealed' from access_tokens limit 1;
  insert into turn_claims (tenant_id, agent_id, key_id, idempotency_key, request_hash, run_id)
    select tenant_id, agent_id, id, E'\\t', 'hash', 'run_1' from api_keys where agent_id is not null limit 1;
  insert into login_failures (email, address) values ('nobody@example.com', '127.0.0.1');
  insert into message_feedback (tenant_id, message_id, conversation_id, rating, comment)
    select tenant_id, id, conversation_id, -1, E'\\\\N' from messages limit 1;
  insert into passages (tenant_id, hash, source_name, title, heading, url, content)
    select id, '\\x00ff5c6e', E'\\t', 'é', '', 'upload:/\u2028', E'two\\nlines' from tenants where id in (select tenant_id from agent_runs) limit 1;
  insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
    select r.tenant_id, r.id, 99, p.hash, 'src_1', 'doc_1', 'chk_1', 0.1 from agent_runs r
    join passages p on p.tenant_id = r.tenant_id and p.hash = '\\x00ff5c6e' limit 1;
  insert into question_vectors (tenant_id, run_id, profile, embedding)
    select tenant_id, id, E'\\t', '\\x00ff5c6e' from agent_runs limit 1 on conflict do nothing;
  insert into conversation_reads (tenant_id, user_id, conversation_id, position)
    select c.tenant_id, u.id, c.id, 9007199254740993 from conversations c join users u using (tenant_id) limit 1;
  insert into inbox_items (tenant_id, id, kind, name, content)
    select id, 'lbl_1', 'label', E'\t é 漢 😀', '{"tone": "good", "n": 1.10}' from tenants;
  insert into conversation_labels (tenant_id, conversation_id, label_id) select tenant_id, id, 'lbl_1' from conversations;
  insert into conversation_entries (tenant_id, id, conversation_id, position, kind, content)
    select tenant_id, 'ent_' || id, id, 9007199254740993, 'note', E'two\nlines \u2028 \\N' from conversations;
  insert into budgets (tenant_id, id, key_id, period, limit_nano)
    select tenant_id, 'bgt_1', id, 'month', 9007199254740993 from api_keys where agent_id is not null limit 1;
  insert into budget_periods (tenant_id, budget_id, period_start, spent_nano)
    select tenant_id, id, '2026-01-01 00:00:00+00', 9007199254740993 from budgets where id = 'bgt_1';
  insert into budget_holds (tenant_id, run_id, budget_id, period_start, nano, instance_id, ends_by)
    select tenant_id, 'run_1', budget_id, period_start, 9007199254740993, 'i', 'infinity' from budget_periods where budget_id = 'bgt_1';
  insert into gap_searches (tenant_id, due_at) select id, 'infinity' from tenants;
  insert into reported_gaps (tenant_id, id, threshold, run_ids) select id, 'grp_1', 5, array['run_1', E'\\u2028 é 漢 😀'] from tenants;
  insert into model_usage (tenant_id, agent_id, period_start, model, calls, cost_nano)
    select tenant_id, id, 'infinity', 'é/漢 😀', 9007199254740993, 9007199254740993 from agents limit 1;
  insert into other_model_usage (tenant_id, agent_id, period_start, day, kind, calls, cost_nano)
    select tenant_id, id, 'infinity', 'infinity', 'judge', 9007199254740993, 9007199254740993 from agents limit 1;
  insert into user_invitations (tenant_id, token_hash, user_id, invited_by, role, expires_at)
    select tenant_id, '\\x00ff5c6e', id, id, 'agent', '2199-01-01' from users limit 1;
  insert into sso_connections (tenant_id, issuer, client_id, client_secret, trusts_email, group_roles, creates_people)
    select id, 'https://é.example', E'\\t', 'v1.a.b', false, '[{"group": "\\u2028", "role": "admin"}]', true from tenants limit 1;
  insert into tool_connections (tenant_id, tool_id, basis, state, server, expires_at)
    select tenant_id, id, E'\\u2028', 'refused', '{"issuer": "é"}', 'infinity' from tools limit 1;
  insert into tool_sign_ins (tenant_id, tool_id, session_hash, state_hash, flow, expires_at)
    select t.tenant_id, t.id, s.token_hash, '\\x00ff5c6e', E'\\t', 'infinity'
    from tools t join user_sessions s on s.tenant_id = t.tenant_id limit 1;
  insert into sso_domains (tenant_id, domain, confirmed_at) select id, 'a.example', 'infinity' from tenants limit 1;
  insert into passkeys (tenant_id, id, user_id, name, credential_id, public_key, counter, backed_up, used_at)
    select tenant_id, 'psk_1', id, E'\\u2028', 'AA-_', '\\x00ff5c6e', 4294967295, true, 'infinity' from users limit 1;
  insert into scim_tokens (tenant_id, prefix, secret_hash, used_at)
    select tenant_id, E'\\t', '\\x00ff5c6e', 'infinity' from sso_connections limit 1;
  insert into scim_groups (tenant_id, id, name, external_id) select id, 'grp_1', E'\\u2028', 'é' from tenants limit 1;
  insert into scim_group_members (tenant_id, group_id, user_id)
    select g.tenant_id, g.id, u.id from scim_groups g join users u on u.tenant_id = g.tenant_id limit 1;
  insert into user_identities (tenant_id, issuer, subject, user_id)
    select tenant_id, 'https://é.example', E'\\n', id from users limit 1;
  insert into passage_scans (tenant_id, agent_id, version, chunk_id, touched_at, stale_at)
    select tenant_id, id, 9007199254740993, 'é', 'infinity', 'infinity' from agents on conflict do nothing;
  insert into passage_statements (tenant_id, agent_id, anchor, chunk_id, place)
    select tenant_id, agent_id, 9007199254740993, id, 7 from chunks limit 1 on conflict do nothing;
  insert into passage_exclusions (tenant_id, source_id, text_hash, agent_id)
    select tenant_id, id, '\\x00ff5c6e', agent_id from sources limit 1;
  insert into passage_findings (tenant_id, id, agent_id, kind, chunk_id, other_chunk_id, said, other_said, reasons, weight)
    select tenant_id, 'fnd_1', agent_id, 'contradiction', id, id, E'\\N', 'é 漢 😀', '[{"kind": "same", "share": 0.1}]', 0.1
    from chunks limit 1;
  insert into corrections (tenant_id, id, agent_id, run_id, run_ids, question, answer, origin)
    select tenant_id, 'cor_1', agent_id, id, '["\u2028"]', E'\t', E'two\nlines', 'written' from agent_runs limit 1;
  insert into publish_thresholds (tenant_id, agent_id, min_pass, no_regression)
    select tenant_id, id, 0.1, true from agents limit 1 on conflict do nothing;
  insert into webhook_deliveries (tenant_id, event_id, endpoint_id, type, ids, answer_text)
    select tenant_id, 'evt_1', id, 'turn.settled', '{"n": 1.10}', E'\\u2028' from webhook_endpoints limit 1`

/** Tables of running processes and moves. A copy of a store does not contain their rows. */
export const processTables = [
  "instances",
  "passage_sweep",
  "rate_counters",
  "tenant_moves",
  "tenant_moves_changes",
  "tenant_moves_jobs",
  "tenant_moves_parts"
]
