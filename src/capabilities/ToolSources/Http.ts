/** Tools that send one HTTP request. */
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { declaredArguments } from "../../domain/agents/DeclaredArguments.ts"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import * as Json from "../../domain/Json.ts"
import type { JsonValue } from "../../domain/Text.ts"
import { OutboundHttp } from "../OutboundHttp.ts"
import type { AgentTool, ToolSource } from "../ToolSources.ts"
import * as Exchange from "./Exchange.ts"
import { requestOf } from "./HttpRequest.ts"

/** Parses JSON, so that escapes cannot hide secrets from redaction. Any other answer stays text. */
const parsed = (text: string) =>
  Either.orElse(Json.parseExactly(text), ({ message, reason }) =>
    reason === "malformed"
      ? Either.right<JsonValue>(text)
      : Either.left(toolFailure("TOOL_FAILED", `the answer cannot be used: ${message}`))
  )

const targetOf = (tool: AgentTool) => (tool._tag === "Configured" ? tool.definition.http : undefined)

export const httpSource: Effect.Effect<ToolSource, never, OutboundHttp> = Effect.map(
  OutboundHttp,
  (http): ToolSource => ({
    name: "http",
    offered: new Set(),
    has: (tool) => targetOf(tool) !== undefined,
    open: (tool) => {
      const target = targetOf(tool)
      if (tool._tag === "Named" || target === undefined) return Effect.succeed([])
      const { bound, credential, definition, name } = tool
      const { description, parameters, timeout } = definition
      return Effect.succeed([
        {
          declaration: { name, description, parameters },
          timeoutMillis: timeout * 1_000,
          sent: (input) => declaredArguments(definition, input),
          call: Effect.fn("ToolSources.http")(function* (input) {
            const request = yield* requestOf(target, parameters, input, yield* bound)
            const headers = { ...request.headers, ...Exchange.headersFor(definition, yield* credential) }
            const response = yield* Exchange.requestAnswer(http, { ...request, headers }, timeout)
            return yield* parsed(Exchange.contentOf(yield* Exchange.accepted(response)))
          })
        }
      ])
    }
  })
)
