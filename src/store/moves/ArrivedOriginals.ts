/** Protects originals of a tenant that is moved here until its rows refer to them. */
import * as SqlClient from "@effect/sql/SqlClient"
import * as Effect from "effect/Effect"
import type { TenantId } from "../../domain/Ids.ts"
import { ArtifactRef } from "../../domain/knowledge/Source.ts"
import { refsIn } from "../knowledge/ArtifactRows.ts"
import * as Rows from "../Rows.ts"

const prefixOf = (tenantId: TenantId) => `mov_${tenantId}_`

export class ArrivedOriginals extends Effect.Service<ArrivedOriginals>()("store/moves/ArrivedOriginals", {
  effect: Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient

    /** Those of `refs` that are not kept for the tenant. */
    const missing = (tenantId: TenantId, refs: ReadonlyArray<ArtifactRef>) =>
      sql`
        select ref from unnest(${refs}::text[]) as given (ref)
        where not exists (select from artifact_claims c where c.id = ${prefixOf(tenantId)} || given.ref)`.pipe(
        Effect.orDie,
        Effect.flatMap(refsIn)
      )

    /** Protects a stored original from removal until {@link release}. */
    const keep = (tenantId: TenantId, ref: ArtifactRef) =>
      sql`
        insert into artifact_claims (id, ref, expires_at) values (${prefixOf(tenantId) + ref}, ${ref}, 'infinity')
        on conflict (id) do nothing`.pipe(Rows.none)

    /** Ends the protection of {@link keep}, because the tenant's rows now refer to the originals. */
    const release = (tenantId: TenantId) =>
      sql`delete from artifact_claims where starts_with(id, ${prefixOf(tenantId)})`.pipe(Rows.none)

    return { missing, keep, release } as const
  })
}) {}
