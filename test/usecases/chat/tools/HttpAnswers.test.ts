/** Answers of HTTP tools: what the model gets of the bytes that a server sends. */
import { expect, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { parseAllowList } from "../../../../src/capabilities/OutboundHttp/AddressRules.ts"
import { layerUndici } from "../../../../src/capabilities/OutboundHttp/Undici.ts"
import { httpSource } from "../../../../src/capabilities/ToolSources/Http.ts"
import type { AgentTool, CallingTurn } from "../../../../src/capabilities/ToolSources.ts"
import { ToolDefinition, ToolId } from "../../../../src/domain/agents/Tool.ts"
import { AgentId, RunId, TenantId } from "../../../../src/domain/Ids.ts"
import { serveScoped } from "../../../servers/Loopback.ts"

const turn: CallingTurn = {
  scope: { tenantId: TenantId.make("ten_1"), agentId: AgentId.make("agt_1") },
  runId: RunId.make("run_1"),
  conversationId: null,
  endUserId: null
}

const toolAt = (url: string): AgentTool => ({
  _tag: "Configured",
  id: ToolId.make("tol_1"),
  name: "order",
  version: 1,
  definition: Schema.decodeUnknownSync(ToolDefinition)({ http: { url } }),
  credential: Either.right(""),
  bound: Either.right([])
})

/** What a tool answers whose server sends these bytes. */
const answerTo = (contentType: string, body: string | Buffer) =>
  Effect.gen(function* () {
    const url = yield* serveScoped((_, response) => {
      response.writeHead(200, { "content-type": contentType }).end(body)
    })
    const [tool] = yield* (yield* httpSource).open(toolAt(`${url}/`), turn)
    return yield* tool!.call({}, () => Effect.void)
  }).pipe(Effect.scoped)

const environment = layerUndici({ allow: Either.getOrThrow(parseAllowList("127.0.0.1")) })

layer(environment, { excludeTestServices: true })("The answer of an HTTP tool", (it) => {
  it.effect("keeps every digit of integers that a double cannot hold, as strings", () =>
    Effect.gen(function* () {
      const json = `{"id":1234567890123456789,"ids":[-9007199254740993,9007199254740991],"price":0.1234567890123456,
        "text":"1234567890123456789 \\" 1234567890123456789","big":1e22}`
      expect(yield* answerTo("application/json", json)).toEqual({
        id: "1234567890123456789",
        ids: ["-9007199254740993", 9_007_199_254_740_991],
        price: 0.1234567890123456,
        text: '1234567890123456789 " 1234567890123456789',
        big: 1e22
      })
      expect(yield* answerTo("application/json", "12345678901234567890")).toBe("12345678901234567890")
      expect(yield* answerTo("text/plain", `{"id":1234567890123456789`)).toBe(`{"id":1234567890123456789`)
    })
  )

  it.effect("is read in the encoding that it declares", () =>
    Effect.gen(function* () {
      const latin = Buffer.from("<ort>Gr\u00fcnstra\u00dfe</ort>", "latin1")
      expect(yield* answerTo("text/xml; charset=ISO-8859-1", latin)).toBe("<ort>Grünstraße</ort>")
      expect(yield* answerTo("application/json;charset=utf-8", `"Grünstraße"`)).toBe("Grünstraße")
      expect(yield* answerTo("text/plain; charset=none-such", "Grünstraße")).toBe("Grünstraße")
    })
  )
})
