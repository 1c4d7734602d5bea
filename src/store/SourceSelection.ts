/** Which sources a filter means. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as SqlSchema from "@effect/sql/SqlSchema"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { AgentScope } from "../domain/Access.ts"
import type { RetrieveFilter } from "../domain/Chunk.ts"
import { SourceId } from "../domain/Ids.ts"
import { toJsonb } from "./Jsonb.ts"

export class SourceSelection extends Effect.Service<SourceSelection>()("store/SourceSelection", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    const among = (column: string, values: ReadonlyArray<string>) =>
      sql`${sql(column)} in (select jsonb_array_elements_text(${toJsonb(values)}::jsonb))`

    /** The agent's sources that meet every condition of `filter`; one that is left out is met by all, as is metadata without keys. */
    const matching = Effect.fn("SourceSelection.matching")(function* (
      scope: AgentScope,
      { metadata = {}, sourceIds, sourceTypes }: RetrieveFilter
    ) {
      const conditions = [
        sql`tenant_id = ${scope.tenantId}`,
        sql`agent_id = ${scope.agentId}`,
        ...(sourceIds === undefined ? [] : [among("id", sourceIds)]),
        ...(sourceTypes === undefined ? [] : [among("type", sourceTypes)]),
        ...(Object.keys(metadata).length === 0
          ? []
          : [sql`config -> 'metadata' @> ${toJsonb(metadata)}::jsonb`])
      ]
      const rows = yield* SqlSchema.findAll({
        Request: Schema.Void,
        Result: Schema.Struct({ id: SourceId }),
        execute: () => sql`select id from sources where ${sql.and(conditions)}`
      })(undefined)
      return rows.map(({ id }) => id)
    }, Effect.orDie)

    return { matching } as const
  })
}) {}
