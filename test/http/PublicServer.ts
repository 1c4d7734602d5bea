/** The public API with scripted use-cases and named keys. */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import { SqlError } from "@effect/sql/SqlError"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Ref from "effect/Ref"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { createHmac } from "node:crypto"
import { refOf } from "../../src/capabilities/ArtifactStore.ts"
import { AuditLog, type AuditRecord } from "../../src/capabilities/AuditLog.ts"
import { KeyStore, type LiveKey } from "../../src/capabilities/KeyStore.ts"
import { layerMemory as rateMemory } from "../../src/capabilities/RateLimiter/Memory.ts"
import { SecretBox } from "../../src/capabilities/SecretBox.ts"
import type { Permission } from "../../src/domain/accounts/Access.ts"
import { ArtifactDeleteConflict, ArtifactDeleteUnavailable, NotFound } from "../../src/domain/Errors.ts"
import {
  AgentId,
  ChunkId,
  DocumentId,
  EndUserId,
  IngestionJobId,
  KeyId,
  RunId,
  SourceId,
  TenantId
} from "../../src/domain/Ids.ts"
import { IngestionJob, Source } from "../../src/domain/knowledge/Source.ts"
import type { Usage } from "../../src/domain/billing/Usage.ts"
import { PublicApi } from "../../src/http/Api.ts"
import { OpenReason } from "../../src/http/Auth.ts"
import { success } from "../../src/http/Envelope.ts"
import * as Server from "../../src/http/server/Server.ts"
import { SystemApi } from "../../src/http/system/SystemApi.ts"
import { Readiness } from "../../src/http/system/Readiness.ts"
import { ConversationStore } from "../../src/store/conversations/Conversations.ts"
import { Agent } from "../../src/domain/agents/Agent.ts"
import { AuditTrail } from "../../src/usecases/accounts/AuditTrail.ts"
import { Agents } from "../../src/usecases/agents/Agents.ts"
import { AgentRuns } from "../../src/usecases/chat/AgentRuns.ts"
import { ChatRequests } from "../../src/usecases/chat/ChatRequests.ts"
import { ChatTurn, type RunningTurn } from "../../src/usecases/chat/ChatTurn.ts"
import { Conversations } from "../../src/usecases/conversations/Conversations.ts"
import { Crawls } from "../../src/usecases/knowledge/Crawls.ts"
import { RateLimits, RateLimitSettings } from "../../src/usecases/billing/RateLimits.ts"
import { Retrieve } from "../../src/usecases/knowledge/Retrieve.ts"
import { Sources } from "../../src/usecases/knowledge/Sources.ts"
import { UsageReport } from "../../src/usecases/billing/UsageReport.ts"
import { openScope } from "../../src/domain/knowledge/SourceScope.ts"
import { VisitorTokens } from "../../src/usecases/chat/widget/VisitorTokens.ts"
import * as TestServer from "./TestServer.ts"
import { openGate } from "./OpenGate.ts"

export const liveKey = (changes: Partial<LiveKey> = {}): LiveKey => ({
  keyId: KeyId.make("key_1"),
  tenantId: TenantId.make("ten_1"),
  scope: "agent",
  agentId: AgentId.make("agt_1"),
  permissions: ["*"],
  sourceScope: null,
  allowedOrigins: [],
  publicApi: true,
  rateLimit: null,
  ...changes
})

/** For each permission there is a key `spk_only_<permission>` with only that permission. */
export const everyPermission = [
  "chat",
  "chat:write",
  "retrieve",
  "sources:read",
  "retrieval:read",
  "ingest",
  "ingest.read",
  "ingest.write",
  "sources:write",
  "skill_fetch",
  "skills:read",
  "usage.read",
  "usage:read",
  "trace_read",
  "visitor_tokens",
  "*"
] as const satisfies ReadonlyArray<Permission>

/** Keys by their secrets. */
const keys: Readonly<Record<string, LiveKey>> = {
  ...Object.fromEntries(
    everyPermission.map((held) => [`spk_only_${held}`, liveKey({ permissions: [held] })])
  ),
  spk_all: liveKey(),
  spk_chat: liveKey({ permissions: ["chat"] }),
  spk_other: liveKey({ agentId: AgentId.make("agt_2") }),
  spk_retrieve: liveKey({ permissions: ["retrieve"] }),
  spk_org: liveKey({ scope: "org", agentId: null }),
  spk_lost: liveKey({ agentId: null }),
  spk_plan: liveKey({ publicApi: false, allowedOrigins: ["https://a.test"], permissions: [] }),
  spk_limited: liveKey({ keyId: KeyId.make("key_limited"), rateLimit: { requests: 3, window: 3_600 } }),
  spk_limited_chat: liveKey({
    keyId: KeyId.make("key_chat"),
    permissions: ["chat"],
    rateLimit: { requests: 1, window: 3_600 }
  }),
  spk_origin: liveKey({ allowedOrigins: ["https://a.test", "https://b.test"], permissions: ["trace_read"] })
}

const keyStore = Layer.succeed(KeyStore, {
  find: (secret: Redacted.Redacted) => Effect.succeed(Option.fromNullable(keys[Redacted.value(secret)])),
  invalidate: () => Effect.void
})

/** Accepts no visitor token. */
export const noVisitors = Layer.mock(VisitorTokens, {
  _tag: "usecases/chat/widget/VisitorTokens",
  verify: () => Effect.succeed(Option.none()),
  issue: (key) =>
    Effect.succeed({
      visitorToken: `of ${key.keyId}`,
      expiresAt: DateTime.unsafeMake("2025-01-02T03:04:05.678Z"),
      sourceScope: openScope
    })
})

/** The rate limit of each key is part of its fixture. */
export const rateLimits = RateLimits.Default.pipe(
  Layer.provide(Layer.merge(rateMemory, Layer.succeed(RateLimitSettings, { rateLimit: null })))
)

const tag = (text: string) => createHmac("sha256", "test").update(text).digest("base64url")

const box = Layer.succeed(SecretBox, {
  sign: (_, text) => Effect.succeed(`${Buffer.from(text).toString("base64url")}.${tag(text)}`),
  verify: (_, signed) => {
    const [body = "", given] = signed.split(".")
    const text = Buffer.from(body, "base64url").toString()
    return Effect.succeed(given === tag(text) ? Option.some(text) : Option.none())
  },
  seal: (_, text) => Effect.succeed(text),
  open: (_, text) => Effect.succeed(Option.some(text)),
  under: () => ({
    seal: (_, text) => Effect.succeed(text),
    open: (_, text) => Effect.succeed(Option.some(text))
  })
})

type Start = (...request: Parameters<ChatTurn["start"]>) => ReturnType<ChatTurn["start"]>

/** Answers and recorded requests of the use-cases; tests set and read them. */
export class Script extends Context.Tag("test/http/Script")<
  Script,
  {
    readonly start: Ref.Ref<Start>
    readonly asked: Ref.Ref<ReadonlyArray<{ readonly use: string; readonly args: ReadonlyArray<unknown> }>>
    readonly audited: Ref.Ref<ReadonlyArray<AuditRecord>>
    readonly ready: Ref.Ref<boolean>
  }
>() {}

export const turn = (parts: RunningTurn["parts"], changes: Partial<RunningTurn> = {}): RunningTurn => ({
  runId: RunId.make("run_1"),
  endUserId: EndUserId.make("usr_1"),
  parts,
  ...changes
})

const script = Layer.effect(
  Script,
  Effect.gen(function* () {
    return {
      start: yield* Ref.make<Start>(() => Effect.succeed(turn(Stream.empty))),
      asked: yield* Ref.make<ReadonlyArray<{ use: string; args: ReadonlyArray<unknown> }>>([]),
      audited: yield* Ref.make<ReadonlyArray<AuditRecord>>([]),
      ready: yield* Ref.make(true)
    }
  })
)

export const source = (id: string) =>
  Source.make({
    id: SourceId.make(id),
    agentId: AgentId.make("agt_1"),
    type: "URL",
    name: "Handbook",
    status: "READY",
    config: { url: "https://example.test/" },
    lastSyncedAt: DateTime.unsafeMake("2025-01-02T03:04:05.678Z"),
    lastError: null,
    latestJob: {
      id: IngestionJobId.make("job_1"),
      type: "INGEST",
      status: "SUCCEEDED",
      progress: 100,
      chunksCreated: 3,
      error: null
    }
  })

export const job = IngestionJob.make({
  id: IngestionJobId.make("job_1"),
  sourceId: SourceId.make("src_1"),
  type: "INGEST",
  status: "QUEUED",
  progress: 0,
  chunksCreated: null,
  error: null,
  startedAt: null,
  completedAt: null
})

const noSuchSource = new NotFound({ message: "There is no such source." })

/** Result of the removal of each source. */
const removals: Readonly<
  Record<string, Effect.Effect<void, ArtifactDeleteConflict | ArtifactDeleteUnavailable>>
> = {
  src_1: Effect.void,
  src_running: Effect.fail(new ArtifactDeleteConflict({ message: "A job is running." })),
  src_unqueued: Effect.fail(new ArtifactDeleteUnavailable({ message: "Nothing can be queued." }))
}

const useCases = Layer.unwrapEffect(
  Effect.map(Script, ({ asked, start }) => {
    const record = (use: string, ...args: ReadonlyArray<unknown>) =>
      Ref.update(asked, (all) => [...all, { use, args }])
    const sources = Sources.make({
      readers: [],
      get: (scope, id) =>
        record("get", scope, id).pipe(
          Effect.zipRight(id === "src_1" ? Effect.succeed(source(id)) : Effect.fail(noSuchSource))
        ),
      list: (scope, filter) =>
        Effect.as(record("list", scope, filter), {
          rows: [source(filter.after === undefined ? "src_2" : "src_1")],
          next: filter.after === undefined ? "src_2" : null
        }),
      job: (scope, id) =>
        record("job", scope, id).pipe(
          Effect.zipRight(id === "job_1" ? Effect.succeed(job) : Effect.fail(noSuchSource))
        ),
      create: (key, input, idempotencyKey) =>
        Effect.as(record("create", key, input, idempotencyKey), {
          source: source("src_1"),
          ingestionJob: input.autoSync === false ? null : job
        }),
      jobOf: () => Effect.succeed(job),
      add: (scope, input) =>
        Effect.as(record("add", scope, input), { source: source("src_1"), ingestionJob: job }),
      patch: (scope, id, change) =>
        record("patch", scope, id, change).pipe(
          Effect.zipRight(id === "src_1" ? Effect.succeed(source(id)) : Effect.fail(noSuchSource))
        ),
      remove: (scope, id) =>
        Effect.gen(function* () {
          yield* record("remove", scope, id)
          yield* removals[id] ?? noSuchSource
        }),
      stage: (content) =>
        Effect.map(
          Stream.runFold(content, 0, (size, chunk) => size + chunk.length),
          (size) => ({
            ref: refOf(new Uint8Array()),
            size,
            store: Effect.void
          })
        ),
      upload: (key, type, upload) =>
        Effect.as(
          record("upload", key, type, {
            ...upload,
            bytes: "size" in upload.bytes ? upload.bytes.size : upload.bytes.length
          }),
          { source: source("src_1"), ingestionJob: job }
        ),
      sync: (scope, id, options) =>
        Effect.as(record("sync", scope, id, options), {
          jobId: job.id,
          status: "QUEUED" as const,
          sourceId: id
        })
    })
    const crawls = Crawls.make({
      report: (scope, id, filter) =>
        Effect.zipRight(
          record("crawl", scope, id, filter),
          id === "src_1"
            ? Effect.succeed({ job: null, entries: [], next: filter.after === undefined ? "7:9" : null })
            : Effect.fail(noSuchSource)
        ),
      dryRun: (request) => Effect.as(record("dryRun", request), { urls: [], complete: true, error: null })
    })
    const retrieve = Retrieve.make({
      run: (scope, request) =>
        Effect.as(record("retrieve", scope, request), {
          chunks: [
            {
              id: ChunkId.make("chk_1"),
              documentId: DocumentId.make("doc_1"),
              sourceName: "Handbook",
              text: "Fact",
              // A query of "broken" makes the use-case return an invalid value, which is a defect.
              score: request.query === "broken" ? (undefined as never) : 0.5,
              url: "https://example.test/"
            }
          ]
        })
    })
    const requireOwnRun = (key: { readonly agentId: string }, id: string) =>
      id === "run_1" && key.agentId === "agt_1"
        ? Effect.void
        : Effect.fail(new NotFound({ message: "The run does not exist for this agent." }))
    const runs = AgentRuns.make({
      read: (key, id, page, requestId) =>
        Effect.as(Effect.zipRight(record("trace", key, id, page, requestId), requireOwnRun(key, id)), {
          id,
          status: "running",
          conversationId: null,
          messageId: null,
          agentVersion: 1,
          cost: null,
          startedAt: DateTime.unsafeMake("2025-01-02T03:04:05.678Z"),
          completedAt: null,
          events: [],
          passages: [],
          hasMore: false,
          nextCursor: null
        } as const),
      stop: (key, id) => Effect.as(requireOwnRun(key, id), { id, status: "complete" } as const),
      follow: (key, id) =>
        Effect.zipRight(
          requireOwnRun(key, id),
          Effect.flatMap(Ref.get(start), (begin) => Effect.orDie(begin(key, { message: "", persist: true })))
        ),
      followChat: (key, id) =>
        id === "chat-1"
          ? Effect.flatMap(Ref.get(start), (begin) =>
              Effect.asSome(Effect.orDie(begin(key, { message: "", persist: true })))
            )
          : Effect.succeedNone,
      awaitReady: requireOwnRun
    })
    const turns = ChatTurn.make({
      start: (...request: Parameters<ChatTurn["start"]>) =>
        Effect.flatMap(Ref.get(start), (begin) => begin(...request)),
      complete: (...request: Parameters<ChatTurn["complete"]>) =>
        Effect.as(record("complete", ...request), { reply: "Hello", citations: [], media: [], runId: null }),
      startOnce: (key, request) => Effect.flatMap(Ref.get(start), (begin) => begin(key, request)),
      completeOnce: () => Effect.succeed({ reply: "Hello", citations: [], media: [], runId: null }),
      completeReply: (_key, _request, runId, result) => Effect.succeed({ ...result, runId }),
      answer: () => Effect.succeed({ _tag: "Nothing" })
    })
    const agent = (id: AgentId) =>
      Agent.make({
        id,
        name: "Ada",
        instructions: "",
        model: null,
        greeting: null,
        retrieval: { topK: 6, minScore: null },
        tools: [],
        grounding: { mode: "strict", unsupported: "annotate", contextTokens: 6_000, maxSearches: 0 },
        style: { length: "default", tone: "default" },
        masking: null,
        streamReasoning: false,
        version: 1,
        publishedVersion: 1,
        split: null,
        createdAt: DateTime.unsafeMake("2025-01-02T03:04:05.678Z"),
        updatedAt: DateTime.unsafeMake("2025-01-02T03:04:05.678Z")
      })
    const agents = Agents.make({
      create: () => Effect.succeed(agent(AgentId.make("agt_1"))),
      problems: () => Effect.succeed([]),
      list: () => Effect.succeed({ rows: [], next: null }),
      get: (_, id) => Effect.succeed(agent(id)),
      patch: (_, id) => Effect.succeed(agent(id)),
      remove: () => Effect.succeed(undefined)
    })
    const used: Usage = {
      period: {
        start: DateTime.unsafeMake("2025-01-01T00:00:00.000Z"),
        end: DateTime.unsafeMake("2025-02-01T00:00:00.000Z")
      },
      turns: { used: 3, limit: 100, overageEnabled: false },
      ingestionJobs: { used: 2, limit: 50 },
      sources: { active: 1, limit: 10 },
      tokens: { input: 1_200, output: 300 }
    }
    const report = UsageReport.make({
      ofAgent: (scope) => Effect.as(record("usage", scope), used),
      ofTenant: () =>
        Effect.succeed({
          ...used,
          cost: { nanoUsd: 0, unpricedCalls: 0 },
          storage: null,
          budgets: [],
          models: [],
          agents: [],
          deletedAgents: {
            turns: 0,
            ingestionJobs: 0,
            tokens: { input: 0, output: 0 },
            cost: { nanoUsd: 0, unpricedCalls: 0 }
          },
          days: [],
          otherCalls: []
        })
    })
    return Layer.mergeAll(
      Layer.succeed(Sources, sources),
      Layer.succeed(UsageReport, report),
      Layer.succeed(Crawls, crawls),
      Layer.succeed(Retrieve, retrieve),
      Layer.succeed(Agents, agents),
      Layer.succeed(ChatTurn, turns),
      Layer.succeed(AgentRuns, runs)
    )
  })
)

/** A conversation without messages. */
const conversations = Conversations.Default.pipe(
  Layer.provide(
    Layer.succeed(
      ConversationStore,
      ConversationStore.make({
        find: () => Effect.succeedNone,
        list: () => Effect.succeed({ rows: [], next: null }),
        messages: () => Effect.succeedNone
      })
    )
  )
)

const auditTrail = AuditTrail.Default.pipe(
  Layer.provide(
    Layer.effect(
      AuditLog,
      Effect.map(Script, ({ audited }) => ({
        record: (entry: AuditRecord) => Ref.update(audited, (all) => [...all, entry]),
        list: () => Effect.succeed({ rows: [], next: null })
      }))
    )
  )
)

const readiness = Layer.effect(
  Readiness,
  Effect.map(Script, ({ ready }) => ({
    check: Effect.map(Ref.get(ready), (ready) => ({ ready, checks: [{ name: "database", ok: ready }] }))
  }))
)

/** Routes that fail with undeclared errors, and one that returns its query. */
export const BrokenApi = HttpApiGroup.make("broken")
  .add(
    HttpApiEndpoint.get("echo", "/test/echo")
      .setUrlParams(Schema.Struct({ text: Schema.String }))
      .addSuccess(success(Schema.Struct({ text: Schema.String })))
  )
  .add(HttpApiEndpoint.get("defect", "/test/defect").addSuccess(success(Schema.Struct({}))))
  .add(HttpApiEndpoint.get("outage", "/test/outage").addSuccess(success(Schema.Struct({}))))
  .add(
    HttpApiEndpoint.get("documentedDefect", "/test/documented-defect").addSuccess(success(Schema.Struct({})))
  )
  .add(
    HttpApiEndpoint.get("unencodable", "/test/unencodable").addSuccess(
      success(Schema.Struct({ n: Schema.Number }))
    )
  )
  .annotateEndpoints(OpenReason, "They exist only in tests.")

export const TestApi = HttpApi.make("spoke").addHttpApi(PublicApi).add(SystemApi).add(BrokenApi)

const broken = HttpApiBuilder.group(TestApi, "broken", (handlers) =>
  handlers
    .handle("defect", () => Effect.die(new Error("internal detail: spk_secret")))
    .handle("outage", () => Effect.die(new SqlError({ cause: new Error("Connection terminated") })))
    .handle("documentedDefect", () => Effect.die(noSuchSource))
    .handle("echo", ({ urlParams }) => Effect.succeed(urlParams))
    .handle("unencodable", () => Effect.succeed({ n: "internal detail" } as never))
)

const chatRequests = ChatRequests.Default.pipe(Layer.provide(useCases))

const services = Layer.mergeAll(
  useCases,
  chatRequests,
  conversations,
  auditTrail,
  readiness,
  keyStore,
  rateLimits,
  noVisitors,
  openGate,
  box
)

/** The API layer, for servers and web handlers. */
export const api = HttpApiBuilder.api(TestApi).pipe(
  Layer.provide(broken),
  Layer.provide(Server.publicHandlers),
  Layer.provide(services)
)

export const layer = TestServer.layer(api).pipe(Layer.provideMerge(script))

export { script }

/** The header with a key. */
export const keyHeader = (secret: string) => ({ "x-api-key": secret })
