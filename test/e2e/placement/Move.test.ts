/** `spoke tenant move`: while turns of the tenant and of another one go on. */
import * as Path from "node:path"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { ordinary } from "../../servers/OrdinaryRole.ts"
import { binaries } from "../../servers/PostgresServer.ts"
import { ask, makeTenant, makeWorld, type World } from "../routes/RouteWorld.ts"
import { removeFolder, run, type Spoke, temporaryFolder, until } from "../Spoke.ts"
import {
  embedded,
  runSuccessfully,
  onServer,
  query,
  rowsOf,
  serve,
  type Variables,
  withoutUsageRows
} from "./Installation.ts"
import { nothingLost, rowCount, type Traffic, startTraffic, lostOrDoubled } from "./Traffic.ts"

const skipped = binaries === undefined && process.env["CI"] !== "true"

/** Turns of each of the two tenants. */
const everyMillis = 100

interface Moving {
  readonly from: { readonly spoke: Spoke; readonly variables: Variables }
  readonly to: { readonly spoke: Spoke; readonly variables: Variables }
  readonly mine: World
  readonly other: World
}

describe.skipIf(skipped)("A tenant is moved while it is served", () => {
  const folder = temporaryFolder()
  const scope = Effect.runSync(Scope.make())
  let model: Variables = {}
  let stub: ModelStub.ModelStub
  const servers: Array<Spoke> = []

  beforeAll(async () => {
    stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    model = {
      OPENAI_BASE_URL: stub.url,
      OPENAI_API_KEY: "sk-stub",
      SPOKE_CHAT_MODEL: "gpt-4.1-mini",
      SPOKE_EMBEDDING_MODEL: "offline"
    }
  }, 60_000)

  afterAll(async () => {
    await Promise.all(servers.map((spoke) => spoke.kill()))
    await Effect.runPromise(Scope.close(scope, Exit.void))
    removeFolder(folder)
  })

  const opened = async (variables: Variables) => {
    const spoke = await serve(variables, model)
    servers.push(spoke)
    return { spoke, variables }
  }

  const prepared = async (from: Variables, to: Variables): Promise<Moving> => {
    const [origin, destination] = [await opened(from), await opened(to)]
    const mine = await makeWorld(origin.spoke, await makeTenant(origin.spoke, "mine"), "walnut")
    const other = await makeWorld(origin.spoke, await makeTenant(origin.spoke, "other"), "almond")
    await makeWorld(destination.spoke, await makeTenant(destination.spoke, "third"), "pecan")
    return { from: origin, to: destination, mine, other }
  }

  const moveOf = ({ from, mine, to }: Moving, ...flags: ReadonlyArray<string>) =>
    [
      ["tenant", "move", mine.tenantId, "--to", to.spoke.url, "--max-pause", "5", ...flags],
      {
        SPOKE_URL: from.spoke.url,
        SPOKE_OPERATOR_TOKEN: "operator",
        SPOKE_TO_OPERATOR_TOKEN: "operator"
      }
    ] as const

  const both = ({ from, mine, other }: Moving): readonly [Traffic, Traffic] => [
    startTraffic({ key: mine.key, name: "mine", url: from.spoke.url, everyMillis, retries: true }),
    startTraffic({ key: other.key, name: "other", url: from.spoke.url, everyMillis, retries: false })
  ]

  const some = (turns: Traffic, more = 20) => {
    const from = turns.acknowledged()
    return until(
      () => Promise.resolve({ acknowledged: turns.acknowledged(), state: turns.state() }),
      ({ acknowledged }) => acknowledged >= from + more
    )
  }

  /** What has to hold of the turns of a move. */
  const isRight = async (moving: Moving, at: Variables, turns: readonly [Traffic, Traffic]) => {
    const [ours, theirs] = await Promise.all(turns.map((each) => each.stop()))
    const { mine, other } = moving
    expect(ours?.filter(({ acknowledged }) => !acknowledged)).toEqual([])
    expect(await lostOrDoubled(at, mine.tenantId, ours ?? [])).toEqual(nothingLost)
    expect(theirs?.filter(({ acknowledged }) => !acknowledged)).toEqual([])
    expect(ours?.length).toBeGreaterThan(40)
    return { ours: ours ?? [], theirs: theirs ?? [], other }
  }

  it("from the embedded database to PostgreSQL: no acknowledged turn is lost or doubled, the other tenant is refused nothing, and after --confirm nothing is left", async ({
    annotate
  }) => {
    const moving = await prepared(
      embedded(folder, "first"),
      await onServer(folder, "second", { SPOKE_EMBEDDING_MODEL: "offline" })
    )
    const { from, mine, other, to } = moving
    const turns = both(moving)
    await some(turns[0])
    const [args, environment] = moveOf(moving, "--json")
    const { stdout } = await runSuccessfully(args, environment)
    const moved = JSON.parse(stdout)
    expect(moved.pausedMillis).toBeLessThan(5_000)
    const compared = moved.tables.map(({ table }: { readonly table: string }) => table)
    expect(compared).toEqual(
      expect.arrayContaining([
        "agents",
        "agent_runs",
        "api_keys",
        "chunks",
        "conversations",
        "messages",
        "sources",
        "users"
      ])
    )
    await some(turns[0])
    const { ours, theirs } = await isRight(moving, to.variables, turns)
    const longest = (all: ReadonlyArray<{ readonly millis: number }>) =>
      Math.round(Math.max(...all.map(({ millis }) => millis)))
    await annotate(
      `paused ${Math.round(moved.pausedMillis)} ms; longest turn of the tenant ${longest(ours)} ms, of the other ${longest(theirs)} ms`
    )
    const refused = await ask(from.spoke, "GET", "/v1/sources", { key: mine.key })
    expect([refused.status, JSON.parse(refused.text).error]).toEqual([
      503,
      {
        code: "SERVICE_UNAVAILABLE",
        message: `This account is served at ${to.spoke.url} now.`,
        details: { servedAt: to.spoke.url, retryAfterSeconds: 60 }
      }
    ])
    expect(refused.headers.get("retry-after")).toBe("60")
    const status = await runSuccessfully([...args.slice(0, -1), "--status"], environment)
    expect(status.stdout).toContain("origin: does not serve the tenant")

    const [confirm] = moveOf(moving, "--confirm")
    await runSuccessfully(confirm, environment)
    expect((await ask(from.spoke, "GET", "/v1/sources", { key: mine.key })).status).toBe(401)
    expect((await ask(to.spoke, "GET", "/v1/sources", { key: mine.key })).status).toBe(200)
    const entries = await query(
      to.variables,
      `select action from audit_entries where tenant_id = '${mine.tenantId}' and action like 'tenant.%' order by id`
    )
    expect(entries.map(({ action }) => action)).toEqual([
      "tenant.begin_move",
      "tenant.move",
      "tenant.end_move"
    ])
    await from.spoke.stop()
    expect(rowCount(await rowsOf(from.variables, mine.tenantId))).toBe(0)
    expect(rowCount(await rowsOf(from.variables, other.tenantId))).toBeGreaterThan(100)
    expect(await query(from.variables, "select * from tenant_moves")).toEqual([])
  }, 300_000)

  it("between PostgreSQL servers under row level security, and back with what has happened there", async () => {
    const [here, there] = [await ordinary(), await ordinary()]
    const isolated = async (name: string, { role, url }: typeof here) =>
      onServer(folder, name, { DATABASE_URL: url, SPOKE_TENANT_ROLE: role })
    const moving = await prepared(await isolated("third", here), await isolated("fourth", there))
    const { from, mine, to } = moving
    const turns = both(moving)
    await some(turns[0])
    const [args, environment] = moveOf(moving)
    await runSuccessfully(args, environment)
    await some(turns[0])
    // Where it is restored, both installations would serve the tenant.
    const archive = await run(["export", Path.join(folder, "refused")], from.variables)
    expect([archive.code, archive.stderr]).toEqual([1, expect.stringContaining(mine.tenantId)])
    const [rollback] = moveOf(moving, "--rollback")
    const { stdout } = await runSuccessfully(rollback, environment)
    expect(stdout).toContain(`is served at ${from.spoke.url}`)
    await some(turns[0])
    await isRight(moving, from.variables, turns)
    expect(rowCount(await rowsOf(to.variables, mine.tenantId))).toBe(0)
    for (const { variables } of [from, to]) {
      expect(await query(variables, "select * from tenant_moves")).toEqual([])
      expect(
        await query(variables, "select tgname from pg_trigger where tgname like 'tenant_moves%'")
      ).toEqual([])
    }
    expect((await ask(to.spoke, "GET", "/v1/sources", { key: mine.key })).status).toBe(401)
    const before = await rowsOf(from.variables, mine.tenantId)
    const refused = await run(["tenant", "move", "ten_unknown", "--to", to.spoke.url], environment)
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("The origin has no such tenant.")
    ])
    expect(withoutUsageRows(await rowsOf(from.variables, mine.tenantId))).toEqual(withoutUsageRows(before))
  }, 300_000)
})
