/** `spoke export` and `spoke import`: a populated store from engine to engine, compared row by row. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as Fs from "node:fs"
import * as Path from "node:path"
import { isDeepStrictEqual } from "node:util"
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as Pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { layerEmbedded, layerPostgres } from "../../../src/store/Database.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { serverUrl } from "../../TestDatabase.ts"
import { ask, makeTenant, makeWorld, type World } from "../RouteWorld.ts"
import { command, removeFolder, run, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"
const operatorToken = "operator"
/** A server that has it, made by .ci/pgvector: an import fills the tables of the index, and searches go there. */
const pgvector = process.env["SPOKE_TEST_PGVECTOR_URL"]

/** Values that lose something on any way but as the database's own text; of tables that the server has left empty. */
const awkward = `
  insert into dedupe_keys (key, expires_at) values (E'quote " back \\\\ line \\n tab \\t \\u2028 é 漢 😀', '2199-01-01 00:00:00.123456+00');
  insert into provider_pauses (provider, until) values ('p', 'infinity');
  insert into billing_events (id, object_id, created, rank, fact, received_at)
    values ('evt_1', 'sub_1', 9007199254740993, 1, '{"n": 12345678901234567890.10, "t": "\\u2028"}', '2026-01-02 03:04:05.678901+00');
  insert into tenant_retention (tenant_id, conversations, due_at) select id, 30, 'infinity' from tenants limit 1;
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
  insert into user_invitations (tenant_id, token_hash, user_id, invited_by, role, expires_at)
    select tenant_id, '\\x00ff5c6e', id, id, 'agent', '2199-01-01' from users limit 1;
  insert into sso_connections (tenant_id, issuer, client_id, client_secret, trusts_email, group_roles, creates_people)
    select id, 'https://é.example', E'\\t', 'v1.a.b', false, '[{"group": "\\u2028", "role": "admin"}]', true from tenants limit 1;
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
  insert into passage_findings (tenant_id, id, agent_id, kind, chunk_id, other_chunk_id, said, other_said, reasons, weight)
    select tenant_id, 'fnd_1', agent_id, 'contradiction', id, id, E'\\N', 'é 漢 😀', '[{"kind": "same", "share": 0.1}]', 0.1
    from chunks limit 1;
  insert into corrections (tenant_id, id, agent_id, run_id, run_ids, question, answer, origin)
    select tenant_id, 'cor_1', agent_id, id, '["\u2028"]', E'\t', E'two\nlines', 'written' from agent_runs limit 1;
  insert into publish_thresholds (tenant_id, agent_id, min_pass, no_regression)
    select tenant_id, id, 0.1, true from agents limit 1 on conflict do nothing;
  insert into webhook_deliveries (tenant_id, event_id, endpoint_id, type, ids, answer_text)
    select tenant_id, 'evt_1', id, 'turn.settled', '{"n": 1.10}', E'\\u2028' from webhook_endpoints limit 1`

/** Rows of running processes, which no backup contains. */
const ofProcesses = ["instances", "rate_counters"]

describe.skipIf(skipped)("A store goes from engine to engine", () => {
  const folder = temporaryFolder()
  const dataDir = (name: string) => Path.join(folder, name)
  const file = (name: string) => Path.join(folder, `${name}.spoke`)
  const address = new URL("postgres://127.0.0.1")
  let world: World
  let secret = ""
  const scope = Effect.runSync(Scope.make())

  const onServer = async (name: string) => {
    const admin = new Pg.Client({ connectionString: address.href })
    await admin.connect()
    await admin.query(`create database ${name}`)
    await admin.end()
    const url = new URL(address)
    url.pathname = `/${name}`
    return {
      DATABASE_URL: url.href,
      SPOKE_DATA_DIR: dataDir(name),
      SPOKE_SECRET: secret,
      SPOKE_OPERATOR_TOKEN: operatorToken
    }
  }
  const embedded = (name: string) => ({
    SPOKE_DATA_DIR: dataDir(name),
    SPOKE_OPERATOR_TOKEN: operatorToken
  })

  const inside = <A, E>(
    variables: Readonly<Record<string, string>>,
    work: Effect.Effect<A, E, SqlClient.SqlClient>
  ) => {
    const url = variables["DATABASE_URL"]
    const database =
      url === undefined
        ? layerEmbedded({ dataDir: variables["SPOKE_DATA_DIR"] ?? "" })
        : layerPostgres({ url: Redacted.make(url), maxConnections: 1 })
    return Effect.runPromise(Effect.provide(work, database))
  }

  /** Every row of every table, as text. */
  const contents = (variables: Readonly<Record<string, string>>) =>
    inside(
      variables,
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`set time zone 'UTC'`
        const tables = yield* sql<{ name: string }>`
          select tablename as name from pg_tables where schemaname = 'public' and tablename not like '%migrations%'
            and tablename not like '%vector%' and tablename not in ('retrieval_recall', 'master_keys') order by 1`
        const all: Record<string, ReadonlyArray<string>> = {}
        for (const { name } of tables) {
          const rows = yield* sql<{ row: string }>`select t::text as row from ${sql(name)} t`
          all[name] = rows.map(({ row }) => row).toSorted()
        }
        return all
      })
    )

  const good = async (args: ReadonlyArray<string>, variables: Readonly<Record<string, string>>) => {
    const done = await run(args, variables)
    expect([done.code, done.code === 0 ? "" : done.stderr]).toEqual([0, ""])
    return done
  }

  const served = async <A>(
    variables: Readonly<Record<string, string>>,
    use: (spoke: Spoke) => Promise<A>
  ) => {
    const spoke = await start(variables["SPOKE_DATA_DIR"] ?? "", variables)
    try {
      return await use(spoke)
    } finally {
      await spoke.stop()
    }
  }

  const retrieve = (spoke: Spoke) =>
    ask(spoke, "POST", "/v1/retrieve", { key: world.key, body: { query: `secret of ${world.mark}` } })

  /** What a client sees: the old key works, searches find the same, files open. */
  const answers = async (spoke: Spoke) => {
    // The engines of search add up cosines in different orders.
    const found = JSON.parse((await retrieve(spoke)).text, (key, value) =>
      key === "score" ? Number(value.toFixed(6)) : value
    ).data
    const conversation = await ask(spoke, "GET", `/v1/conversations/${world.ids.ConversationId}`, {
      key: world.key
    })
    const original = await ask(spoke, "GET", `/v1/sources/${world.ids.SourceId}`, { key: world.key })
    const attached = await ask(
      spoke,
      "GET",
      `/api/sdk/attachments/${world.ids.attachment}?sessionId=${world.ids.SessionId}`,
      { key: world.key }
    )
    expect([conversation.status, original.status, attached.status]).toEqual([200, 200, 200])
    expect(attached.text).toContain(world.mark)
    return {
      attached: attached.text,
      found,
      conversation: JSON.parse(conversation.text).data,
      original: JSON.parse(original.text).data
    }
  }

  /** Its original is read anew, and found. */
  const synced = async (spoke: Spoke) => {
    const path = `/v1/sources/${world.ids.SourceId}`
    const queued = await ask(spoke, "POST", `${path}/sync`, { key: world.key })
    const { jobId } = JSON.parse(queued.text).data
    const job = await until(
      async () =>
        JSON.parse((await ask(spoke, "GET", `/v1/ingestion-jobs/${jobId}`, { key: world.key })).text),
      ({ data }) => !["QUEUED", "RUNNING"].includes(data.status)
    )
    expect(job.data).toMatchObject({ status: "SUCCEEDED", error: null })
    expect(JSON.parse((await retrieve(spoke)).text).data.chunks[0].text).toContain(world.mark)
  }

  const secretOf = (name: string): string =>
    JSON.parse(Fs.readFileSync(Path.join(dataDir(name), "secrets.json"), "utf8")).secret

  const originals = (name: string) =>
    Fs.readdirSync(Path.join(dataDir(name), "artifacts"), { recursive: true, encoding: "utf8" })
      .filter((entry) => /[0-9a-f]{64}$/u.test(entry))
      .toSorted()
      .map((entry) => [entry, Fs.readFileSync(Path.join(dataDir(name), "artifacts", entry), "base64")])

  const first = embedded("first")
  let before: Awaited<ReturnType<typeof contents>>
  let seen: Awaited<ReturnType<typeof answers>>

  beforeAll(async () => {
    address.href = pgvector ?? Redacted.value(await Effect.runPromise(serverUrl))
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    const model = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    await served({ ...first, ...model }, async (spoke) => {
      world = await makeWorld(spoke, await makeTenant(spoke, "moved"), "walnut")
      await until(
        () => retrieve(spoke),
        ({ text }) => JSON.parse(text).data.chunks?.length > 0
      )
      // With all vectors: a search is scored differently while some are missing.
      const embedding = `/v1/sources/${world.ids.SourceId}/embedding`
      await until(
        async () => JSON.parse((await ask(spoke, "GET", embedding, { key: world.key })).text),
        ({ data }) => data.chunks > 0 && data.embedded === data.chunks,
        120_000
      )
      seen = await answers(spoke)
    })
    secret = secretOf("first")
    await inside(
      first,
      Effect.flatMap(SqlClient.SqlClient, (sql) => sql.unsafe(awkward))
    )
    before = await contents(first)
  }, 240_000)

  afterAll(async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  it("from the embedded database to PostgreSQL, there again, and back, with every row and every original", async () => {
    const empty = Object.entries(before).filter(([, rows]) => rows.length === 0)
    expect(empty.map(([name]) => name).filter((name) => !ofProcesses.includes(name))).toEqual([])
    expect(Object.keys(before).length).toBeGreaterThan(35)
    const [second, third] = [await onServer("second"), await onServer("third")]
    const fourth = { ...embedded("fourth"), SPOKE_SECRET: secret }
    const way = [first, second, third, fourth] as const
    for (const [index, from] of way.slice(0, -1).entries()) {
      const to = way[index + 1] ?? from
      const archive = file(`way-${index}`)
      const { stdout } = await good(["export", archive], from)
      expect(stdout).toMatch(/^\d+ rows and \d+ originals exported/u)
      expect(Fs.statSync(archive).mode & 0o777).toBe(0o600)
      await good(["import", archive], to)
      expect(await contents(to)).toEqual(before)
      expect(originals(Path.basename(to.SPOKE_DATA_DIR))).toEqual(originals("first"))
    }
    for (const to of [second, fourth]) {
      // Until its vectors are loaded, a search answers by words alone.
      const same = async (spoke: Spoke) =>
        until(
          () => answers(spoke),
          (found) => isDeepStrictEqual(found, seen)
        )
      expect(await served(to, same)).toEqual(seen)
      await served(to, synced)
    }
    if (pgvector !== undefined) {
      const indexed = Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => sql`select count(*) > 0 as filled from vector_profiles`
      )
      expect(await inside(second, indexed)).toEqual([{ filled: true }])
    }
    const counted = Effect.flatMap(
      SqlClient.SqlClient,
      (sql) => sql<{ on: boolean }>`
        select nextval(pg_get_serial_sequence('queue_jobs', 'seq')) > max(seq) as on from queue_jobs`
    )
    expect(await inside(third, counted)).toEqual([{ on: true }])
  }, 170_000)

  /** Imports, and ends the command (-9) as soon as `told` is in what it prints: in the middle of the rows. */
  const importKilled = async (archive: string, variables: Readonly<Record<string, string>>, told: string) => {
    const child = spawn(process.execPath, [command, "import", archive], {
      env: { ...process.env, ...variables },
      stdio: ["ignore", "ignore", "pipe"]
    })
    let output = ""
    child.stderr.on("data", (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes(told)) child.kill("SIGKILL")
    })
    await once(child, "close")
    return child.signalCode
  }

  it("again after a command that was killed (-9) on its way: it has left nothing, and nothing is doubled", async () => {
    const archive = file("killed")
    await good(["export", archive], first)
    const server = await onServer("killed")
    await good(["migrate"], server)
    // Keeps the import from going past the table.
    const admin = new Pg.Client({ connectionString: server.DATABASE_URL })
    await admin.connect()
    await admin.query("begin; lock table users in share mode")
    expect(await importKilled(archive, server, "tenant_usage")).toBe("SIGKILL")
    await admin.query("rollback")
    await admin.end()
    const embeddedStore = { ...embedded("killed-embedded"), SPOKE_SECRET: secret }
    expect(await importKilled(archive, embeddedStore, "agents")).toBe("SIGKILL")
    for (const to of [server, embeddedStore]) {
      await good(["import", archive], to)
      expect(await contents(to)).toEqual(before)
      expect(originals(Path.basename(to.SPOKE_DATA_DIR))).toEqual(originals("first"))
    }
  }, 120_000)

  it("with its generated secret only where that was asked for", async () => {
    const to = embedded("given")
    await good(["export", file("without")], first)
    const refused = await run(["import", file("without")], to)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain("another master secret")
    await good(["export", "--with-secret", file("with")], first)
    await good(["import", file("with")], to)
    expect(secretOf("given")).toBe(secret)
    expect(Fs.statSync(Path.join(dataDir("given"), "secrets.json")).mode & 0o777).toBe(0o600)
    expect(await contents(to)).toEqual(before)
  }, 120_000)

  it("not where there is something already, under another secret, or from a file that is not whole: nothing is changed", async () => {
    const archive = file("refusals")
    await good(["export", archive], first)
    const again = await run(["export", archive], first)
    expect(again.stderr).toContain("is there already")
    const full = await run(["import", archive], first)
    expect(full.code).toBe(1)
    expect(full.stderr).toContain("The database is not empty")
    expect(await contents(first)).toEqual(before)
    const empty = await onServer("refusals")
    const other = await run(["import", archive], {
      ...empty,
      SPOKE_SECRET: "thirty-two bytes that nobody has used"
    })
    expect(other.code).toBe(1)
    expect(other.stderr).toContain("another master secret")
    const bytes = Fs.readFileSync(archive)
    for (const [name, part] of [
      ["cut", bytes.subarray(0, bytes.length * 0.7)],
      ["shorter", bytes.subarray(0, bytes.length - 9)],
      ["turned", Buffer.from(bytes.map((byte, index) => (index === bytes.length >> 1 ? byte ^ 1 : byte)))]
    ] as const) {
      Fs.writeFileSync(file(name), part)
      const { code, stderr } = await run(["import", file(name)], empty)
      expect([name, code]).toEqual([name, 1])
      expect(stderr).toContain("not a whole archive")
    }
    await good(["import", archive], empty)
    expect(await contents(empty)).toEqual(before)
  }, 120_000)
})
