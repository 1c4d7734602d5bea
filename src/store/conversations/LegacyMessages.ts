/** Keys for messages that were stored without one, a batch at a time. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"

export class LegacyMessages extends Effect.Service<LegacyMessages>()("store/conversations/LegacyMessages", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /**
     * From the newest of a conversation downwards, each right below the lowest key there is: older messages come before
     * newer ones and before all that had keys, and a process that dies in between leaves nothing to undo. Conversations
     * are locked against deletion alone, so turns go on; one that is being deleted is passed over.
     */
    const batch = (size: number) => sql`/* every tenant: sweep */
      with waiting as (
        select tenant_id, id, conversation_id, created_at from messages where position is null
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

    /** Gives keys to at most `size` messages and says to how many; 0 also while another process does it. */
    const giveKeys = (size: number) =>
      Effect.gen(function* () {
        // Seen before the transaction: most of the time there is nothing to do, and no lock to take.
        const waiting =
          yield* sql`/* every tenant: sweep */ select 1 from messages where position is null limit 1`
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
