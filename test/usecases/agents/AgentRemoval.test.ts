import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerMemory } from "../../../src/capabilities/ArtifactStore.ts"
import { layerScrypt } from "../../../src/capabilities/Credentials/Scrypt.ts"
import { JobQueue, JobQueueError } from "../../../src/capabilities/JobQueue.ts"
import { layerTable } from "../../../src/capabilities/JobQueue/Table.ts"
import { layerSql } from "../../../src/capabilities/KeyStore/Sql.ts"
import type { AgentScope } from "../../../src/domain/accounts/Access.ts"
import { newId } from "../../../src/domain/Ids.ts"
import { AgentStore } from "../../../src/store/agents/Agents.ts"
import { ApiKeyStore } from "../../../src/store/accounts/ApiKeys.ts"
import { ArtifactRows } from "../../../src/store/knowledge/ArtifactRows.ts"
import { EntitlementStore } from "../../../src/store/billing/Entitlements.ts"
import { IdempotencyKeyStore } from "../../../src/store/IdempotencyKeys.ts"
import { IngestionJobStore } from "../../../src/store/knowledge/IngestionJobs.ts"
import { SourceStore } from "../../../src/store/knowledge/Sources.ts"
import { Agents } from "../../../src/usecases/agents/Agents.ts"
import { Artifacts } from "../../../src/usecases/knowledge/Artifacts.ts"
import { Sources } from "../../../src/usecases/knowledge/Sources.ts"
import * as Fixtures from "../../Fixtures.ts"
import { layerNoRevocations } from "../../NoRevocations.ts"
import { eachEngineLive, reset } from "../../TestDatabase.ts"
import { layerSettings } from "../knowledge/ConnectorLayers.ts"

const over = <E, R>(queue: Layer.Layer<JobQueue, E, R>) =>
  Layer.merge(Agents.Default, Sources.Default).pipe(
    Layer.provide([layerSettings(), layerNoRevocations]),
    Layer.provideMerge(Artifacts.Default),
    Layer.provideMerge(
      Layer.mergeAll(
        AgentStore.Default,
        ApiKeyStore.Default,
        ArtifactRows.Default,
        EntitlementStore.Default,
        IdempotencyKeyStore.Default,
        IngestionJobStore.Default,
        SourceStore.Default,
        layerMemory,
        queue
      )
    ),
    Layer.provide(layerSql.pipe(Layer.provide([AgentStore.Default, ApiKeyStore.Default]))),
    Layer.provide(layerScrypt({ log2N: 10, r: 8, p: 1 }))
  )

const live = over(layerTable)

/** Takes ingestion and refuses removals. */
const refusing = over(
  Layer.effect(
    JobQueue,
    Effect.map(JobQueue, (queue) => {
      const gone = Effect.fail(new JobQueueError({ message: "The job queue cannot be reached." }))
      return JobQueue.of({ ...queue, enqueueAll: () => gone })
    })
  ).pipe(Layer.provide(layerTable))
)

const upload = (scope: AgentScope, text: string) =>
  Effect.flatMap(Sources, (sources) =>
    sources.upload(scope, "FILE", {
      name: text,
      fileName: `${text}.txt`,
      bytes: new TextEncoder().encode(text)
    })
  ).pipe(Effect.map(({ source }) => String(source.config["artifact"])))

/** A file of a visitor in a chat with the agent. */
const attach = (scope: AgentScope, ref: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const user = yield* newId.endUser
    const conversation = yield* newId.conversation
    yield* sql`insert into artifacts (ref) values (${ref})`
    yield* sql`insert into end_users (id, tenant_id) values (${user}, ${scope.tenantId})`
    yield* sql`insert into conversations (id, tenant_id, agent_id, end_user_id, channel)
      values (${conversation}, ${scope.tenantId}, ${scope.agentId}, ${user}, 'widget')`
    yield* sql`insert into conversation_artifacts (tenant_id, conversation_id, ref)
      select tenant_id, id, ${ref} from conversations where id = ${conversation}`
  })

const queued = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const jobs = yield* sql<{ readonly ref: string }>`
    select payload ->> 'artifact' as ref from queue_jobs where queue = 'artifact-cleanup'`
  return jobs.map(({ ref }) => ref).sort()
})

eachEngineLive("The removal of an agent", (it) => {
  it.scoped(
    "queues the removal of each file of its sources and conversations once, and of no other agent's files",
    () =>
      Effect.gen(function* () {
        yield* reset
        const agents = yield* Agents
        const scope = yield* Fixtures.agent()
        const neighbour = yield* agents.create(scope, { name: "Neighbour" })
        const one = yield* upload(scope, "one")
        const two = yield* upload(scope, "two")
        yield* upload(scope, "two")
        yield* upload({ ...scope, agentId: neighbour.id }, "three")
        const sent = `sha256:${"f".repeat(64)}`
        yield* attach(scope, sent)
        yield* agents.remove(scope, scope.agentId)
        expect(yield* queued).toEqual([one, two, sent].sort())
        expect((yield* Effect.flip(agents.remove(scope, scope.agentId)))._tag).toBe("NOT_FOUND")
      }).pipe(Effect.provide(live))
  )

  it.scoped("removes the stored answers of webhooks about it, and none about another agent", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents
      const scope = yield* Fixtures.agent()
      const neighbour = yield* agents.create(scope, { name: "Neighbour" })
      yield* sql`insert into webhook_endpoints (id, tenant_id, url, events, payload, secret)
        values ('whk_1', ${scope.tenantId}, 'https://example.com/', array['turn.settled'], 'thin', 'sealed')`
      for (const agentId of [scope.agentId, neighbour.id])
        yield* sql`insert into webhook_deliveries (tenant_id, event_id, endpoint_id, agent_id, type, ids, answer_text)
          values (${scope.tenantId}, ${`evt_${agentId}`}, 'whk_1', ${agentId}, 'turn.settled', '{}', ${agentId})`
      yield* agents.remove(scope, scope.agentId)
      const rows = yield* sql<{ readonly text: string | null }>`
        select answer_text as text from webhook_deliveries order by seq`
      expect(rows.map(({ text }) => text)).toEqual([null, neighbour.id])
    }).pipe(Effect.provide(live))
  )

  it.scoped("is SERVICE_UNAVAILABLE and changes nothing when the removal cannot be queued", () =>
    Effect.gen(function* () {
      yield* reset
      const agents = yield* Agents
      const scope = yield* Fixtures.agent()
      yield* upload(scope, "one")
      expect((yield* Effect.flip(agents.remove(scope, scope.agentId)))._tag).toBe("SERVICE_UNAVAILABLE")
      expect((yield* agents.get(scope, scope.agentId)).id).toBe(scope.agentId)
      expect(yield* queued).toEqual([])
    }).pipe(Effect.provide(refusing))
  )

  it.scoped("queues nothing when the tenant has no such agent", () =>
    Effect.gen(function* () {
      yield* reset
      const agents = yield* Agents
      const scope = yield* Fixtures.agent()
      yield* upload(scope, "one")
      const other = yield* Fixtures.agent()
      expect((yield* Effect.flip(agents.remove(other, scope.agentId)))._tag).toBe("NOT_FOUND")
      expect(yield* queued).toEqual([])
    }).pipe(Effect.provide(live))
  )
})
