/** The inbox is sorted exactly by the last change, although its index is only accurate to some minutes. */
import * as SqlClient from "@effect/sql/SqlClient"
import { expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { UserId } from "../../src/domain/Ids.ts"
import { InboxListStore } from "../../src/store/conversations/InboxList.ts"
import * as Fixtures from "../Fixtures.ts"
import { eachEngineLive, reset } from "../TestDatabase.ts"

const count = 400

eachEngineLive("The inbox", (it) => {
  it.effect("lists every conversation once, by its last change, on pages of any size", () =>
    Effect.gen(function* () {
      yield* reset
      const sql = yield* SqlClient.SqlClient
      const { agentId, tenantId } = yield* Fixtures.agent()
      yield* sql`insert into end_users (id, tenant_id) values ('usr_1', ${tenantId})`
      // Within an hour, so that many are closer together than the index tells apart; some have the same moment.
      yield* sql`
        insert into conversations (id, tenant_id, agent_id, end_user_id, channel, updated_at, changed_at)
        select 'cnv_' || lpad(n::text, 4, '0'), ${tenantId}, ${agentId}, 'usr_1', 'api', at,
          case n % 4 when 0 then null when 1 then at - interval '1 minute' else at + random() * interval '5 minutes' end
        from generate_series(1, ${count}::int) n,
          lateral (select date_trunc('second', now() - random() * n / n * interval '1 hour') as at) moment`
      const expected = yield* sql<{ readonly id: string }>`
        select id from conversations order by greatest(updated_at, changed_at) desc, id desc`
      const { list } = yield* InboxListStore
      const reader = { tenantId, userId: UserId.make("mbr_1") }
      for (const limit of [1, 7, 100]) {
        const seen: Array<string> = []
        let after: string | undefined
        do {
          const page = yield* list(reader, {}, { limit, after })
          seen.push(...page.rows.map(({ id }) => id))
          after = page.next ?? undefined
        } while (after !== undefined)
        expect(seen).toEqual(expected.map(({ id }) => id))
      }
    }).pipe(Effect.provide(InboxListStore.Default))
  )
})
