/** Assigns keys to messages that were stored without one, in batches. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

export class LegacyMessages extends Effect.Service<LegacyMessages>()("store/conversations/LegacyMessages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * Assigns keys from the newest message of a conversation downwards, each below the lowest existing key. So older
     * messages come before newer ones and before all that had keys, and a crash leaves nothing to undo. Conversations
     * are locked only against deletion, so turns continue. A conversation that is being deleted is skipped.
     */
    const batch = (size: number) => sql`/* every tenant: sweep */
      with waiting as (
        select tenant_id, id, conversation_id, created_at from messages
        where position is null and tenant_is_swept(tenant_id)
        order by conversation_id desc, created_at desc, id desc limit ${size}
      ),
      held as (
        select tenant_id, id from conversations
        where (tenant_id, id) in (select tenant_id, conversation_id from waiting) for key share skip locked
      ),
      lowest as (
        select held.tenant_id, held.id, least(1, (
          select min(m.position) from messages m
          where m.tenant_id = held.tenant_id and m.conversation_id = held.id and m.position is not null
        )) as position
        from held
      ),
      ranked as (
        select w.tenant_id, w.id, lowest.position
          - row_number() over (partition by w.conversation_id order by w.created_at desc, w.id desc) as position
        from waiting w join lowest on lowest.tenant_id = w.tenant_id and lowest.id = w.conversation_id
      )
      update messages m set position = ranked.position from ranked
      where m.tenant_id = ranked.tenant_id and m.id = ranked.id
      returning 1`

    /** Assigns keys to at most `size` messages and returns their number. Returns 0 while another process does it. */
    const giveKeys = (size: number) =>
      Effect.gen(function* () {
        // Checked before the transaction, because usually there is nothing to do and no lock is needed.
        const waiting = yield* sql`/* every tenant: sweep */
            select 1 from messages where position is null and tenant_is_swept(tenant_id) limit 1`
        if (waiting.length === 0) return 0
        return yield* Effect.gen(function* () {
          const [lock] = yield* sql<{ readonly mine: boolean }>`
            select pg_try_advisory_xact_lock(hashtextextended('legacy messages', 0)) as mine`
          return lock?.mine === true ? (yield* batch(size)).length : 0
        }).pipe(sql.withTransaction)
      }).pipe(Effect.orDie, Effect.withSpan("LegacyMessages.giveKeys"))

    return { giveKeys } as const
  })
}) {}
