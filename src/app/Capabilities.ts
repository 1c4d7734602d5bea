/** Selects the backend of each capability by the settings. */
import * as path from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Disk from "../capabilities/ArtifactStore/Disk.ts"
import * as S3 from "../capabilities/ArtifactStore/S3.ts"
import * as SqlAudit from "../capabilities/AuditLog/Sql.ts"
import * as Stripe from "../capabilities/BillingProvider/Stripe.ts"
import * as Scrypt from "../capabilities/Credentials/Scrypt.ts"
import * as WebAuthn from "../capabilities/Credentials/WebAuthn.ts"
import * as ParserWorker from "../capabilities/DocumentParser/Worker.ts"
import * as OfflineEmbedder from "../capabilities/Embedder/Offline.ts"
import * as OpenAiEmbedder from "../capabilities/Embedder/OpenAi.ts"
import * as OtherEmbedders from "../capabilities/Embedder/Others.ts"
import * as SqlKeys from "../capabilities/KeyStore/Sql.ts"
import * as OpenIdConnect from "../capabilities/IdentityProvider/OpenIdConnect.ts"
import * as ToolOAuth from "../capabilities/IdentityProvider/ToolOAuth.ts"
import * as Extractive from "../capabilities/ModelRuntime/extractive/Extractive.ts"
import * as ProviderHttp from "../capabilities/ModelRuntime/ProviderHttp.ts"
import * as Undici from "../capabilities/OutboundHttp/Undici.ts"
import * as SharedPauses from "../capabilities/ProviderBackoff/Sql.ts"
import * as RerankHttp from "../capabilities/Reranker/Http.ts"
import * as RerankNone from "../capabilities/Reranker/None.ts"
import * as DerivedKeys from "../capabilities/SecretBox/DerivedKeys.ts"
import * as BuiltInTools from "../capabilities/ToolSources/BuiltIn.ts"
import * as Tesseract from "../capabilities/TextRecognition/Tesseract.ts"
import * as InProcess from "../capabilities/VectorSearch/InProcess.ts"
import { measuredSearch } from "../capabilities/VectorSearch/Measured.ts"
import * as Pgvector from "../capabilities/VectorSearch/Pgvector.ts"
import * as Reranked from "../capabilities/VectorSearch/Reranked.ts"
import * as WithFeedback from "../capabilities/VectorSearch/WithFeedback.ts"
import * as BuiltInChannels from "../channels/BuiltIn.ts"
import * as RegisteredReaders from "../readers/connectors/Registered.ts"
import type { Settings } from "./config/Config.ts"
import { groundingChecker } from "./Grounding.ts"
import * as Mail from "./Mail.ts"
import * as Package from "./Package.ts"
import * as Providers from "./Providers.ts"
import * as DataDirectory from "./DataDirectory.ts"
import * as Redis from "./Redis.ts"
import * as Secrets from "./config/Secrets.ts"
import { vectorOf } from "./Vector.ts"
import { MiB } from "../domain/Bytes.ts"

/** Maximum bytes of in-process search indexes. The least recently used ones are removed first. */
const indexBytes = 512 * MiB
/** Maximum bytes of the in-process indexes that are kept beside pgvector. */
const pgvectorIndexBytes = indexBytes / 2

const offlineEmbedder = OfflineEmbedder.layerUniversalSentenceEncoder({
  script: Package.worker("embed"),
  idleTimeout: "2 minutes"
})

/** Embedders of models that agents may still use after the configured model has changed. */
const otherEmbedders = ({ model }: Settings) =>
  OtherEmbedders.layerOthers((profile) =>
    profile === OfflineEmbedder.profile
      ? Option.some(offlineEmbedder)
      : Option.zipWith(
          OtherEmbedders.modelOf(profile),
          Option.fromNullable(model),
          (named, { apiKey, baseUrl, provider }) =>
            OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, provider, ...named })
        )
  )

const models = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) => {
  const { embedding, model } = settings
  if (model === null) {
    return Layer.mergeAll(Extractive.layerExtractive, offlineEmbedder, otherEmbedders(settings)).pipe(
      Layer.provide(Layer.merge(Providers.exchange, replace))
    )
  }
  const { apiKey, baseUrl, provider } = model
  const runtime = Providers.chatRuntime(model, settings)
  const embedder =
    embedding === null
      ? offlineEmbedder
      : OpenAiEmbedder.layerOpenAi({ apiKey, baseUrl, provider, ...embedding })
  return Layer.mergeAll(runtime, embedder, otherEmbedders(settings)).pipe(
    Layer.provide(Layer.mergeAll(Providers.exchange, SharedPauses.layerSql, replace))
  )
}

/** The store of originals: the data directory, or a bucket. */
export const artifactStore = ({ artifacts, dataDir }: Settings) =>
  artifacts === null
    ? Layer.unwrapEffect(
        Effect.as(DataDirectory.make(dataDir), Disk.layerDisk(path.join(dataDir, "artifacts")))
      )
    : S3.layerS3(artifacts).pipe(Layer.provide(ProviderHttp.layer))

export const secretBox = Layer.unwrapEffect(
  Effect.map(Secrets.Secrets, ({ masters }) => DerivedKeys.layer(masters))
)

const reranker = ({ rerank }: Settings) =>
  rerank === null
    ? RerankNone.layerNone
    : RerankHttp.layerHttp(rerank).pipe(Layer.provide(ProviderHttp.layer))

const chunkSearch = (settings: Settings) =>
  Layer.unwrapEffect(
    Effect.map(vectorOf(settings), ({ backend }) => {
      // Preparing delays readiness. With the embedded database no other process would answer meanwhile.
      const prepareEmbedder = settings.database !== null
      return backend === "pgvector"
        ? Pgvector.layerPgvector({ maxBytes: pgvectorIndexBytes, prepareEmbedder })
        : InProcess.layerInProcess({ maxBytes: indexBytes, prepareEmbedder })
    })
  )

const vectorSearch = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) =>
  measuredSearch.pipe(
    Layer.provide(Reranked.layerReranked),
    Layer.provide(WithFeedback.layerWithFeedback),
    Layer.provide(chunkSearch(settings)),
    Layer.provide(Layer.merge(reranker(settings), replace))
  )

/** The layers of `replace` replace the defaults, also for the capabilities that depend on them. */
export const capabilities = <E, R>(settings: Settings, replace: Layer.Layer<never, E, R>) =>
  Layer.mergeAll(
    SqlAudit.layerSql,
    BuiltInChannels.layerHttp(settings.channels).pipe(Layer.provide(ProviderHttp.layer)),
    SqlKeys.layerSql,
    Redis.layer(settings),
    Mail.mailer(settings),
    secretBox,
    Stripe.layerStripe(settings.billing.webhookSecret),
    artifactStore(settings),
    OpenIdConnect.layerOpenIdConnect,
    ToolOAuth.layerToolOAuth,
    ParserWorker.layerWorker({ script: Package.worker("parse") }),
    Tesseract.layerTesseract({ script: Package.worker("recognize") }),
    groundingChecker(settings),
    vectorSearch(settings, replace),
    RegisteredReaders.layer,
    BuiltInTools.layer
  ).pipe(
    Layer.provideMerge(
      Layer.mergeAll(
        Scrypt.layerScrypt(),
        WebAuthn.layerWebAuthn,
        Undici.layerUndici({ allow: settings.fetchAllow ?? [] }),
        Mail.submission(settings, replace),
        models(settings, replace),
        replace
      )
    ),
    Layer.merge(replace)
  )
