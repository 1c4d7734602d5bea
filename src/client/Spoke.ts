/** The public interface of the library, types only. */
import type { AiSdkModel } from "../domain/chat/AiSdkModel.ts"
import type { AgentClient } from "./AgentClient.ts"
import type { AgentsClient, ChannelsClient, KeysClient } from "./OwnerClient.ts"
import type { Channel } from "./Channel.ts"
import type { Chat, IdempotentOptions, StructuredRequest, StructuredResult } from "./Chat.ts"
import type { Reader } from "./Reader.ts"
import type { EffectInput, Tool } from "./Tool.ts"

/** A log entry. */
export interface LogEntry {
  readonly timestamp: Date
  readonly level: "trace" | "debug" | "info" | "warn" | "error" | "fatal"
  readonly message: string
  /** Ids and names; never payloads or secrets. */
  readonly annotations: Readonly<Record<string, unknown>>
  /** The cause of a failure, in words. */
  readonly cause?: string
}

/** The process's environment is not read: pass `env: process.env` to use it. */
export interface LibrarySettings {
  /**
   * Directory for database, artifacts and generated secrets; default: `.spoke`. Used by one process at a time, unless
   * `databaseUrl` is given.
   */
  readonly dataDir?: string | undefined
  /** PostgreSQL 15 or newer, instead of the embedded database. Requires `secret`. */
  readonly databaseUrl?: string | undefined
  /** Stores dedupe keys and rate limits, and sends signals between processes. Without it the database does. */
  readonly redisUrl?: string | undefined
  /** Any OpenAI-compatible provider. Without it, replies are offline extracts. */
  readonly openai?:
    | {
        readonly apiKey: string
        readonly baseUrl?: string | undefined
        readonly api?: "responses" | "chat-completions" | undefined
        /** The model of agents that name none. */
        readonly chatModel?: string | undefined
        /** `offline` uses the built-in model. */
        readonly embeddingModel?: string | undefined
        readonly embeddingDimensions?: number | undefined
      }
    | undefined
  /** Master secret of at least 32 bytes; by default generated and stored in `dataDir`. */
  readonly secret?: string | undefined
  /** Bearer token of the operator routes. */
  readonly operatorToken?: string | undefined
  /** The dashboard's owner. Used when the tenant is created. */
  readonly admin?: { readonly email?: string | undefined; readonly password: string } | undefined
  /** Public address at which {@link Spoke.fetch} is mounted. Cookies, links and origins depend on it. */
  readonly appUrl?: string | undefined
  /** Private hosts, `host:port`, addresses or CIDRs that crawling and tools may reach. */
  readonly fetchAllow?: ReadonlyArray<string> | undefined
  /** Any other setting, by the name of its variable. The settings above take precedence. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
}

export interface SpokeSettings extends LibrarySettings {
  /** Id of the tenant that the host acts for. Default: the only tenant, which is created if there is none. */
  readonly tenant?: string | undefined
  /** False if another process runs background jobs (ingestion, sending, cleanup). */
  readonly workers?: boolean | undefined
  /**
   * A model of the AI SDK, such as `openai("gpt-6-luna")`, that answers for every agent. It replaces `openai` and
   * similar settings.
   */
  readonly model?: AiSdkModel | undefined
  /**
   * Functions that agents may call while they answer, created by `tool`. An agent names those that it may call in its
   * `tools`.
   */
  readonly tools?: Readonly<Record<string, Tool>> | undefined
  /**
   * Readers for sources, created by `reader`. A source of type `CONNECTOR` names one as its `reader`. They are added to
   * the readers of Spoke.
   */
  readonly readers?: Readonly<Record<string, Reader>> | undefined
  /**
   * Channels that customers write through, created by `channel`. An agent's channels name one. They are added to those
   * of Spoke; one of the same name replaces Spoke's.
   */
  readonly channels?: Readonly<Record<string, Channel>> | undefined
  /** Receives every log entry from level `info` on. */
  readonly log?: ((entry: LogEntry) => void) | undefined
}

/** As over the network, and also with Effect Schemas. */
export interface AgentChat extends Chat {
  <A>(request: StructuredRequest<EffectInput<A>>, options?: IdempotentOptions): Promise<StructuredResult<A>>
}

/** One agent: all operations of its keys, and the management of its keys. */
export interface SpokeAgent extends Omit<AgentClient, "chat"> {
  readonly chat: AgentChat
  readonly id: string
  readonly keys: KeysClient
  /** Accounts that customers write to. */
  readonly channels: ChannelsClient
}

export interface Spoke {
  readonly agents: AgentsClient
  /** Does not look anything up. Calls for an agent that does not exist are rejected with `NOT_FOUND`. */
  readonly agent: (id: string) => SpokeAgent
  /**
   * Handles a request as the server would: API, dashboard, widget, webhooks. It requires keys and sessions as over the
   * network. WebSockets are not supported. Failed sign-ins are counted by `clientAddress`, or by the address that a
   * trusted proxy with this address forwards. The request's signal represents its client: if it is aborted before the
   * answer, the answer is 499; afterwards the body fails with the signal's reason.
   */
  readonly fetch: (request: Request, options?: { readonly clientAddress?: string }) => Promise<Response>
  /**
   * Waits up to 30 seconds for running calls and jobs, then as long for turns without a waiting caller, and closes the
   * database: 75 seconds at most. Text that a stream has emitted by then can still be read.
   */
  readonly close: () => Promise<void>
  /** {@link close}, for `await using`. */
  readonly [Symbol.asyncDispose]: () => Promise<void>
}
