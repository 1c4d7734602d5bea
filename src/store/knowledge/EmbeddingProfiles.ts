/**
 * The embedding model that an agent uses. Vectors of the target profile are built in addition to the live ones. One
 * statement moves the agent to the target, as soon as all its chunks with a live vector have a new one. The old vectors
 * are kept for a while, so that the agent can be moved back at once.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { opaque } from "../../concurrency/OpaqueValue.ts"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { AgentId, SourceId, TenantId } from "../../domain/Ids.ts"
import { type EmbeddingModel, supportsChunk } from "./Embeddings.ts"
import * as Rows from "../Rows.ts"

const SourceProfile = Schema.Struct({
  agentId: AgentId,
  active: Schema.NullOr(Schema.String),
  target: Schema.NullOr(Schema.String)
})

const lockName = "embedding profiles"

export class EmbeddingProfileStore extends Effect.Service<EmbeddingProfileStore>()(
  "store/knowledge/EmbeddingProfiles",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** Makes `profile` the target of all agents. The process that starts last decides. */
      const setTarget = (profile: string) =>
        sql`
          insert into embedding_target as target (profile) values (${profile})
          on conflict (one) do update set profile = excluded.profile, since = now()
          where target.profile <> excluded.profile`.pipe(
          Rows.none,
          Effect.withSpan("EmbeddingProfileStore.setTarget")
        )

      const target = sql<{ readonly profile: string }>`select profile from embedding_target`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row?.profile ?? null)
      )

      /** The source's agent, its current profile, and its target. None when the source does not exist. */
      const place = ({ tenantId }: TenantScope, sourceId: SourceId) =>
        SqlSchema.findOne({
          Request: Schema.Void,
          Result: SourceProfile,
          execute: () => sql`
            select s.agent_id as "agentId", stats.profile as active, (select profile from embedding_target) as target
            from sources s
            left join agent_stats stats on stats.tenant_id = s.tenant_id and stats.agent_id = s.agent_id
            where s.tenant_id = ${tenantId} and s.id = ${sourceId}`
        })(undefined).pipe(Effect.orDie)

      /** Records why the source has no vectors of `profile`. */
      const recordFailure = (
        { tenantId }: TenantScope,
        sourceId: SourceId,
        profile: string,
        message: string
      ) =>
        sql`
          insert into embedding_failures (tenant_id, source_id, profile, message)
          select tenant_id, id, ${profile}, ${message} from sources where tenant_id = ${tenantId} and id = ${sourceId}
          on conflict (tenant_id, source_id) do update
            set profile = excluded.profile, message = excluded.message, failed_at = now()`.pipe(Rows.none)

      const clearFailure = ({ tenantId }: TenantScope, sourceId: SourceId) =>
        sql`delete from embedding_failures where tenant_id = ${tenantId} and source_id = ${sourceId}`.pipe(
          Rows.none
        )

      /** Agents that use another profile. */
      const agentsToMove = (profile: string) =>
        sql<AgentScope>`/* every tenant: sweep */
          select tenant_id as "tenantId", agent_id as "agentId" from agent_stats
          where profile <> ${profile} and tenant_is_swept(tenant_id) order by agent_id`.pipe(Effect.orDie)

      /**
       * Sources with live chunks that lack a vector of `model`: of agents that have not moved, or whose last failure is
       * long enough ago. Limited and in random order, so that every source gets its turn.
       */
      const sourcesWithoutVectors = (model: EmbeddingModel, limit: number, retryAfter: Duration.Duration) =>
        sql<{ readonly tenantId: TenantId; readonly id: SourceId }>`/* every tenant: sweep */
          select s.tenant_id as "tenantId", s.id from (
            -- Not all sources: those of agents that are behind, and those that have failed.
            select o.tenant_id, o.id from agent_stats stats
            join sources o on o.tenant_id = stats.tenant_id and o.agent_id = stats.agent_id
            where stats.profile is distinct from ${model.profile}
            union
            select tenant_id, source_id from embedding_failures where profile = ${model.profile}
          ) s
          left join embedding_failures f
            on f.tenant_id = s.tenant_id and f.source_id = s.id and f.profile = ${model.profile}
          where tenant_is_swept(s.tenant_id)
            and not exists (
              select from queue_jobs q where q.queue = 'embedding' and q.serial_key = s.id and q.state in ('waiting', 'active')
            )
            and (f.failed_at is null or f.failed_at < now() - ${Duration.toSeconds(retryAfter)}::float8 * interval '1 second')
            and exists (
              select from chunks c
              where c.tenant_id = s.tenant_id and c.source_id = s.id and c.version is not null and ${supportsChunk(sql, model)}
                and not exists (
                  select from chunk_embeddings e
                  where e.tenant_id = c.tenant_id and e.chunk_id = c.id and e.profile = ${model.profile}
                )
            )
          order by random() limit ${limit}::int`.pipe(Effect.orDie)

      /**
       * Moves the agent to `model`, unless a live chunk with a vector, and in a language that the model supports, has
       * no vector of it yet. True when it was moved. The agent's row is locked first, so that all chunks published
       * before are checked.
       */
      const move = Effect.fn("EmbeddingProfileStore.move")(
        function* ({ agentId, tenantId }: AgentScope, model: EmbeddingModel) {
          const { profile } = model
          yield* sql`select from agent_stats where tenant_id = ${tenantId} and agent_id = ${agentId} for update`
          const moved = yield* sql`
            update agent_stats stats set profile = ${profile}, profile_since = now(), version = version + 1
            where stats.tenant_id = ${tenantId} and agent_id = ${agentId} and stats.profile <> ${profile} and not exists (
              select from chunks c
              join chunk_embeddings old
                on old.tenant_id = c.tenant_id and old.chunk_id = c.id and old.profile = stats.profile
              where c.tenant_id = ${opaque(sql, tenantId)} and c.agent_id = ${agentId} and c.version is not null and ${supportsChunk(sql, model)}
                and not exists (
                  select from chunk_embeddings e
                  where e.tenant_id = c.tenant_id and e.chunk_id = c.id and e.profile = ${profile})
            ) returning agent_id`
          return moved.length > 0
        },
        sql.withTransaction,
        Effect.orDie
      )

      /** Removes vectors of other profiles from agents that have used `profile` for `keepFor`. Returns their number. */
      const removeOldVectors = (profile: string, keepFor: Duration.Duration, limit: number) =>
        sql`/* every tenant: sweep */
          delete from chunk_embeddings where ctid in (
            select e.ctid from agent_stats stats
            join chunk_embeddings e on e.tenant_id = stats.tenant_id and e.agent_id = stats.agent_id
            where stats.profile = ${profile} and e.profile <> ${profile} and tenant_is_swept(stats.tenant_id)
              and stats.profile_since < now() - ${Duration.toSeconds(keepFor)}::float8 * interval '1 second'
            limit ${limit}::int
          ) returning chunk_id`.pipe(
          Effect.orDie,
          Effect.map((rows) => rows.length)
        )

      /** Locks the work with profiles until the transaction ends. False when another transaction has the lock. */
      const tryLock = sql<{ readonly mine: boolean }>`
        select pg_try_advisory_xact_lock(hashtextextended(${lockName}, 0)) as mine`.pipe(
        Effect.orDie,
        Effect.map(([row]) => row?.mine === true)
      )

      return {
        setTarget,
        target,
        place,
        recordFailure,
        clearFailure,
        agentsToMove,
        sourcesWithoutVectors,
        move,
        removeOldVectors,
        tryLock
      } as const
    })
  }
) {}
