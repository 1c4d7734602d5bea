/** One exchange with the server of a tool, with limits on time and size, and readable errors. */
import type { Context } from "effect"
import * as Effect from "effect/Effect"
import type { ToolDefinition } from "../../domain/agents/Tool.ts"
import { toolFailure } from "../../domain/agents/ToolFailure.ts"
import { charsetIn, decodeDeclared } from "../../domain/knowledge/Encoding.ts"
import { sanitize } from "../../domain/Text.ts"
import type { OutboundHttp, OutboundRequest, OutboundResponse } from "../OutboundHttp.ts"

/** Maximum size of an answer in bytes. */
export const maxAnswerBytes = 256 * 1024

export const textOf = ({ body, headers }: OutboundResponse): string =>
  sanitize(decodeDeclared(body, () => charsetIn(headers["content-type"] ?? "")))

const isText = (type: string): boolean =>
  /^(?:text\/|application\/(?:[\w.+-]*(?:json|xml|yaml|javascript)|x-www-form-urlencoded)|$)/i.test(type)

/** The answer as text, or a description if it is not text. */
export const contentOf = (response: OutboundResponse): string => {
  const type = response.headers["content-type"] ?? ""
  return isText(type) ? textOf(response) : `(${response.body.length} bytes that are not text)`
}

/** The headers that contain `credential`. */
export const headersFor = (
  { auth }: Pick<ToolDefinition, "auth">,
  credential: string
): Record<string, string> => {
  switch (auth.kind) {
    case "none":
      return {}
    case "bearer":
    case "oauth":
      return { authorization: `Bearer ${credential}` }
    case "basic":
      return { authorization: `Basic ${Buffer.from(credential).toString("base64")}` }
    case "header":
      return { [(auth.header ?? auth.name ?? "authorization").toLowerCase()]: credential }
  }
}

/** The server's answer, whatever its status. */
export const requestAnswer = Effect.fn("ToolSources.requestAnswer")(function* (
  http: Context.Tag.Service<typeof OutboundHttp>,
  request: Pick<OutboundRequest, "url" | "method" | "headers" | "body" | "isLast">,
  seconds: number
) {
  return yield* http
    .fetch({ ...request, maxBytes: maxAnswerBytes, timeout: `${seconds} seconds` })
    .pipe(
      Effect.mapError(({ reason, message }) =>
        reason === "TimedOut"
          ? toolFailure("TOOL_TIMEOUT", `no whole answer within ${seconds} seconds`)
          : toolFailure("TOOL_FAILED", message)
      )
    )
})

/** The response, or a failure if its status is not 2xx. */
export const accepted = (response: OutboundResponse) =>
  response.status >= 200 && response.status < 300
    ? Effect.succeed(response)
    : Effect.fail(toolFailure("TOOL_FAILED", `HTTP ${response.status} ${contentOf(response)}`))
