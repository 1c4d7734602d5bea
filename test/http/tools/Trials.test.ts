import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestDatabase } from "../../TestDatabase.ts"
import { toolServer } from "../../usecases/chat/ToolServer.ts"
import { call, signedIn } from "../accounts/AccountsServer.ts"
import { server, start } from "./ToolsWorld.ts"

const secret = "trial-secret-canary-51c0"

layer(server.pipe(Layer.provideMerge(TestDatabase)), { excludeTestServices: true })(
  "A tool that is tried",
  (it) => {
    const world = Effect.gen(function* () {
      const { cookie, tools } = yield* start
      const remote = yield* toolServer
      const make = (body: object) =>
        Effect.map(call("POST", tools, { cookie, body }), ({ data }) => `/api/tools/${data.tool.id}/trial`)
      return { cookie, make, remote }
    })

    const order = (url: string) => ({
      name: "order",
      description: "Looks an order up.",
      parameters: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
      http: { method: "GET", url: `${url}/orders/{id}` },
      bindings: [{ from: "/customer/id", to: "header:X-Customer" }],
      auth: { kind: "bearer", secret }
    })

    it.scoped("is called as in a turn, and its answer shows neither secrets nor bound values", () =>
      Effect.gen(function* () {
        const { cookie, make, remote } = yield* world
        const path = yield* make(order(remote.url))
        const tried = yield* call("POST", path, {
          cookie,
          body: { arguments: { id: "1042" }, toolContext: { customer: { id: "customer-canary" } } }
        })
        expect(tried.status).toBe(200)
        expect(tried.data.outcome._tag).toBe("answer")
        expect(tried.data.outcome.text).toContain("/orders/1042")
        expect(tried.data.functions).toMatchObject([{ name: "order", description: "Looks an order up." }])
        expect(remote.received).toMatchObject([
          { headers: { authorization: `Bearer ${secret}`, "x-customer": "customer-canary" } }
        ])
        for (const canary of [secret, "customer-canary"]) expect(tried.text).not.toContain(canary)
        const { data } = yield* call("GET", "/api/audit", { cookie })
        expect(data.entries[0]).toMatchObject({ action: "tool.trial", targetName: "order" })
      })
    )

    it.scoped("is not called without arguments, or with ones that do not fit", () =>
      Effect.gen(function* () {
        const { cookie, make, remote } = yield* world
        const path = yield* make(order(remote.url))
        const looked = yield* call("POST", path, { cookie, body: {} })
        expect(looked.data).toMatchObject({ functions: [{ name: "order" }], outcome: null })
        const toolContext = { customer: { id: "1" } }
        const wrong = yield* call("POST", path, { cookie, body: { arguments: { id: 7 }, toolContext } })
        expect(wrong.data.outcome).toMatchObject({ _tag: "failure", code: "INVALID_ARGUMENTS" })
        const unbound = yield* call("POST", path, { cookie, body: { arguments: { id: "7" } } })
        expect(unbound.data.outcome).toMatchObject({ _tag: "failure", code: "BINDING_REQUIRED" })
        expect(remote.received).toEqual([])
      })
    )

    it.scoped("returns why it fails, and the functions of an MCP server", () =>
      Effect.gen(function* () {
        const { cookie, make, remote } = yield* world
        const failing = yield* make({ name: "failing", http: { method: "GET", url: `${remote.url}/fail` } })
        const failed = yield* call("POST", failing, { cookie, body: { arguments: {} } })
        expect(failed.data.outcome).toMatchObject({ _tag: "failure", code: "TOOL_FAILED" })
        const mcp = yield* make({ name: "handbook", mcp: { url: `${remote.url}/mcp` } })
        const offered = yield* call("POST", mcp, { cookie, body: {} })
        expect(offered.data).toMatchObject({
          functions: [{ description: "Finds.", parameters: { required: ["q"] } }],
          outcome: null
        })
        const [{ name }] = offered.data.functions
        const found = yield* call("POST", mcp, {
          cookie,
          body: { function: name, arguments: { q: "bells" } }
        })
        expect(found.data.outcome.text).toContain("bells")
        const none = yield* call("POST", mcp, { cookie, body: { function: "nothing", arguments: {} } })
        expect(none.data.outcome).toMatchObject({ _tag: "failure", code: "UNKNOWN_TOOL" })
      })
    )

    it.scoped("belongs to its tenant", () =>
      Effect.gen(function* () {
        const { make, remote } = yield* world
        const path = yield* make(order(remote.url))
        const { cookie } = yield* signedIn("grace@example.com")
        expect((yield* call("POST", path, { cookie, body: { arguments: { id: "1" } } })).status).toBe(404)
        expect(remote.received).toEqual([])
      })
    )
  }
)
