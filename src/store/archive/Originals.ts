/** The refs of originals that rows name. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Chunk from "effect/Chunk"
import * as Stream from "effect/Stream"
import { refsIn } from "../knowledge/ArtifactRows.ts"

/** Maximum refs per query. */
const pageSize = 500

/** The next originals after `after`, of one tenant or of all. */
export const refsAfter = (tenantId: string | null, after: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const all =
      tenantId === null
        ? sql`select ref from artifacts where ref > ${after}`
        : sql`
            select config ->> 'artifact' as ref from sources where tenant_id = ${tenantId} and config ->> 'artifact' > ${after}
            union select ref from conversation_artifacts where tenant_id = ${tenantId} and ref > ${after}`
    return yield* refsIn(yield* sql`select ref from (${all}) found order by ref limit ${pageSize}`)
  })

/** All of them, in order. */
export const refs = (tenantId: string | null) =>
  Stream.paginateChunkEffect("", (after) =>
    Effect.map(refsAfter(tenantId, after), (found) => {
      const last = found.at(-1)
      return [
        Chunk.fromIterable(found),
        last === undefined ? Option.none<string>() : Option.some<string>(last)
      ] as const
    })
  )
