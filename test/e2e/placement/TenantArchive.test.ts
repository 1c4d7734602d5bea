/** `spoke tenant export` and `spoke tenant import`: one tenant, beside others, under another master secret. */
import * as Fs from "node:fs"
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as DerivedKeys from "../../../src/capabilities/SecretBox/DerivedKeys.ts"
import { SecretBox } from "../../../src/capabilities/SecretBox.ts"
import { filesBelow } from "../../Archives.ts"
import * as ModelStub from "../../servers/ModelStub.ts"
import { ordinary } from "../../servers/OrdinaryRole.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { awkwardRows } from "../AwkwardRows.ts"
import { ask, csrf, makeTenant, makeWorld, type Owner, type World } from "../routes/RouteWorld.ts"
import { removeFolder, run, type Spoke, temporaryFolder, until } from "../Spoke.ts"
import {
  type Contents,
  embedded,
  runSuccessfully,
  onServer,
  query,
  rowsOf,
  serve,
  whileServing,
  spawnCommand,
  type Variables,
  withoutSweptRows
} from "./Installation.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

describe.skipIf(skipped)("One tenant", () => {
  const folder = temporaryFolder()
  const archive = Path.join(folder, "walnut")
  const keyFile = Path.join(folder, "transfer.key")
  const key = "a key for the transfer of one tenant, from openssl"
  const scope = Effect.runSync(Scope.make())
  const first = embedded(folder, "first")
  let model: Variables = {}
  let walnut: World
  let before: Contents

  const found = async (spoke: Spoke, world: World) => {
    const { text } = await ask(spoke, "POST", "/v1/retrieve", {
      key: world.key,
      body: { query: `secret of ${world.mark}` }
    })
    return JSON.parse(text).data?.chunks?.[0]?.text
  }

  /** What a client of the tenant sees. */
  const isServed = async (spoke: Spoke, world: World) => {
    await until(
      () => found(spoke, world),
      (text) => text?.includes(world.mark) === true
    )
    const conversation = await ask(spoke, "GET", `/v1/conversations/${world.ids.ConversationId}`, {
      key: world.key
    })
    const attached = await ask(
      spoke,
      "GET",
      `/api/sdk/attachments/${world.ids.attachment}?sessionId=${world.ids.SessionId}`,
      { key: world.key }
    )
    const managed = await ask(spoke, "GET", `/api/manage/v1/agents/${world.ids.AgentId}`, {
      headers: { authorization: `Bearer ${world.token}` }
    })
    expect([conversation.status, attached.status, managed.status]).toEqual([200, 200, 200])
    expect(attached.text).toContain(world.mark)
    const asked = await ask(spoke, "POST", "/v1/chat", { key: world.key, body: { message: "Hello" } })
    expect(asked.status).toBe(200)
  }

  /** A copy of the archive in which one file of `below` is changed. */
  const damagedCopy = (name: string, below: string, damage: (bytes: Buffer) => Buffer) => {
    const copy = Path.join(folder, name)
    Fs.cpSync(archive, copy, { recursive: true })
    const file = filesBelow(copy).find((each) => each.name.startsWith(below))
    if (file === undefined) throw new Error(`The archive has no file ${below}`)
    Fs.writeFileSync(Path.join(copy, file.name), damage(file.bytes))
    return copy
  }

  const cutOff = (bytes: Buffer) => bytes.subarray(0, -5)

  const withOthers = async (variables: Variables, name: string) => {
    const spoke = await serve(variables)
    const world = await makeWorld(spoke, await makeTenant(spoke, name), name)
    return { spoke, world }
  }

  /** Secrets of kinds that the world has none of. */
  const addSecrets = async (spoke: Spoke, { cookie }: Owner, { ids, mark, token }: World) => {
    const tool = {
      name: `stock_${mark}`,
      description: mark,
      parameters: { type: "object", properties: {} },
      http: { method: "GET", url: "https://shop.example/stock" },
      auth: { kind: "bearer", secret: `tool-${mark}` }
    }
    const by = { headers: { authorization: `Bearer ${token}`, "idempotency-key": mark } }
    const made = await Promise.all([
      ask(spoke, "POST", `/api/agents/${ids.AgentId}/tools`, { cookie, headers: csrf, body: tool }),
      ask(spoke, "POST", `/api/webhook-endpoints/${ids.WebhookId}/rotate`, { cookie, headers: csrf }),
      ask(spoke, "POST", "/api/manage/v1/agents", { ...by, body: { name: mark } })
    ])
    expect(made.map(({ status, text }) => (status < 300 ? "" : text))).toEqual(["", "", ""])
  }

  beforeAll(async () => {
    Fs.writeFileSync(keyFile, `${key}\n`, { mode: 0o600 })
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    model = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
    await whileServing({ ...first, ...model }, async (spoke) => {
      const owner = await makeTenant(spoke, "walnut")
      walnut = await makeWorld(spoke, owner, "walnut")
      await addSecrets(spoke, owner, walnut)
      const embedding = `/v1/sources/${walnut.ids.SourceId}/embedding`
      await until(
        async () => JSON.parse((await ask(spoke, "GET", embedding, { key: walnut.key })).text),
        ({ data }) => data.chunks > 0 && data.embedded === data.chunks,
        120_000
      )
    })
    // Such rows are made for any tenant, so there is only this one.
    await query(first, `delete from tenants where id <> '${walnut.tenantId}'`)
    await query(first, awkwardRows)
    // A reservation whose process is gone is released by any server that runs, here and where it arrives.
    await query(first, "delete from budget_holds")
    await whileServing({ ...first, ...model }, async (spoke) => {
      await makeWorld(spoke, await makeTenant(spoke, "almond"), "almond")
    })
    before = await rowsOf(first, walnut.tenantId)
    await runSuccessfully(["tenant", "export", walnut.tenantId, archive, "--key-file", keyFile], first)
  }, 300_000)

  afterAll(async () => {
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  it("is exported from every table with rows of tenants, without rows of others and without a secret in plain text", () => {
    // Bills and mails of this tenant are made by no route of the world, and no turn runs.
    const empty = Object.entries(before).flatMap(([name, rows]) => (rows.length === 0 ? [name] : []))
    expect(empty.toSorted()).toEqual(["billing_events", "budget_holds", "email_logs"])
    const files = filesBelow(archive)
    const text = files.map(({ bytes }) => bytes.toString("latin1")).join("\n")
    expect(text).toContain("walnut")
    expect(text).not.toContain("almond")
    expect(text).not.toContain("token-walnut")
    expect(text).not.toContain("tool-walnut")
    expect(text).not.toContain(key)
    for (const { name } of files) expect(Fs.statSync(Path.join(archive, name)).mode & 0o777).toBe(0o600)
  })

  it("has sealed values in no column that does not say so", async () => {
    const { secret } = JSON.parse(Fs.readFileSync(Path.join(folder, "first", "secrets.json"), "utf8"))
    const id = DerivedKeys.keyIdOf(Redacted.make(secret))
    const columns = await query(
      first,
      `select c.relname as "table", a.attname as "column", col_description(c.oid, a.attnum) as comment
       from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and format_type(a.atttypid, null) in ('text', 'jsonb')`
    )
    const texts = columns.map(
      (one) =>
        `select '${String(one["table"])}.${String(one["column"])}' as name, '${String(one["comment"])}' as comment
         where exists (select from "${String(one["table"])}" where "${String(one["column"])}"::text like '%v1.${id}.%')`
    )
    const sealed = await query(first, texts.join(" union all "))
    expect(sealed.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "channels.access_token",
        "manage_answers.answer",
        "tools.secret",
        "webhook_endpoints.previous_secret",
        "webhook_endpoints.secret"
      ])
    )
    expect(sealed.filter(({ comment }) => !String(comment).startsWith("sealed: "))).toEqual([])
  })

  it("arrives beside other tenants of a running server with another master secret, under row level security, and is served", async () => {
    const { role, url } = await ordinary()
    const second = await onServer(folder, "second", {
      DATABASE_URL: url,
      SPOKE_TENANT_ROLE: role,
      ...model,
      // Its agents answer with vectors of another model.
      SPOKE_EMBEDDING_MODEL: "text-embedding-3-small"
    })
    const { spoke, world: pecan } = await withOthers(second, "pecan")
    try {
      const others = await rowsOf(second, pecan.tenantId)
      const { stdout } = await runSuccessfully(["tenant", "import", archive, "--key-file", keyFile], second)
      expect(stdout).toMatch(/^\d+ rows and \d+ originals imported and compared/u)
      expect(await rowsOf(second, walnut.tenantId)).toEqual(before)
      expect(withoutSweptRows(await rowsOf(second, pecan.tenantId))).toEqual(withoutSweptRows(others))
      for (const table of ["tenant_moves", "tenant_moves_changes", "tenant_moves_jobs", "tenant_moves_parts"])
        expect(await query(second, `select * from ${table}`)).toEqual([])
      expect(await query(second, `select tgname from pg_trigger where tgname like 'tenant_moves%'`)).toEqual(
        []
      )

      const box = await Effect.runPromise(
        Effect.provide(SecretBox, DerivedKeys.layer([Redacted.make(second["SPOKE_SECRET"] ?? "")]))
      )
      const [channel] = await query(
        second,
        `select access_token as sealed from channels where tenant_id = '${walnut.tenantId}' and external_id = (
          select min(external_id) from channels where tenant_id = '${walnut.tenantId}')`
      )
      const token = await Effect.runPromise(box.open("channel-token", String(channel?.["sealed"])))
      expect(Option.getOrThrow(token)).toBe("token-walnut")

      await isServed(spoke, walnut)
      await isServed(spoke, pecan)
      const again = await run(["tenant", "import", archive, "--key-file", keyFile], second)
      expect([again.code, again.stderr]).toEqual([
        1,
        expect.stringContaining("has a tenant with this id already")
      ])
      await isServed(spoke, walnut)
    } finally {
      await spoke.stop()
    }
  }, 240_000)

  it("is served by nobody while it arrives; after kill -9 the import continues, or is taken back", async () => {
    const third = await onServer(folder, "third", model)
    const { spoke, world: pecan } = await withOthers(third, "hazel")
    try {
      const others = await rowsOf(third, pecan.tenantId)
      const importing = ["tenant", "import", archive, "--key-file", keyFile]
      expect(await spawnCommand(importing, third).killAt("conversations ")).toBe("SIGKILL")
      const early = await ask(spoke, "GET", "/v1/sources", { key: walnut.key })
      expect([early.status, JSON.parse(early.text).error.message]).toEqual([
        503,
        "This account is being imported. Try again later."
      ])
      // What an archive has stored can be removed without the archive's rows.
      const broken = damagedCopy("broken", "rows/messages-", cutOff)
      await runSuccessfully(["tenant", "import", broken, "--discard"], third)
      const nothing = Object.entries(await rowsOf(third, walnut.tenantId)).filter(
        ([, rows]) => rows.length > 0
      )
      expect(nothing).toEqual([])
      expect((await ask(spoke, "GET", "/v1/sources", { key: walnut.key })).status).toBe(401)

      expect(await spawnCommand(importing, third).killAt("messages ")).toBe("SIGKILL")
      await runSuccessfully(importing, third)
      expect(await rowsOf(third, walnut.tenantId)).toEqual(before)
      expect(withoutSweptRows(await rowsOf(third, pecan.tenantId))).toEqual(withoutSweptRows(others))
      await isServed(spoke, walnut)
    } finally {
      await spoke.stop()
    }
  }, 240_000)

  it("is refused under another key, from a damaged archive, and where somebody has an address of its people: nothing is left", async () => {
    const fourth = embedded(folder, "fourth")
    await whileServing({ ...fourth, ...model }, async (spoke) => {
      await makeTenant(spoke, "walnut")
    })
    const counted = () =>
      query(
        fourth,
        "select (select count(*) from tenants)::int as tenants, (select count(*) from agents)::int as agents"
      )
    const untouched = await counted()
    const otherKey = Path.join(folder, "other.key")
    Fs.writeFileSync(otherKey, "another key that is long enough to be one")
    const refused = async (says: string, ...args: ReadonlyArray<string>) => {
      const { code, stderr } = await run(["tenant", "import", ...args], fourth)
      expect([code, stderr]).toEqual([1, expect.stringContaining(says)])
      expect(await counted()).toEqual(untouched)
      expect(await query(fourth, "select * from tenant_moves")).toEqual([])
    }
    await refused("--key-file", archive)
    await refused("not the key", archive, "--key-file", otherKey)
    await refused("may exist once (users_email_key)", archive, "--key-file", keyFile)
    // An older schema is migrated by who operates its tenants, not by an import.
    const [newest] = await query(
      fourth,
      "delete from migrations where migration_id = (select max(migration_id) from migrations) returning *"
    )
    await refused("1 migration is pending. Run spoke migrate first", archive, "--key-file", keyFile)
    expect(
      await query(fourth, `select 1 from migrations where migration_id = ${newest?.["migration_id"]}`)
    ).toEqual([])
    const values = ["migration_id", "name", "checksum"].map((column) => `'${newest?.[column]}'`)
    await query(fourth, `insert into migrations (migration_id, name, checksum) values (${values})`)
    const damages: ReadonlyArray<readonly [below: string, (bytes: Buffer) => Buffer]> = [
      ["rows/messages-", cutOff],
      ["originals/", (bytes) => bytes.fill(bytes[0]! ^ 1, 0, 1)],
      ["jobs.jsonl.gz", (bytes) => Buffer.concat([bytes, bytes])]
    ]
    for (const [at, [below, damage]] of damages.entries()) {
      const copy = damagedCopy(`damaged-${at}`, below, damage)
      await refused("damaged", copy, "--key-file", keyFile)
    }
    const whole = await run(["import", archive], embedded(folder, "fifth"))
    expect([whole.code, whole.stderr]).toEqual([1, expect.stringContaining("spoke tenant import")])
  }, 240_000)
})
