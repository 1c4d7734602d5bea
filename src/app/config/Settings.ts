import type { BlockList } from "node:net"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import type { S3Options } from "../../capabilities/ArtifactStore/S3.ts"
import type { ListedPrice } from "../../capabilities/ModelRuntime/prices/PriceList.ts"
import type { ProviderApi } from "../../capabilities/ModelRuntime/ProviderApi.ts"
import type { AllowList } from "../../capabilities/OutboundHttp/AddressRules.ts"
import type { Plans } from "../../domain/billing/Billing.ts"
import type { Retention } from "../../domain/accounts/Retention.ts"
import type { RateLimit } from "../../domain/accounts/RateLimit.ts"
import type { ServerOptions } from "../../store/database/Clients.ts"
import type { ChannelSettings } from "../../usecases/channels/ChannelSettings.ts"
import type { Telemetry } from "../telemetry/Telemetry.ts"

/** The address of a model provider, and its API. */
export interface ModelProvider {
  readonly apiKey: Redacted.Redacted
  readonly baseUrl: string
  readonly api: ProviderApi
  /** Only for Azure's API with dated versions. */
  readonly apiVersion?: string | undefined
  readonly contextWindow: number
}

/** The settings from which everything is wired. */
export interface Settings {
  readonly host: string
  readonly port: number
  readonly dataDir: string
  /** Null: the embedded database. */
  readonly database: ServerOptions | null
  /** The database role of tenants' statements under row level security; null: it is off. */
  readonly tenantRole: string | null
  /** Null: the database is used instead. */
  readonly redis: Redacted.Redacted | null
  /** Snapshots of the embedded database; null: none. */
  readonly snapshots: {
    readonly every: Duration.Duration
    readonly folder: string
    /** Maximum number of snapshots. */
    readonly kept: number
  } | null
  /** Null: no e-mail is sent. */
  readonly mail: { readonly url: Redacted.Redacted; readonly from: string } | null
  /** Null: no e-mail is sent when jobs fail. */
  readonly alertEmail: string | null
  /** Null: pgvector when the server has it. */
  readonly vector: "pgvector" | "in-process" | null
  /** Null: the data directory. */
  readonly artifacts: S3Options | null
  /** Null: replies are extracts from the sources. */
  readonly model:
    | (ModelProvider & {
        /** Its name among the providers. */
        readonly provider: string
        /** The model of agents without their own. It may belong to another provider. */
        readonly chatModel: string
      })
    | null
  /** Further providers. Agents select one by a model name `provider/model`. */
  readonly providers: ReadonlyMap<string, ModelProvider>
  /** Models that are tried when an agent's own model cannot answer. */
  readonly fallbackModels: ReadonlyArray<string>
  /** Prices by `provider/model`. They take precedence over the built-in lists. */
  readonly modelPrices: ReadonlyArray<ListedPrice>
  /** Null: the built-in model. */
  readonly embedding: { readonly model: string; readonly dimensions: number } | null
  /** Null: search results are not reranked. */
  readonly rerank: {
    readonly url: string
    readonly model: string
    readonly apiKey: Redacted.Redacted | undefined
  } | null
  /** The grounding checker. */
  readonly grounding:
    | { readonly checker: "words" | "model" }
    | { readonly checker: "http"; readonly url: string; readonly apiKey: Redacted.Redacted | undefined }
  /** The current master secret first. Empty: generated and kept in the data directory. */
  readonly secrets: ReadonlyArray<Redacted.Redacted>
  readonly operatorToken: Option.Option<Redacted.Redacted>
  readonly admin: { readonly email: string; readonly password: Option.Option<Redacted.Redacted> }
  readonly appUrl: string
  readonly apiUrl: string
  readonly realtimeUrl: string
  readonly channels: Context.Tag.Service<ChannelSettings>
  readonly billing: {
    /** None: billing events are refused. */
    readonly webhookSecret: Option.Option<Redacted.Redacted>
    readonly plans: Plans
    readonly defaultPlan: string
  }
  /** Limits for all tenants; null: for ever. */
  readonly retention: Retention
  readonly turnTimeout: Duration.Duration
  readonly runtimeData: boolean
  /** Null: keys without their own limit are not limited. */
  readonly rateLimit: RateLimit | null
  readonly fetchAllow: AllowList | null
  readonly trustedProxies: BlockList
  readonly maxConnections: number
  readonly maxWait: Duration.Duration
  readonly drainDelay: Duration.Duration
  /** Null: nothing is traced. */
  readonly telemetry: Telemetry | null
  /** Null: health and metrics are only at `port`. */
  readonly healthPort: number | null
  /** True when each answered request is logged. */
  readonly accessLog: boolean
  readonly logLevel: "trace" | "debug" | "info" | "warning" | "error" | "none"
  readonly logFormat: "pretty" | "json"
}
