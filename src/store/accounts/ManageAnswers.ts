/** Answers of the management interface to requests with an Idempotency-Key: 24 hours, per access token. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { RepeatableRequest } from "../../domain/IdempotencyKey.ts"
import type { TenantId } from "../../domain/Ids.ts"
import * as Rows from "../Rows.ts"

const StoredAnswer = Schema.Struct({ isSame: Schema.Boolean, answer: Schema.NullOr(Schema.String) })
type StoredAnswer = typeof StoredAnswer.Type

/** Maximum number of rows that one sweep removes. */
const sweepBatch = 1_000

/**
 * Removes the stored answers of a tenant, any of which may have content that is being erased: they are sealed. Their
 * keys stay claimed, so that nothing is done twice.
 */
export const clearStoredAnswers = (sql: SqlClient.SqlClient, tenantId: TenantId) =>
  sql`update manage_answers set answer = null where tenant_id = ${tenantId} and answer is not null`

export class ManageAnswerStore extends Effect.Service<ManageAnswerStore>()("store/accounts/ManageAnswers", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const keyOf = ({ idempotencyKey, tenantId, tokenId }: RepeatableRequest) =>
      sql`tenant_id = ${tenantId} and token_id = ${tokenId} and idempotency_key = ${idempotencyKey}`

    /**
     * None when the key is now claimed for the caller. Otherwise returns the request that has it, with its sealed
     * answer.
     */
    const claim = (request: RepeatableRequest): Effect.Effect<Option.Option<StoredAnswer>> =>
      Effect.gen(function* () {
        const { idempotencyKey, requestHash, tenantId, tokenId } = request
        const claimed = yield* sql`
          insert into manage_answers as known (tenant_id, token_id, idempotency_key, request_hash)
          values (${tenantId}, ${tokenId}, ${idempotencyKey}, ${requestHash})
          on conflict (tenant_id, token_id, idempotency_key)
          do update set request_hash = excluded.request_hash, answer = null, created_at = now()
          where known.created_at < now() - interval '24 hours'
          returning token_id`
        if (claimed.length === 1) return Option.none<StoredAnswer>()
        const found = yield* sql`
          select request_hash = ${requestHash}::bytea as "isSame", answer from manage_answers where ${keyOf(request)}`.pipe(
          Rows.first(StoredAnswer)
        )
        // The key was released between the two statements. The next attempt can claim it.
        return Option.orElseSome(found, () => ({ isSame: true, answer: null }))
      }).pipe(Effect.orDie)

    /** `answer` is sealed. */
    const keep = (request: RepeatableRequest, answer: string) =>
      sql`update manage_answers set answer = ${answer} where ${keyOf(request)}`.pipe(Rows.none)

    /** Releases the key of a request that had no effect, so that it can be used again. */
    const release = (request: RepeatableRequest) =>
      sql`delete from manage_answers where ${keyOf(request)} and answer is null`.pipe(Rows.none)

    /** Deletes answers of all tenants older than 24 hours. True when there may be more. */
    const sweep = sql`/* every tenant: sweep */
      delete from manage_answers where (tenant_id, token_id, idempotency_key) in (
        select tenant_id, token_id, idempotency_key from manage_answers
        where created_at < now() - interval '24 hours' and tenant_is_swept(tenant_id)
        order by created_at limit ${sweepBatch}::int
      ) returning token_id`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.length === sweepBatch),
      Effect.withSpan("ManageAnswerStore.sweep")
    )

    return { claim, keep, release, sweep } as const
  })
}) {}
