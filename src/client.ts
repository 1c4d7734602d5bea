/**
 * The typed HTTP client, for browsers and Node alike: `import { makeClient } from "spoke/client"`. Its types come from the
 * declarations that the server is made of; no server code comes with it.
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
  /** Address of the server, such as `https://spoke.example.com`; with `/v1` behind it or without. */
  readonly baseUrl: string
  /** Key of the agent that is talked to. One that a browser gets to see should be restricted to its origin. */
  readonly apiKey: string
  /** Instead of the global one. */
  readonly fetch?: typeof globalThis.fetch | undefined
  /** On every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Talks to the agent of `apiKey`. Nothing is sent before a method is called. */
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
