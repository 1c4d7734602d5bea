/** The capabilities that a host may replace. */
import type * as Context from "effect/Context"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { ArtifactStore } from "../../capabilities/ArtifactStore.ts"
import { AuditLog } from "../../capabilities/AuditLog.ts"
import { BillingProvider } from "../../capabilities/BillingProvider.ts"
import { ChannelAdapters, OtherChannels } from "../../capabilities/ChannelAdapters.ts"
import { Credentials, PasskeyProofs } from "../../capabilities/Credentials.ts"
import { DedupeStore } from "../../capabilities/DedupeStore.ts"
import { DocumentParser } from "../../capabilities/DocumentParser.ts"
import { Embedder, OtherEmbedders } from "../../capabilities/Embedder.ts"
import { SourceReaders } from "../../capabilities/SourceReaders.ts"
import { StreamingPost } from "../../capabilities/StreamingPost.ts"
import { GroundingChecker } from "../../capabilities/GroundingChecker.ts"
import { IdentityProvider, ToolAuthorization } from "../../capabilities/IdentityProvider.ts"
import { JobQueue } from "../../capabilities/JobQueue.ts"
import { KeyStore } from "../../capabilities/KeyStore.ts"
import { Mailer, MailSubmission } from "../../capabilities/Mailer.ts"
import { ModelRuntime } from "../../capabilities/ModelRuntime.ts"
import { OutboundAddresses, OutboundHttp } from "../../capabilities/OutboundHttp.ts"
import { ProviderBackoff } from "../../capabilities/ProviderBackoff.ts"
import { RateLimiter } from "../../capabilities/RateLimiter.ts"
import { Realtime } from "../../capabilities/Realtime.ts"
import { Reranker } from "../../capabilities/Reranker.ts"
import { SecretBox } from "../../capabilities/SecretBox.ts"
import { TextRecognition } from "../../capabilities/TextRecognition.ts"
import { OtherToolSources, ToolSources } from "../../capabilities/ToolSources.ts"
import { VectorSearch } from "../../capabilities/VectorSearch.ts"

const tags = {
  ArtifactStore,
  AuditLog,
  BillingProvider,
  ChannelAdapters,
  Credentials,
  DedupeStore,
  DocumentParser,
  Embedder,
  StreamingPost,
  GroundingChecker,
  IdentityProvider,
  JobQueue,
  KeyStore,
  Mailer,
  MailSubmission,
  ModelRuntime,
  OtherChannels,
  OtherEmbedders,
  OtherToolSources,
  OutboundAddresses,
  OutboundHttp,
  PasskeyProofs,
  ProviderBackoff,
  RateLimiter,
  Realtime,
  Reranker,
  SecretBox,
  SourceReaders,
  TextRecognition,
  ToolAuthorization,
  ToolSources,
  VectorSearch
}

/** The services that a replacement may provide. The compiler refuses a layer with any other. */
export type Replaceable = Context.Tag.Identifier<(typeof tags)[keyof typeof tags]>

const keys: ReadonlySet<string> = new Set(Object.values(tags).map(({ key }) => key))

/** A replacement provides a service that no part of Spoke requires. */
export class InvalidReplacement extends Schema.TaggedError<InvalidReplacement>()("InvalidReplacement", {
  message: Schema.String
}) {}

/**
 * `replace`, which fails when it provides a service that is no capability: that would have no effect. Call once and
 * share the result.
 */
export const checked = <E, R>(
  replace: Layer.Layer<never, E, R>
): Layer.Layer<never, E | InvalidReplacement, R> =>
  Layer.flatMap(replace, (provided) => {
    const others = [...provided.unsafeMap.keys()].filter((key) => !keys.has(key))
    return others.length === 0
      ? Layer.succeedContext(provided)
      : Layer.fail(
          new InvalidReplacement({
            message:
              `Nothing requires ${others.join(", ")}: provide the dependencies of your capabilities with Layer.provide. ` +
              `Replaceable tags: ${Object.keys(tags).join(", ")}.`
          })
        )
  })
