/**
 * Rows of past turns, as the service would have left them: conversations, messages, runs with their traces and passages.
 * They are made by the database itself, in batches, on the schema of release 0.1.0 or a later one. Ids begin with their
 * moment, as those of the service do.
 */

/** The id of a moment in milliseconds. The number makes it unique. Short enough to be computed without a call. */
const functions = [
  `create function pg_temp.digit(ms bigint, place int) returns text language sql immutable as
    $$ select substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + ((ms >> (5 * place)) & 31)::int, 1) $$`,
  `create function pg_temp.id_of(prefix text, ms bigint, number bigint) returns text language sql immutable as $$
    select prefix || '_' || pg_temp.digit(ms, 9) || pg_temp.digit(ms, 8) || pg_temp.digit(ms, 7) || pg_temp.digit(ms, 6)
      || pg_temp.digit(ms, 5) || pg_temp.digit(ms, 4) || pg_temp.digit(ms, 3) || pg_temp.digit(ms, 2)
      || pg_temp.digit(ms, 1) || pg_temp.digit(ms, 0) || lpad(to_hex(number), 16, '0')
  $$`,
  // From a vocabulary of 4,096 words.
  `create function pg_temp.words(seed bigint, count int) returns text language sql immutable as $$
    select string_agg(substr(md5((seed * 7919 + n * n) % 4096 || ' '), 1, 4 + n % 7), ' ') from generate_series(1, count) n
  $$`,
  // Rows take one of 2,000 texts of each length, and their number.
  `create temp table texts (place int primary key, question text not null, query text not null, reply text not null,
    passage text not null)`,
  `insert into texts select n, pg_temp.words(n, 9), pg_temp.words(n, 40), pg_temp.words(n, 45), pg_temp.words(n, 100)
    from generate_series(0, 1999) n`,
  "analyze texts",
  `create temp table owners (place int primary key, tenant_id text not null, agent_id text not null)`
]

/** Indexes that are faster to build again than to maintain. */
const slowIndexes = ["messages_words", "end_users_words"]

/**
 * The conversations $1 to $2 of $5, with number, owner, person, moment and text. The last one begins at $6, the first one $3
 * days before.
 */
const conversation = `from (
    select n, $6::timestamptz - $3::float8 * interval '1 day' * (1 - n::float8 / $5::int) as at,
      (extract(epoch from $6::timestamptz - interval '400 days') * 1000)::bigint as person_ms
    from generate_series($1::int, $2::int) n offset 0
  ) given
  cross join lateral (select (extract(epoch from at) * 1000)::bigint as ms offset 0) moment
  join owners o on o.place = n % (select count(*) from owners)
  join texts t on t.place = n % 2000`

/** Their $4 turns, one a minute. */
const turn = `${conversation}
  cross join generate_series(1, $4::int) turn
  cross join lateral (
    select at + turn * interval '1 minute' as began, ms + turn * 60000 as began_ms, n * 1000::bigint + 2 * turn as number offset 0
  ) start`

const statements = {
  people: `insert into end_users (id, tenant_id, external_id, created_at)
    select pg_temp.id_of('usr', person_ms, n), tenant_id, 'filled-' || n, at ${conversation} where $4::int > 0`,
  conversations: `insert into conversations (id, tenant_id, agent_id, end_user_id, channel, message_count, tickets, served, created_at, updated_at)
    select pg_temp.id_of('cnv', ms, n), tenant_id, agent_id, pg_temp.id_of('usr', person_ms, n), 'api',
      2 * $4::int, $4::int, $4::int, at, at + $4::int * interval '1 minute'
    ${conversation}`,
  runs: `insert into agent_runs (id, tenant_id, agent_id, agent_version, conversation_id, ticket, instance_id, user_message_id,
      user_message, message_id, period_start, status, started_at, completed_at, first_text_ms, cost_nano, unpriced_calls)
    select pg_temp.id_of('run', began_ms, number), tenant_id, agent_id, 1, pg_temp.id_of('cnv', ms, n), turn, 'ins_filled',
      pg_temp.id_of('msg', began_ms, number), question || ' ' || n, pg_temp.id_of('msg', began_ms, number + 1),
      date_trunc('month', began), 'complete', began, began + interval '2 seconds', 700, 20100, 0
    ${turn}`,
  messages: `insert into messages (id, tenant_id, conversation_id, agent_id, position, role, author, content, input_tokens, output_tokens, created_at)
    select pg_temp.id_of('msg', began_ms, number + half), tenant_id, pg_temp.id_of('cnv', ms, n), agent_id, 2 * turn - 1 + half,
      case half when 0 then 'user' else 'assistant' end, case half when 1 then 'agent' end,
      case half when 0 then question else t.reply end || ' ' || n, 900, 90, began
    ${turn} cross join generate_series(0, 1) half`,
  events: `insert into agent_run_events (tenant_id, run_id, sequence, type, status, label, payload, at)
    select tenant_id, run_id, sequence, (array['run.started', 'retrieval.completed', 'model.completed', 'run.completed'])[sequence],
      case sequence when 4 then 'complete' else 'running' end, 'Wrote a reply',
      case when sequence in (2, 3) then jsonb_build_object('query', query) end, began
    ${turn} cross join lateral (select pg_temp.id_of('run', began_ms, number) as run_id offset 0) run
    cross join generate_series(1, 4) sequence`,
  passages: `insert into run_passages (tenant_id, run_id, number, hash, source_id, document_id, chunk_id, score)
    select tenant_id, run_id, rank, sha256(text::bytea), 'src_filled', 'doc_' || text, 'chk_' || text, 0.5
    ${turn} cross join lateral (select pg_temp.id_of('run', began_ms, number) as run_id offset 0) run
    cross join lateral (
      select rank, lpad(((n * 7 + turn * 13 + rank) % 1000)::text, 26, '0') as text from generate_series(1, 6) rank offset 0
    ) shown`
}

/**
 * `conversations` of `turns` turns each, of the last `days` days, oldest first, for each of the `owners` in turn.
 * `run(text, values)` is one connection. Without `searchable` the index of words, which takes longer than all rows, is
 * left out. Each run has four events and six passages, each tenant 1,000 texts of passages.
 */
export const fillTurns = async (
  run,
  owners,
  { batch = 10_000, conversations, days, searchable = true, turns }
) => {
  await run("set session_replication_role = replica")
  for (const text of functions) await run(text)
  for (const [place, { agentId, tenantId }] of owners.entries())
    await run("insert into owners values ($1, $2, $3)", [place, tenantId, agentId])
  const { rows } = await run(
    "select indexname as name, indexdef as definition from pg_indexes where indexname = any($1)",
    [slowIndexes]
  )
  for (const { name } of rows) await run(`drop index ${name}`)
  await run(`insert into passages (tenant_id, hash, source_name, title, heading, url, content)
    select o.tenant_id, sha256(lpad(t.place::text, 26, '0')::bytea), 'Handbook', 'Handbook', '', 'https://help.example.com/', passage
    from owners o, texts t where t.place < 1000 on conflict do nothing`)
  // All statements make the same ids from it.
  const until = new Date().toISOString()
  for (let first = 1; first <= conversations; first += batch) {
    const last = Math.min(conversations, first + batch - 1)
    const parameters = [first, last, days, turns, conversations, until]
    for (const text of Object.values(statements)) await run(text, parameters)
  }
  if (searchable) for (const { definition } of rows) await run(definition)
  await run("drop table owners")
  await run("set session_replication_role = origin")
}

/** Writes `chunks` chunks with vectors of 384 dimensions, ten in each document, in one source of each owner. */
export const fillChunks = async (run, owners, chunks, batch = 20_000) => {
  await run("set session_replication_role = replica")
  const each = Math.ceil(chunks / owners.length / 10) * 10
  for (const [place, { agentId, tenantId }] of owners.entries()) {
    const number = String(place).padStart(6, "0")
    const values = [tenantId, agentId, `src_filled_${number}`]
    await run(
      `insert into sources (tenant_id, agent_id, id, type, name, status, config, live_generation, last_synced_at)
      values ($1, $2, $3, 'URL', 'Help', 'READY', '{"url": "https://help.example.com/", "autoSync": false}', 1, now())`,
      values
    )
    await run(
      `insert into documents (tenant_id, agent_id, source_id, id, generation, uri, title, content_hash, index_format)
      select $1, $2, $3, 'doc_${number}' || lpad(n::text, 20, '0'), 1, 'https://help.example.com/' || n, 'Article ' || n, '\\x00', 3
      from generate_series(0, ${each / 10 - 1}) n`,
      values
    )
    for (let first = 0; first < each; first += batch) {
      const numbers = `generate_series(${first}, ${Math.min(each, first + batch) - 1}) n`
      await run(
        `insert into chunks (tenant_id, agent_id, source_id, id, generation, document_id, ordinal, content, content_hash, tsv, length, version)
        select $1, $2, $3, 'chk_${number}' || lpad(n::text, 20, '0'), 1, 'doc_${number}' || lpad((n / 10)::text, 20, '0'), n % 10,
          text, '\\x00', to_tsvector('simple', text), 60, 1
        from ${numbers}, lateral (select passage || ' ' || n as text from texts where place = (n + ${place}) % 2000) made`,
        values
      )
      await run(
        `insert into chunk_embeddings (tenant_id, agent_id, chunk_id, profile, version, embedding)
        select $1, $2, 'chk_${number}' || lpad(n::text, 20, '0'), 'filled/384', 1, decode(repeat(md5(n || $3), 96), 'hex')
        from ${numbers}`,
        values
      )
    }
    await run(
      "insert into agent_stats (tenant_id, agent_id, chunk_count, length_sum, version, profile) values ($1, $2, $3::int, $3::int * 60, 1, 'filled/384')",
      [tenantId, agentId, each]
    )
  }
  await run("set session_replication_role = origin")
}
