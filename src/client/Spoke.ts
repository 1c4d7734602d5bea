/** The public interface of the library, types only. */
import type { AiSdkModel } from "../domain/chat/AiSdkModel.ts"
import type { AgentClient } from "./AgentClient.ts"
import type { AgentsClient, ChannelsClient, KeysClient } from "./OwnerClient.ts"
import type { Channel } from "./Channel.ts"
import type { Chat, IdempotentOptions, StructuredRequest, StructuredResult } from "./Chat.ts"
import type { Reader } from "./Reader.ts"
import type { EffectInput, Tool } from "./Tool.ts"

/** A line of the log. */
export interface LogEntry {
  readonly timestamp: Date
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal"
  readonly message: string
  /** Ids and names; never payloads or secrets. */
  readonly annotations: Readonly<Record<string, unknown>>
  /** Why, in words, where something failed. */
  readonly cause?: string
}

/** Nothing is read from the process's environment: pass `env: process.env` where that is wanted. */
export interface LibrarySettings {
  /** Database, artifacts and generated secrets; `.spoke` by default. One process at a time, unless `databaseUrl` is given. */
  readonly dataDir?: string | undefined
  /** PostgreSQL 15 or newer, instead of the embedded database. Needs `secret`. */
  readonly databaseUrl?: string | undefined
  /** Holds dedupe keys and rate limits and tells processes of changes; the database does without it. */
  readonly redisUrl?: string | undefined
  /** Any OpenAI-compatible provider; without it replies are offline extracts. */
  readonly openai?:
    | {
        readonly apiKey: string
        readonly baseUrl?: string | undefined
        readonly api?: "responses" | "chat-completions" | undefined
        /** Of agents that name none. */
        readonly chatModel?: string | undefined
        /** `offline` keeps the built-in one. */
        readonly embeddingModel?: string | undefined
        readonly embeddingDimensions?: number | undefined
      }
    | undefined
  /** Master secret of at least 32 bytes; generated and kept in `dataDir` by default. */
  readonly secret?: string | undefined
  /** Bearer token of the operator routes. */
  readonly operatorToken?: string | undefined
  /** The dashboard's owner; used when the tenant is created. */
  readonly admin?: { readonly email?: string | undefined; readonly password: string } | undefined
  /** Public address of what {@link Spoke.fetch} is mounted on; cookies, links and origins go by it. */
  readonly appUrl?: string | undefined
  /** Private hosts, `host:port`, addresses or CIDRs that crawling and tools may reach. */
  readonly fetchAllow?: ReadonlyArray<string> | undefined
  /** Every other setting by the name of its variable; what is set above comes first. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

export interface SpokeSettings extends LibrarySettings {
  /** Id of the tenant whose owner the host is. By default the only one; it is made where there is none. */
  readonly tenant?: string | undefined
  /** False where another process ingests, sends and tidies. */
  readonly workers?: boolean | undefined
  /** A model of the AI SDK, such as `openai("gpt-6-luna")`, that answers for every agent. Instead of `openai` and its like. */
  readonly model?: AiSdkModel | undefined
  /** Functions that agents may call while they answer, made by `tool`; an agent names those that it may call as its `tools`. */
  readonly tools?: Readonly<Record<string, Tool>> | undefined
  /**
   * Systems that sources may be read from, made by `reader`: a source of type `CONNECTOR` names one as its `reader`. They come
   * beside the readers of Spoke.
   */
  readonly readers?: Readonly<Record<string, Reader>> | undefined
  /**
   * Channels that customers write through, made by `channel`: an agent's channels name one. They come beside those of Spoke; one of
   * the same name takes the place of Spoke's.
   */
  readonly channels?: Readonly<Record<string, Channel>> | undefined
  /** Gets every line that the service would log, from level `info` on. */
  readonly log?: ((entry: LogEntry) => void) | undefined
}

/** As over the network, and with Effect Schemas too. */
export interface AgentChat extends Chat {
  <A>(request: StructuredRequest<EffectInput<A>>, options?: IdempotentOptions): Promise<StructuredResult<A>>
}

/** One agent: everything that its keys could ask for, and its keys. */
export interface SpokeAgent extends Omit<AgentClient, "chat"> {
  readonly chat: AgentChat
  readonly id: string
  readonly keys: KeysClient
  /** Accounts that customers write to. */
  readonly channels: ChannelsClient
}

export interface Spoke {
  readonly agents: AgentsClient
  /** Nothing is looked up yet: calls of an agent that does not exist are rejected with `NOT_FOUND`. */
  readonly agent: (id: string) => SpokeAgent
  /**
   * Answers a request as the server would: API, dashboard, widget, webhooks. It wants keys and sessions as over the
   * network. A WebSocket cannot be opened here. `clientAddress` is what failed sign-ins are counted by. The request's signal
   * stands for its client: aborted before the answer it is answered 499, afterwards the body ends with the signal's reason.
   */
  readonly fetch: (request: Request, options?: { readonly clientAddress?: string }) => Promise<Response>
  /**
   * Gives calls and jobs that run 30 seconds, then turns without a waiting caller as long, and closes the database: 75 seconds at
   * the very most. What a stream has said by then can still be read.
   */
  readonly close: () => Promise<void>
  /** {@link close}, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}
