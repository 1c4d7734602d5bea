/** A collector of traces that takes everything and does not answer any more: turns do not wait for it, and it learns no secret. */
import * as Http from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ModelStub from "../../servers/ModelStub.ts"
import { removeFolder, type Spoke, start, temporaryFolder, until } from "../Spoke.ts"
import { makeTeam } from "../Team.ts"

const canary = (name: string) => `canary-${name}-7d1c0a93e5f24b68c2`
const secrets = {
  SPOKE_SECRET: canary("master-secret"),
  SPOKE_OPERATOR_TOKEN: canary("operator"),
  OPENAI_API_KEY: canary("provider"),
  OTEL_EXPORTER_OTLP_HEADERS: `x-team=${canary("collector")}`
}
/** In the requests of callers. */
const theirs = {
  question: canary("question"),
  context: canary("context"),
  toolContext: canary("tool-context"),
  toolCredentials: canary("tool-credentials"),
  person: canary("person")
}

describe("With a collector that does not answer any more", () => {
  const scope = Effect.runSync(Scope.make())
  const folder = temporaryFolder()
  const collected: Array<string> = []
  /** Else a batch that fails while the server starts keeps the next ones from being sent. */
  let hanging = false
  let answered = 0
  let spoke: Spoke
  const collector = Http.createServer((request, response) => {
    collected.push(request.url ?? "")
    request.setEncoding("utf8").on("data", (text: string) => collected.push(text))
    request.on("end", () => {
      if (hanging) return
      answered++
      response.setHeader("content-type", "application/json").end("{}")
    })
  })

  beforeAll(async () => {
    await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve))
    const { port } = collector.address() as AddressInfo
    const stub = await Effect.runPromise(Scope.extend(ModelStub.make, scope))
    spoke = await start(folder, {
      ...secrets,
      OPENAI_BASE_URL: stub.url,
      SPOKE_EMBEDDING_MODEL: "offline",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      LOG_LEVEL: "trace"
    })
  }, 60_000)

  afterAll(async () => {
    await spoke.kill()
    collector.closeAllConnections()
    collector.close()
    removeFolder(folder)
    await Effect.runPromise(Scope.close(scope, Exit.void))
  })

  it("turns are answered and streamed to their end while every batch is still under way, and none of them holds a secret", async () => {
    const team = await makeTeam(spoke)
    const { secret: key } = await team.key({ permissions: ["*"] })
    const body = {
      message: theirs.question,
      externalEndUserId: theirs.person,
      context: { order: theirs.context },
      toolContext: { cart: theirs.toolContext },
      toolCredentials: { shop: theirs.toolCredentials }
    }
    const told = (name: string) => collected.some((text) => text.includes(name))
    const turn = async () => {
      const answer = await spoke.request("POST", "/v1/chat", { key, body })
      expect([answer.status, answer.body.error]).toEqual([200, undefined])
      const streamed = await fetch(`${spoke.url}/v1/chat/stream`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: JSON.stringify(body)
      })
      expect((await streamed.text()).trimEnd().endsWith("data: [DONE]")).toBe(true)
    }
    hanging = true
    const before = answered
    // Until spans of a turn have come, and logs.
    await until(
      async () => {
        await turn()
        return [told("/v1/traces"), told("/v1/logs"), told("POST /v1/chat"), told("ChatTurn")]
      },
      (seen) => seen.every(Boolean),
      60_000
    )
    await turn()
    expect(answered).toBe(before)

    expect(await spoke.stop()).toBe(0)
    const text = collected.join("\n")
    const all = [...Object.values(secrets), ...Object.values(theirs), key, key.slice(4, 20)]
    expect(all.filter((secret) => text.includes(secret.replace(/^x-team=/u, "")))).toEqual([])
    expect(answered).toBe(before)
  }, 90_000)
})
