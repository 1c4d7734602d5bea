/**
 * The typed HTTP client for browsers and Node: `import { makeClient } from "spoke/client"`. Its types are derived from
 * the server's API declarations. It contains no server code.
 */
import * as AgentClient from "./client/AgentClient.ts"
import * as Transport from "./client/Transport.ts"

export type {
  AgentClient,
  ChatStreamRequest,
  PageOptions,
  SourceInput,
  SourceView,
  Upload,
  WaitOptions
} from "./client/AgentClient.ts"
export { SpokeError, type ClientCode, type SpokeErrorCode } from "./client/Failure.ts"
export type { StandardInput } from "./client/StandardSchema.ts"
export type {
  Chat,
  ChatRequest,
  ChatResult,
  IdempotentOptions,
  StructuredRequest,
  StructuredResult
} from "./client/Chat.ts"
export type { StreamPart } from "./domain/chat/StreamPart.ts"
export type { CallOptions } from "./client/Transport.ts"

export interface ClientSettings {
  /** Address of the server, such as `https://spoke.example.com`, with or without `/v1`. */
  readonly baseUrl: string
  /** API key of the agent. A key that is used in a browser should be restricted to its origin. */
  readonly apiKey: string
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** A client of the agent of `apiKey`. Nothing is sent before a method is called. */
export const makeClient = ({
  apiKey,
  baseUrl,
  headers,
  ...given
}: ClientSettings): AgentClient.AgentClient => {
  const send: Transport.Send = (request) => (given.fetch ?? globalThis.fetch)(request)
  return AgentClient.make(
    Transport.make(Transport.originOf(baseUrl), send, { ...headers, "x-api-key": apiKey })
  )
}
