/**
 * Tracks which originals are stored, claimed and removed. Sources with the same bytes share an artifact, so storing and
 * removing it both lock its row. It is not removed while a source or a conversation refers to it or a claim is valid,
 * and it cannot be claimed while it is being removed. All times are the database's.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import * as Rows from "../Rows.ts"
import { timeAfter } from "../../concurrency/DatabaseTime.ts"

/** The bytes must be stored and the source created within this time. */
const claimLifetime = Duration.minutes(15)
/** The bytes must be removed within this time. */
export const removalLease = Duration.minutes(1)

const decodeRefs = Schema.decodeUnknown(Schema.Array(Schema.Struct({ ref: ArtifactRef })))

/** The refs in the column `ref` of the rows. */
export const refsIn = (rows: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<ArtifactRef>> =>
  Effect.orDie(Effect.map(decodeRefs(rows), (found) => found.map(({ ref }) => ref)))

export class ArtifactRows extends Effect.Service<ArtifactRows>()("store/knowledge/ArtifactRows", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Protects the artifact of `size` bytes from removal for 15 minutes. False while it is being removed. */
    const claim = (id: string, ref: ArtifactRef, size: number) =>
      sql`
        with artifact as (
          insert into artifacts as known (ref, bytes) values (${ref}, ${size})
          on conflict (ref) do update set removing_until = null, bytes = excluded.bytes
            where known.removing_until is null or known.removing_until < clock_timestamp()
          returning ref
        )
        insert into artifact_claims (id, ref, expires_at) select ${id}, ref, ${timeAfter(sql, claimLifetime)} from artifact
        returning id`.pipe(Rows.any)

    /**
     * Turns a claim into a lock of the artifact's row, until the caller's transaction has added a source that refers to
     * it. False when the claim has expired: the bytes may have been removed.
     */
    const settle = Effect.fn("ArtifactRows.settle")(function* (id: string, ref: ArtifactRef) {
      yield* sql`select ref from artifacts where ref = ${ref} for update`
      const rows = yield* sql`
        delete from artifact_claims where id = ${id} and expires_at > clock_timestamp() returning id`
      return rows.length === 1
    }, Effect.orDie)

    const releaseClaim = (id: string) => sql`delete from artifact_claims where id = ${id}`.pipe(Rows.none)

    /**
     * `mine`: the artifact is not referenced, and for a minute only the caller may remove it. `busy`: another caller
     * may.
     */
    const beginRemoval = Effect.fn("ArtifactRows.beginRemoval")(
      function* (ref: ArtifactRef) {
        // A separate statement for the lock: the next one must see what its last holder committed.
        yield* sql`
          insert into artifacts as known (ref) values (${ref})
          on conflict (ref) do update set removing_until = known.removing_until`
        const [state] = yield* sql<{
          readonly needed: boolean
          readonly busy: boolean
        }>`/* every tenant: sweep */
          select coalesce(removing_until > clock_timestamp(), false) as busy,
            exists (select from artifact_claims where ref = ${ref} and expires_at > clock_timestamp())
              or exists (select from sources where config ->> 'artifact' = ${ref})
              or exists (select from conversation_artifacts where ref = ${ref}) as needed
          from artifacts where ref = ${ref}`
        if (state?.needed !== false) return "needed"
        if (state.busy) return "busy"
        yield* sql`update artifacts set removing_until = ${timeAfter(sql, removalLease)} where ref = ${ref}`
        return "mine"
      },
      sql.withTransaction,
      Effect.orDie
    )

    /** After `mine`: deletes the artifact's row, or allows the next attempt at once if its bytes still exist. */
    const endRemoval = (ref: ArtifactRef, { removed }: { readonly removed: boolean }) =>
      (removed
        ? sql`delete from artifacts where ref = ${ref} and removing_until is not null`
        : sql`update artifacts set removing_until = null where ref = ${ref}`
      ).pipe(Rows.none)

    /** Files of the agent's sources and conversations. */
    const ofAgent = ({ agentId, tenantId }: AgentScope) =>
      sql`
        select config ->> 'artifact' as ref from sources
        where tenant_id = ${tenantId} and agent_id = ${agentId} and config ->> 'artifact' is not null
        union
        select a.ref from conversation_artifacts a
        join conversations c on c.tenant_id = a.tenant_id and c.id = a.conversation_id
        where c.tenant_id = ${tenantId} and c.agent_id = ${agentId}`.pipe(
        Effect.orDie,
        Effect.flatMap(refsIn)
      )

    /** Originals that nothing refers to, without a claim and not being removed. */
    const orphans = (limit: number) =>
      sql`/* every tenant: sweep */
        select a.ref from artifacts a
        where (a.removing_until is null or a.removing_until < clock_timestamp())
          and not exists (select from artifact_claims c where c.ref = a.ref and c.expires_at > clock_timestamp())
          and not exists (select from sources s where s.config ->> 'artifact' = a.ref)
          and not exists (select from conversation_artifacts c where c.ref = a.ref)
        order by a.ref limit ${limit}`.pipe(Effect.orDie, Effect.flatMap(refsIn))

    return { claim, settle, releaseClaim, beginRemoval, endRemoval, ofAgent, orphans } as const
  })
}) {}

/** None for a source without an original of its own. */
export const artifactOf = (config: Readonly<Record<string, unknown>>): Option.Option<ArtifactRef> =>
  Schema.decodeUnknownOption(ArtifactRef)(config["artifact"])
