/** Turns by the Idempotency-Key of their request, for 24 hours. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../../domain/accounts/Access.ts"
import { type KeyId, RunId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

/** Maximum number of rows that one cleanup statement removes. */
const pruneBatch = 1_000

export interface TurnClaim {
  readonly keyId: KeyId
  readonly idempotencyKey: string
  /** Hash of the request. The same key with another request is refused. */
  readonly requestHash: string
}

const Claimed = Schema.Struct({ requestHash: Schema.String, runId: RunId })

export class TurnClaimStore extends Effect.Service<TurnClaimStore>()("store/chat/TurnClaims", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const where = ({ agentId, tenantId }: AgentScope, { idempotencyKey, keyId }: TurnClaim) => sql`
      tenant_id = ${tenantId} and agent_id = ${agentId} and key_id = ${keyId} and idempotency_key = ${idempotencyKey}`

    /**
     * Claims the key for the turn `runId`, in the transaction that starts it. None if the key is now that turn's, else
     * the turn that has it. A concurrent repeat waits here until the first transaction ends.
     */
    const claim = Effect.fn("TurnClaimStore.claim")(function* (
      scope: AgentScope,
      given: TurnClaim,
      runId: RunId
    ) {
      const rows = yield* sql`
        insert into turn_claims as known (tenant_id, agent_id, key_id, idempotency_key, request_hash, run_id)
        values (${scope.tenantId}, ${scope.agentId}, ${given.keyId}, ${given.idempotencyKey}, ${given.requestHash}, ${runId})
        on conflict (tenant_id, agent_id, key_id, idempotency_key)
          do update set request_hash = excluded.request_hash, run_id = excluded.run_id, created_at = now()
          where known.created_at < now() - interval '24 hours'
        returning run_id`
      if (rows.length === 1) return Option.none()
      const earlier = yield* sql`
        select request_hash as "requestHash", run_id as "runId" from turn_claims where ${where(scope, given)}`.pipe(
        Rows.one(Claimed)
      )
      return Option.some(earlier)
    }, Effect.orDie)

    /** Releases the key of `runId`, whose request was refused. */
    const release = (scope: AgentScope, given: TurnClaim, runId: RunId) =>
      sql`delete from turn_claims where ${where(scope, given)} and run_id = ${runId}`.pipe(
        Rows.none,
        Effect.withSpan("TurnClaimStore.release")
      )

    /** Deletes claims older than 24 hours. True when there may be more. */
    const prune = sql`/* every tenant: sweep */
      with old as materialized (
        select tenant_id, agent_id, key_id, idempotency_key from turn_claims
        where created_at < now() - interval '24 hours' and tenant_is_swept(tenant_id)
        order by created_at limit ${pruneBatch}::int for update skip locked
      )
      delete from turn_claims c using old
      where (c.tenant_id, c.agent_id, c.key_id, c.idempotency_key) = (old.tenant_id, old.agent_id, old.key_id, old.idempotency_key)
      returning c.key_id`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.length === pruneBatch),
      Effect.withSpan("TurnClaimStore.prune")
    )

    return { claim, release, prune } as const
  })
}) {}
