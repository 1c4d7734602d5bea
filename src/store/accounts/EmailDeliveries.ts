/** Delivery results of the mails in `email_logs`. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { TenantScope } from "../../domain/accounts/Account.ts"
import { type Delivery, EmailLog, statusOrder } from "../../domain/accounts/EmailLog.ts"
import { toJsonb } from "../Jsonb.ts"
import type { PageRequest } from "./Tenants.ts"
import * as Rows from "../Rows.ts"

const Row = Schema.Struct({
  ...EmailLog.fields,
  sentAt: Schema.NullOr(Schema.DateTimeUtcFromDate),
  updatedAt: Schema.DateTimeUtcFromDate
})

export class EmailDeliveryStore extends Effect.Service<EmailDeliveryStore>()(
  "store/accounts/EmailDeliveries",
  {
    effect: Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** Applies all of them or none. Unknown mails are ignored. Rows are always locked in the same order. */
      const apply = Effect.fn("EmailDeliveryStore.apply")(function* (deliveries: ReadonlyArray<Delivery>) {
        if (deliveries.length === 0) return
        yield* sql`
        with given as (
          select id, max(array_position(${statusOrder}::text[], status)) as place
          from jsonb_to_recordset(${toJsonb(deliveries)}::jsonb) as given (id text, status text) group by id
        ), known as (
          select l.id, l.status, given.place from email_logs l join given on given.id = l.provider_message_id
          order by l.id for update of l
        )
        update email_logs l set status = (${statusOrder}::text[])[known.place], updated_at = now() from known
        where l.id = known.id and known.place > coalesce(array_position(${statusOrder}::text[], l.status), 0)`
      }, Effect.orDie)

      /** Newest first. */
      const list = ({ tenantId }: TenantScope, { after, limit }: PageRequest) =>
        sql`
          select id, recipient as "to", kind, status, sent_at as "sentAt", updated_at as "updatedAt" from email_logs
          where tenant_id = ${tenantId} and ${after === undefined ? sql`true` : sql`id < ${after}`}
          order by id desc limit ${limit + 1}`.pipe(
          Rows.page(Row, limit),
          Effect.withSpan("EmailDeliveryStore.list")
        )

      return { apply, list } as const
    })
  }
) {}
