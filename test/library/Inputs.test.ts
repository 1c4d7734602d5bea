/** What the library refuses before it does anything: settings and requests of the wrong form. */
import * as Fs from "node:fs"
import * as Os from "node:os"
import * as Path from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { makeClient } from "../../src/client.ts"
import { createSpoke, type SpokeSettings, SpokeError } from "../../src/index.ts"

const root = Fs.mkdtempSync(Path.join(Os.tmpdir(), "spoke-inputs-"))
afterAll(() => Fs.rmSync(root, { recursive: true, force: true }))

const rejection = async (act: () => Promise<unknown>) => {
  const cause: unknown = await act().then(
    () => undefined,
    (thrown: unknown) => thrown
  )
  if (!(cause instanceof SpokeError)) throw new Error("It was not rejected with a SpokeError.", { cause })
  return cause
}

describe("createSpoke", () => {
  const wrong: ReadonlyArray<readonly [string, unknown, ReadonlyArray<string>]> = [
    ["no object", null, []],
    ["a number as dataDir", { dataDir: 5 }, ["dataDir"]],
    ["null as dataDir", { dataDir: null }, ["dataDir"]],
    ["a text as fetchAllow", { fetchAllow: "localhost" }, ["fetchAllow"]],
    ["openai without a key", { openai: { apiKey: undefined } }, ["openai", "apiKey"]],
    ["a text as openai", { openai: "sk-test" }, ["openai"]],
    ["an admin without a password", { admin: { email: "owner@example.com" } }, ["admin", "password"]],
    ["a text as workers", { workers: "no" }, ["workers"]],
    ["a number as tenant", { tenant: 5 }, ["tenant"]],
    ["a name as model", { model: "gpt-6-luna" }, ["model"]],
    ["a tool that tool has not made", { tools: { orders: {} } }, ["tools", "orders"]],
    ["a reader that reader has not made", { readers: { wiki: {} } }, ["readers", "wiki"]],
    ["a channel that channel has not made", { channels: { pager: {} } }, ["channels", "pager"]],
    ["a log that is no function", { log: "info" }, ["log"]],
    ["a number in env", { env: { PORT: 3000 } }, ["env", "PORT"]]
  ]

  it.each(wrong)("refuses %s as INVALID_CONFIG, and names the setting", async (_, given, path) => {
    const dataDir = Path.join(root, "data")
    const settings = typeof given === "object" && given !== null ? { dataDir, ...given } : given
    // As a program without types would call it.
    const opened: unknown = settings
    const error = await rejection(async () => {
      const spoke = await createSpoke(opened as SpokeSettings)
      await spoke.close()
    })
    expect(error).toMatchObject({ code: "INVALID_CONFIG", details: { issues: [{ path }] } })
    expect(error.message).toContain(path.join("."))
    expect(error.message).not.toContain("sk-test")
  })
})

describe("A request", () => {
  const sent: Array<Request> = []
  const client = makeClient({
    baseUrl: "http://spoke.test",
    apiKey: "spk_test",
    fetch: async (input, init) => {
      sent.push(new Request(input, init))
      return Response.json({ data: {}, meta: { requestId: "r" } })
    }
  })
  const circular: { self?: unknown } = {}
  circular.self = circular

  it.each([
    ["a number that is not finite", { ratio: Number.NaN }],
    ["a BigInt", { count: 1n }],
    ["a circular reference", circular],
    ["a function", { call: () => 1 }]
  ])("with %s, which is no JSON, is refused as VALIDATION_ERROR and not sent", async (_, context) => {
    const request: object = { message: "Hello", context }
    const error = await rejection(() => client.chat(request as { message: string }))
    expect([error.code, sent]).toEqual(["VALIDATION_ERROR", []])
  })

  it.each([undefined, 5, {}])("to upload %s, which is no file, is refused and not sent", async (file) => {
    const upload: object = { file, fileName: "tea.md" }
    const error = await rejection(async () => client.sources.upload(upload as { file: string }))
    expect([error.code, sent]).toEqual(["VALIDATION_ERROR", []])
  })
})

describe("A closed Spoke", () => {
  it("answers requests with an id of its own, or with that of the client", async () => {
    const spoke = await createSpoke({ dataDir: Path.join(root, "data") })
    await spoke.close()
    const idOf = async (headers: Record<string, string>) => {
      const response = await spoke.fetch(new Request("http://spoke.test/healthz", { headers }))
      const body = (await response.json()) as { readonly meta: { readonly requestId: string } }
      return [response.status, body.meta.requestId, response.headers.get("x-request-id")]
    }
    expect(await idOf({ "x-request-id": "mine-1" })).toEqual([503, "mine-1", "mine-1"])
    const [status, id, header] = await idOf({})
    expect([status, header]).toEqual([503, id])
    expect(id).toMatch(/^req_/u)
  }, 60_000)
})
