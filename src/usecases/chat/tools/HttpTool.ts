/** One exchange with the server of a tool: bounded in time and size, and told in words when it fails. */
import type { Context } from "effect"
import * as Effect from "effect/Effect"
import type { OutboundHttp, OutboundRequest, OutboundResponse } from "../../../capabilities/OutboundHttp.ts"
import { sanitize } from "../../../domain/Text.ts"
import { toolFailure } from "./Bindings.ts"

/** Most bytes of an answer that are read. */
const maxAnswerBytes = 256 * 1024

export const textOf = ({ body }: OutboundResponse): string => sanitize(new TextDecoder().decode(body))

const isText = (type: string): boolean =>
  /^(?:text\/|application\/(?:[\w.+-]*(?:json|xml|yaml|javascript)|x-www-form-urlencoded)|$)/i.test(type)

/** The answer as text, or what it is instead. */
export const contentOf = (response: OutboundResponse): string => {
  const type = response.headers["content-type"] ?? ""
  return isText(type) ? textOf(response) : `(${response.body.length} bytes that are not text)`
}

/** Fails when the server cannot be asked, and when it answers outside 2xx. */
export const exchange = Effect.fn("HttpTool.exchange")(function* (
  http: Context.Tag.Service<typeof OutboundHttp>,
  request: Pick<OutboundRequest, "url" | "method" | "headers" | "body">,
  seconds: number
) {
  const response = yield* http
    .fetch({ ...request, maxBytes: maxAnswerBytes, timeout: `${seconds} seconds` })
    .pipe(
      Effect.mapError(({ reason, message }) =>
        reason === "TimedOut"
          ? toolFailure("TOOL_TIMEOUT", `TOOL_TIMEOUT: no whole answer within ${seconds} seconds`)
          : toolFailure("TOOL_FAILED", `TOOL_FAILED: ${message}`)
      )
    )
  if (response.status >= 200 && response.status < 300) return response
  const said = contentOf(response)
  return yield* Effect.fail(toolFailure("TOOL_FAILED", `TOOL_FAILED: HTTP ${response.status} ${said}`.trim()))
})
