/**
 * Answers to repeated create requests, for 24 hours, per agent and API key. A host of the library has one key for all
 * of its agents.
 */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { AgentKey } from "../domain/accounts/Access.ts"
import { toJsonb } from "./Jsonb.ts"
import * as Rows from "./Rows.ts"

/** Maximum number of rows that one cleanup statement removes. */
const pruneBatch = 1_000

type Owner = Pick<AgentKey, "tenantId" | "agentId" | "keyId">

export class IdempotencyKeyStore extends Effect.Service<IdempotencyKeyStore>()("store/IdempotencyKeys", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * Claims the key for the caller's transaction. None if it is now the caller's, else the stored answer. A concurrent
     * repeat waits here until the first transaction ends.
     */
    const claim = Effect.fn("IdempotencyKeyStore.claim")(function* (
      { agentId, keyId, tenantId }: Owner,
      key: string
    ) {
      const claimed = yield* sql`
        insert into idempotency_keys as known (tenant_id, agent_id, key_id, idempotency_key, response)
        values (${tenantId}, ${agentId}, ${keyId}, ${key}, 'null')
        on conflict (tenant_id, agent_id, key_id, idempotency_key) do update set response = 'null', created_at = now()
        where known.created_at < now() - interval '24 hours'
        returning key_id`
      if (claimed.length === 1) return Option.none<unknown>()
      const [stored] = yield* sql<{ readonly response: unknown }>`
        select response from idempotency_keys
        where tenant_id = ${tenantId} and agent_id = ${agentId} and key_id = ${keyId} and idempotency_key = ${key}`
      return Option.some(stored?.response)
    }, Effect.orDie)

    /** Stores the answer, in the transaction that claimed the key. */
    const answer = ({ agentId, keyId, tenantId }: Owner, key: string, response: unknown) =>
      sql`
        update idempotency_keys set response = ${toJsonb(response)}::jsonb
        where tenant_id = ${tenantId} and agent_id = ${agentId} and key_id = ${keyId} and idempotency_key = ${key}`.pipe(
        Rows.none
      )

    /** Deletes answers older than 24 hours. True when there may be more. */
    const prune = sql`/* every tenant: sweep */
      with old as materialized (
        select tenant_id, agent_id, key_id, idempotency_key from idempotency_keys
        where created_at < now() - interval '24 hours' and tenant_is_swept(tenant_id)
        order by created_at limit ${pruneBatch}::int for update skip locked
      )
      delete from idempotency_keys c using old
      where (c.tenant_id, c.agent_id, c.key_id, c.idempotency_key) = (old.tenant_id, old.agent_id, old.key_id, old.idempotency_key)
      returning c.key_id`.pipe(
      Effect.orDie,
      Effect.map((rows) => rows.length === pruneBatch),
      Effect.withSpan("IdempotencyKeyStore.prune")
    )

    return { claim, answer, prune } as const
  })
}) {}
